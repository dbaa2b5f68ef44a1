"""An import changes nothing in the process: each module of all packages, in a new process."""

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import connector
import pravega_connector
import pravega_serde
import pyspark_pravega

ROOT = Path(__file__).parents[2]
PACKAGES = (pravega_serde, pravega_connector, connector, pyspark_pravega)

#: Packages of others, loaded before the comparison: numpy adds filters of warnings, py4j an empty log handler,
#: and polars a variable of its allocator.
OTHERS = ["numpy", "polars", "py4j.java_gateway", "pyiceberg.catalog"]

#: Print the differences in the process that an import of modules makes, after an import of others.
PROGRAM = """
import gc, importlib, json, logging, os, signal, sys, tempfile, threading, warnings

def handlers(logger):
    return [repr(each) for each in logger.handlers if not isinstance(each, logging.NullHandler)]  # which does nothing

def state():
    names = list(logging.root.manager.loggerDict)
    return {
        "environment": dict(os.environ),
        "meta_path": [repr(each) for each in sys.meta_path],
        "path_hooks": [repr(each) for each in sys.path_hooks],
        "path": list(sys.path),
        "threads": sorted(each.name for each in threading.enumerate()),
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug(), [*map(repr, gc.callbacks)]],
        "root logger": [logging.root.level, handlers(logging.root), logging.root.manager.disable],
        "loggers": {
            name: [logger.level, handlers(logger), logger.propagate, logger.disabled]
            for name in names
            if isinstance(logger := logging.root.manager.loggerDict[name], logging.Logger)
            and (logger.level or handlers(logger) or not logger.propagate or logger.disabled)
        },
        "signals": {str(each): repr(signal.getsignal(each)) for each in signal.valid_signals()},
        "hooks": [*map(repr, (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook))],
        "warnings": [*map(repr, warnings.filters)],
        "folder": os.getcwd(),
        "temporary files": sorted(os.listdir(tempfile.gettempdir())),
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), os.umask(os.umask(0o22))],
    }

modules, others = json.load(sys.stdin)
for name in others:
    importlib.import_module(name)
before = state()
for name in modules:
    importlib.import_module(name)
after = state()
print(json.dumps({key: [before[key], after[key]] for key in before if before[key] != after[key]}))
"""


def modules() -> list[str]:
    found = []
    for package in PACKAGES:
        found += [
            package.__name__,
            *(each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
        ]
    return [name for name in found if not name.endswith("__main__")]


def changes(names: list[str], others: list[str], folder: Path) -> dict[str, list[object]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRPC_", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        input=json.dumps([names, others]),
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, list[object]] = json.loads(done.stdout)
    return result


def test_an_import_of_all_modules_changes_nothing_in_the_process(tmp_path):
    names = modules()
    assert len(names) > 250
    assert changes(names, OTHERS, tmp_path) == {}


@pytest.mark.parametrize("package", [each.__name__ for each in PACKAGES])
def test_an_import_of_a_package_changes_nothing_in_the_process(package, tmp_path):
    assert changes([package], OTHERS if package == "pyspark_pravega" else [], tmp_path) == {}


def test_the_comparison_sees_effects(tmp_path):
    (tmp_path / "loud.py").write_text(
        "import gc, logging, os, signal, sys, threading\n"
        "os.environ['GRPC_VERBOSITY'] = 'ERROR'\n"
        "sys.meta_path.append(object())\n"
        "gc.freeze()\n"
        "logging.basicConfig()\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    here = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        code = PROGRAM.replace("modules, others =", f"sys.path.append({str(tmp_path)!r})\nmodules, others =")
        done = subprocess.run(
            [sys.executable, "-c", code], input='[["loud"], []]', capture_output=True, check=True, text=True, timeout=60
        )
    finally:
        os.environ.pop("PYTHONPATH") if here is None else os.environ.update(PYTHONPATH=here)
    seen = {*json.loads(done.stdout)}
    assert seen >= {"environment", "meta_path", "gc", "root logger", "signals", "threads"}
