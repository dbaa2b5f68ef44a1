"""Which Java is taken, and what is said where none will do."""

import pytest

from pravega_connector.errors import JavaNotFoundError
from pravega_connector.local.jvm import find_java


def make_java(home, says, *, code=0):
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {code}\n")
    launcher.chmod(0o755)
    return launcher


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    """A PATH with the commands of /bin that the fake launchers need, and no Java."""
    folder = tmp_path / "path"
    folder.mkdir()
    for name in ("sh", "cat"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "17.0.1" 2021-10-19', 17),
    ],
)
def test_java_home_wins_over_path(monkeypatch, no_java, tmp_path, says, version):
    make_java(no_java / "old", 'java version "1.8.0_392"')
    (no_java / "java").symlink_to(no_java / "old" / "bin" / "java")
    launcher = make_java(tmp_path / "home", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    java = find_java()
    assert (java.path, java.version) == (launcher, version)


def test_java_on_path(no_java, tmp_path):
    (no_java / "java").symlink_to(make_java(tmp_path / "home", 'openjdk version "17.0.15" 2025-04-15'))
    assert find_java().version == 17


@pytest.mark.parametrize("says", ['java version "1.8.0_392"', 'openjdk version "11.0.21" 2023-10-17'])
def test_an_old_java_is_refused(monkeypatch, no_java, tmp_path, says):
    make_java(tmp_path / "home", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(JavaNotFoundError, match=r"^\[PRAVEGA-JAVA-NOT-FOUND\] .* is Java (8|11), .* needs 17: install"):
        find_java()


def test_no_java_at_all(no_java):
    with pytest.raises(JavaNotFoundError, match="no Java on PATH and JAVA_HOME is not set: install Java 17") as caught:
        find_java()
    assert "openjdk-17" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_java_home_without_java(monkeypatch, no_java, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFoundError, match="has no bin/java"):
        find_java()


def test_a_launcher_that_only_complains(monkeypatch, no_java, tmp_path):
    make_java(tmp_path / "home", "The operation couldn't be completed. Unable to locate a Java Runtime.", code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(JavaNotFoundError, match="Unable to locate a Java Runtime"):
        find_java()
