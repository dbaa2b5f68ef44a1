"""The state of an ingestion is as benchmarks/results/ingestion.md shows it."""

import json
import re
from pathlib import Path

from pravega_connector.exactly_once.steps import StepsState, Update
from pravega_connector.operations.ingest.feed import Progress

PAGE = (Path(__file__).parents[3] / "benchmarks/results/ingestion.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_state_is_as_shown():
    initial, update = (json.loads(text) for text in blocks("json"))
    state = StepsState.from_json(initial)
    assert Progress.from_json(state.positions["/data/a.csv"]).finished
    assert state.to_json() == initial
    assert Update.from_json(update).to_json() == update
    state.apply(Update.from_json(update))
    assert state.steps["run-2"].to_json() == update["step"]
    assert Progress.from_json(state.positions["/data/b.csv"]).offset == 250
