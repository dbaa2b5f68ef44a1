"""Progress that is shown while jars arrive."""

import io

import pytest

from pravega_connector.local.progress import JarProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("variable", ["TERM", "FORCE_COLOR"])
def test_lines_where_there_is_no_terminal(monkeypatch, variable):
    monkeypatch.setenv(variable, "xterm")
    file, clock = io.StringIO(), Clock()
    with JarProgress("Jars", file=file, clock=clock) as progress:
        assert file.getvalue() == ""
        progress.begin(100_000_000, 10_000_000, "https://example.org/")
        # For 4 s: one line, after 3 s.
        for _ in range(32):
            clock.now += 0.125
            progress.advance(1_250_000)
        progress.advance(-20_000_000)
        clock.now += 4
        progress.advance(0)
        progress.end()
    assert file.getvalue().splitlines() == [
        "Jars: 10.0 MB of 100.0 MB here, the rest from https://example.org/",
        "Jars: 40.0 MB of 100.0 MB, 10.0 MB/s, 0:00:06 left",
        # The four seconds without a byte count.
        "Jars: 30.0 MB of 100.0 MB, 5.0 MB/s, 0:00:14 left",
        "Jars: complete after 8.0 s",
    ]
    assert progress.state == "30.0 MB of 100.0 MB"


def test_a_long_line_is_one_line():
    file = io.StringIO()
    with JarProgress("Jars", file=file) as progress:
        progress.say("[one] " + 100 * "word ")
    assert file.getvalue() == "[one] " + 100 * "word " + "\n"


def test_a_line_that_changes_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file, clock = Terminal(), Clock()
    with JarProgress("Jars", file=file, clock=clock) as progress:
        progress.begin(3_000_000, 0, "https://example.org/")
        for _ in range(3):
            clock.now += 1
            progress.advance(500_000)
        progress.say("[one] more thing")
    first, *shown = file.getvalue().split("\r\x1b[K")[1:]
    assert first == "Jars: 0 bytes of 3.0 MB here, the rest from https://example.org/\n"
    assert shown == [
        "Jars: 500.0 kB of 3.0 MB, 500.0 kB/s, 0:00:05 left",
        "Jars: 1.0 MB of 3.0 MB, 500.0 kB/s, 0:00:04 left",
        "Jars: 1.5 MB of 3.0 MB, 500.0 kB/s, 0:00:03 left",
        "[one] more thing\n",
        "",
    ]


def test_lines_on_a_terminal_without_cursor(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    file, clock = Terminal(), Clock()
    with JarProgress("Jars", file=file, clock=clock) as progress:
        progress.begin(3_000_000, 0, "https://example.org/")
        clock.now += 3
        progress.advance(500_000)
    assert "\x1b" not in file.getvalue()
    assert file.getvalue().splitlines()[-1].startswith("Jars: 500.0 kB of 3.0 MB")
