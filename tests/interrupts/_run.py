"""Runs of a case: one that records its lines, then one for each line."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from pravega_connector.testing import InProcessPravega

from ._cases import Case
from ._trace import HungError, Place, Tracer, in_time

__all__ = ["Failure", "Totals", "places", "try_all"]

_SECONDS: Final = 30.0
_RECORDINGS: Final = 3
_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Failure:
    """A place after whose interrupt something did not hold."""

    case: str
    place: Place
    what: str


@dataclass
class Totals:
    """Result of the runs of one case."""

    case: str
    lines: int = 0
    tried: int = 0
    missed: list[Place] = field(default_factory=list)
    """Places that no run reached again: they depend on timing."""
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


def places(make: Callable[[InProcessPravega], Case], kit: InProcessPravega, *, last: bool) -> tuple[int, list[Place]]:
    """Number of lines of a case, and the places to try: the first execution of each, and with ``last`` the last."""
    counts: list[Counter[tuple[str, int]]] = []
    for number in range(_RECORDINGS + 1):
        tracer = Tracer()
        in_time(lambda tracer=tracer: _play(make, kit, tracer), _SECONDS)  # type: ignore[misc]
        if number:  # what the first one imports and caches exists for the others
            counts.append(tracer.lines)
    lines = sorted(set().union(*counts))
    found = [Place(*line, 1) for line in lines]
    if last:
        least = {line: min(count[line] for count in counts if line in count) for line in lines}
        found += [Place(*line, hits) for line, hits in least.items() if hits > 1]
    return len(lines), sorted(found)


def try_all(
    name: str,
    make: Callable[[InProcessPravega], Case],
    *,
    last: bool = True,
    within: Collection[str] = (),
    sample: int | None = None,
    seed: int = 0,
) -> Iterator[Totals]:
    """Interrupt a case at each place, or at a sample of them; yield the totals after each run.

    ``within`` has the ends of paths; without any, all files count.
    """
    totals, began = Totals(name), time.monotonic()
    with InProcessPravega() as kit:
        totals.lines, todo = places(make, kit, last=last)
        todo = [place for place in todo if not within or place.file.endswith(tuple(f"/{name}" for name in within))]
        if sample is not None and sample < len(todo):
            todo = sorted(random.Random(seed).sample(todo, sample))
        for place in todo:
            for _ in range(_ATTEMPTS):
                tracer = Tracer(place)
                what = _outcome(make, kit, tracer)
                if tracer.raised or what is not None:
                    break
            if what is not None:
                totals.failures.append(Failure(name, place, what))
            if tracer.raised:
                totals.tried += 1
            else:
                totals.missed.append(place)
            totals.seconds = time.monotonic() - began
            yield totals
    yield totals


def _outcome(make: Callable[[InProcessPravega], Case], kit: InProcessPravega, tracer: Tracer) -> str | None:
    try:
        in_time(lambda: _play(make, kit, tracer), _SECONDS)
    except HungError as error:
        return f"it hangs:\n{error}"
    except AssertionError as error:
        return f"{error}" if str(error) else traceback.format_exc(limit=-3)
    except BaseException as error:
        return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_tb(error.__traceback__)[-6:])
    return None


def _play(make: Callable[[InProcessPravega], Case], kit: InProcessPravega, tracer: Tracer) -> None:
    """One run: prepare, act while it is traced, and check."""
    case = make(kit)
    try:
        try:
            with tracer:
                case.act()
        except KeyboardInterrupt:
            case.interrupted = True
        assert case.interrupted == tracer.raised, "the interrupt was swallowed"
        case.check()
    finally:
        case.end()
