"""A registry that takes its time stops no event loop: other tasks go on while a call of the client waits for it."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.testing import InProcessPravega
from pravega_serde.registry import WithSchema, deserializer, event_type, serializer, with_schema_serializer
from pravega_serde.registry.memory import MockTransport
from tests.fake_stream import FakeStream

_SLOW = 1.5
_V1 = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
_VALUE = {"a": 1}


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine function; its result, and the longest time for which the loop ran no other task."""

    def in_loop(main):
        async def watched():
            gaps = [0.0]

            async def tick():
                before = time.monotonic()
                while True:
                    await asyncio.sleep(0.01)
                    now = time.monotonic()
                    gaps.append(now - before)
                    before = now

            ticking = asyncio.create_task(tick())
            await asyncio.sleep(0)  # the task has to run once to see what comes first
            async with asyncio.timeout(60):
                result = await main()
            ticking.cancel()
            return result, max(gaps)

        return (asyncio if request.param == "asyncio" else uvloop).run(watched())

    return in_loop


@pytest.fixture
def uri(request):
    return f"mock://async{request.node.name}".replace("[", "-").replace("]", "").replace("_", "")


@pytest.fixture
def slow(monkeypatch):
    """Make the registry slow from now on; the calls that were made."""
    calls = []

    def begin():
        answer = MockTransport.run

        def later(self, call):
            calls.append(call)
            time.sleep(_SLOW)
            return answer(self, call)

        monkeypatch.setattr(MockTransport, "run", later)
        return calls

    return begin


@asynccontextmanager
async def connected(stream):
    client = AsyncPravegaClient("tcp://127.0.0.1:1")
    client._client = stream.client(timeout=20.0)
    async with client:
        yield client


def written(stream, uri, count=3):
    writes = serializer(uri, group="g", schema=_V1, format="avro", register_schema=True, create_group=True)
    with stream.client() as client, client.writer(stream.name, writes) as writer:
        for _ in range(count):
            writer.write(_VALUE)


@pytest.mark.parametrize("way", ["read", "iterate", "poll", "two readers"])
def test_reading(run, uri, slow, store, way):
    stream = FakeStream(store)
    written(stream, uri)
    reads = deserializer(uri, group="g")
    calls = slow()

    async def follow(client, polls):
        async with client.follow(stream.name, reads, start="earliest") as reader:
            found = []
            while len(found) < 3:
                found += await reader.poll(10) if polls else [await anext(reader)]
            return found

    async def main():
        async with connected(stream) as client:
            if way == "read":
                return [value async for value in client.read(stream.name, reads)]
            if way == "two readers":
                first, second = await asyncio.gather(follow(client, False), follow(client, False))
                assert first == second
                return first
            return await follow(client, way == "poll")

    found, gap = run(main)
    assert found == [_VALUE] * 3
    assert len(calls) == 1
    assert gap < 0.3


def test_a_cancelled_step_loses_no_event(run, uri, slow, store):
    stream = FakeStream(store)
    written(stream, uri)
    reads = deserializer(uri, group="g")
    slow()

    async def main():
        async with connected(stream) as client, client.follow(stream.name, reads, start="earliest") as reader:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reader), 0.5)
            return [await anext(reader) for _ in range(3)]

    found, gap = run(main)
    assert found == [_VALUE] * 3
    assert gap < 0.3


def test_the_one_that_asks_is_cancelled_and_the_other_asks_again(run, uri, slow, store):
    stream = FakeStream(store)
    written(stream, uri)
    reads = deserializer(uri, group="g")
    slow()

    async def main():
        async with connected(stream) as client:
            first, second = (client.follow(stream.name, reads, start="earliest") for _ in range(2))
            async with first, second:
                asking = asyncio.create_task(anext(first))
                await asyncio.sleep(0.5)
                waiting = asyncio.create_task(anext(second))
                await asyncio.sleep(0.3)
                asking.cancel()
                await asyncio.wait({asking})
                assert asking.cancelled()
                return await waiting

    found, gap = run(main)
    assert found == _VALUE
    assert gap < 0.3


@pytest.mark.parametrize("transaction", [False, True], ids=["writer", "transaction"])
def test_writing(run, uri, slow, store, transaction):
    stream = FakeStream(store)
    written(stream, uri)
    writes = with_schema_serializer(uri, group="any", register_schema=True, create_group=True)
    schema = event_type(_V1, format="avro").info
    calls = slow()

    async def main():
        async with connected(stream) as client:
            if transaction:
                async with client.transactions(stream.name, writes).begin() as open_transaction:
                    await open_transaction.write(WithSchema(_VALUE, schema))
            else:
                async with client.writer(stream.name, writes) as writer:
                    await writer.write(WithSchema(_VALUE, schema))
            return await client.tail(stream.name)

    _, gap = run(main)
    assert calls
    assert gap < 0.3


@pytest.mark.parametrize("way", ["poll", "iterate", "exactly once"])
def test_reading_in_a_group(run, uri, slow, way):
    writes = serializer(uri, group="g", schema=_V1, format="avro", register_schema=True, create_group=True)
    reads = deserializer(uri, group="g")
    with InProcessPravega() as pravega:
        with PravegaClient(pravega.config) as client:
            client.create_scope("s")
            client.create_stream("s/orders")
            client.create_stream("s/bills")
            with client.writer("s/orders", writes) as writer:
                for _ in range(3):
                    writer.write(_VALUE)
        calls = slow()

        async def main():
            async with AsyncPravegaClient(pravega.config) as client, client.reader_group("s/g", "s/orders") as group:
                exactly_once = way == "exactly once"
                reader = group.exactly_once("r", reads, to="s/bills") if exactly_once else group.reader("r", reads)
                found = []
                async with reader:
                    while len(found) < 3:
                        events = [await anext(reader)] if way == "iterate" else await reader.poll(10)
                        found += [event.value for event in events if not event.is_checkpoint]
                return found

        found, gap = run(main)
    assert found == [_VALUE] * 3
    assert len(calls) == 1
    assert gap < 0.3
