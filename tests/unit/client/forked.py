"""Program of the fork matrix: one kind of object, used before a fork, then in the parent and in the child.

It prints ``fault SECONDS KIND`` where it needs a slow server, and at its end a JSON report on the last line. The states
are *idle*, *in use* by another thread, and *blocked*: another thread waits inside a call of the object.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import LeaseKeeper, PravegaClient
from pravega_connector.client.shared import shared_client
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import TableVersionError
from pravega_connector.exactly_once.batch_commit import Ledger
from pravega_connector.exactly_once.batch_commit.entries import Barrier
from pravega_serde import ForkedError, serializer_for
from pravega_serde.registry import AsyncSchemaRegistryClient, SchemaRegistryClient
from pravega_serde.registry import shared_client as shared_registry

TEXT = serializer_for("string")
# Seconds: for a call in the child, from which on it hangs, and for a server that is slow so that a call blocks.
PATIENCE = 4.0
SLOW = 0.6
FORKS_IN_USE = 4


class Hangs(BaseException):
    """A call in the child does not return."""


class Kind(NamedTuple):
    """Object of the matrix, with a user's calls."""

    uses: dict[str, Callable[[], object]]
    """Calls, tried in the parent and in the child. A name that ends in * may work in the child, too."""
    keep: Callable[[], object]
    """Call that another thread repeats."""
    close: Callable[[], object]
    """End, which must do nothing in a child."""
    slow: str | None = None
    """Kind of request that makes ``keep`` block where it is slow."""
    check: Callable[[], None] = lambda: None
    """Assertion after all, in the parent."""


class Acknowledged:
    """Values that were reported durable to the parent."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._count = 0
        self._lock = threading.Lock()

    def next(self) -> str:
        with self._lock:
            self._count += 1
            return f"{os.getpid()}-{self._count}"

    def check(self, found: list[str], allowed: int = 0) -> None:
        own = [value for value in found if value.startswith(f"{os.getpid()}-")]
        assert len(own) == len(set(own)), "an event of the parent is there twice"
        assert set(self.values) <= set(own), "an acknowledged event of the parent is lost"
        assert len(found) - len(own) <= allowed, "a child has written"


def kinds(uri: str, registry_uri: str) -> dict[str, Callable[[], Kind]]:
    config = PravegaConfig(controller=uri)
    client = shared_client(config)
    done = Acknowledged()
    stream = f"s/{uuid.uuid4()}"
    client.create_stream(stream)
    for number in range(50):
        client.write(stream, str(number), "string")

    def new_stream() -> str:
        name = f"s/{uuid.uuid4()}"
        client.create_stream(name)
        return name

    def plain_client() -> Kind:
        used = PravegaClient(config)
        return Kind(
            {
                "head": lambda: used.head(stream),
                "read": lambda: list(used.read(stream)),
                "writer": lambda: used.writer(stream).abandon(),
                "create_stream": lambda: used.create_stream(stream),
                "trouble*": lambda: (used.trouble, used.counters.as_dict()),
            },
            lambda: list(used.read(stream)),
            used.close,
            "read",
        )

    def process_client() -> Kind:
        def another() -> None:
            if shared_client(config) is client:
                client.head(stream)
            else:  # a child has a separate one
                shared_client(config).close()

        return Kind({"shared_client*": another}, another, lambda: None)

    def writer() -> Kind:
        target = new_stream()
        made = client.writer(target, "string")

        def write() -> None:
            value = done.next()
            made.write(value)
            made.flush()
            done.values.append(value)

        return Kind(
            {
                "write": lambda: made.write(done.next()),
                "flush": made.flush,
                "write and flush": write,
                "is_free": lambda: made.is_free,
            },
            write,
            made.close,
            "append",
            lambda: done.check(list(client.read(target, "string"))),
        )

    def transaction() -> Kind:
        target = new_stream()
        made = client.transactions(target, "string").begin()

        def write() -> None:
            value = done.next()
            made.write(value)
            made.flush()
            done.values.append(value)

        def check() -> None:
            made.commit()
            done.check(list(client.read(target, "string")))

        uses = {"write": lambda: made.write(done.next()), "flush": made.flush, "status": made.status, "ping": made.ping}
        only_child = {"commit": made.commit, "abort": made.abort, "detach": made.detach}
        return Kind(
            uses | {f"{name}-": call for name, call in only_child.items()}, write, lambda: None, "append", check
        )

    def streams_transaction() -> Kind:
        targets = [new_stream(), new_stream()]
        made = client.transaction_over(targets, "string", ledger=f"s/{uuid.uuid4()}", app_id="fork")

        def write() -> None:
            value = done.next()
            made.write(targets[0], value)
            made.flush()
            done.values.append(value)

        def check() -> None:
            made.commit()
            done.check(list(client.read(targets[0], "string")))

        uses = {"write": lambda: made.write(targets[0], done.next()), "flush": made.flush, "ping": made.ping}
        only_child = {"commit-": made.commit, "abort-": made.abort}
        return Kind(uses | only_child | {"version*": lambda: made.version}, write, lambda: None, "append", check)

    def known_transaction() -> Kind:
        target = new_stream()
        made = client.transaction(target, client.transactions(target).begin().id)
        return Kind({"status": made.status, "ping": made.ping}, made.status, lambda: None)

    def transactional_writer() -> Kind:
        made = client.transactions(new_stream())

        def begin() -> None:
            made.begin().abort()

        return Kind({"begin": begin}, begin, lambda: None)

    def lease_keeper() -> Kind:
        made = LeaseKeeper(0.05)
        held = client.transactions(new_stream()).begin()
        made.add(held)

        def again() -> None:
            made.discard(held)
            made.add(held)

        return Kind(
            {"add": lambda: made.add(held), "check": made.check, "failures": lambda: made.failures, "again": again},
            again,
            made.close,
        )

    def tail_reader() -> Kind:
        target = new_stream()
        made = client.follow(target, start="head")

        def read() -> None:
            client.write(target, b"x")
            assert made.poll(10) is not None

        return Kind(
            {"poll": lambda: made.poll(0.1), "position*": lambda: made.position, "next-": lambda: next(iter(made))},
            lambda: made.poll(0.3),
            made.close,
            check=read,
        )

    def streams_reader() -> Kind:
        made = client.follow([stream, new_stream()], start="head")
        return Kind({"poll": lambda: made.poll(0.1)}, lambda: made.poll(0.3), made.close)

    def value_reader() -> Kind:
        target = new_stream()
        with client.writer(target, "string") as one:
            for number in range(1000):
                one.write(str(number))
        made = client.follow(target, "string", start="head")
        next(iter(made))
        return Kind(
            {"next-": lambda: next(iter(made)), "poll": lambda: made.poll(0.1), "has_events": lambda: made.has_events}
            | {"position*": lambda: made.position},
            lambda: made.poll(0.3) or client.write(target, "more", "string"),
            made.close,
        )

    def read_iterator() -> Kind:
        target = new_stream()
        with client.writer(target) as one:
            for _ in range(200):
                one.write(b"x" * 100_000)
        made = client.read_columns(target)
        batches = iter(made)
        first = len(next(batches).events)

        def check() -> None:
            assert first + sum(len(batch.events) for batch in batches) == 200

        return Kind({"the rest-": lambda: list(batches)}, lambda: time.sleep(0.01), batches.close, check=check)

    def group() -> Any:
        name = f"g-{uuid.uuid4()}"
        return client.reader_group(f"s/{name}", [stream], start="head", checkpoint_interval=None)

    def reader_group() -> Kind:
        made = group()
        return Kind(
            {"state": lambda: made.state, "online_readers": made.online_readers, "unread": made.unread_bytes},
            made.online_readers,
            made.close,
            "read",
        )

    def group_reader() -> Kind:
        made = group().reader("r", "string")
        assert made.poll(10)
        return Kind(
            {"poll": lambda: made.poll(0.1), "next": lambda: made.next_event(0.1), "position": lambda: made.position},
            lambda: made.poll(0.3),
            made.close,
        )

    def exactly_once_reader() -> Kind:
        target = new_stream()
        made = group().exactly_once("r", "string", to=target, output="string")

        def step() -> None:
            for event in made.poll(0.1):
                made.write(event.value)
            made.commit()

        def check() -> None:
            found = list(client.read(target, "string"))
            assert len(found) == len(set(found)), "an event was written twice"

        return Kind(
            {"poll": lambda: made.poll(0.1), "commit": made.commit, "begin-": made.begin, "step": step},
            lambda: made.poll(0.3),
            made.close,
            check=check,
        )

    def revisioned() -> Kind:
        target = new_stream()
        made = client.revisioned(target, "string")

        def write() -> None:
            value = done.next()
            made.write_unconditionally(value)
            done.values.append(value)

        def conditionally() -> None:
            value = done.next()
            if made.write_conditionally(made.latest_revision(), value) is not None:
                done.values.append(value)

        return Kind(
            {
                "write_unconditionally": write,
                "write_conditionally": conditionally,
                "latest_revision*": made.latest_revision,
                "read_from*": lambda: list(made.read_from(made.oldest_revision())),
            },
            write,
            made.close,
            "append",
            lambda: done.check([value for _, value in made.read_from(made.oldest_revision())]),
        )

    def synchronizer() -> Kind:
        target = new_stream()
        made = client.synchronizer(
            target,
            create=lambda word: (word,),
            apply=lambda words, word: (*words, word),
            init_serializer=TEXT,
            update_serializer=TEXT,
        )
        made.initialize("first")

        def add() -> None:
            value = done.next()
            made.update_state(lambda _: [value])
            done.values.append(value)

        def check() -> None:
            made.fetch_updates()
            done.check(list(made.state or ()), allowed=1)

        return Kind(
            {
                "update_state": add,
                "fetch_updates": made.fetch_updates,
                "unconditionally": lambda: made.update_state_unconditionally([done.next()]),
                "compact": lambda: made.compact(lambda state: None),
                "state*": lambda: made.state,
            },
            add,
            made.close,
            "conditional append",
            check,
        )

    def key_value_table() -> Kind:
        name = new_stream()
        client.create_table(name, 20, partitions=2)
        made = client.table(name, key="string", value="string")
        counted: list[int] = []

        def insert() -> None:
            value = done.next()
            made.insert(value.rjust(20), value)
            done.values.append(value)

        def count() -> None:
            """Add one to the counter of this process, which several threads do."""
            key = str(os.getpid()).rjust(20)
            while True:
                entry = made.get(key)
                try:
                    if entry is None:
                        made.insert(key, "1")
                    else:
                        made.put(key, str(int(entry.value) + 1), entry.version)
                except TableVersionError:
                    continue
                counted.append(1)
                return

        def check() -> None:
            found = {entry.key.strip(): entry.value for entry in made.entries()}
            assert found.pop(str(os.getpid())) == str(len(counted))
            done.check([value for value in found.values() if value.startswith(f"{os.getpid()}-")])

        return Kind(
            {
                "insert*": insert,
                "count*": count,
                "get*": lambda: made.get("x" * 20),
                "keys*": lambda: list(made.keys()),
            },
            insert,
            lambda: None,
            "update table",
            check,
        )

    def byte_writer() -> Kind:
        target = new_stream()
        made = client.byte_writer(target)
        written: list[bytes] = []

        def write() -> None:
            made.write(b"%8d" % os.getpid())
            made.flush()
            written.append(b"x")

        def check() -> None:
            with client.byte_reader(target) as found:
                data = found.read()
            assert {data[i : i + 8] for i in range(0, len(data), 8)} == {b"%8d" % os.getpid()}
            assert len(data) == 8 * len(written)

        uses = {"write and flush": write, "flush": lambda: (made.flush(),), "tell": lambda: (made.tell(),)}
        return Kind(uses | {"write-": lambda: made.write(b"child")}, write, lambda: (made.close(),), "append", check)

    def byte_reader() -> Kind:
        target = new_stream()
        with client.byte_writer(target) as one:
            one.write(b"x" * 100_000)
        made = client.byte_reader(target, wait=0.2)
        made.read(1)
        return Kind(
            {"read": lambda: made.read(10), "readline-": lambda: made.readline(9), "seek": lambda: made.seek(5)},
            lambda: made.read(20_000) or made.seek(0),
            lambda: (made.close(),),
        )

    def ledger() -> Kind:
        made = Ledger(client.stores, client.name(new_stream()))

        def append() -> None:
            revision, _ = made.read()
            made.append(Barrier(str(uuid.uuid4())), revision, deadline=client.stores.deadline())

        return Kind({"read": made.read, "append": append}, append, made.close, "conditional append")

    def registry_client() -> Kind:
        made = SchemaRegistryClient(registry_uri)
        shared_registry(made.config)

        def ask() -> None:
            assert list(made.groups()) == []

        return Kind({"groups*": ask, "shared*": lambda: list(shared_registry(made.config).groups())}, ask, made.close)

    return {
        name: value
        for name, value in locals().items()
        if callable(value) and name not in ("new_stream", "group", "client", "config")
    } | asyncio_kinds(config, registry_uri, stream, new_stream, client)


def asyncio_kinds(
    config: PravegaConfig, registry_uri: str, stream: str, new_stream: Callable[[], str], plain: PravegaClient
) -> dict[str, Callable[[], Kind]]:
    """Objects of an event loop, which runs in its own thread."""
    loop = asyncio.new_event_loop()
    parent = os.getpid()

    def run(coroutine: Any) -> Any:
        """Await a coroutine: in the parent's loop, or in a new one of the child."""
        if os.getpid() != parent:
            return asyncio.run(coroutine)
        if not loop.is_running():
            threading.Thread(target=loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(120)

    async def made_client() -> AsyncPravegaClient:
        client = AsyncPravegaClient(config)
        await client.head(stream)
        return client

    def async_client() -> Kind:
        client = run(made_client())

        async def read() -> list[bytes]:
            return [event async for event in client.read(stream)]

        return Kind(
            {"head": lambda: run(client.head(stream)), "read": lambda: run(read())},
            lambda: run(read()),
            lambda: run(client.close()),
            "read",
        )

    def async_writer() -> Kind:
        target = new_stream()
        client = run(made_client())
        writer = client.writer(target, "string")
        done = Acknowledged()

        async def write() -> None:
            value = done.next()
            await writer.write(value)
            await writer.flush()
            done.values.append(value)

        async def only_write() -> None:
            await writer.write(done.next())

        return Kind(
            {"write": lambda: run(only_write()), "write and flush": lambda: run(write())},
            lambda: run(write()),
            lambda: run(writer.close()),
            "append",
            lambda: done.check(list(plain.read(target, "string"))),
        )

    def async_reader() -> Kind:
        reader = run(made_client()).follow(stream, "string", start="head")

        async def poll(timeout: float = 0.1) -> object:
            return await reader.poll(timeout)

        run(poll())
        return Kind({"poll": lambda: run(poll())}, lambda: run(poll(0.3)), lambda: run(reader.close()))

    def async_events() -> Kind:
        events = run(made_client()).read(stream)

        async def take() -> object:
            return await anext(events, None)

        run(take())
        return Kind({"anext": lambda: run(take())}, lambda: time.sleep(0.01), lambda: run(events.aclose()))

    def async_group_reader() -> Kind:
        group = run(made_client()).reader_group(f"s/g-{uuid.uuid4()}", [stream], start="head", checkpoint_interval=None)

        async def made() -> Any:
            return await (await group).reader("r", "string")

        reader = run(made())

        async def poll(timeout: float = 0.1) -> object:
            return await reader.poll(timeout)

        run(poll())
        return Kind({"poll": lambda: run(poll())}, lambda: run(poll(0.3)), lambda: run(reader.close()))

    def async_registry_client() -> Kind:
        client = AsyncSchemaRegistryClient(registry_uri)

        async def ask() -> object:
            return [group async for group in client.groups()]

        return Kind({"groups": lambda: run(ask())}, lambda: run(ask()), lambda: run(client.close()))

    return {name: value for name, value in locals().items() if name.startswith("async_")}


# ---------------------------------------------------------------- forking


def outcome_of(call: Callable[[], object]) -> str:
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        call()
        outcome = "works"
    except ForkedError:
        outcome = "ForkedError"
    except Hangs:
        outcome = "hangs"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome if time.monotonic() - began < PATIENCE / 2 or outcome == "hangs" else f"{outcome}, late"


def fork(kind: Kind) -> dict[str, str]:
    """Fork, and use the object in the child; the outcome of each call there."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if not child:
            found = {}
            try:
                signal.signal(signal.SIGALRM, _interrupt)
                for name, call in kind.uses.items():
                    found[name] = outcome_of(call)
                    with open(file.name, "w") as report:
                        json.dump(found, report)
                found["close*"] = outcome_of(kind.close)
                with open(file.name, "w") as report:
                    json.dump(found, report)
            finally:
                os._exit(0)
        end = time.monotonic() + PATIENCE * (len(kind.uses) + 2)
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                with open(file.name) as report:
                    return json.loads(report.read() or "{}") | {"child": "hangs"}
            time.sleep(0.005)
        with open(file.name) as report:
            return json.loads(report.read() or '{"child": "died"}')


def _interrupt(*_: object) -> None:
    raise Hangs


@contextmanager
def kept_in_use(kind: Kind, faults: list[str]) -> Iterator[threading.Event]:
    """Use the object in another thread; the event is set as soon as it has been used."""
    stop, used = threading.Event(), threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                kind.keep()
                used.set()
        except BaseException as error:
            faults.append(f"{type(error).__name__}: {error}")
            used.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield used
    finally:
        stop.set()
        thread.join(30)
        if thread.is_alive():
            faults.append("the parent's thread hangs")


def main(name: str, uri: str, registry_uri: str) -> None:
    kind = kinds(uri, registry_uri)[name]()
    children: dict[str, list[dict[str, str]]] = {}
    faults: list[str] = []

    def in_parent(state: str) -> None:
        for use, call in kind.uses.items():
            if not use.endswith("-"):
                try:
                    call()
                except BaseException as error:
                    faults.append(f"{state}, {use}: {type(error).__name__}: {error}")

    in_parent("before")
    children["idle"] = [fork(kind)]
    in_parent("idle")
    children["in use"] = []
    with kept_in_use(kind, faults) as used:
        used.wait(10)
        for _ in range(FORKS_IN_USE):
            children["in use"].append(fork(kind))
    in_parent("in use")
    if kind.slow is not None:
        print("fault", SLOW, kind.slow, flush=True)
        input()
    with kept_in_use(kind, faults):
        time.sleep(SLOW / 2)
        children["blocked"] = [fork(kind)]
    in_parent("blocked")
    try:
        kind.check()
    except BaseException as error:
        faults.append(f"check: {type(error).__name__}: {error}")
    with suppress(ConnectionError):
        kind.close()
    print(json.dumps({"children": children, "parent": faults}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
