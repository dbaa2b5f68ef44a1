"""Breadth-first search through all states of a world."""

from __future__ import annotations

import marshal
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from sys import intern

from tools.model.world import Config, State, ViolationError, canonical, first_state, steps, violation


@dataclass
class Result:
    """What was found; a trace is the shortest way to the first violation of its kind."""

    states: int = 0
    cut: bool = False
    traces: dict[str, list[str]] = field(default_factory=dict)
    reported: Counter[str] = field(default_factory=Counter)


def explore(config: Config, *, limit: int = 3_000_000, first_only: bool = False) -> Result:
    """Every state that can be reached, at most ``limit``. With ``first_only`` stop at the first violation."""
    search = _Search(config)
    result = Result()
    while search.position < len(search.states):
        if len(search.states) > limit:
            result.cut = True
            break
        search.expand(result)
        if first_only and result.traces:
            break
    else:
        search.check_progress(result)
    result.states = len(search.states)
    return result


class _Search:
    def __init__(self, config: Config) -> None:
        self.config, self.key, self.position = config, canonical(config), 0
        first = first_state(config)
        self.states: list[State | None] = [first]
        self.numbers: dict[bytes, int] = {self._name(first): 0}
        self.parents: list[tuple[int, str]] = [(-1, "")]
        self.reverse: list[list[int]] = [[]]
        self.ends: list[int] = []

    def _name(self, state: State) -> bytes:
        """16 bytes instead of a key of some kilobytes, of which there are millions."""
        # Later versions of marshal write equal values differently if parts of them are the same object.
        return blake2b(marshal.dumps(self.key(state), 2), digest_size=16).digest()

    def expand(self, result: Result) -> None:
        here, state = self.position, self.states[self.position]
        assert state is not None
        self.states[here] = None  # only its number is needed from here on
        self.position += 1
        followed = False
        try:
            for label, after in steps(self.config, state):
                followed = True
                self._visit(here, label, after, result)
        except ViolationError as error:
            self._blame(result, "INVARIANT", here, str(error))
        idle = not any(state.drivers)
        if state.reported or (state.spark == self.config.batches and (idle or not followed)):
            self.ends.append(here)
        elif not followed:
            self._blame(result, "DEADLOCK", here, "nothing can happen any more")

    def _visit(self, here: int, label: str, after: State, result: Result) -> None:
        name = self._name(after)
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.states)
            self.states.append(after)
            self.parents.append((here, intern(label)))
            self.reverse.append([])
            if (found := violation(self.config, after)) is not None:
                self._blame(result, found.split()[0].rstrip(":"), number, found)
            if after.reported:
                result.reported[after.reported.name] += 1
        self.reverse[number].append(here)

    def _blame(self, result: Result, kind: str, number: int, text: str) -> None:
        if kind in result.traces:
            return
        trace = [text]
        while number > 0:
            number, label = self.parents[number]
            trace.append(label)
        result.traces[kind] = trace[::-1]

    def check_progress(self, result: Result) -> None:
        """From every state an end must be reachable: nothing is stuck, however long it may take."""
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
