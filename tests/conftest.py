"""What every test may use. A test that needs a server fails where there is none: nothing is skipped."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from connector.config import PravegaConfig
from connector.local import LocalPravega
from connector.wire import StreamName

_TESTS = Path(__file__).parent
# How long an example takes says nothing on a machine that has other work; pytest's own limit catches what hangs.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

_WITH_SERVERS = tuple(_TESTS / name for name in ("integration", "faults", "interop"))
_numbers = itertools.count(1)

Eventually = Callable[[Callable[[], object]], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in _WITH_SERVERS):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def pravega() -> Iterator[LocalPravega]:
    """A Pravega server that the whole session shares."""
    with LocalPravega() as server:
        yield server


@pytest.fixture
def config(pravega: LocalPravega, scope: str) -> PravegaConfig:
    """How to reach the shared server, with the test's own scope."""
    return pravega.config.with_scope(scope)


@pytest.fixture
def scope() -> str:
    """A scope name of the test's own. Nothing is created."""
    return f"scope{next(_numbers)}"


@pytest.fixture
def stream_name(scope: str) -> StreamName:
    """A stream name of the test's own, in ``scope``. Nothing is created."""
    return StreamName(scope, f"stream{next(_numbers)}")


@pytest.fixture
def eventually() -> Eventually:
    """Await a condition: ``eventually(lambda: file.exists())``; the test fails when it does not come true in time."""

    def wait(condition: Callable[[], object], *, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true in time"
            time.sleep(0.02)

    return wait


@pytest.fixture
def start_python(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python program that can import this project: ``start_python(source, *args)``, killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(source: str, *args: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", source, *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(_TESTS.parent), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Whether a process has ended; one that nobody has waited for yet counts as ended."""

    def check(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if sys.platform != "linux":
            return False
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    return check
