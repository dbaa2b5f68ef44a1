"""A stream of numbered events of several keys, and an empty folder for a table of each kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.operations.tier import TierSettings, TierSummary, tier
from pravega_connector.operations.tier.lake_table import LakeTable
from pravega_connector.operations.tier.run import open_table
from pravega_serde import ByField, JsonSerializer

KEYS = 12

Run = Callable[..., TierSummary]
Write = Callable[..., None]


class Lake:
    """Table of one kind, as another program sees it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.name = f"delta:{folder}/table" if kind == "delta" else "iceberg:main.shop.orders"
        self.storage = (
            {}
            if kind == "delta"
            else {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        )

    def open(self) -> LakeTable:
        return open_table(self.name, self.storage)

    def rows(self) -> pa.Table:
        if self.kind == "delta":
            return DeltaTable(f"{self.folder}/table").to_pyarrow_table()
        return load_catalog("main", **self.storage).load_table("shop.orders").scan().to_arrow()

    def change(self) -> None:
        """Commit to the table as another program."""
        if self.kind == "delta":
            DeltaTable(f"{self.folder}/table").alter.set_table_properties({"delta.appendOnly": "false"})
        else:
            table = load_catalog("main", **self.storage).load_table("shop.orders")
            table.append(table.scan(limit=0).to_arrow())


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    (tmp_path / "lake").mkdir()
    return Lake(request.param, tmp_path / "lake")


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name)
    client.scale_stream(stream_name, 3)
    return stream_name


@pytest.fixture
def write(client: PravegaClient, stream: StreamName) -> Write:
    """``write(count)``: write this number of events of each key, numbered over all calls; or ``write(events=[…])``."""
    written = 0

    def more(count: int = 0, events: list[Any] | None = None) -> None:
        nonlocal written
        numbered = [{"key": f"k{key}", "number": written + n} for n in range(count) for key in range(KEYS)]
        written += count
        with client.writer(stream, JsonSerializer(), router=ByField("key")) as writer:
            for event in numbered if events is None else events:
                writer.write(event)

    return more


@pytest.fixture
def run(client: PravegaClient, stream: StreamName, lake: Lake) -> Run:
    """``run(target_bytes=…)``: one run into the table, with these settings; ``options`` are of the source."""

    def start(options: dict[str, Any] | None = None, **settings: Any) -> TierSummary:
        own = {"format": "json", **(options or {})}
        return tier(
            str(stream),
            lake.name,
            storage=lake.storage,
            controller=client.config.controller,
            settings=TierSettings(**settings),
            **own,
        )

    return start
