"""docs/export-and-pipe.md says what is."""

import re
import shlex
from pathlib import Path

import pytest

from connector.cli.export import export
from connector.cli.pipe import pipe

PAGE = (Path(__file__).parents[3] / "docs" / "export-and-pipe.md").read_text()


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_run_as_they_stand(config, monkeypatch, tmp_path):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)
    program = "\n".join(blocks("python"))
    assert program.count("assert ") >= 4
    exec(compile(program, "export-and-pipe.md", "exec"), {"folder": tmp_path})


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines()])
def test_the_commands_are_commands(line):
    arguments = shlex.split(line.rpartition("| ")[2], comments=True)
    assert arguments.pop(0) == "pravega-serde"
    command = {"export": export, "pipe": pipe}[arguments.pop(0)]
    assert command.make_context(command.name, arguments).params["stream"]


@pytest.mark.parametrize("command", [export, pipe])
def test_the_page_has_every_option_that_is_named_there(command):
    known = {option for parameter in command.params for option in parameter.opts}
    others = {option for other in (export, pipe) for parameter in other.params for option in parameter.opts}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE))
    assert named <= others
    assert known - named <= {
        "--controller",
        "--quiet",
        "--to",
        "--compression",
        "--group",
        "-o",
        "--option",
        "stream",
        "file",
    }
