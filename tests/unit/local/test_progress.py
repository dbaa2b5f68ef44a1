"""What is shown while jars arrive."""

import io

from connector.local._progress import JarProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_where_there_is_no_terminal():
    file = io.StringIO()
    with JarProgress("Jars", file=file) as progress:
        assert file.getvalue() == ""
        progress.expect(3)
        for _ in range(3):
            progress.found()
        for _ in range(3):
            progress.arrived()
    lines = file.getvalue().splitlines()
    assert lines[0] == "Jars: 0 of 3 found, 0 fetched"
    assert lines[-1] == "Jars: 3 of 3 found, 3 fetched"
    assert "\x1b" not in file.getvalue()


def test_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with JarProgress("Jars", file=file) as progress:
        progress.expect(3)
        progress.arrived()
        progress.say("[one] more thing")
    assert "\x1b" in file.getvalue()
    assert "Jars" in file.getvalue()
    assert "[one] more thing" in file.getvalue()
