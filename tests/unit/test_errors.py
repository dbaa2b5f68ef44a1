"""Errors: each has a code of its own, and can be imported."""

import inspect
from collections import Counter
from types import ModuleType

import pytest

import pravega_connector
import pravega_serde
from pravega_serde.errors import PravegaError

MODULES = [pravega_serde.errors, pravega_connector.errors]


def declared(module: ModuleType) -> list[type[PravegaError]]:
    kinds = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, PravegaError)]
    return [kind for kind in kinds if inspect.getmodule(kind) is module]


@pytest.mark.parametrize("package", [pravega_serde, pravega_connector])
def test_each_error_can_be_imported(package: ModuleType):
    names = {kind.__name__ for kind in declared(package.errors)}
    assert not names - set(package.errors.__all__), f"put it into __all__ of {package.errors.__file__}"
    assert not names - set(package.__all__), f"put it among the public names: {package.__file__}"


def test_each_error_has_a_code_of_its_own():
    kinds = [kind for module in MODULES for kind in declared(module)]
    assert len(kinds) > 60
    assert [kind.__name__ for kind in kinds if "code" not in vars(kind)] == []
    assert [code for code, times in Counter(kind.code for kind in kinds).items() if times > 1] == []
    assert [kind.code for kind in kinds if not kind.code.startswith("PRAVEGA-")] == []
