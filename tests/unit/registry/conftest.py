"""Shared by the tests of the registry's client: every one of them runs with and without asyncio."""

import asyncio
import inspect

import pytest

from pravega_serde.registry import AsyncSchemaRegistryClient, SchemaRegistryClient


class Awaited:
    """An asyncio client whose methods return when they are done."""

    def __init__(self, client, runner):
        self._client, self._runner = client, runner

    def __getattr__(self, name):
        found = getattr(self._client, name)

        def call(*args, **kwargs):
            result = found(*args, **kwargs)
            return self._runner.run(_all(result) if inspect.isasyncgen(result) else result)

        return call if callable(found) else found


async def _all(generator):
    return [item async for item in generator]


@pytest.fixture(params=["threads", "asyncio"])
def connect(request):
    """Make a client of either kind; closed after the test."""
    runner, made = asyncio.Runner(), []

    def make(uri, **settings):
        if request.param == "threads":
            client = SchemaRegistryClient(uri, **settings)
        else:
            client = Awaited(AsyncSchemaRegistryClient(uri, **settings), runner)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
    runner.close()
