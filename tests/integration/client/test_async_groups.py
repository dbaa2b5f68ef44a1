"""Reader groups in an event loop: what is read, and what a cancellation leaves behind."""

import asyncio
import itertools

import pytest
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.errors import ConfigError, ReaderOfflineError


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine function in a new loop; what takes over two minutes fails."""

    def in_loop(main):
        async def watched():
            async with asyncio.timeout(120):
                return await main()

        return (asyncio if request.param == "asyncio" else uvloop).run(watched())

    return in_loop


@pytest.fixture
def group_name(own_scope):
    return f"{own_scope}/billing"


@pytest.fixture
def stream(own_scope):
    return f"{own_scope}/orders"


def write(config, stream, first, count, *, seal=False):
    values = [f"{number % 7}:{number}" for number in range(first, first + count)]
    with PravegaClient(config) as client:
        client.create_stream(stream, 2)
        with client.writer(stream, "string") as writer:
            for value in values:
                writer.write(value, routing_key=value[0])
        if seal:
            client.seal_stream(stream)
    return values


def test_readers_share_a_stream_to_its_end(run, config, stream, group_name):
    expected = write(config, stream, 0, 500, seal=True)

    async def main():
        async with AsyncPravegaClient(config) as client:
            group = client.reader_group(group_name, stream, checkpoint_interval=0.2, refresh=0.1)

            async def read(name):
                async with group.reader(name, "string") as reader:
                    return [event.value async for event in reader if not event.is_checkpoint]

            async with group:
                found = await asyncio.gather(read("r1"), read("r2"))
                assert await group.online_readers() == []
                assert (await group.state()).is_end_of_data
                assert [name async for name in client.reader_groups(group_name.partition("/")[0])] == [group_name]
                assert await group.delete()
            return found

    found = run(main)
    assert sorted(itertools.chain(*found)) == sorted(expected)
    for each in found:
        for key in range(7):
            own = [int(value[2:]) for value in each if value.startswith(f"{key}:")]
            assert own == sorted(own)


def test_cancelled_polls_lose_nothing(run, config, stream, group_name):
    expected = write(config, stream, 0, 300)

    async def main():
        found, cancelled = [], 0
        async with AsyncPravegaClient(config) as client:
            group = client.reader_group(group_name, stream, checkpoint_interval=0.1, refresh=0.05)
            async with group, group.reader("r1", "string") as reader:
                while len(found) < 400:
                    polling = asyncio.create_task(reader.poll(5.0))
                    await asyncio.sleep(0 if cancelled < 10 else 0.002 * (cancelled % 7))
                    cancelled += not polling.done()
                    polling.cancel()
                    try:
                        events = await polling
                    except asyncio.CancelledError:
                        continue
                    found += [event.value for event in events if not event.is_checkpoint]
                    if len(found) == 300 == len(expected):
                        expected.extend(await asyncio.to_thread(write, config, stream, 300, 100))
        return found, cancelled

    found, cancelled = run(main)
    assert cancelled > 5
    assert sorted(found) == sorted(expected)


def test_what_a_cancelled_call_brought_comes_to_the_next_reader(run, config, stream, group_name):
    expected = write(config, stream, 0, 100)

    async def main():
        async with AsyncPravegaClient(config) as client:
            group = client.reader_group(group_name, stream, checkpoint_interval=None, refresh=0.1)
            async with group:
                async with group.reader("r1", "string") as reader:
                    polling = asyncio.create_task(reader.poll(1.0))
                    while reader._part is None:
                        await asyncio.sleep(0)
                    polling.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await polling
                    await asyncio.wait({reader._part[1]})
                    assert reader._part[1].result(), "it has brought events"
                    with pytest.raises(ConfigError, match="call poll again"):
                        await anext(reader)
                found = []
                async with group.reader("r2", "string") as reader:
                    while len(found) < 100:
                        found += [event.value for event in await reader.poll(1.0) if not event.is_checkpoint]
                return found

    assert sorted(run(main)) == sorted(expected)


def test_a_block_that_is_cancelled_ends_soon_and_leaves_the_group(run, config, stream, group_name):
    write(config, stream, 0, 10)

    async def main():
        async with AsyncPravegaClient(config) as client:
            group = client.reader_group(group_name, stream, checkpoint_interval=0.2, refresh=0.1)
            seen = asyncio.Event()

            async def read():
                async with group.reader("r1", "string") as reader:
                    count = 0
                    async for event in reader:
                        count += not event.is_checkpoint
                        if count == 10:
                            seen.set()

            async with group:
                reading = asyncio.create_task(read())
                await seen.wait()
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                while await group.online_readers():
                    await asyncio.sleep(0.01)

    run(main)


@pytest.mark.parametrize("exactly_once", [False, True])
def test_an_opening_that_is_cancelled_leaves_the_group(run, config, stream, group_name, exactly_once):
    write(config, stream, 0, 10)

    def opened(group):
        return group.exactly_once("r1", to=stream) if exactly_once else group.reader("r1")

    async def main():
        async with AsyncPravegaClient(config) as client, client.reader_group(group_name, stream) as group:
            for attempt in range(100):
                opening = asyncio.ensure_future(opened(group)._open())
                await asyncio.wait({opening}, timeout=0.0003 * attempt)
                if opening.done():
                    await (await opening).close()
                    break
                opening.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await opening
                assert await group.online_readers() == []

    run(main)


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_program_that_cancels_all_tasks_leaves_the_group(run, config, stream, group_name, exactly_once):
    write(config, stream, 0, 10)

    async def main():
        async with AsyncPravegaClient(config) as client:
            group = client.reader_group(group_name, stream, refresh=0.1)
            async with group:
                before = asyncio.all_tasks()
                reader = group.exactly_once("r1", to=stream) if exactly_once else group.reader("r1")

                async def read():
                    async with reader:
                        while True:
                            await reader.poll(0.5)

                reading = asyncio.create_task(read())
                while reader._part is None or reader._part[1].done():
                    await asyncio.sleep(0.01)
                for task in asyncio.all_tasks() - before:
                    task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                assert await group.online_readers() == []

    run(main)


def test_one_that_was_taken_offline_reports_it_and_two_tasks_are_refused(run, config, stream, group_name):
    write(config, stream, 0, 10)

    async def main():
        async with AsyncPravegaClient(config) as client:
            group = await client.reader_group(group_name, stream, refresh=0.1)
            reader = await group.reader("r1")
            assert not reader.at_end
            first = asyncio.create_task(reader.poll(1.0))
            await asyncio.sleep(0)
            with pytest.raises(ConfigError, match="another task"):
                await reader.poll(1.0)
            await first
            assert await group.reader_offline("r1")

            async def poll_on():
                while True:
                    await reader.poll(0.2)

            with pytest.raises(ReaderOfflineError):
                await poll_on()
            await reader.close()
            await group.close()

    run(main)


def outputs(config, stream):
    with PravegaClient(config) as client:
        return list(client.read(stream, "string"))


def assert_exact(found, expected):
    assert sorted(found) == sorted(expected)
    for key in range(7):
        of_key = [value for value in found if value.startswith(f"{key}:")]
        assert of_key == [value for value in expected if value.startswith(f"{key}:")], "out of order"


@pytest.fixture
def bills(config, own_scope):
    name = f"{own_scope}/bills"
    with PravegaClient(config) as client:
        client.controller.create_scope(own_scope)
        client.create_stream(name, 2)
    return name


def test_exactly_once_to_the_end(run, config, stream, group_name, bills):
    expected = write(config, stream, 0, 300, seal=True)

    async def main():
        async with (
            AsyncPravegaClient(config) as client,
            client.reader_group(group_name, stream, checkpoint_interval=0.2, refresh=0.1) as group,
        ):

            async def copy(name):
                options = {"to": bills, "output": "string", "interval": 0.02}
                async with group.exactly_once(name, "string", **options) as reader:
                    async for event in reader:
                        await reader.write(event.value, routing_key=event.value[0])
                    assert reader.at_end

            await asyncio.gather(copy("r1"), copy("r2"))
            assert await group.online_readers() == []

    run(main)
    assert_exact(outputs(config, bills), expected)


async def cancelled_after(turns, coroutine):
    """Return True if a call was cancelled after this many turns of the loop, or else had its result by then."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return False, await task
    except asyncio.CancelledError:
        return True, None


def test_exactly_once_whatever_is_cancelled(run, config, stream, group_name, bills):
    expected = write(config, stream, 0, 400)

    async def main():
        cancelled = {"poll": 0, "write": 0, "commit": 0}
        turns = itertools.cycle([0, 1, 2, 3, 5, 8, 13, 21, 34])

        async def tried(name, call):
            """A call that is cancelled once, after another number of turns each time."""
            stopped, found = await cancelled_after(next(turns), call())
            cancelled[name] += stopped
            return found if not stopped else None if name == "poll" else await call()

        async with (
            AsyncPravegaClient(config) as client,
            client.reader_group(group_name, stream, checkpoint_interval=0.2, refresh=0.1) as group,
        ):
            options = {"to": bills, "output": "string", "interval": 1000.0}
            copied = 0
            while copied < 400:
                async with group.exactly_once("r1", "string", **options) as reader:
                    for _ in range(20):
                        events = await tried("poll", lambda reader=reader: reader.poll(0.2)) or []
                        for event in events:
                            value = event.value
                            await tried("write", lambda v=value, r=reader: r.write(v, routing_key=v[0]))
                        copied += len(events)
                        await tried("commit", reader.commit)
        return cancelled

    cancelled = run(main)
    assert all(count > 3 for count in cancelled.values()), cancelled
    assert_exact(outputs(config, bills), expected)


@pytest.mark.parametrize("end", ["commit", "leave"])
def test_what_a_cancelled_poll_brought_is_not_committed(run, config, stream, group_name, bills, end):
    expected = write(config, stream, 0, 100)

    async def main():
        async with (
            AsyncPravegaClient(config) as client,
            client.reader_group(group_name, stream, checkpoint_interval=None, refresh=0.1) as group,
        ):
            options = {"to": bills, "output": "string", "interval": 1000.0}
            async with group.exactly_once("r1", "string", **options) as reader:
                events = []
                while not events:
                    events = await reader.poll(1.0)
                for event in events:
                    await reader.write(event.value, routing_key=event.value[0])
                polling = asyncio.create_task(reader.poll(1.0))
                while reader._part is None:
                    await asyncio.sleep(0)
                polling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await polling
                await asyncio.wait({reader._part[1]})
                assert reader._part[1].result(), "it has brought events"
                if end == "commit":
                    await reader.commit()
                    assert sorted(await asyncio.to_thread(outputs, config, bills)) == sorted(e.value for e in events)
                    for event in await reader.poll(1.0):
                        await reader.write(event.value, routing_key=event.value[0])
            async with group.exactly_once("r2", "string", **options) as reader:
                copied = len(await asyncio.to_thread(outputs, config, bills))
                while copied < 100:
                    for event in await reader.poll(1.0):
                        await reader.write(event.value, routing_key=event.value[0])
                        copied += 1

    run(main)
    assert_exact(outputs(config, bills), expected)


def test_a_group_is_reset_to_other_streams_and_settings(run, config, stream, group_name):
    other = f"{stream}-other"
    write(config, stream, 0, 5)
    expected = write(config, other, 5, 5, seal=True)

    async def main():
        async with AsyncPravegaClient(config) as client, client.reader_group(group_name, stream) as group:
            await group.reset(streams=[other], checkpoint_interval=0.2, refresh=0.1)
            async with group.reader("r", "string") as reader:
                found = [event.value async for event in reader if not event.is_checkpoint]
            return found, (await group.config()).refresh_ms

    found, refresh = run(main)
    assert sorted(found) == sorted(expected)
    assert refresh == 100
