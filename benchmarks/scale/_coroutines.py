"""The client for asyncio: many followers of one stream in one thread, and its write rate beside the plain client's."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig

__all__ = ["Followed", "Run", "follow_all", "rates"]

Run = Callable[[Coroutine[Any, Any, Any]], Any]
_SECONDS = 300.0


@dataclass(frozen=True)
class Followed:
    """What it took until all followers had all events."""

    followers: int
    segments: int
    opened: float
    delivered: float
    cpu: float
    events: int
    threads: int
    files: int
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.followers:,} followers of {self.segments} segments, {self.threads} threads, {self.files:,} files, "
            f"peak {self.peak_mb:.0f} MB: opened in {self.opened:.1f} s; {self.events:,} events, each once and in its "
            f"key's order, in {self.delivered:.1f} s ({self.events / self.delivered:,.0f}/s; CPU {self.cpu:.1f} s)"
        )


def follow_all(config: PravegaConfig, followers: int, segments: int, events: int, *, loop: str) -> Followed:
    """Follow a stream so many times at once while events are written, and check what each follower gets."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _run(loop)(_follow_all(config, followers, segments, events))


def _run(loop: str) -> Run:
    return {"asyncio": asyncio.run, "uvloop": uvloop.run}[loop]


async def _follow_all(config: PravegaConfig, followers: int, segments: int, events: int) -> Followed:
    stream = StreamName("scale", f"followed-{uuid.uuid4().hex[:8]}")
    async with AsyncPravegaClient(config, timeout=120.0) as client:
        await client.create_stream(stream, segments)
        start = await client.tail(stream)
        ready, at_once = 0, asyncio.Semaphore(50)

        async def follow() -> dict[bytes, list[int]]:
            nonlocal ready
            found: dict[bytes, list[int]] = {}
            count = 0
            async with client.follow(stream, bytes, start=start) as reader:
                async with at_once:  # the server opens the connections of one port one by one
                    await reader.poll(0.2)
                ready += 1
                async with asyncio.timeout(_SECONDS):
                    while count < events:
                        for event in await reader.poll(30):
                            key, number = event.split(b":")
                            found.setdefault(key, []).append(int(number))
                            count += 1
            return found

        began = time.perf_counter()
        tasks = [asyncio.create_task(follow()) for _ in range(followers)]
        while ready < followers and not any(task.done() for task in tasks):
            await asyncio.sleep(0.05)
        opened = time.perf_counter() - began
        files = len(os.listdir("/proc/self/fd"))
        threads = threading.active_count()
        began, cpu = time.perf_counter(), time.process_time()
        keys = 10 * segments
        async with client.writer(stream) as writer:
            for number in range(events):
                await writer.write(b"%d:%d" % (number % keys, number), str(number % keys))
        found = await asyncio.gather(*tasks)
        delivered, cpu = time.perf_counter() - began, time.process_time() - cpu
    expected = {b"%d" % key: list(range(key, events, keys)) for key in range(keys)}
    assert all(each == expected for each in found), "a follower got something else than was written"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Followed(followers, segments, opened, delivered, cpu, followers * events, threads, files, peak)


def rates(config: PravegaConfig, events: int, size: int, rounds: int) -> str:
    """Seconds of writing the same events by each client, in turn; the medians, and their ratios to the plain one."""
    event, keys = bytes(size), [str(key) for key in range(4096)]

    def plain(stream: StreamName) -> None:
        with PravegaClient(config) as client, client.writer(stream) as writer:
            for number in range(events):
                writer.write(event, keys[number % 4096])

    async def coroutine(stream: StreamName) -> None:
        async with AsyncPravegaClient(config) as client, client.writer(stream) as writer:
            for number in range(events):
                await writer.write(event, keys[number % 4096])

    ways: dict[str, Callable[[StreamName], Any]] = {
        "plain": plain,
        "asyncio": lambda stream: asyncio.run(coroutine(stream)),
        "uvloop": lambda stream: uvloop.run(coroutine(stream)),
    }
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    with PravegaClient(config) as client:
        for _ in range(rounds):
            for name, write in ways.items():
                stream = StreamName("scale", f"rate-{uuid.uuid4().hex[:8]}")
                client.create_stream(stream, 4)
                began, began_cpu = time.perf_counter(), time.process_time()
                write(stream)
                wall[name].append(time.perf_counter() - began)
                cpu[name].append(time.process_time() - began_cpu)
                client.seal_stream(stream)
                client.delete_stream(stream)
    lines = [
        f"{events:,} events of {size} B by rows, median of {rounds} rounds in turn; > 1: better than the plain client"
    ]
    for name in ways:
        seconds, own = statistics.median(wall[name]), statistics.median(cpu[name])
        of_rate, of_cpu = statistics.median(wall["plain"]) / seconds, statistics.median(cpu["plain"]) / own
        lines.append(
            f"  {name:8} {events / seconds:>9,.0f} events a second ({of_rate:.2f}), "
            f"CPU {own / events * 1e6:5.2f} µs an event ({of_cpu:.2f})"
        )
    return "\n".join(lines)
