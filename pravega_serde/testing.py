"""Pravega and a schema registry for tests of one's own, in this process: no Java, started in milliseconds.

The fixtures of :mod:`pravega_serde.pytest_plugin` are made of them, and pytest finds those by itself. What they do and
what they do not is told in docs/testing.md. A name is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pravega_connector.testing import Faults, InProcessPravega, InProcessRegistry
    from pravega_serde.registry.memory import MemoryRegistry, mock_registry

__all__ = ["Faults", "InProcessPravega", "InProcessRegistry", "MemoryRegistry", "mock_registry"]

# By the name that no user's own module has.
_KIT: Final = "pravega_connector.testing"
_REGISTRY: Final = "pravega_serde.registry.memory"
_MODULES: Final = {
    "Faults": _KIT,
    "InProcessPravega": _KIT,
    "InProcessRegistry": _KIT,
    "MemoryRegistry": _REGISTRY,
    "mock_registry": _REGISTRY,
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
