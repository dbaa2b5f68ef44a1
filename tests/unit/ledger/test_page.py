"""The page about exactly once shows the table that the code works through."""

from pathlib import Path

from connector.ledger import TABLE, Phase
from connector.ledger.machine import _JUDGES
from tools.ledger_diagram import as_markdown, as_mermaid

PAGE = Path(__file__).parents[3] / "docs" / "exactly-once.md"


def test_the_page_shows_the_table():
    page = PAGE.read_text()
    assert as_mermaid() in page, "put the output of python -m tools.ledger_diagram into docs/exactly-once.md"
    assert as_markdown() in page


def test_every_phase_can_be_reached_and_left():
    reached = {move.to for move in TABLE.values()} | {Phase.READ, Phase.ABANDON_READ}
    left = {phase for phase, _ in TABLE}
    assert reached == set(Phase)
    assert left == set(Phase) - {Phase.END} == set(_JUDGES)
