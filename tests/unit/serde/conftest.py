"""Columns of few rows go by column here, or most tests of the columnar paths would look at the rows twice.

Modules of generated code can be loaded.
"""

import importlib.util
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from pravega_serde.columnar import base
from pravega_serde.generating import GeneratedCode


@pytest.fixture(autouse=True, scope="module")
def always_by_column() -> Iterator[None]:
    """See :data:`pravega_serde.columnar.base.FEW_ROWS`."""
    with mock.patch.object(base, "FEW_ROWS", 0):
        yield


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[GeneratedCode], ModuleType]:
    """``load(code)``: the module of generated code."""

    def load_module(code: GeneratedCode) -> ModuleType:
        name = f"made_{uuid.uuid4().hex}"
        (path,) = code.write(tmp_path / f"{name}.py")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load_module
