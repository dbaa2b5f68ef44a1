"""Modules that each of Spark's Python processes loads: the start of a query has it several times over.

No clock: packages, and the number of this project's modules. Measured by ``python -m benchmarks.startup``.
"""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks.startup import KINDS, Start, run_all, stage

pytestmark = pytest.mark.long  # 18 processes, one after the other

ARROW = {"mmh3", "msgspec", "numpy", "pyarrow", "typing_extensions"}
GRPC = {"google", "grpc"}
#: A client of the schema registry, and what its codecs bring.
HTTP = {"anyio", "cramjam", "h11", "httpcore2", "httpx2", "idna", "truststore"}
#: Spark's own pa.array([…]) at the end of a write task loads it in each task.
PANDAS = {"dateutil", "pandas", "pytz", "six"}

#: Kind of process -> packages that it loads next to Spark's, and the most modules of this project.
EXPECTED: dict[str, tuple[set[str], int]] = {
    "look-up of data sources": (set(), 12),
    "look at the schema": (ARROW | GRPC, 158),
    "plan of a batch read": (ARROW | GRPC, 158),
    "task of a batch read": (ARROW, 135),
    "plan of a query's tasks": (ARROW, 144),
    "planner of micro-batches": (ARROW | GRPC, 158),
    "task of a micro-batch read": (ARROW, 135),
    "plan of a batch write": (ARROW | GRPC, 154),
    "task of a batch write": (ARROW | GRPC | PANDAS, 146),
    "commit of a batch write": (ARROW, 132),
    "plan of an exactly-once write": (ARROW | GRPC, 154),
    "task of an exactly-once write": (ARROW | GRPC | PANDAS, 146),
    "commit of a micro-batch": (ARROW | GRPC, 154),
    "task of a read of avro": (ARROW | {"pyruhvro"}, 148),
    "task of a read of protobuf": (ARROW | {"google", "ptars"}, 149),
    "task of a read of json": (ARROW, 147),
    "task of a read of java": (ARROW, 152),
    "task of a read of registry": (ARROW | HTTP | {"pyruhvro"}, 176),
}
#: The generated code's package of gRPC's tools, and what virtual environments and editors bring into every process.
_OF_AN_INSTALLATION = {"distutils", "grpc_tools", "setuptools", "sitecustomize", "usercustomize"}


@pytest.fixture(scope="module")
def starts() -> dict[str, Start]:
    assert importlib.util.find_spec("pandas") is not None, "without pandas nothing could be loaded too early"
    with stage() as place:
        return run_all(place)


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_process_loads_what_it_needs(starts, kind):
    packages, most = EXPECTED[kind]
    assert starts[kind].installed - _OF_AN_INSTALLATION == packages
    assert starts[kind].packages["ours"] <= most, "more modules of this project: load what is new where it is used"


def test_the_columns_of_json_are_inferred_without_pandas(starts):
    assert not starts["plan of typed reads"].installed & PANDAS


@pytest.mark.parametrize("kind", [kind for kind in EXPECTED if " of a read of " not in kind])
def test_without_a_registry_and_formats_there_is_nothing_of_them(starts, kind):
    parts = ("registry", "avro", "java", "json", "protobuf", "cbor", "adapters", "envelopes", "encryption", "framings")
    loaded = {name for name in starts[kind].modules for part in parts if name.startswith(f"pravega_serde.{part}.")}
    # What options name a registry, and whether an event has a header.
    assert loaded <= {"pravega_serde.registry.registry_config", "pravega_serde.registry.header"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "read" in kind or "micro-batches" in kind])
def test_a_reader_loads_nothing_of_the_sink(starts, kind):
    loaded = [name for name in starts[kind].modules if name.startswith("pravega_connector.spark.sink.")]
    assert set(loaded) <= {"pravega_connector.rows.options.sink"}, "the names of its options, to tell typing mistakes"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "write" in kind or "commit" in kind])
def test_a_writer_loads_nothing_of_the_source(starts, kind):
    loaded = [name for name in starts[kind].modules if name.startswith("pravega_connector.spark.source.")]
    assert set(loaded) <= {"pravega_connector.rows.options.source"}
