"""Lines that a call runs, and a KeyboardInterrupt at one of them."""

from __future__ import annotations

import dis
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

__all__ = ["HungError", "Place", "Tracer", "in_time"]

_ROOT: Final = Path(__file__).parents[2]
_CLIENT: Final = f"{_ROOT / 'pravega_connector'}/"
_SERVERS: Final = f"{_ROOT / 'pravega_connector' / 'testing'}/"


class Place(NamedTuple):
    """One execution of a line."""

    file: str
    """Path below the checkout."""
    line: int
    hit: int
    """Number of the execution, from 1."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, execution {self.hit}"


class HungError(Exception):
    """A call that did not return."""


class Tracer:
    """Counts the lines of the client that a thread runs, and raises KeyboardInterrupt at a place if one is set."""

    def __init__(self, at: Place | None = None) -> None:
        self.lines: Counter[tuple[str, int]] = Counter()
        self.raised = False
        self._at = at
        self._target = None if at is None else (at.file, at.line)

    def __enter__(self) -> Tracer:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if _is_traced(frame.f_code) and not _is_finalizer(frame) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "line" or self.raised or frame.f_lasti in _exits(frame.f_code):
            return self._line
        key = _short(frame.f_code.co_filename), frame.f_lineno
        self.lines[key] += 1
        if key == self._target and self._at is not None and self.lines[key] == self._at.hit:
            self.raised = True
            raise KeyboardInterrupt
        return self._line


@cache
def _short(file: str) -> str:
    return str(Path(file).relative_to(_ROOT))


@cache
def _is_traced(code: CodeType) -> bool:
    file = code.co_filename
    # The body of a module or class runs once in a process: an import that is cut is Python's to do again.
    is_body = code.co_name == "<module>" or not code.co_flags & 2
    return file.startswith(_CLIENT) and not file.startswith(_SERVERS) and not is_body


def _is_finalizer(frame: FrameType) -> bool:
    """Return True if ``__del__`` runs: Python ignores what it raises, so an interrupt there is not the caller's."""
    each: FrameType | None = frame
    while each is not None and each.f_code.co_filename.startswith(_CLIENT):
        if each.f_code.co_name == "__del__":
            return True
        each = each.f_back
    return False


@cache
def _exits(code: CodeType) -> frozenset[int]:
    """Offsets at which a ``with`` block is left normally.

    Tracing reports a line there, just before ``__exit__`` is called. CPython handles no signal at that point, and an
    exception would leave the block without ``__exit__`` (bpo-29988).
    """
    found: set[int] = set()
    ops = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL")]
    for number in range(len(ops) - 3):
        nones = all(o.opname == "LOAD_CONST" and o.argval is None for o in ops[number : number + 3])
        if nones and ops[number + 3].opname == "CALL" and ops[number + 3].arg == 2:
            found |= {o.offset for o in ops[max(number - 2, 0) : number + 1] if o is ops[number] or _is_filler(o)}
    return frozenset(found)


def _is_filler(op: dis.Instruction) -> bool:
    return op.opname in ("NOP", "SWAP", "POP_TOP")


def in_time(work: Callable[[], None], seconds: float) -> None:
    """Run ``work`` in a thread. Raises what it raises, and HungError with its stack after ``seconds``."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="caller", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident or 0)
        raise HungError("".join(traceback.format_stack(frame)[-12:]) if frame else "no stack")
    if errors:
        raise errors[0]
