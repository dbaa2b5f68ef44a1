"""A registry that takes its time stops no event loop: other tasks continue while a call of the client waits for it."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.testing import InProcessPravega
from pravega_serde.registry import WithSchema, deserializer, event_type, serializer, with_schema_serializer
from pravega_serde.registry.memory import MockTransport
from tests.support.fake_stream import FakeStream

# Steps of another task that an answer of the registry waits for, and the seconds after which it waits no more.
_STEPS, _STOPPED = 10, 10.0
_V1 = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
_VALUE = {"a": 1}


class Other:
    """Another task of the loop: its steps, and the calls of the registry during which it made none."""

    def __init__(self):
        self.steps = 0
        self.stopped = []

    async def run(self):
        while True:
            await asyncio.sleep(0.001)
            self.steps += 1


@pytest.fixture
def other():
    return Other()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request, other):
    """Run a coroutine function while another task makes its steps; its result."""

    def in_loop(main):
        async def watched():
            stepping = asyncio.create_task(other.run())
            async with asyncio.timeout(60):
                result = await main()
            stepping.cancel()
            return result

        result = (asyncio if request.param == "asyncio" else uvloop).run(watched())
        assert not other.stopped
        return result

    return in_loop


@pytest.fixture
def uri(request):
    return f"mock://async{request.node.name}".replace("[", "-").replace("]", "").replace("_", "")


class Slow:
    """Registry that answers after the loop has made some steps, and while it is held, not at all."""

    def __init__(self):
        self.calls = []
        self.free = threading.Event()
        self.free.set()

    async def asked(self):
        while not self.calls:
            await asyncio.sleep(0.001)


@pytest.fixture
def slow(monkeypatch, other):
    """Make the registry slow from now on."""

    def begin():
        answer, registry = MockTransport.run, Slow()

        def later(self, call):
            registry.calls.append(call)
            first, end = other.steps, time.monotonic() + _STOPPED
            while other.steps < first + _STEPS and time.monotonic() < end:
                time.sleep(0.001)
            if other.steps < first + _STEPS:
                other.stopped.append(call)
            registry.free.wait(_STOPPED)
            return answer(self, call)

        monkeypatch.setattr(MockTransport, "run", later)
        return registry

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
    registry = slow()

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

    found = run(main)
    assert found == [_VALUE] * 3
    assert len(registry.calls) == 1


def test_a_cancelled_step_loses_no_event(run, uri, slow, store):
    stream = FakeStream(store)
    written(stream, uri)
    reads = deserializer(uri, group="g")
    registry = slow()
    registry.free.clear()

    async def main():
        async with connected(stream) as client, client.follow(stream.name, reads, start="earliest") as reader:
            step = asyncio.create_task(anext(reader))
            await registry.asked()
            step.cancel()
            await asyncio.wait({step})
            assert step.cancelled()
            registry.free.set()
            return [await anext(reader) for _ in range(3)]

    found = run(main)
    assert found == [_VALUE] * 3


def test_the_one_that_asks_is_cancelled_and_the_other_asks_again(run, uri, slow, store):
    stream = FakeStream(store)
    written(stream, uri)
    reads = deserializer(uri, group="g")
    registry = slow()
    registry.free.clear()

    async def main():
        async with connected(stream) as client:
            first, second = (client.follow(stream.name, reads, start="earliest") for _ in range(2))
            async with first, second:
                asking = asyncio.create_task(anext(first))
                await registry.asked()
                waiting = asyncio.create_task(anext(second))
                await asyncio.sleep(0.1)  # it waits for the answer to the other one, which shows nowhere
                asking.cancel()
                await asyncio.wait({asking})
                assert asking.cancelled()
                registry.free.set()
                return await waiting

    found = run(main)
    assert found == _VALUE


@pytest.mark.parametrize("transaction", [False, True], ids=["writer", "transaction"])
def test_writing(run, uri, slow, store, transaction):
    stream = FakeStream(store)
    written(stream, uri)
    writes = with_schema_serializer(uri, group="any", register_schema=True, create_group=True)
    schema = event_type(_V1, format="avro").info
    registry = slow()

    async def main():
        async with connected(stream) as client:
            if transaction:
                async with client.transactions(stream.name, writes).begin() as open_transaction:
                    await open_transaction.write(WithSchema(_VALUE, schema))
            else:
                async with client.writer(stream.name, writes) as writer:
                    await writer.write(WithSchema(_VALUE, schema))
            return await client.tail(stream.name)

    run(main)
    assert registry.calls


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
        registry = slow()

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

        found = run(main)
    assert found == [_VALUE] * 3
    assert len(registry.calls) == 1
