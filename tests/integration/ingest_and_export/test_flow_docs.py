"""docs/tools/export-and-pipe.md says what is."""

import re
import shlex
from pathlib import Path

import pytest

from pravega_connector.operations.cli.export import export
from pravega_connector.operations.cli.write import write

PAGE = (Path(__file__).parents[3] / "docs" / "tools/export-and-pipe.md").read_text()


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_pipes_that_go_on_are_commands():
    (endless,) = [block for block in blocks("sh") if "tail -F" in block]
    assert len(endless.splitlines()) == 3
    for line in endless.splitlines():
        program, name, *arguments = shlex.split(line.rpartition("| ")[2])
        assert (program, name) == ("pravega-serde", "write")
        assert write.make_context(name, arguments).params["stream"]


@pytest.mark.parametrize("command", [export, write])
def test_the_page_has_every_option_that_is_named_there(command):
    known = {option for parameter in command.params for option in parameter.opts}
    others = {option for other in (export, write) for parameter in other.params for option in parameter.opts}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE))
    assert named <= others
    assert known - named <= {
        "--controller",
        "--quiet",
        "--to",
        "--compression",
        "--registry-group",
        "-o",
        "--option",
        "stream",
        "files",
        "-K",
        "file",
    }
