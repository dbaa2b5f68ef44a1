"""How long commands wait for servers is said by one option."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pravega_connector.operations.cli import arguments, ingest, read, watch, write

# Where each takes the client's class from, the command, its first arguments.
COMMANDS = [
    (ingest, ingest.ingest, [str(Path(__file__).parent)]),
    (read, read.read, []),
    (arguments, watch.watch, []),
    (write, write.write, []),
]


class AskedFor(Exception):
    pass


@pytest.mark.parametrize(("module", "command", "before"), COMMANDS, ids=["ingest", "read", "watch", "write"])
def test_the_client_gets_it(module, command: click.Command, before, monkeypatch: pytest.MonkeyPatch):
    def client(_config, **options):
        raise AskedFor(options)

    monkeypatch.setattr(module, "PravegaClient", client)
    for given, seconds in (([], 300.0), (["--failover-timeout", "7.5"], 7.5)):
        result = CliRunner().invoke(command, [*before, "scope/stream", *given])
        assert isinstance(result.exception, AskedFor), result.output
        assert result.exception.args == ({"failover_timeout": seconds},)
    refused = CliRunner().invoke(command, [*before, "scope/stream", "--failover-timeout", "0"])
    assert refused.exit_code == 2
    assert "Invalid value for '--failover-timeout'" in refused.output
