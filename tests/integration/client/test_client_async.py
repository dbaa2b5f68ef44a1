"""The client for asyncio against a server: what crosses the wire and the controller's gRPC, in both loops."""

import asyncio

import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.errors import StreamNotFoundError, StreamSealedError


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_streams_events_and_transactions(run, config, stream_name):
    async def main():
        async with AsyncPravegaClient(config) as client:
            await client.create_scope(stream_name.scope)
            with pytest.raises(StreamNotFoundError):
                await client.describe(stream_name)
            assert await client.create_stream(stream_name, 2)
            start = await client.tail(stream_name)

            async def follow():
                found = []
                async with client.follow(stream_name, "string", start=start) as reader:
                    while len(found) < 1001:
                        found += await reader.poll(10)
                return found

            following = [asyncio.create_task(follow()) for _ in range(5)]
            async with client.writer(stream_name, "string") as writer:
                for number in range(1000):
                    await writer.write(f"{number % 7}:{number}", str(number % 7))
            async with client.transactions(stream_name, "string").begin() as transaction:
                await transaction.write("7:together", "7")
            assert await transaction.status() is TransactionStatus.COMMITTED
            segments = await client.scale_stream(stream_name, 3)
            assert len(segments) == 3
            await client.seal_stream(stream_name)
            return await asyncio.gather(*following)

    found = run(main())
    with PravegaClient(config) as client:
        read = list(client.read(stream_name, "string"))
    for key in range(8):
        own = [value for value in read if value.startswith(f"{key}:")]
        for each in found:
            assert [value for value in each if value.startswith(f"{key}:")] == own
    assert len(read) == 1001


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_sequences_and_acknowledgements(run, config, stream_name):
    async def main():
        async with AsyncPravegaClient(config) as client:
            await client.create_stream(stream_name)
            async with client.writer(stream_name, "string") as writer:
                together = await writer.write_all(["a", "b"], "key")
                single = [await writer.write_with_ack(str(number)) for number in range(20)]
                await asyncio.gather(together, *single)
                found = [event async for event in client.read(stream_name, "string")]
            await client.seal_stream(stream_name)
            with pytest.raises(StreamSealedError):
                async with client.writer(stream_name, "string"):
                    pass
            return found

    assert sorted(run(main())) == sorted(["a", "b", *map(str, range(20))])


def test_a_call_that_is_cancelled_leaves_the_client_as_it_was(config, stream_name):
    async def main():
        async with AsyncPravegaClient(config) as client:
            await client.create_stream(stream_name)
            for number in range(20):
                asking = asyncio.create_task(client.describe(stream_name))
                await asyncio.sleep(0.0005 * number)
                asking.cancel()
                await asyncio.wait({asking})
            return await client.describe(stream_name)

    assert asyncio.run(main()).stream == stream_name
