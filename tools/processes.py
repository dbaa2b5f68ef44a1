"""What Linux tells of processes."""

import os
from pathlib import Path

__all__ = ["holds_connection", "stat_of"]


def stat_of(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third one, the state, on; none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def holds_connection(pid: int, port: int) -> bool:
    """Whether a process has a TCP connection from that port of this machine."""
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
