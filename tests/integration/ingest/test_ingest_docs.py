"""The commands and programs in docs/ingest.md do what it says."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from connector.cli.ingest import ingest
from connector.client import PravegaClient
from connector.config import PravegaConfig
from connector.ingest import IngestState

PAGE = (Path(__file__).parents[3] / "docs" / "ingest.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def scoped(text: str, scope: str) -> str:
    return text.replace("scope/", f"{scope}/")


def test_the_commands_run_as_they_stand(
    config: PravegaConfig, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)
    Path("data").mkdir()
    Path("data/flights.csv").write_text("origin,delay\nEWR,3\nJFK,NA\n")
    said = []
    (shell,) = blocks("sh")
    for line in scoped(shell, scope).splitlines():
        program, name, *arguments = shlex.split(line, comments=True)
        assert (program, name) == ("pravega-serde", "ingest")
        result = CliRunner().invoke(ingest, arguments)
        assert result.exit_code == 0, result.output
        said.append(result.output)
    assert "origin: string" in said[0]
    assert "delay: int64" in said[0]
    assert [text.partition(" ")[0] for text in said[1:]] == ["2", "0", "2"]


def test_the_program_runs_as_it_stands(
    config: PravegaConfig, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)
    (program,) = blocks("python")
    assert program.count("assert ") >= 3
    names: dict[str, object] = {}
    exec(compile(scoped(program, scope), "ingest.md", "exec"), names)
    client = names["client"]
    assert isinstance(client, PravegaClient)
    client.close()


def test_the_state_is_as_shown():
    initial, update = (json.loads(text) for text in blocks("json"))
    state = IngestState.from_json(initial)
    assert state.sources["/data/a.csv"].finished
    assert state.to_json() == initial
    state.apply(update)
    assert state.step is not None
    assert state.step.to_json() == update["step"]
    assert state.sources["/data/b.csv"].offset == 250
