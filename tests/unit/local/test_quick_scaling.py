"""Settings of a server whose streams scale by their policies soon."""

from pathlib import Path

import pytest

from pravega_connector.local.launch import QUICK_SCALING
from pravega_connector.local.server import ServerOptions, _settings

# Of SegmentStatsRecorderImpl, in seconds: between two looks at the rate of a busy segment.
LOOK = 120


@pytest.mark.parametrize("quick", [True, False])
def test_the_segment_store_is_reported_when_it_is_asked_for(quick, tmp_path: Path):
    settings = _settings(ServerOptions(quick_scaling=quick), tmp_path, 1, 2, 3)
    assert {name for name in settings if name.startswith("autoScale.")} == (set(QUICK_SCALING) if quick else set())


def test_a_busy_segment_is_never_silent():
    assert int(str(QUICK_SCALING["autoScale.cache.expiry.seconds"])) > LOOK
    assert int(str(QUICK_SCALING["autoScale.cooldown.time.seconds"])) < LOOK
    assert int(str(QUICK_SCALING["autoScale.mute.time.seconds"])) < LOOK
