"""The client for asyncio, in the loop of the standard library and in uvloop."""

import asyncio
import itertools
import re
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.aio.event_loop import run as in_event_loop
from pravega_connector.aio.objects import AsyncLeaseKeeper
from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.core.connection import Tls, open_socket
from pravega_connector.errors import ConfigError, ControllerError, StreamNotFoundError, TransactionAbortedError
from pravega_connector.testing.requests import Append, frame
from pravega_connector.wire import GetStreamSegmentInfo, ReadSegment, StreamCut
from pravega_serde.errors import DeserializationError, UnsupportedFormatError
from tests.support.fake_stream import FakeStream
from tests.support.fakes import FakeController
from tests.support.stopwatch import Stopwatch
from tests.unit.client.controller._answers import YES


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine function in a new loop. An error of a task that is not awaited fails the test."""

    def in_loop(main):
        untold = []

        def note(_, context):
            # gRPC's queue is one for all loops: what it hears of a call that was cancelled in the test before comes
            # here, for a loop that is closed.
            if "PollerCompletionQueue" not in context["message"]:
                untold.append(context)

        async def watched():
            asyncio.get_running_loop().set_exception_handler(note)
            async with asyncio.timeout(60):
                return await main()

        result = (asyncio if request.param == "asyncio" else uvloop).run(watched())
        assert untold == []
        return result

    return in_loop


@asynccontextmanager
async def connected(stream, **options):
    client = AsyncPravegaClient("tcp://127.0.0.1:1")
    client._client = stream.client(**options)
    async with client:
        yield client


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def cancelled(task):
    """Cancel a task, and wait until it has ended by that."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def held(store, kind, times=1):
    """Have the store keep its answers to the next requests of a kind; the function that is returned gives them."""
    kept = []
    store.on(kind, lambda session, request: kept.append((session, request)), times=times)

    def give():
        while kept:
            store.serve(*kept.pop(0))

    give.count = lambda: len(kept)
    return give


# ---------------------------------------------------------------- calls


def test_what_is_written_is_read_and_followed(run, stream):
    async def main():
        async with connected(stream) as client:
            async with client.writer(stream.name, "string") as writer:
                for number in range(2000):
                    await writer.write(str(number), "key")
                await writer.flush()
            end = await client.tail(stream.name)
            async with client.follow(stream.name, "string", start="earliest") as reader:
                followed = list(itertools.chain(*[await reader.poll(10)]))
                assert reader.position.positions.keys() == end.positions.keys()
            read = [value async for value in client.read(stream.name, "string")]
            some = [value async for value in client.read(stream.name, "string", limit=3)]
            batches = [batch async for batch in client.read_columns(stream.name, end=end)]
            return read, some, followed, sum(len(batch.events) for batch in batches)

    read, some, followed, count = run(main)
    assert read == [str(number) for number in range(2000)]
    assert (some, count) == (["0", "1", "2"], 2000)
    assert followed
    assert followed == read[: len(followed)]


def test_a_call_that_waits_leaves_the_loop_to_others(run, stream, store):
    async def main():
        async with connected(stream) as client:
            give = held(store, GetStreamSegmentInfo)
            asked = asyncio.create_task(client.tail(stream.name))
            await until(give.count)  # turns of the loop, while the call waits
            assert not asked.done()
            give()
            assert (await asked).positions == {0: 0}

    run(main)


def test_a_poll_ends_in_time_and_comes_on_even_without_any(run, stream, store):
    async def main():
        async with connected(stream) as client, client.follow(stream.name) as reader:
            began = Stopwatch()
            assert await reader.poll(0.2) is None
            assert began.lasted(0.15)
            assert began.within(5)
        async with connected(stream) as client, client.follow(stream.name) as reader:
            while not store.parked():
                assert await reader.poll(0) is None  # which does not wait, and yet lets its errands come on

    run(main)


def test_a_reader_that_is_closed_while_it_is_polled_leaves_no_deaf_one(run, stream, store):
    """The next reader gets the descriptors of the one before, on which the loop was waiting."""

    async def main():
        async with connected(stream) as client, client.writer(stream.name) as writer:
            for number in range(5):
                reader = client.follow(stream.name)
                polling = asyncio.create_task(reader.poll(30))
                await until(lambda asked=2 * number: store.count(ReadSegment) > asked)
                await asyncio.sleep(0)  # now it waits in the loop
                await reader.close()
                other = client.follow(stream.name)
                began = Stopwatch()
                following = asyncio.create_task(other.poll(30))
                await until(lambda asked=2 * number + 1: store.count(ReadSegment) > asked)
                await writer.write(b"%d" % number)
                assert (await following).events.to_pylist() == [b"%d" % number]
                assert began.within(10)
                await other.close()
                with pytest.raises(ConfigError, match=f"the reader of stream {stream.name} is closed"):
                    await polling
                with pytest.raises(ConfigError, match=f"the reader of stream {stream.name} is closed"):
                    await reader.poll(0)

    run(main)


def test_a_reader_continues_across_scaling_and_ends_with_the_stream(run, stream, store):
    async def main():
        async with connected(stream) as client, client.follow(stream.name, str) as reader:
            store.append(stream.segment(0), frame(b"a") + frame(b"b"))
            found = [await anext(reader)]
            assert reader.position == StreamCut(stream.name, {0: 9})
            (new,) = stream.scale([0], 0.0, 1.0)
            store.append(stream.segment(new), frame(b"c"))
            stream.seal_all()
            return found + [value async for value in reader]

    assert run(main) == ["a", "b", "c"]


def test_many_tasks_write_and_follow_at_the_same_time(run, store):
    stream = FakeStream(store, segments=4)

    async def main():
        async with connected(stream) as client, client.writer(stream.name) as writer:

            async def write(task):
                for number in range(100):
                    await writer.write(b"%d:%d" % (task, number), str(task))

            async def follow():
                found = []
                async with client.follow(stream.name, bytes, start="earliest") as reader:
                    while len(found) < 2000:
                        found += await reader.poll(10)
                return found

            readers = [asyncio.create_task(follow()) for _ in range(10)]
            await asyncio.gather(*[write(task) for task in range(20)])
            await writer.flush()
            return await asyncio.gather(*readers)

    expected = [[b"%d:%d" % (task, number) for number in range(100)] for task in range(20)]
    for found in run(main):
        assert [[event for event in found if event.startswith(b"%d:" % task)] for task in range(20)] == expected


def test_errors_are_those_of_the_plain_client_and_come_behind_what_was_before_them(run, stream, store):
    async def main():
        found = []
        async with connected(stream) as client:
            with pytest.raises(UnsupportedFormatError, match="did you mean"):
                await client.writer(stream.name, "strin")
            events = client.read(stream.name, "json")
            found.append(await anext(events))
            with pytest.raises(DeserializationError, match="offset 12"):
                await anext(events)
            stream.exists = False
            with pytest.raises(StreamNotFoundError):
                await client.head(stream.name)
        return found

    store.append(stream.segment(0), frame(b'"ok"') + frame(b"{") + frame(b"1"))
    assert run(main) == ["ok"]


def test_names_are_those_of_the_plain_client():
    plain = {name for name in dir(PravegaClient) if not name.startswith("_")}
    own = {name for name in dir(AsyncPravegaClient) if not name.startswith("_")}
    lacking = plain - own
    assert own - plain == {"config", "run"}
    client = AsyncPravegaClient("tcp://127.0.0.1:1")
    for name, hint in [*((name, "await client.run(") for name in lacking), ("createEventWriter", "client.writer(")]:
        with pytest.raises(AttributeError, match=re.escape(hint)):
            getattr(client, name)


def test_a_client_belongs_to_one_loop(run, stream):
    client = AsyncPravegaClient("tcp://127.0.0.1:1")
    client._client = stream.client()
    run(lambda: client.head(stream.name))
    with pytest.raises(ConfigError, match="another event loop"):
        run(lambda: client.head(stream.name))


def test_what_is_open_belongs_to_the_loop_of_its_client(run, stream):
    client = AsyncPravegaClient("tcp://127.0.0.1:1")
    client._client = stream.client()
    writer, reader = client.writer(stream.name, "string"), client.follow(stream.name)

    async def in_its_loop():
        await writer, await reader
        for call in (writer.flush, writer.close, writer.abandon, lambda: reader.poll(0), reader.close, client.close):
            with pytest.raises(ConfigError, match="another event loop"):
                await asyncio.to_thread(run, call)
        await writer.write("written here")
        await client.read(stream.name).aclose()
        await writer.close()
        await reader.close()
        await client.close()

    run(in_its_loop)


def test_what_waits_in_the_plain_client_waits_in_the_loop(run, stream, store):
    async def main():
        async with connected(stream) as client:
            shared = {"create": int, "apply": lambda state, update: state + int(update)}
            made = await client.run(
                lambda plain: plain.synchronizer(
                    stream.name, **shared, init_serializer=Text(), update_serializer=Text()
                )
            )
            await client.run(lambda _: made.initialize("1"))
            adding = [client.run(lambda _: made.update_state(lambda state: ["2"])) for _ in range(5)]
            await asyncio.gather(*adding)  # all take the one lock
            state = made.state
            await client.run(lambda _: made.close())
            return state

    class Text:
        def serialize(self, value):
            return value.encode()

        def deserialize(self, data):
            return bytes(data).decode()

    assert run(main) == 11


# ---------------------------------------------------------------- transactions


def test_a_transaction_commits_at_the_end_of_its_block_and_aborts_on_an_error(run, stream):
    async def main():
        async with connected(stream) as client:
            writer = client.transactions(stream.name, str)
            async with writer.begin() as first:
                await first.write("a", "key")
                await first.flush()
                assert await first.status() is TransactionStatus.OPEN
            with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it is the block's end that counts
                async with writer.begin() as second:
                    await second.write("b", "key")
                    raise ZeroDivisionError
            third = await writer.begin()
            await third.write_column(pa.array([b"c"]))
            await third.detach()
            same = client.transaction(stream.name, third.id)
            assert await same.commit() is TransactionStatus.COMMITTED
            statuses = [await each.status() for each in (first, second, same)]
            return statuses, sorted([value async for value in client.read(stream.name, "string")])

    statuses, values = run(main)
    assert [status.name for status in statuses] == ["COMMITTED", "ABORTED", "COMMITTED"]
    assert values == ["a", "c"]


def test_a_lease_keeper_pings_until_it_is_closed(run, stream):
    async def main():
        async with connected(stream) as client, AsyncLeaseKeeper(interval=0.01) as keeper:
            transaction = await client.transactions(stream.name).begin()
            await keeper.add(transaction)
            await until(lambda: stream.asked["ping_transaction"] >= 3)
            keeper.check()
            await transaction.abort()
            await until(lambda: keeper.failures)
            with pytest.raises(TransactionAbortedError):
                keeper.check()

    run(main)


# ---------------------------------------------------------------- cancellation


def test_a_cancelled_poll_leaves_the_position_before_what_was_not_handed_out(run, stream, store):
    async def main():
        found = []
        async with connected(stream) as client, client.follow(stream.name, bytes) as reader:
            await reader.poll(0)
            for number in range(50):
                polling = asyncio.create_task(reader.poll(10))
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                store.append(stream.segment(0), frame(b"%d" % number))
                for _ in range(number % 11):
                    await asyncio.sleep(0.0005)
                polling.cancel()
                try:
                    found += await polling
                except asyncio.CancelledError:
                    assert reader.position.positions == {0: sum(8 + len(event) for event in found)}
            while len(found) < 50:
                found += await reader.poll(10)
        return found

    assert run(main) == [b"%d" % number for number in range(50)]


def test_a_cancelled_step_of_a_read_gives_its_events_to_the_next(run, stream, store):
    async def main():
        async with connected(stream) as client:
            events = client.read(stream.name, "string")
            give = held(store, ReadSegment)
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.05)
            await until(give.count)
            give()
            return [value async for value in events]

    store.append(stream.segment(0), frame(b"a") + frame(b"b"))
    assert run(main) == ["a", "b"]


def test_tasks_that_share_an_iterator_get_each_event_once(run, stream, store):
    async def main():
        async with connected(stream) as client:
            events = client.read(stream.name)
            found = await asyncio.gather(*(anext(events) for _ in range(3)))
            give = held(store, ReadSegment)
            late = client.read(stream.name)
            waiting = asyncio.create_task(anext(late, None))
            await until(give.count)
            closing = asyncio.create_task(late.aclose())
            await asyncio.sleep(0)
            await cancelled(closing)
            await late.aclose()
            assert await waiting is None
            give()
        return found

    store.append(stream.segment(0), b"".join(map(frame, (b"a", b"b", b"c"))))
    assert sorted(run(main)) == [b"a", b"b", b"c"]


def test_a_cancelled_flush_leaves_the_writer_usable_and_the_events_on_their_way(run, stream, store):
    async def main():
        async with connected(stream) as client, client.writer(stream.name) as writer:
            give = held(store, Append)
            await writer.write(b"a", "key")
            flushing = asyncio.create_task(writer.flush())
            await until(give.count)
            await cancelled(flushing)
            await writer.write(b"b", "key")
            give()
            await writer.flush()
            assert store.segments[stream.segment(0)].events == [b"a", b"b"]

    run(main)


def test_a_block_that_is_cancelled_in_its_flush_still_writes_what_was_written(run, stream, store):
    async def main():
        async with connected(stream) as client:
            give = held(store, Append)

            async def block():
                async with client.writer(stream.name) as writer:
                    await writer.write(b"a")
                    await writer.flush()

            writing = asyncio.create_task(block())
            await until(give.count)
            writing.cancel()
            await asyncio.sleep(0.01)
            writing.cancel()  # in the end of the block, too: what it began continues, and the client waits for it
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert not store.segments[stream.segment(0)].events
            give()

    run(main)
    assert store.segments[stream.segment(0)].events == [b"a"]


def test_a_cancelled_write_has_not_taken_its_event(run, stream, store):
    async def main():
        async with connected(stream) as client, client.writer(stream.name, max_in_flight=900) as writer:
            give = held(store, Append, times=1)
            await writer.write(bytes(900), "key")
            flushing = asyncio.create_task(writer.flush())
            await until(give.count)
            column = asyncio.create_task(writer.write_column(pa.array([bytes(200)])))
            await asyncio.sleep(0.02)
            await cancelled(column)  # it waited for room
            give()
            await flushing
            await writer.write(b"last", "key")

    run(main)
    assert store.segments[stream.segment(0)].events == [bytes(900), b"last"]


def test_a_cancelled_commit_can_be_asked_about_and_repeated(run, stream, store):
    async def main():
        async with connected(stream) as client:
            transaction = await client.transactions(stream.name).begin()
            give = held(store, Append)
            await transaction.write(b"a", "key")
            committing = asyncio.create_task(transaction.commit())
            await until(give.count)
            await cancelled(committing)
            assert await transaction.status() is TransactionStatus.OPEN
            give()
            assert await transaction.commit() is TransactionStatus.COMMITTED
            assert [event async for event in client.read(stream.name)] == [b"a"]

    run(main)


def test_no_connection_with_an_answer_outstanding_is_used_again(run, stream, store):
    async def main():
        async with connected(stream) as client:
            assert (await client.tail(stream.name)).positions == {0: 0}  # a connection for the pool
            give = held(store, GetStreamSegmentInfo)
            asking = asyncio.create_task(client.tail(stream.name))
            await until(give.count)
            await cancelled(asking)
            give()  # the answer to the closed one
            store.append(stream.segment(0), frame(b"a"))
            assert (await client.tail(stream.name)).positions == {0: 9}

    run(main)


def test_a_loop_that_ends_ends_what_is_under_way_in_it(run, stream, store):
    async def main():
        client = AsyncPravegaClient("tcp://127.0.0.1:1")
        client._client = stream.client()
        writer = await client.writer(stream.name)
        await writer.write(b"a")
        await until(lambda: store.segments[stream.segment(0)].events)
        reader = client.follow(stream.name)
        tasks = [asyncio.create_task(reader.poll(100))]
        await until(store.parked)
        return tasks, [reader._made.close, writer._made.abandon, client._client.close]  # which has no caller

    tasks, ends = run(main)
    assert all(task.cancelled() for task in tasks)
    for end in ends:
        end()


# ---------------------------------------------------------------- the controller


def test_a_tls_handshake_without_an_answer_leaves_the_loop_to_others_and_can_be_cancelled(run):
    async def main():
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            tls = Tls(ssl.create_default_context(), "pravega.test")
            opening = asyncio.create_task(in_event_loop(open_socket, server.getsockname(), tls, 30.0))
            async with asyncio.timeout(20):
                accepted, _ = await loop.sock_accept(server)
                with accepted:
                    hello = await loop.sock_recv(accepted, 1 << 16)
                    assert not opening.done()
                    await cancelled(opening)
                    assert await loop.sock_recv(accepted, 1 << 16) == b""
        return hello

    assert run(main)[0] == 22  # a record of a handshake


@pytest.fixture
def controller():
    with FakeController() as server:
        yield server


def test_calls_of_the_controller_wait_in_the_loop(run, controller):
    async def main():
        async with AsyncPravegaClient(controller.uri, timeout=10) as client:
            arrived, released = threading.Event(), threading.Event()

            def slow(_):
                arrived.set()
                released.wait(10)
                return YES

            controller.on("checkScopeExists", slow)
            asking = asyncio.create_task(client.scope_exists("scope"))
            await until(arrived.is_set)
            assert not asking.done()
            released.set()
            assert await asking
            with pytest.raises(ControllerError, match=r"cannot delete scope scope"):
                await client.delete_scope("scope")

    controller.on("deleteScope", pb.DeleteScopeStatus(status=pb.DeleteScopeStatus.SCOPE_NOT_EMPTY))
    run(main)


def test_closing_ends_a_call_of_another_task_and_a_cancelled_one_is_cancelled(run, controller):
    released = threading.Event()

    async def main():
        client = AsyncPravegaClient(controller.uri, timeout=10)
        arrived = threading.Event()

        def slow(_):
            arrived.set()
            released.wait(10)
            return YES

        controller.on("checkScopeExists", slow, slow)
        one = asyncio.create_task(client.scope_exists("scope"))
        other = asyncio.create_task(client.scope_exists("scope"))
        await until(arrived.is_set)
        await cancelled(other)
        await client.close()
        with pytest.raises(ConfigError, match="this client is closed"):
            await one

    try:
        run(main)
    finally:
        released.set()


# ---------------------------------------------------------------- what it needs


def test_a_program_without_an_event_loop_loads_none_of_it():
    loaded = (
        "import sys, pravega_connector.client\n"
        "print(*[name for name in sys.modules if 'greenlet' in name or 'async_client' in name])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "\n"


def test_without_greenlet_the_error_says_what_to_install():
    source = "import sys; sys.modules['greenlet'] = None; from pravega_connector import AsyncPravegaClient"
    done = subprocess.run([sys.executable, "-c", source], check=False, capture_output=True, text=True, timeout=60)
    assert "pip install 'pravega-serde[async]'" in done.stderr.splitlines()[-1]
