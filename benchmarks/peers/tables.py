"""Key-value tables of our client, one call after the other: the counterpart of java/TablesPeer.java."""

from __future__ import annotations

import platform
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from benchmarks.peers._serve import serve
from pravega_connector.client import PravegaClient
from pravega_connector.tables import Put, Table

_NUMBER: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class _Load:
    first: int
    last: int
    batch: int
    size: int

    def key(self, number: int) -> tuple[bytes, bytes]:
        return _NUMBER.pack(number // self.batch), _NUMBER.pack(number % self.batch)

    def batches(self) -> list[range]:
        return [range(at, at + self.batch) for at in range(self.first, self.last, self.batch)]


def _put(table: Table[bytes], load: _Load) -> tuple[int, int]:
    value = b"y" * load.size
    for batch in load.batches():
        table.update([Put(load.key(number), value) for number in batch])
    return load.last - load.first, (load.last - load.first) * load.size


def _get(table: Table[bytes], load: _Load) -> tuple[int, int]:
    count = size = 0
    for batch in load.batches():
        for entry in table.get_all([load.key(number) for number in batch]):
            assert entry is not None
            count += 1
            size += len(entry.value)
    return count, size


def _entries(table: Table[bytes], _: _Load) -> tuple[int, int]:
    count = size = 0
    for entry in table.entries(batch_size=1000):
        count += 1
        size += len(entry.value)
    return count, size


def _change(table: Table[bytes], load: _Load) -> tuple[int, int]:
    key, value = load.key(load.first), b"y" * load.size
    entry = table.get(key)
    assert entry is not None
    version = entry.version
    for _ in range(load.first, load.last):
        version = table.put(key, value, version)
    return load.last - load.first, (load.last - load.first) * load.size


def _timed(work: Callable[[Table[bytes], _Load], tuple[int, int]], **request: Any) -> dict[str, Any]:
    load = _Load(request["from"], request["to"], request["batch"], request["size"])
    with PravegaClient(request["controller"]) as client:
        table: Table[bytes] = client.table(f"{request['scope']}/{request['table']}")
        table.get(load.key(load.first))  # connects
        start, cpu = time.perf_counter(), time.process_time()
        events, size = work(table, load)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "cpu": time.process_time() - cpu, "events": events, "bytes": size}


if __name__ == "__main__":
    works = {"put": _put, "get": _get, "entries": _entries, "change": _change}
    serve(f"python {platform.python_version()}", {name: partial(_timed, work) for name, work in works.items()})
