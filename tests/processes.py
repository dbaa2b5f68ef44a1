"""What Linux tells of processes."""

from pathlib import Path

__all__ = ["stat_of"]


def stat_of(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third one, the state, on; none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
