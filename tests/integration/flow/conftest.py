"""A client of the shared server, and the command line as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.client import PravegaClient
from connector.config import PravegaConfig

_ROOT = Path(__file__).parents[3]
_MAIN = "from connector.cli import main; main()"


@pytest.fixture
def client(config: PravegaConfig) -> Iterator[PravegaClient]:
    with PravegaClient(config) as client:
        yield client


@pytest.fixture
def command(config: PravegaConfig) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``command("pipe", …)``: ``pravega-serde pipe …`` in the background, with pipes for all its flows."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: object, **options: Any) -> subprocess.Popen[bytes]:
        flows = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PRAVEGA_CONTROLLER_URI": config.controller}
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _MAIN, *map(str, args)], env=environment, **flows
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
