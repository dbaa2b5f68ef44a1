"""Pages that are made from the code say what the code says."""

from pathlib import Path

from connector.cli.options import options_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_options_page_is_up_to_date():
    written = (DOCS / "options.md").read_text()
    assert written == options_page(), "make it again: pravega-serde options --markdown > docs/options.md"
