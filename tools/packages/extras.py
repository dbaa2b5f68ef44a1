"""Use of each extra, tested: ``python extras.py`` prints as JSON what came of it where it runs.

For each extra: ``works``, ``says so`` if its packages are missing and the error names the extra, or what went wrong.
``--without`` hides the packages of all extras first. It runs in environments that have only pravega-serde, so it
imports nothing else of the checkout.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from pravega_connector.operations.cli import main as command
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde import MissingExtraError, SchemaRegistryClient, serializer_for

__all__ = ["EXTRAS", "Extra", "main", "tried"]

_AVRO: Final = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def _async() -> None:
    from pravega_connector import AsyncPravegaClient

    async def stream() -> bool:
        async with AsyncPravegaClient(server.uri) as client:
            await client.create_stream("shop/orders")
            return await client.stream_exists("shop/orders")

    with InProcessPravega() as server:
        assert asyncio.run(stream())


def _cbor() -> None:
    cbor = serializer_for("cbor")
    assert cbor.deserialize(cbor.serialize({"id": 7})) == {"id": 7}


def _checkpoints() -> None:
    from pravega_connector.checkpoint import committed_offset
    from pravega_connector.errors import ConfigError

    try:
        committed_offset("memory://queries/none")
    except ConfigError:
        return  # it looked, and found no checkpoint
    raise AssertionError("a checkpoint that is not there was read")


def _cli() -> None:
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            command(["stream", "list", "--help"])
        except SystemExit as error:
            if error.code:
                raise ImportError(errors.getvalue().strip()) from None


def _fast() -> None:
    """Compiled encoders: the same bytes with them and without."""
    avro = serializer_for("avro", schema=_AVRO)
    column = avro.encode_column(pa.array([{"id": 7}, {"id": -1}], avro.arrow_type))
    assert column.to_pylist() == [b"\x0e", b"\x01"]
    assert avro.decode_column(column).to_pylist() == [{"id": 7}, {"id": -1}]


def _frames() -> None:
    with InProcessPravega() as server, server.client() as client:
        client.create_stream("shop/orders")
        client.write("shop/orders", "tea", "string")
        columns = client.read_columns("shop/orders", "string")
        assert columns.to_polars().height == len(columns.to_pandas()) == len(columns.to_duckdb().fetchall()) == 1
    for package in ("duckdb", "pandas", "polars"):
        importlib.import_module(f"pravega_serde.adapters.{package}")


def _generate() -> None:
    from pravega_serde import generate

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "order.avsc")
        path.write_text(_AVRO)
        assert "    id: int" in generate(path, to="dataclass").files["events.py"]


def _json_schema() -> None:
    json_format = serializer_for("json", schema='{"type": "object"}')
    assert json_format.deserialize(json_format.serialize({"id": 7})) == {"id": 7}


def _lake() -> None:
    from pravega_connector.operations.tier.run import open_table

    with tempfile.TemporaryDirectory() as folder:
        catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
        assert open_table(f"delta:{folder}/orders", {}).position("shop/orders") is None
        assert open_table("iceberg:main.shop.orders", catalog).position("shop/orders") is None


def _local() -> None:
    from pravega_connector.errors import JarDownloadError
    from pravega_connector.local.jars import JarSet, ensure_jars
    from pravega_connector.local.maven import Jar

    jar = Jar("org.example", "none", "1.0", "", "jar", "0" * 64, 1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            ensure_jars(JarSet(f"extra-{Path(folder).name}", "1.0", (jar,)), Path(folder).as_uri())
        except JarDownloadError:
            return  # it looked, and the jar does not exist
    raise AssertionError("a jar that does not exist was fetched")


def _kafka() -> None:
    from pravega_connector.operations.ingest import KafkaSource

    KafkaSource("kafka://localhost:9092/orders").close()


def _metrics() -> None:
    from pravega_connector.metrics import export_to_opentelemetry, serve_metrics

    export_to_opentelemetry()
    with serve_metrics(0):
        pass


def _protoc() -> None:
    from pravega_serde.protobuf.texts import files_of
    from pravega_serde.registry.interface import SchemaText

    files_of(SchemaText('syntax = "proto3"; message Order {}'))


def _registry() -> None:
    with InProcessRegistry() as server, SchemaRegistryClient(server.uri) as client:
        assert list(client.groups()) == []


def _spark() -> None:
    from pravega_connector import PravegaDataSource
    from pyspark_pravega import DefaultSource

    assert DefaultSource is PravegaDataSource

    assert DefaultSource.name() == "pravega"


def _encryption() -> None:
    from pravega_serde import DataKeys, Encrypted, JsonSerializer, LocalKeys

    keys = DataKeys.create(LocalKeys.generate("main"), "main")
    serializer = Encrypted(JsonSerializer(), ["a"], keys, stream="shop/orders")
    assert serializer.deserialize(serializer.serialize({"a": "x"})) == {"a": "x"}


def _rules() -> None:
    from pravega_serde.registry.expressions import cel_function, jsonata_function
    from pravega_serde.registry.rule_set import Rule

    expressions = [Rule("r", "TRANSFORM", "WRITE", kind, expr="1 + 1") for kind in ("CEL", "JSONATA")]
    assert cel_function(expressions[0])({}, None) == 2
    assert jsonata_function(expressions[1])({}) == 2


def _kms() -> None:
    from pravega_serde import EncryptionKeyError
    from pravega_serde.encryption import ConfluentKeys
    from pravega_serde.encryption.keys import called

    try:
        called(ConfluentKeys({"token.id": "t"}).wrap, "hcvault://http://127.0.0.1:1/transit/keys/a", b"key")
    except EncryptionKeyError:
        return
    raise AssertionError("an address without Vault wrapped a key")


def _trust_store() -> None:
    from pravega_serde import SerdeError
    from pravega_serde.trust_store import trusted_certificates

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trusted.p12")
        path.write_bytes(b"\x30\x00")
        try:
            trusted_certificates(str(path), "password")
        except MissingExtraError:
            raise
        except SerdeError:
            return  # it was read, and is not valid
    raise AssertionError("an empty trust store was accepted")


@dataclass(frozen=True)
class Extra:
    """The packages by which an extra is known to be there, and a use of it."""

    modules: tuple[str, ...]
    use: Callable[[], None]
    has_fallback: bool = False


EXTRAS: Final[Mapping[str, Extra]] = {
    "async": Extra(("greenlet",), _async),
    "cbor": Extra(("cbor2",), _cbor),
    "checkpoints": Extra(("fsspec",), _checkpoints),
    "cli": Extra(("click", "rich"), _cli),
    "encryption": Extra(("cryptography",), _encryption),
    "fast": Extra(("ptars", "pyruhvro"), _fast, has_fallback=True),
    "frames": Extra(("duckdb", "pandas", "polars"), _frames),
    "generate": Extra(("datamodel_code_generator",), _generate),
    "json-schema": Extra(("jsonschema",), _json_schema),
    "kafka": Extra(("confluent_kafka",), _kafka),
    "kms": Extra(("hvac", "tink"), _kms),
    "lake": Extra(("deltalake", "pyiceberg"), _lake),
    "local": Extra(("cryptography", "httpx2"), _local),
    "metrics": Extra(("opentelemetry.metrics", "prometheus_client"), _metrics),
    "protoc": Extra(("grpc_tools",), _protoc),
    "registry": Extra(("cramjam", "httpx2"), _registry),
    "rules": Extra(("celpy", "cryptography", "jsonata"), _rules),
    "spark": Extra(("pandas", "pyspark"), _spark),
    "trust-store": Extra(("cryptography",), _trust_store),
}


class _Hidden:
    """Finder of modules that finds what another one does, but nothing that extras bring."""

    packages: Final = {module.partition(".")[0] for extra in EXTRAS.values() for module in extra.modules}

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        hidden = name.partition(".")[0] in self.packages
        return None if hidden else self._finder.find_spec(name, path, target)


def _is_there(extra: Extra) -> bool:
    try:
        return all(importlib.util.find_spec(module) is not None for module in extra.modules)
    except ModuleNotFoundError:
        return False


def tried(name: str) -> str:
    """Result of an extra: ``works``, ``says so``, or what went wrong."""
    extra = EXTRAS[name]
    try:
        extra.use()
    except (ImportError, MissingExtraError) as error:
        named = f"pip install 'pravega-serde[{name}]'" in str(error)
        return "says so" if named and not _is_there(extra) else f"{error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "works" if extra.has_fallback or _is_there(extra) else "works without its packages"


def main(arguments: list[str]) -> None:
    """Print the result as JSON."""
    if arguments == ["--without"]:
        sys.meta_path[:] = map(_Hidden, sys.meta_path)
        # grpc imports its tools if they are installed.
        for name in [each for each in sys.modules if each.partition(".")[0] in _Hidden.packages]:
            del sys.modules[name]
    result = {name: tried(name) for name in EXTRAS}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
