"""The command line, for tests of what operators see."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli.root import command_line


@pytest.fixture
def run(config: PravegaConfig) -> Callable[..., Result]:
    """``run(*arguments)``: the command line, with the server's address in the environment."""

    def run(*arguments: object, code: int = 0) -> Result:
        environment = {"PRAVEGA_CONTROLLER_URI": config.controller, "COLUMNS": "160"}
        result = CliRunner().invoke(command_line, list(map(str, arguments)), env=environment)
        assert result.exit_code == code, result.output
        return result

    return run
