"""Pages that are made from the code say what the code says."""

from pathlib import Path

from connector.cli.options import options_page
from tools import layers

DOCS = Path(__file__).parents[2] / "docs"


def test_the_options_page_is_up_to_date():
    written = (DOCS / "options.md").read_text()
    assert written == options_page(), "make it again: pravega-serde options --markdown > docs/options.md"


def test_the_layers_are_drawn_as_they_are():
    assert len(layers.edges()) > 100
    assert layers.PAGE.read_text() == layers.page(), "draw them again: python -m tools.layers"
