"""Breadth-first search through all states of a world."""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from sys import intern
from typing import Any, Protocol

from tools.model import world as exactly_once


class World(Protocol):
    """Members of a module that describes a world: states, and the steps between them."""

    def first_state(self, config: Any, /) -> Any:
        """Where everything begins."""

    def steps(self, config: Any, state: Any, /) -> Iterator[tuple[str, Any]]:
        """Everything that can happen: what it is, and the state after it."""

    def violation(self, config: Any, state: Any, /) -> str | None:
        """Violation in a state; its first word is the kind."""

    def is_end(self, config: Any, state: Any, followed: bool, /) -> bool:
        """Return True if a state, from which a step can follow or not, is one in which all may end."""

    def outcome(self, state: Any, /) -> str | None:
        """Name of the outcome that was reported to an operator."""

    def canonical(self, config: Any, /) -> Callable[[Any], Any]:
        """Key that equal situations share."""


@dataclass
class Result:
    """Result; a trace is the shortest path to the first violation of its kind."""

    states: int = 0
    depth: int | None = None
    """Steps within which each state was explored, if there are more states than the limit; None if all were."""
    traces: dict[str, list[str]] = field(default_factory=dict)
    reported: Counter[str] = field(default_factory=Counter)


def explore(config: Any, *, limit: int | None = None, first_only: bool = False, world: World = exactly_once) -> Result:
    """Explore each state that can be reached. With ``first_only`` stop at the first violation.

    If there are more than ``limit`` states, only states within some steps are explored. Then it is not checked that an
    end can be reached from each.
    """
    search = _Search(config, world)
    result = Result()
    while search.position < len(search.states):
        if limit is not None and len(search.states) > limit:
            result.depth = search.depth()
            break
        search.expand(result)
        if first_only and result.traces:
            break
    else:
        search.check_progress(result)
    result.states = len(search.states)
    return result


class _Search:
    def __init__(self, config: Any, world: World) -> None:
        self.world = world
        self.config, self.key, self.position = config, world.canonical(config), 0
        first = world.first_state(config)
        self.states: list[Any] = [first]
        self.numbers: dict[bytes, int] = {self._name(first): 0}
        self.parents: list[tuple[int, str]] = [(-1, "")]
        self.reverse: list[list[int]] = [[]]
        self.ends: list[int] = []

    def _name(self, state: Any) -> bytes:
        """16 bytes instead of some kilobytes for each of millions of keys."""
        # Later versions of marshal write equal values differently if parts of them are the same object.
        return blake2b(marshal.dumps(self.key(state), 2), digest_size=16).digest()

    def expand(self, result: Result) -> None:
        here, state = self.position, self.states[self.position]
        assert state is not None
        self.states[here] = None  # only its number is needed from here on
        self.position += 1
        followed = False
        try:
            for label, after in self.world.steps(self.config, state):
                followed = True
                self._visit(here, label, after, result)
        except exactly_once.ViolationError as error:
            self._blame(result, "INVARIANT", here, str(error))
        if self.world.is_end(self.config, state, followed):
            self.ends.append(here)
        elif not followed:
            self._blame(result, "DEADLOCK", here, "nothing can happen any more")

    def _visit(self, here: int, label: str, after: Any, result: Result) -> None:
        name = self._name(after)
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.states)
            self.states.append(after)
            self.parents.append((here, intern(label)))
            self.reverse.append([])
            if (found := self.world.violation(self.config, after)) is not None:
                self._blame(result, found.split()[0].rstrip(":"), number, found)
            if (outcome := self.world.outcome(after)) is not None:
                result.reported[outcome] += 1
        if label != exactly_once.WAITING:
            self.reverse[number].append(here)

    def _blame(self, result: Result, kind: str, number: int, text: str) -> None:
        if kind in result.traces:
            return
        trace = [text]
        while number > 0:
            number, label = self.parents[number]
            trace.append(label)
        result.traces[kind] = trace[::-1]

    def depth(self) -> int:
        """Return the steps to the next state: all states within as many were found."""
        number, steps = self.position, 0
        while number > 0:
            number, steps = self.parents[number][0], steps + 1
        return steps

    def check_progress(self, result: Result) -> None:
        """From every state an end must be reachable, without waiting for time to pass: nothing is stuck or circles."""
        reachable = bytearray(len(self.states))
        todo = list(self.ends)
        for number in todo:
            reachable[number] = 1
        while todo:
            for before in self.reverse[todo.pop()]:
                if not reachable[before]:
                    reachable[before] = 1
                    todo.append(before)
        stuck = reachable.find(0)
        if stuck >= 0:
            self._blame(result, "NO PROGRESS", stuck, "no end can be reached from here")
