"""``pravega-serde mirror``."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.operations.cli.root import command_line
from tests.integration.mirror.conftest import KEYS, each

Invoke = Callable[..., Result]


@pytest.fixture
def arguments(client: PravegaClient, other: PravegaClient, source: StreamName, target: StreamName) -> list[str]:
    controllers = ["--source-controller", client.config.controller, "--controller", other.config.controller]
    return ["mirror", str(source), str(target), *controllers]


@pytest.fixture
def invoke(arguments: list[str]) -> Invoke:
    return lambda *more: CliRunner().invoke(command_line, [*arguments, *more])


def test_it_copies_and_reports(client, source, invoke, write, copied):
    write(2)
    first = invoke()
    assert first.stdout.startswith(f"{2 * KEYS} events in ")
    assert "1 scalings followed" in first.stdout
    write(1)
    *progress, last = map(json.loads, invoke("--json", "--interval", "0.000001").stdout.splitlines())
    assert (last["events"], last["sealed"]) == (KEYS, False)
    assert progress[0]["activity"] == "copying"
    assert progress[0]["lag_bytes"] == 0
    assert copied() == each(3)
    status = json.loads(invoke("--status", "--json").stdout)
    assert status["source"] is not None
    assert status["destination"] is not None
    assert (status["lag_bytes"], status["aligned"]) == (0, True)
    assert "lag: 0 bytes\nkey ranges: the same\n" in invoke("--status").stdout
    client.seal_stream(source)
    assert invoke("--seal").stdout == "0 events in 0 transactions; the source is sealed\n"
    assert invoke("--quiet").stdout == ""


def test_it_begins_at_a_position(client, source, invoke, write):
    write(1)
    start = client.tail(source).to_text()
    write(1)
    assert invoke("--start", start, "--bytes-per-transaction", "1000").stdout.startswith(f"{KEYS} events in ")


def test_each_failure_has_its_exit_code(client, source, invoke, write):
    write(1)
    invoke()
    write(1)
    client.truncate(client.tail(source))
    lost = invoke()
    assert lost.exit_code == 3
    assert "[PRAVEGA-DATA-LOSS]" in lost.stderr
    write(1)
    skipped = invoke("--skip-lost")
    assert skipped.stdout.startswith(f"{KEYS} events in ")
    assert "truncated bytes skipped" in skipped.stdout
    client.delete_stream(source)
    assert invoke().exit_code == 4


def test_two_profiles(client, other, source, target, write, tmp_path, monkeypatch):
    write(1)
    folder = tmp_path / "pravega-serde"
    folder.mkdir()
    profiles = {"here": client.config.controller, "there": other.config.controller}
    (folder / "config.toml").write_text("".join(f'[{name}]\ncontroller = "{uri}"\n' for name, uri in profiles.items()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PRAVEGA_CONTROLLER_URI", raising=False)
    command = ["--profile", "there", "mirror", str(source), str(target), "--source-profile", "here"]
    assert CliRunner().invoke(command_line, command).stdout.startswith(f"{KEYS} events in ")


def test_sigterm_ends_it_in_order(arguments, invoke, write, copied, eventually):
    write(1)
    command = [
        sys.executable,
        "-c",
        "from pravega_connector.operations.cli import main; main()",
        *arguments,
        "--follow",
        "--quiet",
    ]
    with subprocess.Popen(command, env=os.environ) as process:
        try:
            eventually(lambda: invoke("--status").exit_code == 0 and copied() == each(1))
            write(1)
            eventually(lambda: copied() == each(2))
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 143
        finally:
            process.kill()
    assert json.loads(invoke("--json").stdout)["recovered"] == 0
