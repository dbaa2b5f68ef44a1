"""The decision table against all that can go wrong in small worlds; ``python -m tools.model`` has larger ones."""

from __future__ import annotations

import pytest

from tools.model.explore import explore
from tools.model.mutants import MUTANTS, AbortForgetsRepairs, RepairNotRecorded
from tools.model.world import Config
from tools.model.worlds import NEVER_TORN, SMALL

#: Most of the time of all worlds. The others have each of their faults.
SLOW = (
    Config(2, 2, crash=1, targets=2, placements="EZ"),
    Config(3, 1, crash=1, expiry=1, streams=2, placements="EXM"),
    Config(2, 2, crash=1, expiry=1, streams=2, placements="E"),
    Config(1, 1, unknown=1, zombie=1, placements="EO"),
    Config(2, 2, crash=1, expiry=1, placements="EXZ"),
    Config(2, 2, crash=1, leases=(5,), placements="EX"),
    Config(2, 1, crash=1, expiry=1, unknown=1, placements="EX"),
)


@pytest.mark.parametrize(
    "config", [pytest.param(config, marks=pytest.mark.long if config in SLOW else ()) for config in SMALL], ids=str
)
def test_nothing_is_lost_or_doubled_or_torn_in_silence(config: Config) -> None:
    result = explore(config)
    assert result.depth is None
    assert result.traces == {}
    assert result.states > 500, "the faults have made no difference: the world is not the one that was meant"


def test_a_world_beyond_the_limit_is_explored_within_some_steps() -> None:
    found = explore(SMALL[0], limit=1000)
    assert found.depth is not None
    assert found.depth > 5
    assert 1000 < found.states < explore(SMALL[0]).states


@pytest.mark.parametrize(
    "config",
    [
        Config(2, 1, crash=2, expiry=1, placements="E"),
        *(pytest.param(config, marks=pytest.mark.long) for config in NEVER_TORN[2:4]),
    ],
    ids=str,
)
def test_equal_replays_are_never_torn(config: Config) -> None:
    assert explore(config).reported == {}


@pytest.mark.parametrize(
    ("found", "config"),
    [
        # The search for these two takes longer than that for all others.
        pytest.param(
            *mutant, marks=pytest.mark.long if mutant[1].commit in (RepairNotRecorded, AbortForgetsRepairs) else ()
        )
        for mutant in MUTANTS
    ],
    ids=lambda value: getattr(value, "commit", type(value)).__name__,
)
def test_a_table_with_a_rule_taken_out_is_caught(found: str, config: Config) -> None:
    assert found in explore(config, first_only=True).traces
