"""Fixtures of all tests. A test that needs a server fails if there is none: no test is skipped."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling, Scheduling

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import LocalServerError
from pravega_connector.local import LocalPravega, LocalSchemaRegistry
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_connector.wire import StreamName
from tests.support.apicurio import CONFLUENT_PATH, apicurio_registry
from tests.support.jvm import SOON_READY
from tests.support.processes import stat_of
from tests.support.spark_classes import class_options
from tests.support.spark_home import spark_home
from tests.support.suites import files_on_kit

_TESTS = Path(__file__).parent
_RECURSION_LIMIT = sys.getrecursionlimit()
# Hypothesis deadlines are useless on a machine with other work. pytest's timeout ends a test that hangs.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# for ./run test; the default is 100
settings.register_profile("short", settings.get_profile("tests"), max_examples=30)
settings.load_profile("tests")

# A shell starts its background commands, also with nohup, with these signals ignored. Processes inherit that, and tests
# send them to processes.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# For every Spark application of a test, in this process or another one.
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join((*SOON_READY, *class_options())))
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
if (home := spark_home()) is not None:
    os.environ.setdefault("SPARK_HOME", str(home))

_WITH_SERVERS = tuple(_TESTS / name for name in ("integration", "faults", "interop"))
#: Files whose tests run on the kit.
_ON_KIT = pytest.StashKey[set[Path]]()
#: Beginning of a test's name -> process of --share-servers.
_PROCESSES = {
    "tests/integration/spark/test_confluent_source.py": "servers",
    "tests/integration/spark/test_source_scaling.py": "servers",
    "tests/integration/spark/": "spark",
    "tests/interop/": "servers",
    "tests/faults/": "servers",
    "tests/integration/client/test_client_processes.py": "servers",
    "tests/integration/client/test_client_read_only.py": "servers",
    "tests/integration/client/test_client_security.py": "servers",
    "tests/integration/exactly_once/test_ledger_permissions.py": "servers",
    "tests/integration/ingest/test_ingest_cli.py": "servers",
    "tests/integration/local/": "servers",
    "tests/integration/test_metrics.py": "servers",
    "tests/integration/test_state_samples.py": "servers",
}
_numbers = itertools.count(1)

Eventually = Callable[[Callable[[], object]], None]
StartProcess = Callable[..., subprocess.Popen[Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pravega",
        choices=["real", "kit", "mixed"],
        default="real",
        help="servers of the fixtures 'pravega' and 'registry': real ones; those of pravega_connector.testing (kit); "
        "or the kit for the suites in tests/support/suites.py, and real ones for all others (mixed)",
    )
    parser.addoption(
        "--reader",
        choices=["python", "jvm"],
        default="python",
        help="reader of raw events in the Spark tests: Python, or the one inside Spark's JVM",
    )
    parser.addoption(
        "--spark-python",
        choices=["usual", "forks"],
        default="usual",
        help="Python processes of the Spark tests: as Spark starts them, or forks as with configure, which is faster",
    )
    parser.addoption(
        "--share-servers",
        action="store_true",
        help="with -n: run most tests with Spark in one process, and most tests with real servers in another one, so "
        "that Spark and the servers start once; without it, a file goes to the next free process",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if changing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"names of tests have addresses, and other ones in each process: {changing}")
    servers = config.getoption("--pravega")
    both = files_on_kit(items)
    config.stash[_ON_KIT] = {item.path for item in items} if servers == "kit" else both if servers == "mixed" else set()
    for item in items:
        if any(folder in item.path.parents for folder in _WITH_SERVERS):
            item.add_marker(pytest.mark.integration)
        # A test without these servers would only be repeated.
        if item.path in both and "on_kit" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.both_servers)
        if servers == "kit" and (marker := item.get_closest_marker("real_servers")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs real servers: {marker.args[0]}"))
    if config.getoption("share_servers"):
        items.sort(key=lambda item: not _process_of(item.nodeid))
    else:
        items[:] = _with_spark_between(items)


def _process_of(node_id: str) -> str:
    """Return the name of the process that runs a test with others; empty if any process may run its file."""
    return next((process for beginning, process in _PROCESSES.items() if node_id.startswith(beginning)), "")


class _SharedServers(LoadScopeScheduling):
    """Keeps the tests that share servers in one process, and all others of a file."""

    def _split_scope(self, nodeid: str) -> str:
        return _process_of(nodeid) or nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)  # xdist defines this hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return _SharedServers(config, log) if config.getoption("share_servers") else None


def _with_spark_between(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the files that use Spark evenly among the others.

    Spark takes all cores, so two processes with it at the same time would only slow each other down.
    """
    files = [list(group) for _, group in itertools.groupby(items, lambda item: item.path)]
    with_spark = [file for file in files if any("spark" in getattr(item, "fixturenames", ()) for item in file)]
    others = [file for file in files if file not in with_spark]
    # They are not near the end, where the other process may have nothing left to do.
    places = [0.8 * number / len(with_spark) for number in range(len(with_spark))]
    places += [number / len(others) for number in range(len(others))]
    in_order = sorted(zip(places, with_spark + others, strict=True), key=lambda placed: placed[0])
    return [item for _, file in in_order for item in file]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failed test at once, because a run that is ended from outside prints no summary."""
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\n{report.nodeid} failed in its {report.when}: {report.longreprtext.strip().splitlines()[-1]}")


@pytest.fixture(autouse=True)
def recursion_limit() -> None:
    """Begin with the usual limit: some packages raise the limit of the process."""
    sys.setrecursionlimit(_RECURSION_LIMIT)


@pytest.fixture(scope="session")
def real_pravega() -> Iterator[LocalPravega]:
    """Real Pravega server, which the whole session shares."""
    with LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY) as server:
        yield server


@pytest.fixture(scope="session")
def kit_pravega() -> Iterator[InProcessPravega]:
    """Pravega of pravega_connector.testing, which the whole session shares."""
    with InProcessPravega() as server:
        yield server


@pytest.fixture(scope="session")
def real_registry() -> Iterator[str]:
    """Address of a real schema registry in memory, which the whole session shares."""
    with LocalSchemaRegistry() as server:
        yield server.uri


@pytest.fixture(scope="session")
def apicurio() -> Iterator[str]:
    """Address of a real Apicurio registry in memory, which the whole session shares."""
    with apicurio_registry() as uri:
        yield uri


@pytest.fixture(scope="session")
def confluent(apicurio: str) -> str:
    """Address of a Confluent-compatible registry, without ``confluent+``."""
    return apicurio + CONFLUENT_PATH


@pytest.fixture(scope="session")
def kit_registry() -> Iterator[str]:
    """Address of a schema registry of pravega_connector.testing, which the whole session shares."""
    with InProcessRegistry() as server:
        yield server.uri


@pytest.fixture(scope="module")
def on_kit(request: pytest.FixtureRequest) -> bool:
    """True if this file runs on the servers of pravega_connector.testing."""
    return request.path in request.config.stash[_ON_KIT]


@pytest.fixture(scope="module")
def pravega(on_kit: bool, request: pytest.FixtureRequest) -> LocalPravega | InProcessPravega:
    """Pravega server of this file, which other files share."""
    server: LocalPravega | InProcessPravega = request.getfixturevalue("kit_pravega" if on_kit else "real_pravega")
    return server


@pytest.fixture(scope="module")
def registry(on_kit: bool, request: pytest.FixtureRequest) -> str:
    """Address of the schema registry of this file, which other files share."""
    return str(request.getfixturevalue("kit_registry" if on_kit else "real_registry"))


@pytest.fixture
def config(pravega: LocalPravega | InProcessPravega, scope: str) -> Iterator[PravegaConfig]:
    """Configuration for the shared server, with the test's own scope.

    The end of the server is an error of the test in which it ends, and the next test starts a new one.
    """
    try:
        _ = pravega.config
    except LocalServerError:
        pravega.close()
        pravega.start()
    yield pravega.config.with_scope(scope)
    _ = pravega.config


@pytest.fixture(scope="module")
def scope() -> str:
    """Scope name of the module. No scope is created.

    The tests of a module share it, because to create a scope costs a server a third of the work for a stream.
    """
    return f"scope{next(_numbers)}"


@pytest.fixture
def own_scope() -> str:
    """Scope name of one test, for modules whose tests list the contents of a scope. No scope is created."""
    return f"scope{next(_numbers)}"


@pytest.fixture
def stream_name(scope: str) -> StreamName:
    """Stream name of one test, in ``scope``. No stream is created."""
    return StreamName(scope, f"stream{next(_numbers)}")


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Port of 127.0.0.1 that refuses connections, and that no other program can take during the test."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # without listen()
        yield int(holder.getsockname()[1])


@pytest.fixture
def eventually() -> Eventually:
    """Wait for a condition: ``eventually(lambda: file.exists())``.

    The test fails if the condition is not true in time.
    """

    def wait(condition: Callable[[], object]) -> None:
        begin = time.monotonic()
        while not condition():
            waited = time.monotonic() - begin
            assert waited < 120, "the condition did not come true in time"
            time.sleep(min(1.0, max(0.02, waited / 10)))  # a condition may cost a server something

    return wait


@pytest.fixture
def start_process() -> Iterator[StartProcess]:
    """Start Python in the background: ``start_process(arguments, environment, **options)``.

    The process can import this project, and is killed after the test. The options are as of ``subprocess.Popen``.
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
    """Start a program in a folder of the test: ``start_python(source, *args, **environment)``.

    Its output is in pipes.
    """

    def start(source: str, *args: object, **environment: str) -> subprocess.Popen[str]:
        flows = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        return start_process(["-c", source, *args], environment, cwd=tmp_path, text=True, **flows)

    return start


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Return True if a process has ended. A zombie counts as ended."""

    def check(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if sys.platform != "linux":
            return False
        return stat_of(pid)[:1] in ([], ["Z"])

    return check
