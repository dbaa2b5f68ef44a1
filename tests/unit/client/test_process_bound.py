"""Objects that belong to their process: they cannot be pickled or copied."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pravega_connector import AsyncPravegaClient, PravegaClient
from pravega_connector.aio.objects import AsyncEventWriter
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.errors import ConfigError
from pravega_connector.exactly_once.group_reader import ExactlyOnceReader
from pravega_connector.exactly_once.streams_transaction import StreamsTransaction
from pravega_connector.reader.stream_reader import StreamsReader, ValueReader
from pravega_connector.reader.tail import TailReader
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.single_segment.revisioned import RevisionedStreamClient
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction

_KINDS = (
    *(
        PravegaClient,
        AsyncPravegaClient,
        EventWriter,
        AsyncEventWriter,
        OpenTransaction,
        StreamsTransaction,
        LeaseKeeper,
    ),
    *(TailReader, StreamsReader, ValueReader, ReaderGroup, GroupReader, ExactlyOnceReader),
    *(RevisionedStreamClient, StateSynchronizer),
)


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_copy_is_refused_with_advice(kind: type[Any], duplicate: Callable[[Any], Any]) -> None:
    words = rf"objects of {kind.__name__} .* cannot be pickled or copied: .*shared_client\(config\)"
    with pytest.raises(ConfigError, match=words):
        duplicate(kind.__new__(kind))
