"""First guesses at the client's calls work, or raise an error of one line that names the right call."""

from collections.abc import Iterator

import pytest

from pravega_connector.client import (
    EventWriter,
    PravegaClient,
    RetentionPolicy,
    ScalingPolicy,
    StreamCut,
    StreamName,
    TailReader,
)
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from pravega_serde import serializer_for
from pravega_serde.adapters import typed
from pravega_serde.routing import EventRouter
from tests.support.first_guesses import CALLS

ROWS = [(call, outcome) for group in CALLS.values() for call, outcome in group.items()]
NAMES = {
    each.__name__: each
    for each in (
        EventRouter,
        PravegaClient,
        PravegaConfig,
        RetentionPolicy,
        ScalingPolicy,
        StreamCut,
        StreamName,
        serializer_for,
        typed,
    )
}


@pytest.fixture(scope="module")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.config) as client:
        client.create_stream("s/x")
        client.create_stream("s/y", 1)
        client.create_stream("s/gone")
        with client.writer("s/x", "string") as writer:
            for value in ("one", "two", "three"):
                writer.write(value)
        yield client


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writers and readers that a row leaves open are closed after it."""
    made: list[EventWriter | TailReader] = []

    def remember(kind: type) -> None:
        make = kind.__init__

        def remembering(self, *args, **options):
            make(self, *args, **options)
            made.append(self)

        monkeypatch.setattr(kind, "__init__", remembering)

    remember(EventWriter)
    remember(TailReader)
    yield
    for each in made:
        each.close()


def run(call: str, client: PravegaClient) -> None:
    names = {**NAMES, "client": client}
    try:
        code = compile(call, "row", "eval")
    except SyntaxError:
        exec(compile(call, "row", "exec"), names)
        return
    made = eval(code, names)
    if hasattr(made, "close"):
        made.close()


@pytest.mark.parametrize(("call", "outcome"), ROWS, ids=[call for call, _ in ROWS])
def test_a_first_call_works_or_its_error_names_the_right_one(call, outcome, client):
    if "s/y" in call and not client.describe("s/y").segments:  # another row has sealed it
        client.delete_stream("s/y")
        client.create_stream("s/y", 1)
    if outcome is None:
        run(call, client)
        return
    with pytest.raises(Exception, match=r"\A[^\n]+\Z") as caught:
        run(call, client)
    assert outcome in str(caught.value)
