"""A full disk, as far as one process can have it to itself."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_file_beyond"]


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """The kernel refuses to write files beyond so many bytes, as a full disk does.

    It holds for the test run's own output as well, which may be a file: keep what is inside short, and no fixture.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
