"""Forks: each object, in each state, in the parent and in the child."""

import json
from collections.abc import Iterator

import pytest

from pravega_connector.testing import InProcessPravega, InProcessRegistry
from tests.unit.client import forked

pytestmark = pytest.mark.skipif(not hasattr(forked.os, "fork"), reason="the system has no fork")

#: One of each kind; the others share its code. Each object needs a process, which takes 2 s.
OBJECTS = ("plain_client", "writer", "transaction", "tail_reader", "registry_client", "async_client")
OTHERS = (
    *("process_client", "group_reader", "revisioned", "byte_writer"),
    *("known_transaction", "transactional_writer", "streams_transaction", "lease_keeper", "streams_reader"),
    *("value_reader", "read_iterator"),
    *("reader_group", "exactly_once_reader", "synchronizer", "byte_reader", "ledger", "key_value_table"),
    *("async_writer", "async_reader", "async_events", "async_group_reader", "async_registry_client"),
)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[InProcessPravega, InProcessRegistry]]:
    with InProcessPravega() as pravega, InProcessRegistry() as registry:
        yield pravega, registry


@pytest.mark.parametrize("name", [*OBJECTS, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_an_object_that_was_used_before_a_fork(name, servers, start_process):
    """In the child it works or raises ForkedError at once; the parent continues, and loses nothing."""
    pravega, registry = servers
    program = start_process(
        ["-W", "ignore", "-m", "tests.unit.client.forked", name, pravega.uri, registry.uri],
        {},
        stdin=-1,
        stdout=-1,
        text=True,
    )
    for line in program.stdout:
        if not line.startswith("fault"):
            break
        _, seconds, request = line.split(maxsplit=2)
        pravega.faults.delay(float(seconds), request.strip())
        print(file=program.stdin, flush=True)
    else:
        pytest.fail("the program has died")
    report = json.loads(line)
    pravega.faults.clear()
    assert report["parent"] == []
    wrong = {}
    for state, children in report["children"].items():
        for child in children:
            for use, outcome in child.items():
                expected = ("ForkedError", "works") if use.endswith("*") else ("ForkedError",)
                if outcome not in expected:
                    wrong[state, use] = outcome
            assert len(child) > 1, (state, child)
    assert wrong == {}
