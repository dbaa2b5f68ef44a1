"""A segment-level Pravega client in Python, Spark's source and sink on it, and the tools around them.

``import connector.client`` gives the module ``pravega_connector.client``, and so on for each: one module with two
names, so that no class exists twice. See ``pravega_connector`` for the reason, and for where the public names are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pravega_serde.errors import PravegaError as PravegaError

    from .client import AsyncPravegaClient as AsyncPravegaClient
    from .client import EventBatch as EventBatch
    from .client import EventColumns as EventColumns
    from .client import EventWriter as EventWriter
    from .client import ExactlyOnceReader as ExactlyOnceReader
    from .client import GroupCheckpoint as GroupCheckpoint
    from .client import GroupEvent as GroupEvent
    from .client import GroupReader as GroupReader
    from .client import LeaseKeeper as LeaseKeeper
    from .client import PravegaClient as PravegaClient
    from .client import ReaderGroup as ReaderGroup
    from .client import RetentionPolicy as RetentionPolicy
    from .client import Revision as Revision
    from .client import RevisionedStreamClient as RevisionedStreamClient
    from .client import ScalingPolicy as ScalingPolicy
    from .client import StateSynchronizer as StateSynchronizer
    from .client import StreamConfig as StreamConfig
    from .client import StreamCut as StreamCut
    from .client import StreamDescription as StreamDescription
    from .client import StreamName as StreamName
    from .client import StreamsReader as StreamsReader
    from .client import Subscriber as Subscriber
    from .client import TailReader as TailReader
    from .client import TimeWindow as TimeWindow
    from .client import Transaction as Transaction
    from .client import TransactionalWriter as TransactionalWriter
    from .client import TransactionStatus as TransactionStatus
    from .client import ValueReader as ValueReader
    from .client import Watermark as Watermark
    from .config import PravegaConfig as PravegaConfig
    from .data_source import PravegaDataSource as PravegaDataSource
    from .errors import *  # noqa: F403 - an error is declared in its module alone
    from .export import ExportSummary as ExportSummary
    from .export import export_stream as export_stream
    from .functions import from_pravega as from_pravega
    from .functions import pravega_segment_key as pravega_segment_key
    from .functions import to_pravega as to_pravega
    from .local import LocalPravega as LocalPravega
    from .local import LocalSchemaRegistry as LocalSchemaRegistry
    from .metrics import serve_metrics as serve_metrics
else:
    from pravega_connector import __all__, __dir__, __getattr__  # noqa: F401 - the package has them

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
