"""The cache: its entries, their lifetime, and the number of calls for many askers at once."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_serde.errors import RegistryNotFoundError, RegistryUnavailableError
from pravega_serde.registry import (
    AsyncSchemaRegistryClient,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    VersionInfo,
    lookups,
)
from pravega_serde.registry.lookups import AsyncLookups, Lookups
from tests.unit.registry._pace import Clock, paced
from tests.unit.registry._scripted import ENCODING, LATEST, VERSION, answer, scripted

MANY = 32
SCHEMA = SchemaInfo("n.R", SerializationFormat.AVRO, b"{}")


def slowly(status, body, pace):
    """An answer that leaves the others time to ask as well."""

    def act(handler):
        time.sleep(0.2 * pace)
        answer(handler, status, body)

    return act


def ask_in_threads(uri, timeout):
    together = threading.Barrier(MANY)

    def ask(client):
        together.wait()
        try:
            return client.encoding_info("g", 7)
        except (RegistryNotFoundError, RegistryUnavailableError) as error:
            return error

    with SchemaRegistryClient(uri, timeout=timeout) as client, ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(ask, [client] * MANY))


def ask_in_tasks(uri, timeout):
    async def ask():
        async with AsyncSchemaRegistryClient(uri, timeout=timeout) as client:
            asked = (client.encoding_info("g", 7) for _ in range(MANY))
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [ask_in_threads, ask_in_tasks])
@paced
def test_many_that_ask_for_one_id_make_one_call(ask, pace):
    with scripted(slowly(200, ENCODING, pace)) as registry:
        found = ask(registry.uri, 5 * pace)
    assert len(found) == MANY
    assert {info.version.id for info in found} == {0}
    assert len(registry.requests) == 1


@pytest.mark.parametrize("ask", [ask_in_threads, ask_in_tasks])
@pytest.mark.parametrize(("status", "kind"), [(404, RegistryNotFoundError), (503, RegistryUnavailableError)])
@paced
def test_many_that_ask_in_vain_share_the_tries_of_one(ask, status, kind, monkeypatch, pace):
    monkeypatch.setattr(lookups, "time", Clock())  # a late caller gets the cached value
    with scripted(slowly(status, b"", pace)) as registry:
        found = ask(registry.uri, (5 if status == 404 else 0.6) * pace)
    assert {type(error) for error in found} == {kind}
    assert len(registry.requests) <= (1 if status == 404 else 3)


@paced
def test_encoding_ids_are_kept_permanently(connect, pace):
    with scripted((200, ENCODING), (200, {"encodingId": 5}), (500, b"")) as registry:
        client = connect(registry.uri, timeout=0.8 * pace)
        version = VersionInfo.from_json(VERSION)
        for _ in range(100):
            assert client.encoding_info("g", 0).version == version
            assert client.encoding_id("g", version, "gzip") == 5
        # The meaning of an id never changes.
        with pytest.raises(RegistryUnavailableError):
            client.add_schema("g", SCHEMA)
        assert client.encoding_id("g", version, "gzip") == 5
    assert [request.method for request in registry.requests[:2]] == ["GET", "PUT"]


def test_latest_schemas_are_kept_for_a_while(connect, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(lookups, "time", clock)
    with scripted((200, LATEST)) as registry:
        client = connect(registry.uri, latest_seconds=0.2)
        for _ in range(20):
            assert client.latest_schemas("g")[0].version.id == 0
            assert client.latest_schemas("g", "n.R")[0].version.id == 0
            assert client.latest_schemas("g", "other") == []
        clock.now += 0.19
        client.latest_schemas("g")
        assert len(registry.requests) == 1
        clock.now += 0.02
        client.latest_schemas("g")
        assert len(registry.requests) == 2


def test_latest_schemas_are_asked_for_again_after_a_change(connect):
    with scripted((200, LATEST), (201, VERSION), (200, LATEST)) as registry:
        client = connect(registry.uri)
        client.latest_schemas("g")
        client.add_schema("g", SCHEMA)
        client.latest_schemas("g")
    assert [request.method for request in registry.requests] == ["GET", "POST", "GET"]


def test_what_is_kept_is_bounded(connect):
    with scripted((200, ENCODING)) as registry:
        client = connect(registry.uri, cache_entries=3)
        for number in (1, 2, 3, 1, 4, 1, 3, 2):
            client.encoding_info("g", number)
    # 4 took the place of 2, which had not been asked for longest.
    assert [int(request.path.rpartition("/")[2]) for request in registry.requests] == [1, 2, 3, 4, 2]


class InterruptedError_(BaseException):
    """As KeyboardInterrupt, which pytest keeps for itself."""


def test_whoever_waits_asks_again_when_the_asking_thread_is_interrupted():
    kept, asked, go_on = Lookups(10), threading.Event(), threading.Event()

    def interrupted():
        asked.set()
        assert go_on.wait(120)
        raise InterruptedError_

    def first():
        with pytest.raises(InterruptedError_):
            kept.get("key", interrupted, seconds=1)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert asked.wait(120)
        other = pool.submit(kept.get, "key", lambda: "found", seconds=1)
        go_on.set()
        assert other.result(120) == "found"
        one.result(120)


def test_a_cancelled_task_takes_no_answer_from_the_others():
    async def check():
        kept, go_on, calls = AsyncLookups(10), asyncio.Event(), []

        async def load():
            calls.append(1)
            await go_on.wait()
            return "found"

        first, second = (asyncio.ensure_future(kept.get("key", load, seconds=9)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert await second == "found"
        assert first.cancelled()
        assert await kept.get("key", load, seconds=9) == "found"
        assert calls == [1]

    asyncio.run(check())


def test_what_was_forgotten_on_its_way_is_not_kept():
    kept = Lookups(10)

    def load():
        kept.forget("key")
        return "old"

    assert kept.get("key", load, seconds=9) == "old"
    assert kept.get("key", lambda: "new", seconds=9) == "new"
