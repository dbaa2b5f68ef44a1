"""A registry that is down, slow, broken, restarting, or something else: clear errors, few calls, no bad data."""

import json
import re
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde.errors import (
    DeserializationError,
    RegistryConflictError,
    RegistryError,
    RegistryNotFoundError,
    RegistryProtocolError,
    RegistryRequestError,
    RegistryUnavailableError,
)
from pravega_serde.registry import (
    Compatibility,
    GroupProperties,
    SerializationFormat,
    VersionInfo,
    calls,
    clients,
    http,
    lookups,
    serializer,
)
from pravega_serde.registry.calls import TransientError
from tests.unit.registry._pace import Clock, Meter, paced
from tests.unit.registry._scripted import ENCODING, LATEST, VERSION, answer, hang_up, scripted

PROPERTIES = GroupProperties(SerializationFormat.AVRO, Compatibility.FULL)
#: Seconds that only a hanging test takes.
LONG = 100


def failing(client, *, within=2.0):
    """The error of a lookup, which has to come within this many seconds."""
    with Meter().running() as meter, pytest.raises(RegistryError) as caught:
        client.encoding_info("g", 7)
    assert meter.seconds < within
    assert not isinstance(caught.value, DeserializationError)
    assert "\n" not in str(caught.value)
    assert caught.value.fault != "data"
    return caught.value


@paced
def test_nobody_listens(connect, pace, closed_port):
    error = failing(connect(f"http://127.0.0.1:{closed_port}", timeout=0.5 * pace), within=2.0 * pace)
    assert type(error) is RegistryUnavailableError
    assert error.retriable
    assert error.status is None
    assert f"check that the schema registry at http://127.0.0.1:{closed_port} is running" in str(error)


def test_the_resolver_does_not_answer(connect, monkeypatch):
    go_on, resolve = threading.Event(), socket.getaddrinfo

    def hang(*given, **options):
        if not options.get("flags"):
            go_on.wait(LONG)
        return resolve(*given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    client = connect("http://registry.test:9092", timeout=0.5)
    reason = r"the name registry\.test was not resolved|it cannot be reached in time"
    with Meter().running() as meter, pytest.raises(RegistryUnavailableError, match=reason):
        client.encoding_info("g", 7)
    go_on.set()
    assert meter.seconds < 5


@paced
def test_it_hangs_up_for_ever(connect, pace):
    with scripted(hang_up) as registry:
        error = failing(connect(registry.uri, timeout=0.6 * pace), within=2.0 * pace)
    assert type(error) is RegistryUnavailableError
    assert 2 <= len(registry.requests) <= 5
    tries = int(re.search(r"after (\d+) tries", str(error))[1])
    assert tries - len(registry.requests) in (0, 1), "the time may be up before the server sees the last one"


@paced
def test_it_does_not_answer(connect, pace):
    go_on = threading.Event()
    with scripted(lambda handler: go_on.wait(LONG)) as registry:
        error = failing(connect(registry.uri, timeout=0.4 * pace), within=2.0 * pace)
        go_on.set()
    assert type(error) is RegistryUnavailableError
    assert "it did not answer in time" in str(error)
    assert 1 <= len(registry.requests) <= 2


@paced
def test_a_lookup_that_hangs_is_given_up_and_sent_again(connect, pace):
    go_on = threading.Event()
    with scripted(lambda handler: go_on.wait(LONG), (200, ENCODING)) as registry:
        assert connect(registry.uri, timeout=1.5 * pace).encoding_info("g", 7).version.id == 0
        go_on.set()
    assert len(registry.requests) == 2


@paced
def test_a_slow_answer_is_waited_for(connect, pace):
    def slowly(handler):
        time.sleep(0.6 * pace)
        answer(handler, 200, ENCODING)

    with scripted(slowly) as registry:
        assert connect(registry.uri, timeout=1.5 * pace).encoding_info("g", 7).version.id == 0
    assert len(registry.requests) == 2


@paced
def test_a_change_that_hangs_is_sent_once(connect, pace):
    go_on = threading.Event()
    with scripted(lambda handler: go_on.wait(LONG)) as registry:
        with pytest.raises(RegistryUnavailableError, match=r"after 1 try .* the server may have done it nevertheless"):
            connect(registry.uri, timeout=0.8 * pace).add_group("g", PROPERTIES)
        go_on.set()
    assert len(registry.requests) == 1


@paced
def test_an_answer_that_never_ends(connect, pace):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.02 * pace)

    with scripted(drip) as registry:
        error = failing(connect(registry.uri, timeout=0.3 * pace), within=2.0 * pace)
    assert type(error) is RegistryUnavailableError


def test_an_answer_without_bounds(connect, monkeypatch):
    monkeypatch.setattr(http, "_LARGEST_ANSWER", 1000)
    with scripted((200, b" " * 100_000)) as registry:
        error = failing(connect(registry.uri))
    assert type(error) is RegistryProtocolError
    assert len(registry.requests) == 1


@pytest.mark.parametrize("status", [500, 429])
@paced
def test_faults_of_the_server_for_ever(connect, status, pace):
    with scripted((status, b"out of\nluck")) as registry:
        error = failing(connect(registry.uri, timeout=1.0 * pace), within=5.0 * pace)
    assert type(error) is RegistryUnavailableError
    assert (error.status, error.retriable) == (status, True)
    assert f"the server answered with status {status}: out of luck" in str(error)
    # 0.1 s, then twice as long each time, half of it at least.
    assert 2 <= len(registry.requests) <= 6


@paced
def test_what_the_server_said_outlasts_a_try_that_the_deadline_cuts_short(connect, pace):
    go_on = threading.Event()
    with scripted((500, b"out of luck"), lambda handler: go_on.wait(LONG)) as registry:
        error = failing(connect(registry.uri, timeout=1.5 * pace), within=5.0 * pace)
        go_on.set()
    assert type(error) is RegistryUnavailableError
    assert error.status == 500
    # The remaining time may have been too short even to connect.
    assert re.search(r"status 500: out of luck, then it .+ in time, after ", str(error))


def test_faults_that_pass(connect):
    with scripted((500, b""), hang_up, (503, b""), (200, ENCODING)) as registry:
        assert connect(registry.uri).encoding_info("g", 7).schema.type == "n.R"
    assert len(registry.requests) == 4


def test_a_null_pointer_of_the_server_is_not_asked_for_again(connect):
    with scripted((500, b'Cannot invoke "X.get()" because "x" is null')) as registry:
        error = failing(connect(registry.uri))
    assert type(error) is RegistryError
    assert (error.status, error.retriable, len(registry.requests)) == (500, False, 1)


def test_it_restarts_within_the_deadline(connect):
    with scripted((200, LATEST)) as registry:
        client = connect(registry.uri, timeout=LONG, latest_seconds=0)
        assert len(client.latest_schemas("g")) == 1
    found = []
    asking = threading.Thread(target=lambda: found.append(client.latest_schemas("g")))
    asking.start()
    asking.join(0.3)
    assert not found
    with scripted((200, LATEST), port=registry.port) as again:
        asking.join(LONG)
    assert len(found[0]) == 1
    assert len(again.requests) == 1


def test_an_id_that_is_known_is_not_found(connect, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(lookups, "time", clock)
    with scripted((404, b""), (404, b""), (200, ENCODING)) as registry:
        client = connect(registry.uri)
        for _ in range(50):
            error = failing(client)
        assert type(error) is RegistryNotFoundError
        assert "encoding id 7 in group 'g'" in str(error)
        # Events with this id come by the thousand; one call reports all of them for a moment, and only for that.
        assert len(registry.requests) == 1
        clock.now += clients.MISSING_SECONDS - 0.01
        failing(client)
        assert len(registry.requests) == 1
        clock.now += 0.02
        failing(client)
        assert len(registry.requests) == 2
        clock.now += clients.MISSING_SECONDS + 0.01
        assert client.encoding_info("g", 7).version.id == 0
        assert len(registry.requests) == 3


MAKE_IT = "the group does not exist: create it with 'pravega-serde registry create', or set create_group in the writer"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda client: client.group_properties("g"), MAKE_IT),
        (lambda client: client.latest_schemas("g"), MAKE_IT),
        (lambda client: client.codecs("g"), MAKE_IT),
        (lambda client: client.history("g"), MAKE_IT),
        (lambda client: client.schema_for_id("g", 7), "the group, or an item of it, does not exist"),
    ],
)
def test_a_missing_group_is_reported_with_the_way_to_make_it(connect, ask, said):
    with scripted((404, b"")) as registry:
        client = connect(registry.uri)
        with pytest.raises(RegistryNotFoundError) as caught:
            ask(client)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"register_schema": True}])
def test_a_serializer_for_a_missing_group_says_how_to_make_it(settings):
    with scripted((404, b"")) as registry, pytest.raises(RegistryNotFoundError, match="create_group") as caught:
        serializer(registry.uri, group="g", schema='"string"', format="avro", **settings)
    assert ("register_schema" in str(caught.value)) is (not settings)


GARBAGE = [
    (200, b""),
    (200, b"<html>Welcome</html>"),
    (200, b'{"schemaInfo": '),
    (200, []),
    (200, {}),
    (200, {**ENCODING, "versionInfo": {**VERSION, "id": "0"}}),
    (200, {**ENCODING, "versionInfo": {**VERSION, "id": True}}),
    (200, {**ENCODING, "versionInfo": None}),
    (200, {**ENCODING, "schemaInfo": {**ENCODING["schemaInfo"], "schemaData": "%%%"}}),
    (200, {**ENCODING, "schemaInfo": {**ENCODING["schemaInfo"], "properties": {"a": 1}}}),
    (200, b"[" * 100_000),
    (200, b"\xff\xfe\x00"),
    (204, b""),
    (302, b""),
    (405, b""),
]


@pytest.mark.parametrize("action", GARBAGE, ids=lambda action: f"{action[0]}-{str(action[1])[:30]}")
def test_something_else_answers(connect, action):
    with scripted(action) as registry:
        error = failing(connect(registry.uri))
    assert type(error) is RegistryProtocolError
    assert f"check that {registry.uri} is a schema registry" in str(error)
    assert len(registry.requests) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ENCODING, *VERSION, "x"]), inner),
    max_leaves=10,
)
CALLS = [
    calls.groups_page(None, None),
    calls.group_properties("g"),
    calls.encoding_info("g", 0),
    calls.codecs("g"),
    calls.history("g"),
    calls.schema_versions("g"),
    calls.encoding_id("g", VersionInfo("t", "Avro", 0, 0), ""),
]


@settings(max_examples=100)
@given(call=st.sampled_from(CALLS), status=st.integers(100, 599), body=JSON.map(json.dumps) | st.text())
def test_any_answer_is_a_value_or_an_error_of_this_project(call, status, body):
    transient = False
    try:
        call.result(status, body.encode("utf-8", "surrogatepass"), server="here")
    except RegistryError:
        pass
    except TransientError:
        transient = True
    assert transient == (status == 429 or status >= 500)


def test_unknown_members_are_ignored(connect):
    more = {**ENCODING, "new": 1, "versionInfo": {**VERSION, "new": {"a": []}}}
    with scripted((200, more)) as registry:
        assert connect(registry.uri).encoding_info("g", 7).version == VersionInfo("n.R", "Avro", 0, 0)


def test_a_conditional_change_is_not_repeated_once_it_may_have_been_seen(connect):
    with scripted(hang_up, (409, b"")) as registry:
        with pytest.raises(RegistryUnavailableError, match="may have done it"):
            connect(registry.uri).update_compatibility("g", Compatibility.FULL, Compatibility.BACKWARD)
        assert len(registry.requests) == 1
    with scripted(hang_up, (409, b"")) as registry:
        with pytest.raises(RegistryConflictError):
            connect(registry.uri).update_compatibility("g", Compatibility.FULL)
        assert len(registry.requests) == 2


def test_a_listing_that_goes_round(connect):
    page = {"groups": {"a": PROPERTIES.to_json()}, "continuationToken": "1"}

    def slowly(handler):
        answer(handler, 200, page)

    with scripted(slowly) as registry:
        with pytest.raises(RegistryProtocolError, match="keeps returning"):
            list(connect(registry.uri).groups())
        assert len(registry.requests) == 2


def test_arguments_that_no_request_can_have_are_one_line(connect):
    with scripted((200, LATEST)) as registry:
        with pytest.raises(RegistryRequestError, match="cannot read the properties of group 'g': invalid address or"):
            connect(registry.uri, namespace="n" * 100_000).group_properties("g")
        assert registry.requests == []
