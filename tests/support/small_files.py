"""Simulation of a full disk for this process."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_file_beyond"]


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let the kernel refuse to write files larger than ``size`` bytes in this block, like a full disk.

    The limit also applies to the output of the test run, which may be a file. Keep the block short, and do not use this
    in a fixture.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
