"""Readers of a group against all that can go wrong in small worlds; ``tools.model groups`` has larger ones."""

import pytest

from tools.model import group_world
from tools.model.explore import explore
from tools.model.group_worlds import MUTANTS, SMALL


@pytest.mark.parametrize("config", SMALL, ids=lambda config: f"{config.readers}-{config.scaling}")
def test_no_segment_is_lost_or_read_twice_or_too_early(config):
    found = explore(config, limit=50_000, world=group_world)
    assert (found.traces, found.depth) == ({}, None)
    assert found.states > 1000


@pytest.mark.parametrize(("what", "kind", "config"), MUTANTS, ids=[what for what, _, _ in MUTANTS])
def test_the_model_finds_what_is_wrong(what, kind, config):
    found = explore(config, limit=50_000, first_only=True, world=group_world)
    assert any(trace[-1].startswith(kind) for trace in found.traces.values()), found.traces
