"""The command line's frame."""

import subprocess
import sys

import pytest

from pravega_connector.operations.cli import main
from pravega_serde.errors import PravegaError


def run(capsys, *args):
    with pytest.raises(SystemExit) as caught:
        main(args)
    captured = capsys.readouterr()
    return caught.value.code or 0, captured.out, captured.err


def test_version(capsys):
    code, output, _ = run(capsys, "--version")
    assert code == 0
    assert output.startswith("pravega-serde, version ")


def test_help_lists_the_commands(capsys):
    code, output, _ = run(capsys, "--help")
    assert code == 0
    assert "local" in output


def test_a_command_that_does_not_exist(capsys):
    code, output, errors = run(capsys, "nothing")
    assert (code, output) == (2, "")
    assert "No such command 'nothing'" in errors


def test_an_error_of_this_project_is_one_line(capsys, monkeypatch):
    def fail():
        raise PravegaError("it does not\nwork")

    monkeypatch.setattr("pravega_connector.operations.cli.local.detached_server", fail)
    assert run(capsys, "local", "status") == (1, "", "[PRAVEGA-ERROR] it does not work\n")


def test_a_wrong_option_names_itself(capsys):
    code, _, errors = run(capsys, "local", "up", "--port", "many")
    assert code == 2
    assert "--port" in errors


def test_a_port_that_is_none_is_refused_before_anything_starts(capsys):
    code, _, errors = run(capsys, "local", "up", "--port", "99999")
    assert code == 1
    assert errors.splitlines()[-1].startswith("[PRAVEGA-CONFIG] invalid port 99999; ")


def test_without_its_extra_the_command_names_it(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "pravega_connector.operations.cli.root", raising=False)
    monkeypatch.delitem(sys.modules, "pravega_connector.operations.cli.root", raising=False)
    monkeypatch.setitem(sys.modules, "click", None)
    code, output, errors = run(capsys, "stream", "list")
    assert (code, output) == (1, "")
    assert errors == (
        "[PRAVEGA-MISSING-EXTRA] the command pravega-serde needs the package 'click'; "
        "install it with: pip install 'pravega-serde[cli]'\n"
    )


@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("arguments", ["--version", "sniff --help", "sniff -", "options"])
def test_standard_output_that_nothing_can_be_written_to_is_one_line(output, arguments):
    start = "from pravega_connector.operations.cli import main; main()"
    command = f"printf 'text\\n' | {sys.executable} -c '{start}' {arguments} {output}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 8
    (line,) = done.stderr.splitlines()
    assert line.startswith("[PRAVEGA-OUTPUT-FILE] cannot write to standard output: ")
