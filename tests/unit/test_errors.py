"""Errors: each has its own code, and can be imported."""

import inspect
import pickle
from collections import Counter
from types import ModuleType

import pytest

import pravega_connector
import pravega_serde
from pravega_connector.config import PravegaConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import ControllerError, ProtocolError
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError, PravegaError, SerializationError
from tests.support.fakes import FakeController

MODULES = [pravega_serde.errors, pravega_connector.errors]


def declared(module: ModuleType) -> list[type[PravegaError]]:
    kinds = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, PravegaError)]
    return [kind for kind in kinds if inspect.getmodule(kind) is module]


@pytest.mark.parametrize("package", [pravega_serde, pravega_connector])
def test_each_error_can_be_imported(package: ModuleType):
    names = {kind.__name__ for kind in declared(package.errors)}
    assert not names - set(package.errors.__all__), f"put it into __all__ of {package.errors.__file__}"
    assert not names - set(package.__all__), f"put it among the public names: {package.__file__}"


def test_each_error_has_its_own_code():
    kinds = [kind for module in MODULES for kind in declared(module)]
    assert len(kinds) > 60
    assert [kind.__name__ for kind in kinds if "code" not in vars(kind)] == []
    assert [code for code, times in Counter(kind.code for kind in kinds).items() if times > 1] == []
    assert [kind.code for kind in kinds if not kind.code.startswith("PRAVEGA-")] == []


@pytest.mark.parametrize(
    "text", ["\x1b[31mred\x1b[0m", "bell\x07", "nul\x00", "\u202egnp.exe", "\u2066x\u2069", "\x9b1m"]
)
def test_a_text_has_no_controls_for_a_terminal(text: str) -> None:
    for error in (PravegaError(text), DeserializationError(f"the event has {text!s}", row=1), SerializationError(text)):
        assert str(error).isprintable()
        assert pickle.loads(pickle.dumps(error)).message == error.message


def test_a_long_text_keeps_its_beginning_and_its_advice() -> None:
    text = str(ControllerError(f"no host {'x' * 1_000_000}: check the address"))
    assert len(text) < 20_000
    assert text.startswith("[PRAVEGA-CONTROLLER] no host xxx")
    assert text.endswith("xxx: check the address")


@pytest.mark.parametrize("host", ["h" * 1_000_000, "a\x1b]0;title\x07", "\u202eevil"])
def test_a_text_that_is_not_a_host_is_refused(host: str) -> None:
    uri = pb.NodeUri(endpoint=host, port=9090)
    with (
        FakeController().on("getURI", uri) as fake,
        ControllerClient(PravegaConfig(controller=fake.uri)) as client,
        pytest.raises(ProtocolError, match="as a segment store, which is not a valid host") as found,
    ):
        client.endpoint(StreamName("a", "b"), 0)
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 500
