"""Pages that are made from the code, whole or in part: ``python -m tools.pages`` writes all of them again.

A page is a function that takes the text as it is and returns it as it must be.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.pages import api, errors, java_coverage, ledger, metrics, names, options, types

__all__ = ["DOCS", "PAGES", "ROOT"]

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final[dict[str, Callable[[str], str]]] = {
    "benchmarks/results/exactly-once-tables.md": ledger.page,
    "docs/reference/errors.md": errors.page,
    "docs/reference/java-coverage.md": java_coverage.page,
    "docs/reference/metrics.md": metrics.page,
    "docs/get-started/from-java.md": names.page("Pravega's Java client"),
    "docs/get-started/from-kafka.md": names.page("Kafka's clients"),
    "docs/get-started/from-pravega-binding.md": names.page("Pravega's Rust client and its Python binding"),
    "docs/reference/names.md": names.page("Pulsar's client", "PySpark", "asyncio"),
    "docs/reference/options.md": options.page,
    "docs/reference/operator-options.md": options.operator_page,
    "docs/reference/api/index.md": api.index,
    "docs/serialization/avro.md": types.page(types.columns_of("| Avro | Java | Python | Spark |", types.avro_type)),
    "docs/serialization/derived-schemas.md": types.page(types.schemas),
    "docs/serialization/java-objects.md": types.page(types.columns_of("| Java | Python | Spark |", types.java_type)),
    "docs/serialization/json-and-cbor.md": types.page(types.values),
    "docs/serialization/protobuf.md": types.page(
        types.columns_of("| Protobuf | Java | Python (`as_dict`, mappings) | Spark |", types.protobuf_type)
    ),
    **{f"docs/{path}": api.page(name) for path, name in api.API.items()},
}
