"""What every test may use. A test that needs a server fails where there is none: nothing is skipped."""

import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega, LocalSchemaRegistry
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_connector.wire import StreamName
from tests.jvm import SOON_READY
from tests.spark_classes import class_options
from tests.spark_home import spark_home
from tools.processes import stat_of

_TESTS = Path(__file__).parent
# How long examples take says nothing on a machine that has other work; pytest's own limit catches what hangs.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# ./run test; the usual number is 100
settings.register_profile("short", settings.get_profile("tests"), max_examples=30)
settings.load_profile("tests")

# For every Spark application that a test starts, here or in another process.
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join((*SOON_READY, *class_options())))
if (home := spark_home()) is not None:
    os.environ.setdefault("SPARK_HOME", str(home))

# It waits for two minutes and does little: beside the first ones, which keep both cores busy, not alone at the end.
_FIRST = _TESTS / "unit" / "testing" / "test_suites.py"
_WITH_SERVERS = tuple(_TESTS / name for name in ("integration", "faults", "interop"))
_numbers = itertools.count(1)

Eventually = Callable[[Callable[[], object]], None]
StartProcess = Callable[..., subprocess.Popen[Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pravega",
        choices=["real", "kit"],
        default="real",
        help="the servers of the fixtures 'pravega' and 'registry': real ones, or those of pravega_connector.testing",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kit = config.getoption("--pravega") == "kit"
    items.sort(key=lambda item: item.path != _FIRST)
    for item in items:
        if any(folder in item.path.parents for folder in _WITH_SERVERS):
            item.add_marker(pytest.mark.integration)
        if kit and (marker := item.get_closest_marker("real_servers")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs real servers: {marker.args[0]}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name what failed at once: a run that is ended from outside prints no summary."""
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\n{report.nodeid} failed in its {report.when}: {report.longreprtext.strip().splitlines()[-1]}")


@pytest.fixture(scope="session")
def on_kit(request: pytest.FixtureRequest) -> bool:
    """Whether the servers are those of pravega_connector.testing."""
    return bool(request.config.getoption("--pravega") == "kit")


@pytest.fixture(scope="session")
def pravega(on_kit: bool) -> Iterator[LocalPravega | InProcessPravega]:
    """A Pravega server that the whole session shares."""
    server = InProcessPravega() if on_kit else LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY)
    with server:
        yield server


@pytest.fixture(scope="session")
def registry(on_kit: bool) -> Iterator[str]:
    """Where a schema registry with memory only is that the whole session shares."""
    with InProcessRegistry() if on_kit else LocalSchemaRegistry() as server:
        yield server.uri


@pytest.fixture
def config(pravega: LocalPravega, scope: str) -> PravegaConfig:
    """How to reach the shared server, with the test's own scope."""
    return pravega.config.with_scope(scope)


@pytest.fixture(scope="module")
def scope() -> str:
    """A scope name of the module's own: to make one costs a server a third of a stream. Nothing is created."""
    return f"scope{next(_numbers)}"


@pytest.fixture
def own_scope() -> str:
    """A scope name of the test's own, for a module whose tests look at all that is in a scope. Nothing is created."""
    return f"scope{next(_numbers)}"


@pytest.fixture
def stream_name(scope: str) -> StreamName:
    """A stream name of the test's own, in ``scope``. Nothing is created."""
    return StreamName(scope, f"stream{next(_numbers)}")


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections, and that no other program can take meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # and no listen()
        yield int(holder.getsockname()[1])


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
def start_process() -> Iterator[StartProcess]:
    """``start_process(arguments, environment, **options)``: Python in the background, killed after the test.

    It can import this project. The options are those of ``subprocess.Popen``.
    """
    started: list[subprocess.Popen[Any]] = []

    def start(arguments: Sequence[object], environment: Mapping[str, str], **options: Any) -> subprocess.Popen[Any]:
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(_TESTS.parent), **environment},
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def start_python(start_process: StartProcess, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """``start_python(source, *args, **environment)``: a program in a folder of the test, its output in pipes."""

    def start(source: str, *args: object, **environment: str) -> subprocess.Popen[str]:
        flows = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        return start_process(["-c", source, *args], environment, cwd=tmp_path, text=True, **flows)

    return start


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
        return stat_of(pid)[:1] in ([], ["Z"])

    return check
