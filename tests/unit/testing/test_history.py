"""Epochs of a stream of the test kit."""

import pytest

from pravega_connector.testing.history import StreamHistory


def test_no_cut_at_all_is_an_end_of_the_stream():
    """Java's reader groups ask so for what is unread."""
    history = StreamHistory(1)
    [old] = history.current
    history.scale([old.id], [(0.0, 0.5), (0.5, 1.0)])
    one, two = (segment.id for segment in history.current)
    assert history.between({old.id: 3}, {}) == history.between({}, {}) == [old.id, one, two]
    assert history.between({}, {old.id: 3}) == [old.id]
    assert history.between({one: 0, two: 0}, {}) == [one, two]
    with pytest.raises(ValueError, match="in no order"):
        history.between({}, {one: 0})
    with pytest.raises(ValueError, match="in no order"):
        history.between({one: 0, two: 0}, {old.id: 3})
