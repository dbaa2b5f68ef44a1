"""A segment-level Pravega client in Python, Spark's source and sink on it, and the tools around them.

``import connector.client`` gives the module ``pravega_connector.client``, and so on for each: one module with two
names, so that no class exists twice. See ``pravega_connector`` for the reason.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__: list[str] = []

_PREFIX: Final = f"{__name__}."


class _SameModule(MetaPathFinder, Loader):
    """Finder and loader of ``connector.…``: the module of the same name in ``pravega_connector``."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the interface's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        real = importlib.util.find_spec(f"pravega_{fullname}") if fullname.startswith(_PREFIX) else None
        if real is None:
            return None
        package = real.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=real.origin, loader_state=real, is_package=package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(f"pravega_{spec.name}")

    def exec_module(self, module: ModuleType) -> None:
        # It has run already. The import system has put the other name's spec in place of its own.
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _SameModule())
