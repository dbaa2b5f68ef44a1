"""Reader groups as the controller knows them."""

import uuid
from dataclasses import replace

import pytest

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.methods import decode_group, group_message
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import ControllerError, InvalidNameError, ScopeNotFoundError
from pravega_connector.reader_groups.protocol import Bound, GroupConfig, Retention
from pravega_connector.wire import StreamCut, StreamName
from tests.support.fakes import FakeController
from tests.unit.client.controller._answers import STREAM

OTHER = StreamName("elsewhere", "stream")
CONFIG = GroupConfig(
    start={STREAM: Bound(StreamCut(STREAM, {0: 5, 1: 7})), OTHER: Bound()},
    end={OTHER: Bound(StreamCut(OTHER, {3: -1}))},
    checkpoint_ms=-1,
    refresh_ms=500,
    max_outstanding=9,
    retention=Retention.AUTOMATIC,
    generation=3,
    id=uuid.UUID(int=77),
)
MESSAGE = group_message("scope", "group", CONFIG)


def test_a_configuration_survives() -> None:
    assert decode_group(pb.ReaderGroupConfiguration.FromString(MESSAGE.SerializeToString())) == CONFIG
    assert (MESSAGE.scope, MESSAGE.readerGroupName, MESSAGE.readerGroupId) == ("scope", "group", str(CONFIG.id))
    assert dict(MESSAGE.startingStreamCuts[0].cut) == {0: 5, 1: 7}
    assert dict(MESSAGE.startingStreamCuts[1].cut) == {}


def test_one_of_a_newer_server_is_refused() -> None:
    strange = pb.ReaderGroupConfiguration()
    strange.CopyFrom(MESSAGE)
    strange.retentionType = 9
    with pytest.raises(ControllerError, match="reader group scope/group that this version does not know: 9"):
        decode_group(strange)


def test_who_makes_a_group_gets_the_one_that_there_is(fake: FakeController, client: ControllerClient) -> None:
    fake.on("createReaderGroup", pb.CreateReaderGroupResponse(status="SUCCESS", config=MESSAGE))
    asked = replace(CONFIG, generation=0, id=uuid.uuid4())
    assert client.create_group("scope", "group", asked) == CONFIG
    assert fake.calls[-1].request == group_message("scope", "group", asked)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("SCOPE_NOT_FOUND", ScopeNotFoundError, "scope scope does not exist"),
        ("INVALID_RG_NAME", InvalidNameError, "cannot create the reader group group in scope scope"),
    ],
)
def test_a_group_that_cannot_be_made(
    fake: FakeController, client: ControllerClient, status: str, error: type[Exception], said: str
) -> None:
    fake.on("createReaderGroup", pb.CreateReaderGroupResponse(status=status))
    with pytest.raises(error, match=said):
        client.create_group("scope", "group", CONFIG)


def test_the_configuration_is_looked_up(fake: FakeController, client: ControllerClient) -> None:
    missing = pb.ReaderGroupConfigResponse(status="RG_NOT_FOUND")
    fake.on("getReaderGroupConfig", pb.ReaderGroupConfigResponse(status="SUCCESS", config=MESSAGE), missing)
    assert client.group_config("scope", "group") == CONFIG
    assert fake.calls[-1].request == pb.ReaderGroupInfo(scope="scope", readerGroup="group")
    assert client.group_config("scope", "group") is None


def test_a_change_has_the_next_generation(fake: FakeController, client: ControllerClient) -> None:
    fake.on("updateReaderGroup", pb.UpdateReaderGroupResponse(status="SUCCESS", generation=4))
    assert client.update_group("scope", "group", CONFIG) == replace(CONFIG, generation=4)
    assert fake.calls[-1].request == MESSAGE


def test_a_change_after_somebody_elses(fake: FakeController, client: ControllerClient) -> None:
    fake.on(
        "updateReaderGroup",
        pb.UpdateReaderGroupResponse(status="INVALID_CONFIG"),
        pb.UpdateReaderGroupResponse(status="RG_NOT_FOUND"),
    )
    assert client.update_group("scope", "group", CONFIG) is None
    with pytest.raises(
        ControllerError, match="cannot change the reader group group in scope scope: the reader group does not"
    ):
        client.update_group("scope", "group", CONFIG)


def test_a_group_is_deleted_once(fake: FakeController, client: ControllerClient) -> None:
    gone = pb.DeleteReaderGroupStatus(status="RG_NOT_FOUND")
    fake.on("deleteReaderGroup", pb.DeleteReaderGroupStatus(status="SUCCESS"), gone)
    assert client.delete_group("scope", "group", CONFIG)
    assert fake.calls[-1].request.readerGroupId == str(CONFIG.id)
    assert not client.delete_group("scope", "group", CONFIG)
