"""Pages that are made from the code say what the code says."""

import dataclasses
import io
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from pravega_connector import PravegaClient
from pravega_connector.core.retry import Counters
from pravega_connector.errors import UnknownOptionError
from pravega_connector.operations.cli import COMMANDS
from pravega_connector.operations.cli.exit_codes import SIGNAL, ExitCode
from pravega_connector.operations.cli.root import command_line
from pravega_connector.rows.options.declaration import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_serde.foreign_names import ELSEWHERE
from tests.support import pages
from tools import site
from tools.pages import DOCS, PAGES, ROOT, api, errors
from tools.pages._api_pages import FACTORIES, MODULES
from tools.pages._api_pages import PAGES as API_PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_the_code_says(name: str):
    written = (ROOT / name).read_text()
    assert PAGES[name](written) == written, "write it anew: python -m tools.pages"


def test_every_public_name_is_on_one_page_of_the_api():
    known = {id(each): f"{module}.{name}" for module in MODULES for name, each in api.public(module)}
    shown = [id(each) for page in API_PAGES.values() for each in api.names_of(page, returned=False).values()]
    assert len(known) > 200
    assert [name for key, name in known.items() if shown.count(key) != 1] == []
    assert set(shown) <= set(known)


@pytest.mark.parametrize(("name", "calls"), FACTORIES.items())
def test_a_class_is_returned_by_the_calls_that_its_entry_names(name: str, calls: tuple[str, ...]):
    for call in calls:
        assert re.search(rf"\b{name}\b", api.result_of(call)), call


def test_the_table_of_exit_codes_is_that_of_the_code():
    written = re.findall(r"^\| (\d+)(?: and more)? \| ", (DOCS / "tools/command-line.md").read_text(), re.MULTILINE)
    assert [int(code) for code in written] == [*ExitCode, SIGNAL]


@pytest.mark.parametrize("name", ["client/read-and-write.md", "operate/monitoring.md"])
def test_a_page_has_all_counters_of_a_client(name: str):
    page = (DOCS / name).read_text()
    assert [counter for counter in Counters().as_dict() if not re.search(rf"\b{counter}\b", page)] == []


@pytest.mark.parametrize("name", ["monitoring.md", "troubleshooting.md"])
def test_commands_of_a_page_are_commands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("order.avsc").touch()
    cut = "store/orders:0.#epoch.0=0"
    for file in ("tail.cut", "end.cut"):
        Path(file).write_text(cut)
    monkeypatch.setattr("sys.stdin", io.StringIO(cut))
    text = (DOCS / "operate" / name).read_text()
    found = re.findall(r"^ *(pravega-serde .*)$|`(pravega-serde [a-z][^`]*)`", text, re.MULTILINE)
    assert len(found) > 10
    for line in map("".join, found):
        words = shlex.split(re.split(" [<>] ", line)[0], comments=True)[1:]
        command: click.Command | None = command_line
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, line
        command.make_context(line, words)


def test_guides_have_calls_that_there_are():
    guides = [DOCS / "reference/names.md", *DOCS.glob("get-started/from-*.md")]
    calls = [call for page in guides for call in re.findall(r"\bclient\.(\w+)\(", page.read_text())]
    assert len(calls) > 50
    assert [call for call in calls if not hasattr(PravegaClient, call)] == []


def test_the_site_has_every_page_once_and_every_link_a_file():
    found = site.pages()
    assert sorted(map(str, found)) == sorted(site.navigation())
    assert len({file for page in found for file in site.linked(page)}) > 20


def test_every_block_of_code_is_run_or_has_its_reason():
    programs = list(pages.programs())
    assert len(programs) > 100
    used = {block.found_in(table) for block in programs for table in (pages.ELSEWHERE, pages.NOT_RUN)}
    assert {*pages.ELSEWHERE, *pages.NOT_RUN} - used == set(), "lines for blocks that there are not"
    for block in programs:
        test = pages.who_runs(block)
        if test is not None:
            text = (site.ROOT / test).read_text()
            assert "pages.run_by" in text or Path(block.page).name in text, f"{test} does not name {block}"


def test_blocks_that_are_left_out_are_few():
    left = [block for block in pages.programs() if pages.who_runs(block) is None]
    assert len(left) < len(list(pages.programs())) / 5


def test_every_place_that_names_come_from_has_its_table_on_one_page():
    made = "".join((ROOT / name).read_text() for name in PAGES if name == "docs/reference/names.md" or "/from-" in name)
    for names in ELSEWHERE.values():
        for there in names:
            first = there.split()[0]
            assert f"| `{first}`" in made, first


def test_every_error_has_cause_and_fix_under_its_code():
    page = (DOCS / "reference/errors.md").read_text()
    found = list(errors.kinds())
    assert len(found) > 70
    for kind in found:
        _, cause, fix = errors.explained(kind)
        assert f"\n### {kind.code}\n" in page
        assert cause in page
        assert fix in page


def test_errors_name_pages_and_options_that_there_are():
    page = (DOCS / "reference/errors.md").read_text()
    assert set(re.findall(r"`(--[a-z-]+)", page)) <= set(_options_of_commands(command_line))
    options = (DOCS / "reference/options.md").read_text() + (DOCS / "reference/operator-options.md").read_text()
    known = {f"`{name}`" for name in re.findall(r"^\| `(\w+)` \|", options, re.MULTILINE)}
    named = set(re.findall(r"`(?!pravega_)[a-z]+_[a-z_]+`", page))
    others = {"`add_group`", "`failover_timeout`", "`writer_id`", "`ca_file`", "`max_event_size`"}  # of the clients
    assert named - known <= others


def test_every_option_of_the_source_and_the_sink_is_on_one_of_two_pages():
    pages_of_options = [(DOCS / f"reference/{name}.md").read_text() for name in ("options", "operator-options")]
    names = {field.name for kind in (SourceOptions, SinkOptions) for field in dataclasses.fields(kind)}
    assert len(names) > 60
    for name in sorted(names):
        assert sum(f"\n| `{name}` |" in page for page in pages_of_options) == 1, name


def _options_of_commands(command):
    for option in command.params:
        yield from option.opts
    for name in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
        yield from _options_of_commands(command.get_command(click.Context(command), name))


def test_every_command_is_on_its_page():
    page = (DOCS / "tools/command-line.md").read_text()
    assert [name for name in COMMANDS if f"pravega-serde {name}" not in page and f"`{name}`" not in page] == []


def test_every_block_of_code_is_a_program_of_its_language():
    for block in pages.programs():
        if block.language == "python":
            compile(block.text, str(block), "exec")
        elif block.language == "sh":
            done = subprocess.run(["sh", "-n"], input=block.text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{block}: {done.stderr}"
        else:
            assert block.text.rstrip().endswith(";"), block


def test_options_of_the_scala_connector_do_here_what_the_guide_says():
    page = (DOCS / "get-started/from-spark-connector.md").read_text()
    table = page.partition("## Option by option")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    names = {name: says for first, says in rows for name in re.findall(r"`(\w+)", first)}
    assert len(names) == 19
    known = {field.name for kind in (SourceOptions, SinkOptions) for field in dataclasses.fields(kind)}
    for name, says in names.items():
        if "an error" in says:
            with pytest.raises(UnknownOptionError, match=name):
                parse_options(SinkOptions, {"stream": "a/b", name: "1"})
        else:
            assert name in known | {"approx_bytes_per_trigger"}, name
