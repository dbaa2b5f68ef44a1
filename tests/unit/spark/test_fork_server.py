"""Fork server of Spark's Python processes: a fork is what ``python -m`` would be, and ends as it would."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.fork_server.session import ForkServer, SparkPython, UnavailableError, register
from tests.support.processes import stat_of

ROOT = Path(__file__).parents[3]
SECONDS = 120
Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

#: Module that a test runs, as a module of PySpark, because the server forks no other modules.
TESTED = """
import gc, json, os, random, resource, signal, sys

def stream(file):
    return [file.encoding, file.errors, file.line_buffering, file.write_through, file.mode, type(file.buffer).__name__]

def description():
    mask = os.umask(0)
    return {
        "arguments": [sys.argv[1:], sys.orig_argv],
        "environment": dict(os.environ),
        "path": sys.path,
        "interpreter": [sys.executable, sys.prefix, sys.version, repr(sys.flags), hash("text"), gc.get_threshold()],
        "main": [__name__, __spec__.name, sys.modules["__main__"].__spec__.name, sys.modules["__main__"].__file__],
        "place": [os.getcwd(), mask, os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0)],
        "limits": [resource.getrlimit(number) for number in range(16)],
        "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "streams": [stream(file) for file in (sys.stdin, sys.stdout, sys.stderr)],
        "files": [number for number in range(64) if os.path.exists(f"/proc/self/fd/{number}")],
        "threads": len(os.listdir("/proc/self/task")),
        "input": sys.stdin.read(),
    }

if __name__ == "__main__":
    do, *given = sys.argv[1:]
    print(os.getpid(), flush=True)
    if do == "describe":
        print(json.dumps(description()))
    elif do == "random":
        print(random.random())
    elif do == "exit":
        sys.exit(int(given[0]))
    elif do == "die":
        os.kill(os.getpid(), int(given[0]))
    elif do == "raise":
        raise LookupError("of the process")
    elif do == "wait":
        sys.stdin.read()
"""
FINDER = """
import importlib.util, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "pyspark.tested":
            return importlib.util.spec_from_file_location(name, {file!r})
sys.meta_path.append(Finder)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> SparkPython:
    """Python as the JVM starts it, with a module ``pyspark.tested``."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "tested.py").write_text(TESTED)
    (folder / "sitecustomize.py").write_text(FINDER.format(file=str(folder / "tested.py")))
    home = Path(pyspark.__file__).parent / "python" / "lib"
    spark_path = os.pathsep.join(map(str, (home / "pyspark.zip", *home.glob("py4j-*.zip"))))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))} | {
        "PYTHONPATH": os.pathsep.join((spark_path, str(folder), str(ROOT))),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "YES",
        "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
    }
    return SparkPython(sys.executable, pyspark.__version__, environment, str(folder), spark_path)


@pytest.fixture(scope="module")
def interruptible() -> Iterator[None]:
    """Let the processes of a test receive SIGINT, also if a shell started the tests in the background."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.fixture(scope="module")
def server(python: SparkPython, interruptible: None) -> Iterator[ForkServer]:
    server = ForkServer(python)
    yield server
    server.stop()
    assert not Path(server.executable).parent.exists()


@pytest.fixture
def start(server: ForkServer, python: SparkPython) -> Iterator[Start]:
    """``start(*arguments)`` starts a process of ``pyspark.tested`` as the JVM does."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, executable: str = "", **others: Any) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        settings: dict[str, Any] = {"env": python.environment, "cwd": python.folder, **others}
        command = [executable or server.executable, "-m", "pyspark.tested", *map(str, arguments)]
        process = subprocess.Popen(command, text=True, **pipes, **settings)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=SECONDS)


@pytest.fixture
def run(start: Start) -> Run:
    """``run(*arguments)`` runs a process to its end: its exit code, output and errors."""

    def run(*arguments: object, **others: Any) -> subprocess.CompletedProcess[str]:
        process = start(*arguments, **others)
        output, errors = process.communicate("some input", timeout=SECONDS)
        # The first line of the output is the process's id: a fork is another process than the one that was started.
        pid, _, rest = output.partition("\n")
        is_fork = int(pid) != process.pid if pid.isdigit() else False
        return subprocess.CompletedProcess([is_fork], process.returncode, rest, errors)

    return run


def is_fork(done: subprocess.CompletedProcess[str]) -> bool:
    return bool(done.args[0])


def without_spark_path(python: SparkPython, environment: dict[str, str]) -> dict[str, str]:
    return environment | {"PYTHONPATH": environment["PYTHONPATH"].removeprefix(f"{python.spark_path}{os.pathsep}")}


def lower_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def ignore_and_block() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


@pytest.mark.parametrize(
    "settings",
    [{}, {"umask": 0o027}, {"preexec_fn": lower_limit}, {"preexec_fn": ignore_and_block}],
    ids=["nothing", "umask", "limit", "signals"],
)
def test_a_fork_is_what_a_new_python_is(run: Run, python: SparkPython, settings: dict[str, Any]) -> None:
    environment = python.environment | {"PYTHON_WORKER_FACTORY_SECRET": "s3cret", "SPARK_BUFFER_SIZE": "65536"}
    fork = run("describe", "a b", env=environment, **settings)
    new = run("describe", "a b", executable=python.path, env=without_spark_path(python, environment), **settings)
    assert (is_fork(fork), is_fork(new)) == (True, False)
    found, expected = json.loads(fork.stdout), json.loads(new.stdout)
    assert found == expected | {"threads": 1}, "PySpark 4.0 starts a thread in a new Python"
    assert (found["input"], found["threads"]) == ("some input", 1)
    assert (fork.returncode, fork.stderr) == (0, "")


@pytest.mark.parametrize("code", [0, 7, -1])
def test_the_exit_code_is_the_forks(run: Run, code: int) -> None:
    done = run("exit", code)
    assert (is_fork(done), done.returncode) == (True, code % 256)


def test_an_exception_is_printed(run: Run) -> None:
    done = run("raise")
    assert (is_fork(done), done.returncode) == (True, 1)
    assert done.stderr.endswith("LookupError: of the process\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_fork_that_dies_ends_its_proxy_with_the_same_signal(run: Run, number: signal.Signals) -> None:
    done = run("die", int(number))
    assert (is_fork(done), done.returncode) == (True, -number)


def test_forks_have_different_random_numbers(run: Run) -> None:
    assert len({run("random").stdout for _ in range(3)}) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGKILL])
def test_signals_reach_the_fork(start: Start, eventually: Callable[..., None], number: signal.Signals) -> None:
    process = start("wait")
    assert process.stdout is not None
    fork = int(process.stdout.readline())
    assert fork != process.pid
    process.send_signal(number)
    assert process.wait(SECONDS) == -number
    eventually(lambda: stat_of(fork)[:1] in ([], ["Z"]))


# The signal comes to another thread, so it does not interrupt the proxy's wait: as if it came right before the wait.
UNINTERRUPTED = """
import os, signal, socket, threading
from pravega_connector.spark.fork_server import proxy
fork = os.fork()
if fork == 0:
    while True:
        signal.pause()
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
def state():
    return open(f"/proc/self/task/{os.getpid()}/stat").read().rpartition(")")[2].split()[0]
def watch():
    while signal.getsignal(signal.SIGHUP) == signal.SIG_DFL or signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
        pass
    while state() != "S":
        pass
    os.kill(os.getpid(), signal.SIGUSR1)
    _, status = os.waitpid(fork, 0)
    theirs.send(str(os.waitstatus_to_exitcode(status)).encode())
    threading.Event().wait()  # the other thread does not take the signal that ends the process
threading.Thread(target=watch, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
proxy._represent(ours, os.pidfd_open(fork))
"""


def test_a_signal_that_does_not_interrupt_the_wait_reaches_the_fork(start_python: Callable[..., Any]) -> None:
    assert start_python(UNINTERRUPTED).wait(SECONDS) == -signal.SIGUSR1


def test_a_fork_is_in_the_process_group_of_its_proxy(start: Start) -> None:
    process = start("wait", process_group=0)
    assert process.stdout is not None
    assert os.getpgid(int(process.stdout.readline())) == process.pid


def test_forks_do_not_need_the_server(python: SparkPython, start: Start, run: Run) -> None:
    server = ForkServer(python)
    process = start("wait", executable=server.executable)
    assert process.stdout is not None
    assert int(process.stdout.readline()) != process.pid
    assert server._process is not None
    server._process.kill()
    server._process.wait()
    assert not server.is_alive
    after = run("exit", 3, executable=server.executable)
    assert (is_fork(after), after.returncode) == (False, 3), "the proxy became the process"
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    server.stop()
    shutil.rmtree(Path(server.executable).parent)


def other_folder(python: SparkPython) -> dict[str, Any]:
    return {"cwd": str(ROOT)}


def other_variable(python: SparkPython) -> dict[str, Any]:
    return {"env": python.environment | {"MALLOC_ARENA_MAX": "1"}}


def other_path(python: SparkPython) -> dict[str, Any]:
    return {"env": python.environment | {"PYTHONPATH": python.environment["PYTHONPATH"] + ":/other"}}


def other_hard_limit(python: SparkPython) -> dict[str, Any]:
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))}


def long_environment(python: SparkPython) -> dict[str, Any]:
    return {"env": python.environment | {f"SPARK_{i}": "x" * 70_000 for i in range(2)}}


def own_session(python: SparkPython) -> dict[str, Any]:
    return {"start_new_session": True}


@pytest.mark.parametrize(
    "settings", [other_folder, other_variable, other_path, other_hard_limit, long_environment, own_session]
)
def test_a_process_that_a_fork_cannot_be_starts_as_usual(
    run: Run, python: SparkPython, settings: Callable[[SparkPython], dict[str, Any]]
) -> None:
    done = run("describe", **settings(python))
    assert (is_fork(done), done.returncode) == (False, 0)
    assert json.loads(done.stdout)["input"] == "some input"


def test_other_commands_are_not_forked(server: ForkServer, python: SparkPython) -> None:
    command = [server.executable, "-c", "import os; print(os.getpid())"]
    with subprocess.Popen(command, env=python.environment, cwd=python.folder, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert int(output) == process.pid


def test_only_the_user_reaches_the_server(server: ForkServer) -> None:
    folder = Path(server.executable).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "socket").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("packet", [b"", b"\xff", b"[]", b"{}", b'{"arguments": 1}', b"x" * 150_000])
def test_a_malformed_request_is_refused(server: ForkServer, run: Run, packet: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(Path(server.executable).with_name("socket")))
        socket.send_fds(connection, [packet], [0, 1, 2])
        assert connection.recv(100) == b""
    assert is_fork(run("exit", 0))


def test_a_killed_driver_leaves_no_server(python: SparkPython, eventually: Callable[..., None]) -> None:
    program = (
        "import sys\n"
        "from pravega_connector.spark.fork_server.session import ForkServer, SparkPython\n"
        f"server = ForkServer({python!r})\n"
        "print(server._process.pid, server.executable, flush=True)\n"
        "sys.stdin.read()\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert driver.stdout is not None
    pid, executable = driver.stdout.readline().split()
    assert stat_of(int(pid))
    assert Path(executable).exists()
    driver.kill()
    driver.communicate(timeout=SECONDS)
    eventually(lambda: stat_of(int(pid))[:1] in ([], ["Z"]) and not Path(executable).parent.exists())


def changed_archive(folder: Path) -> Path:
    """Spark's archive with a change in one module that the server imports."""
    usual = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    (folder / "lib").mkdir()
    changed = folder / "lib" / "pyspark.zip"
    with zipfile.ZipFile(usual) as read, zipfile.ZipFile(changed, "w") as written:
        for name in read.namelist():
            written.writestr(name, read.read(name) + (b"\n" if name == "pyspark/serializers.py" else b""))
    return changed


def test_another_pyspark_than_sparks_is_not_used(python: SparkPython, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"has PySpark [\d.]+, and Spark is 9.9.9"):
        ForkServer(replace(python, version="9.9.9"))
    archive = str(changed_archive(tmp_path))
    path = python.environment["PYTHONPATH"].replace(python.spark_path, archive)
    changed = replace(python, spark_path=archive, environment=python.environment | {"PYTHONPATH": path})
    with pytest.raises(UnavailableError, match=r"another PySpark than Spark: pyspark.serializers differs in"):
        ForkServer(changed)


def test_the_reason_names_what_is_absent(python: SparkPython, tmp_path: Path) -> None:
    path = f"{python.spark_path}{os.pathsep}{ROOT}"
    bare = replace(python, environment=python.environment | {"PYTHONPATH": path}, folder=str(tmp_path))
    (tmp_path / "pyspark.py").write_text("")
    with pytest.raises(UnavailableError, match=r"does not have the packages: .*pyspark"):
        ForkServer(bare)


def test_modules_with_threads_are_not_forked(python: SparkPython, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    path = python.environment["PYTHONPATH"].replace(python.folder, str(tmp_path))
    with pytest.raises(UnavailableError, match="its modules start threads"):
        ForkServer(replace(python, environment=python.environment | {"PYTHONPATH": path}))


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (SimpleNamespace(), "Spark Connect"),
        (
            SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077"), _jsparkSession=None),
            "spark://host",
        ),
        (
            SimpleNamespace(sparkContext=SimpleNamespace(master="local-cluster[2,1,1024]"), _jsparkSession=None),
            "local-c",
        ),
    ],
)
def test_other_sessions_start_processes_as_usual(session: Any, reason: str) -> None:
    with pytest.raises(UnavailableError, match=reason):
        register(session, PravegaDataSource)
