"""Processes as Linux reports them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["holds_connection", "kill_session", "session_of", "stat_of"]


def stat_of(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third one, the state, on; none for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def session_of(leader: int) -> list[int]:
    """All living processes of a session, with any parents."""
    states = ((int(name), stat_of(int(name))) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid, state in states if state[:1] not in ([], ["Z"]) and int(state[3]) == leader]


def kill_session(leader: int, number: int = signal.SIGKILL) -> list[int]:
    """Send a signal to all processes of a session: whom it went to."""
    found = session_of(leader)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return found


def holds_connection(pid: int, port: int) -> bool:
    """Return True if a process has a TCP connection from that port of this machine."""
    lines = [
        line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    sockets = {f"socket:[{line[9]}]" for line in lines if int(line[1].rpartition(":")[2], 16) == port}
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(file) in sockets:
                return True
        except FileNotFoundError:
            continue
    return False
