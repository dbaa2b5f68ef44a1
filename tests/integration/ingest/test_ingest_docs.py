"""The state of an ingestion is as docs/ingest.md shows it."""

import json
import re
from pathlib import Path

from connector.ingest import IngestState

PAGE = (Path(__file__).parents[3] / "docs" / "ingest.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_state_is_as_shown():
    initial, update = (json.loads(text) for text in blocks("json"))
    state = IngestState.from_json(initial)
    assert state.sources["/data/a.csv"].finished
    assert state.to_json() == initial
    state.apply(update)
    assert state.step is not None
    assert state.step.to_json() == update["step"]
    assert state.sources["/data/b.csv"].offset == 250
