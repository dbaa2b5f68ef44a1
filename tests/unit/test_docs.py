"""Pages that are made from the code say what the code says."""

import re
from pathlib import Path

from connector import PravegaClient
from connector.cli.exit_codes import SIGNAL, ExitCode
from connector.cli.options import options_page
from tools import command_page, layers, metrics_page, names_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_options_page_is_up_to_date():
    written = (DOCS / "options.md").read_text()
    assert written == options_page(), "make it again: pravega-serde options --markdown > docs/options.md"


def test_the_page_of_commands_is_up_to_date():
    assert command_page.PAGE.read_text() == command_page.page(), "make it again: python -m tools.command_page"


def test_the_table_of_exit_codes_is_that_of_the_code():
    written = re.findall(r"^\| (\d+)(?: and more)? \| ", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert [int(code) for code in written] == [*ExitCode, SIGNAL]


def test_the_layers_are_drawn_as_they_are():
    assert len(layers.edges()) > 100
    assert layers.PAGE.read_text() == layers.page(), "draw them again: python -m tools.layers"


def test_the_page_of_metrics_has_them_all():
    assert len(metrics_page.table().splitlines()) > 20
    assert metrics_page.PAGE.read_text() == metrics_page.page(), "make it again: python -m tools.metrics_page"


def test_the_page_of_names_says_what_errors_say():
    assert len(names_page.tables().splitlines()) > 50
    assert names_page.PAGE.read_text() == names_page.page(), "make it again: python -m tools.names_page"


def test_the_page_of_names_has_calls_that_there_are():
    calls = re.findall(r"`client\.(\w+)", names_page.PAGE.read_text())
    assert len(calls) > 5
    assert [call for call in calls if not hasattr(PravegaClient, call)] == []
