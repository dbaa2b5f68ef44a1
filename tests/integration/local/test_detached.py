"""The server in the background: ``pravega-serde local up | status | down``."""

import json
import os
import signal
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local.jars import cache_dir
from pravega_serde.registry import Compatibility, GroupProperties, SchemaRegistryClient, SerializationFormat

CLI = "import sys; from pravega_connector.operations.cli import main; main(sys.argv[1:])"


@pytest.fixture
def cli(start_python, tmp_path):
    """Run the command line with its own state, and with the jars that exist already."""
    cache = tmp_path / "cache"
    cache.mkdir()
    jars = cache_dir() / "jars"
    jars.mkdir(parents=True, exist_ok=True)
    (cache / "jars").symlink_to(jars)

    def run(*args):
        process = start_python(CLI, "local", *args, PRAVEGA_SERDE_CACHE=str(cache))
        output, errors = process.communicate(timeout=240)
        return process.returncode, output, errors

    yield run
    run("down")


@pytest.mark.long  # tests/unit/local/test_process.py has a command in the background
def test_up_status_down(cli, is_gone, eventually):
    assert cli("status") == (1, "No Pravega server is up; start one with: pravega-serde local up\n", "")

    code, output, _ = cli("up", "--port", "0")
    assert code == 0
    first, hint = output.splitlines()
    uri = first.removeprefix("Pravega is up at ")
    assert hint == f"export PRAVEGA_CONTROLLER_URI={uri}"
    with PravegaClient(uri) as client:
        client.create_stream("detached/stream")

    code, output, errors = cli("up")
    assert (code, output.splitlines()[0]) == (0, f"Pravega was up already at {uri}")
    assert errors == "A user can run one server, so none was started on port 9090: run 'local down' first\n"
    assert cli("up", "--port", "0")[2] == ""

    code, output, _ = cli("status")
    assert code == 0
    assert output.startswith(f"{uri}  pid ")
    told = json.loads(cli("status", "--json")[1])
    assert (told["pravega"]["uri"], told["registry"]) == (uri, None)
    log = output.split("  log ")[1].strip()
    pid = int(Path(log).with_name("pid").read_text())
    assert not is_gone(pid)

    assert cli("down") == (0, f"Pravega at {uri} is down, and its data is deleted\n", "")
    assert is_gone(pid)
    assert not Path(log).parent.exists()
    assert cli("down") == (0, "No Pravega server was up\n", "")


@pytest.mark.long
def test_a_registry_next_to_it(cli, is_gone):
    code, output, errors = cli("up", "--port", "0", "--registry", "--registry-port", "0", "--registry-store", "pravega")
    assert code == 0, errors
    uri = output.splitlines()[-1].removeprefix("export PRAVEGA_REGISTRY_URI=")
    assert f"The schema registry is up at {uri}" in output
    with SchemaRegistryClient(uri) as client:
        assert client.add_group("kept", GroupProperties(SerializationFormat.AVRO, Compatibility.FULL))

    assert f"The schema registry was up already at {uri}" in cli("up", "--registry", "--registry-port", "0")[1]

    code, output, _ = cli("status")
    assert code == 0
    line = output.splitlines()[1]
    assert line.startswith(f"{uri}  pid ")
    log = Path(line.split("  log ")[1])
    pid = int(log.with_name("pid").read_text())
    assert not is_gone(pid)

    assert cli("down")[1].splitlines()[0] == f"The schema registry at {uri} is down"
    assert is_gone(pid)
    assert not log.parent.exists()


@pytest.mark.long
def test_a_server_that_died_is_not_up(cli, eventually):
    assert cli("up", "--port", "0")[0] == 0
    pid = int(cli("status")[1].split("pid ")[1].split()[0])
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: cli("status")[0] == 1)
    assert cli("down")[1] == "No Pravega server was up\n"


def test_a_port_in_use_is_one_line(cli, pravega):
    port = pravega.controller_uri.rpartition(":")[2]
    code, output, errors = cli("up", "--port", port)
    assert (code, output) == (1, "")
    assert errors.splitlines()[-1].startswith(f"[PRAVEGA-LOCAL-SERVER] port {port} is in use; ")
    assert "Traceback" not in errors
