"""Calls side by side: results and errors as of one call after the other, and never more at once than is said."""

import threading

import pytest

from pravega_connector.core.io import side_by_side

SECONDS = 20


def test_results_come_in_the_order_of_the_values():
    last_has_ended = threading.Event()

    def call(number: int) -> int:
        if number == 3:
            last_has_ended.set()
        assert last_has_ended.wait(SECONDS)
        return number * number

    assert side_by_side(call, range(4), 4) == [0, 1, 4, 9]


def test_as_many_calls_as_it_may_and_no_more_are_under_way():
    together, lock = threading.Barrier(4), threading.Lock()
    under_way = most = 0

    def call(_: int) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait(SECONDS)
        with lock:
            under_way -= 1

    side_by_side(call, range(12), 4)
    assert most == 4


def test_the_error_is_that_of_the_first_value_and_nothing_begins_after_one():
    begun: list[int] = []
    workers: dict[int, threading.Thread] = {}
    has_begun = threading.Event()

    def call(number: int) -> None:
        begun.append(number)
        if number == 1:
            workers[number] = threading.current_thread()
            has_begun.set()
            raise ValueError("of the second")
        assert has_begun.wait(SECONDS)
        workers[1].join(SECONDS)  # its error is known
        if number == 0:
            raise KeyError("of the first, later")

    with pytest.raises(KeyError, match="of the first, later"):
        side_by_side(call, range(50), 3)
    assert set(begun) <= {0, 1, 2}


@pytest.mark.parametrize("values", [[], [7]])
def test_a_single_call_is_made_where_it_is_asked_for(values):
    here = threading.current_thread()
    assert side_by_side(lambda value: (value, threading.current_thread()), values, 8) == [(v, here) for v in values]
