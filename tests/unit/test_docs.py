"""Pages that are made from the code say what the code says."""

import re

import pytest

from connector import PravegaClient
from connector.cli.exit_codes import SIGNAL, ExitCode
from connector.client.health import Counters
from tools import site
from tools.pages import DOCS, PAGES, layers


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_the_code_says(name: str):
    written = (DOCS / name).read_text()
    assert PAGES[name](written) == written, "write it anew: python -m tools.pages"


def test_the_table_of_exit_codes_is_that_of_the_code():
    written = re.findall(r"^\| (\d+)(?: and more)? \| ", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert [int(code) for code in written] == [*ExitCode, SIGNAL]


@pytest.mark.parametrize("name", ["client.md", "operations.md"])
def test_a_page_has_all_counters_of_a_client(name: str):
    page = (DOCS / name).read_text()
    assert [counter for counter in Counters().as_dict() if not re.search(rf"\b{counter}\b", page)] == []


def test_no_import_is_overlooked():
    assert len(layers.edges()) > 100


def test_the_page_of_names_has_calls_that_there_are():
    calls = re.findall(r"`client\.(\w+)", (DOCS / "names.md").read_text())
    assert len(calls) > 5
    assert [call for call in calls if not hasattr(PravegaClient, call)] == []


def test_the_site_has_every_page_once_and_every_link_a_file():
    pages = site.pages()
    assert sorted(map(str, pages)) == sorted(site.navigation())
    assert len({file for page in pages for file in site.linked(page)}) > 25
