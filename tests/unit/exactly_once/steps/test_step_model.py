"""The protocol of steps in small worlds; ``python -m tools.model steps`` has larger ones."""

from __future__ import annotations

import pytest

from tools.model import step_world
from tools.model.explore import explore
from tools.model.step_world import Config
from tools.model.step_worlds import FULL, MUTANTS, SMALL

#: Most of the time of all worlds. The others have each of their faults, and two items without zombies.
SLOW = (
    Config("late", "ab", 1, crash=1, zombie=1),
    Config("early", "ab", 1, crash=1, zombie=1),
    Config("early", "a", 1, other=True, crash=1, expiry=1, zombie=1),
    Config("early", "a", 2, other=True, expiry=1, zombie=1),
)


@pytest.mark.parametrize(
    "config", [pytest.param(config, marks=pytest.mark.long if config in SLOW else ()) for config in SMALL], ids=str
)
def test_nothing_is_lost_or_doubled_or_out_of_order(config: Config) -> None:
    result = explore(config, world=step_world)
    assert result.depth is None
    assert result.traces == {}
    assert result.states > 500, "the faults have made no difference: the world is not the one that was meant"
    assert set(result.reported) <= ({"UNDECIDED"} if config.forget else set())


@pytest.mark.parametrize(("found", "config"), MUTANTS, ids=lambda value: getattr(value, "turn", type(value)).__name__)
def test_a_rule_that_is_taken_out_is_missed(found: str, config: Config) -> None:
    assert found in explore(config, first_only=True, world=step_world).traces


def test_every_kind_of_fault_is_in_some_world_of_both_modes() -> None:
    for mode in ("early", "late"):
        for fault in ("crash", "expiry", "unknown", "forget", "zombie"):
            assert any(getattr(config, fault) for config in FULL if config.mode == mode)
