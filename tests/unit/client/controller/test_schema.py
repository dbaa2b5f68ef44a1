"""Calls of the controller: their types match the schema, and each outcome has a meaning."""

import pytest
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from pravega_connector.controller import methods as calls
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import SERVICE, Rpc
from pravega_connector.errors import ConnectorError, ControllerError
from pravega_connector.wire import StreamName

STREAM = StreamName("scope", "stream")
METHODS = pb.DESCRIPTOR.services_by_name["ControllerService"].methods_by_name
RPCS = {name: value for name, value in vars(calls).items() if isinstance(value, Rpc)}


def test_service_is_the_one_called() -> None:
    assert pb.DESCRIPTOR.services_by_name["ControllerService"].full_name == SERVICE


@pytest.mark.parametrize("rpc", RPCS.values(), ids=RPCS)
def test_calls_have_the_types_of_the_schema(rpc: Rpc) -> None:
    method = METHODS[rpc.name]
    assert (method.input_type, method.output_type) == (rpc.request.DESCRIPTOR, rpc.response.DESCRIPTOR)


def test_schema_has_nothing_that_is_not_called() -> None:
    assert {rpc.name for rpc in RPCS.values()} == set(METHODS)


# Told apart where transactions are, and tested there.
TRANSACTION_OUTCOMES = {"PingTxnStatus", "TxnStatus"}


def outcomes() -> list[tuple[str, str]]:
    found = []
    for name, message in pb.DESCRIPTOR.message_types_by_name.items():
        if "status" in message.fields_by_name and name not in TRANSACTION_OUTCOMES:
            enum = message.fields_by_name["status"].enum_type
            found += [(name, value) for value in enum.values_by_name if value != "IN_PROGRESS"]
    return found


@pytest.mark.parametrize(("message", "value"), outcomes())
def test_every_outcome_has_a_meaning(message: str, value: str) -> None:
    enum = EnumTypeWrapper(pb.DESCRIPTOR.message_types_by_name[message].fields_by_name["status"].enum_type)
    if value in ("SUCCESS", "STARTED") or value.endswith("_EXISTS"):
        assert calls.outcome(enum, enum.Value(value), "do", STREAM) is not value.endswith("_EXISTS")
        return
    with pytest.raises(ConnectorError) as caught:
        calls.outcome(enum, enum.Value(value), "do", STREAM)
    assert value not in caught.value.message, "a raw name says nothing to the user"


def test_outcome_of_a_newer_server_is_an_error() -> None:
    with pytest.raises(ControllerError, match=r"cannot do scope/stream: the controller answered status 77"):
        calls.outcome(pb.CreateStreamStatus.Status, 77, "do", STREAM)
