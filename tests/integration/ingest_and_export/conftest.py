"""The command line as its own process."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from pravega_connector.config import PravegaConfig

_MAIN = "from pravega_connector.operations.cli import main; main()"


@pytest.fixture
def command(
    config: PravegaConfig, start_process: Callable[..., subprocess.Popen[bytes]]
) -> Callable[..., subprocess.Popen[bytes]]:
    """``command("write", …)``: ``pravega-serde write …`` in the background, with pipes for all its flows."""

    def start(*args: object, **options: Any) -> subprocess.Popen[bytes]:
        flows = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        environment = {"PRAVEGA_CONTROLLER_URI": config.controller}
        return start_process(["-W", "error", "-c", _MAIN, *args], environment, **flows)

    return start
