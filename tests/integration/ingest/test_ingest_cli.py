"""The command: what it says, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravega_connector.client import StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.exactly_once.steps.takeover import this_run
from pravega_connector.operations.cli.root import command_line
from pravega_connector.operations.ingest import FileSource
from tests.support.ingest_steps import record

Write = Callable[..., Path]
Events = Callable[[], list[tuple[int, int]]]
#: Seconds in which the process ends after a signal while the server is frozen: it must not wait for an answer.
ENDS_WITHIN = 60
#: Seconds in which a healthy process ends after a signal; the step that it is in may have to be written first.
STEP_ENDS_WITHIN = 120
#: Records that make a step last a while.
MANY = 200_000


@pytest.fixture
def run(config: PravegaConfig, folder: Path, target: StreamName) -> Callable[..., Result]:
    def invoke(*arguments: object, paths: tuple[object, ...] = (folder,)) -> Result:
        given = [*paths, target, "--controller", config.controller, *arguments]
        return CliRunner().invoke(command_line, ["ingest", *map(str, given)])

    return invoke


def test_all_is_well(run, write, events):
    write(0)
    write(1)
    dry = run("--dry-run")
    assert dry.exit_code == 0
    assert "in the stream: 0 files; to ingest: 2 files" in dry.output
    assert "sample: int64" in dry.output
    assert events() == []
    plan = json.loads(run("--dry-run", "--json").output)
    assert (len(plan["pending"]), plan["columns"]["sample"]) == (2, "int64")
    assert run().output == "60 events of 2 files in 2 transactions\n"
    assert run("--quiet").output == ""
    told = json.loads(run("--json").output)
    assert (told["events"], told["failed"]) == (0, {})
    assert len(events()) == 60


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--variant", "none"], 2), (["--type", "sample=nothing"], 1), (["--format", "avr"], 1), (["--option", "x"], 2)],
)
def test_what_cannot_be_right(run, write, events, arguments, code):
    write(0)
    result = run(*arguments)
    assert result.exit_code == code
    assert events() == []


def test_bad_files(run, folder, tmp_path, write, events):
    write(1)
    (folder / "000.csv").write_text("file,sample\n0,0\n0\n")
    for arguments, exit_code, there in (
        ((), 6, 0),
        (("--keep-going",), 6, 30),
        (("--dead-letters", tmp_path / "d"), 0, 31),
    ):
        result = run(*arguments)
        assert result.exit_code == exit_code
        assert ("000.csv, line 3: Expected 2 columns, got 1" in result.output) is bool(exit_code)
        assert len(events()) == there
    (letters,) = (tmp_path / "d").iterdir()
    assert json.loads(letters.read_text())["text"] == "0"


@pytest.mark.usefixtures("soon_sure")
def test_the_operator_must_choose(run, write, steps, events):
    path = write(0)
    with this_run() as owner:
        step = record(steps, FileSource([path]), uuid.uuid4(), owner)
    result = run()
    assert result.exit_code == 7
    assert f"transaction {step.transaction} of stream" in result.output
    result = run("--resolve", "aborted")
    assert (result.exit_code, "write ID=committed or ID=aborted" in result.output) == (2, True)
    both = [f"--resolve={step.transaction}={outcome}" for outcome in ("committed", "aborted")]
    result = run(*both)
    assert (result.exit_code, "has two outcomes" in result.output) == (2, True)
    assert run("--resolve", f"{step.transaction}=aborted").exit_code == 0
    assert len(events()) == 30


@pytest.fixture
def follower(config: PravegaConfig, folder: Path, target: StreamName) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-c",
        "from pravega_connector.operations.cli import main; main()",
        "ingest",
        str(folder),
        str(target),
    ]
    command += ["--controller", config.controller, "--follow", "--settle", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    yield process
    process.kill()
    process.communicate()


def test_sigterm_ends_it_in_order(follower, client, write, events, eventually):
    write(0)
    eventually(lambda: len(events()) == 30)
    write(1)
    eventually(lambda: len(events()) == 60)
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(STEP_ENDS_WITHIN) == 143


def test_sigterm_in_the_middle_of_a_step_is_recorded(follower, steps, run, write, events, eventually):
    write(0, MANY)
    eventually(lambda: steps.read().steps or steps.state.positions)
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(STEP_ENDS_WITHIN) == 143
    state = steps.read()
    assert state.steps == {}
    assert len(events()) == (MANY if state.positions else 0)
    assert run().exit_code == 0
    assert events() == [(0, sample) for sample in range(MANY)]


@pytest.mark.real_servers("a process of its own that is stopped")
def test_sigterm_ends_it_while_the_server_is_frozen(follower, pravega, write, events, eventually):
    write(0)
    eventually(lambda: len(events()) == 30)
    os.kill(pravega.pid, signal.SIGSTOP)
    try:
        time.sleep(2)  # it lists files and reads the state every second
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(ENDS_WITHIN) == 143
    finally:
        os.kill(pravega.pid, signal.SIGCONT)
