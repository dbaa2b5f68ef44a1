"""The script ``run``, up to where it would install something."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(tmp_path):
    """A checkout with nothing set up, called from elsewhere."""
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    for name in ("run", "pyproject.toml", "requirements-lock.txt"):
        shutil.copy(ROOT / name, checkout)

    def call(*args, **environment):
        done = subprocess.run(
            [checkout / "run", *args],
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": "", **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not (checkout / ".venv").exists()
        return done.returncode, done.stdout, done.stderr

    return call


def fake_python(folder, script):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("args", [(), ("help",), ("--help",)])
def test_help_names_every_command(run, args):
    code, output, _ = run(*args)
    assert code == 0
    assert all(f"./run {command}" in output for command in ("demo", "test", "test-lowest", "check", "bench", "cli"))
    assert not any(line.startswith(("#", "set")) for line in output.splitlines())


def test_a_command_that_does_not_exist(run):
    assert run("nothing") == (1, "", "run: no such command: nothing; see ./run help\n")


def test_a_python_that_is_too_old(run, tmp_path):
    code, _, errors = run("demo", PYTHON=fake_python(tmp_path, "exit 1"))
    assert code == 1
    assert errors.startswith("run: no Python 3.11 or newer under PYTHON=")
    assert errors.count("\n") == 1


def test_a_python_without_venv(run, tmp_path):
    python = fake_python(tmp_path, 'case "$*" in *ensurepip*) exit 1 ;; esac')
    code, _, errors = run("test", PYTHON=python)
    assert code == 1
    assert errors == f"run: {python} has no venv; install it (Debian, Ubuntu: apt-get install python3-venv)\n"
