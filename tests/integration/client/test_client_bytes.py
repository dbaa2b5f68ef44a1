"""Byte streams: their head, tail and bytes to read, and asyncio."""

import asyncio

import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.errors import ConfigError, StreamNotFoundError


def test_head_tail_and_available(client, stream_name):
    client.create_stream(stream_name)
    with client.byte_writer(stream_name) as writer, client.byte_reader(stream_name) as reader:
        assert (reader.head(), reader.tail(), reader.available()) == (0, 0, 0)
        writer.write(b"0123456789")
        assert writer.tail() == 0
        writer.flush()
        assert (writer.head(), writer.tail(), reader.available()) == (0, 10, 10)
        assert reader.read(4) == b"0123"
        assert reader.available() == 6
        reader.seek(12)
        assert reader.available() == 0
        writer.drop_before(3)
        assert (writer.head(), reader.head(), reader.tail()) == (3, 3, 10)
        with pytest.raises(ConfigError, match="ends at offset 10"):
            writer.drop_before(11)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_asyncio(run, config, stream_name):
    async def main():
        async with AsyncPravegaClient(config) as client:
            await client.create_stream(stream_name)
            async with client.byte_reader(stream_name, wait=30) as reader, client.byte_writer(stream_name) as writer:
                line = asyncio.create_task(reader.readline())  # waits for the bytes
                assert await writer.write(b"one line\nand ") == 13
                await writer.write(b"another")
                await writer.flush()
                assert await line == b"one line\n"
                assert (await reader.tell(), await reader.available(), await reader.tail()) == (9, 11, 20)
                assert await reader.read(3) == b"and"
                assert await reader.seek(4) == 4
                assert await reader.read(4) == b"line"
                await writer.drop_before(4)
                assert (await writer.head(), await reader.head()) == (4, 4)
                await writer.write(b", at the end")
            async with client.byte_reader(stream_name, start=20) as reader:
                assert await reader.read() == b", at the end"
            with pytest.raises(StreamNotFoundError):
                await client.byte_reader(f"{stream_name.scope}/missing")

    run(main())
