"""Unknown names of the client's classes: the error names what is meant, and nothing else about the classes changes."""

import ast
import copy
import inspect
import pickle
import re
from abc import ABCMeta, abstractmethod
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest

import pravega_connector
from pravega_connector import client as package
from pravega_connector import config, error_hints, wire
from pravega_connector.client import (
    EventWriter,
    PravegaClient,
    RetentionPolicy,
    ScalingPolicy,
    StreamConfig,
    StreamCut,
    StreamsReader,
    StreamsTransaction,
    TailReader,
    Transaction,
    TransactionalWriter,
    ValueReader,
)
from pravega_connector.client.administration import StreamDescription
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.config import PravegaConfig
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.reader_groups.subscriber import Subscriber
from pravega_connector.tables.table import Table
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import OpenTransaction
from pravega_serde import suggestions

CUT = StreamCut(StreamName("s", "x"), {0: 5})


def blank(kind: type) -> Any:
    """An object that was not initialized: hints depend on its class only."""
    return kind.__new__(kind)


VALUES = [CUT, CUT.stream, ScalingPolicy.fixed(2), RetentionPolicy.by_time(5), PravegaConfig(scope="s")]


@pytest.mark.parametrize(
    ("owner", "name", "hint"),
    [
        (PravegaClient("h"), "createEventWriter", "PravegaClient has no 'createEventWriter': write client.writer("),
        (PravegaClient("h"), "create_event_writter", "write client.writer("),
        (PravegaClient("h"), "createStream", "write create_stream"),
        (PravegaClient("h"), "scops", "did you mean 'scopes'?"),
        (PravegaClient("h"), "qwertz", "help(PravegaClient)"),
        (PravegaClient("h"), "consumer_group", "write client.reader_group("),
        (PravegaClient("h"), "to_pandas", "write client.read_columns(stream, serializer), which has to_pandas"),
        (blank(ReaderGroup), "lag", "write unread_bytes()"),
        (blank(ReaderGroup), "resetReaderGroup", "reset(place) restarts the group at a position: 'earliest'"),
        (blank(ReaderGroup), "addStream", "reset(streams=…, retention=…"),
        (blank(GroupReader), "commit", "no commit is needed"),
        (blank(GroupReader), "seek_to_beginning", "on the group, reset(place) restarts the group"),
        (blank(GroupReader), "assignment", "write position, which has the segments"),
        (CUT, "asText", "write to_text()"),
        (CUT.stream, "get_scope", "write scope"),
        (CUT.stream, "getScopedName", "write str(name)"),
        (blank(ReaderGroup), "getOnlineReaders", "write online_readers"),
    ],
)
def test_an_unknown_name_is_answered_with_the_right_one(owner, name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_class_has_python_s_own_error_and_any_metaclass():
    with pytest.raises(AttributeError, match=r"^type object 'StreamCut' has no attribute 'UNBOUNDED'$"):
        _ = StreamCut.UNBOUNDED

    class Mine(PravegaClient, metaclass=ABCMeta):
        @abstractmethod
        def work(self) -> int: ...

    class Done(Mine):
        def work(self) -> int:
            return 5

    with pytest.raises(TypeError, match="abstract"):
        Mine("h")
    assert Done("h").work() == 5
    with pytest.raises(AttributeError, match="Done has no 'scops': did you mean 'scopes'"):
        _ = Done("h").scops


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_copied_pickled_and_looked_into_as_ever(value):
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == copy.copy(value) == value
    assert not hasattr(value, "no_such_name")
    assert not hasattr(value, "__array__")
    assert "no_such_name" not in dir(value)
    assert getattr(value, "no_such_name", 5) == 5
    assert inspect.signature(type(value)).parameters


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tpoic", "; did you mean 'Topic'?"),
        (" TOPIC ", "; did you mean 'Topic'?"),
        ("routingkey", "; did you mean 'routing_key'?"),
        ("routing-kye", ""),  # short parts are other words
        ("rooting-key", "; did you mean 'routing_key'?"),
        ("outing_key", ""),
        ("topical", ""),
        ("key", "; did you mean 'routing_key'?"),
        ("keys", ""),  # what it would mean is not known here
        ("qwertz", ""),
    ],
)
def test_a_word_is_answered_with_what_it_means_or_the_nearest(word, hint):
    meant = {"key": "routing_key", "keys": "unknown"}
    assert suggestions.did_you_mean(word, ["Topic", "routing_key", "keys_of"], meant) == hint


# Wrong name -> part of the text; None: there is nothing like it, and the text reports it and nothing else.
PROBES = {
    PravegaClient: {
        # Java: EventStreamClientFactory, StreamManager, ReaderGroupManager, the controller's client
        "fetchEvent": "client.fetch(pointer, serializer)",
        "getStreamInfo": "client.describe(stream)",
        "listCompletedTransactions": None,
        "checkTransactionStatus": "client.transaction(stream, id)",
        "pingTransaction": "client.transaction(stream, id)",
        "createTransactionalEventWriter": "client.transactions(stream, serializer)",
        "createKeyValueTable": "client.create_table(table, primary_key=8)",
        "deleteReaderGroup": "client.reader_group('scope/group').delete()",
        "listSubscribers": None,
        "updateSubscriberStreamCut": "client.subscriber(stream, name).publish(cut)",
        "deleteScopeRecursive": "client.delete_scope(scope, recursive=True)",
        "getSegmentsAtTime": None,
        "getDistanceBetweenTwoStreamCuts": None,
        # Rust and its Python binding
        "create_stream_with_policy": "client.create_stream(stream, ScalingPolicy.by_events(",
        "get_tail_stream_cut": "client.tail(stream)",
        "create_token": None,
        # Kafka
        "init_transactions": "client.transactions(stream, serializer)",
        "abort_transaction": "client.transactions(stream, serializer)",
        "list_offsets": "client.head(stream)",
        "describe_cluster": None,
        "alter_configs": None,
        "list_consumer_groups": "client.reader_groups(scope)",
        "pause": None,
        # Pulsar
        "get_last_message_id": None,
        "unsubscribe": None,
        "create_table_view": None,
        # what such clients might have
        "copy_stream": None,
        "rename_stream": None,
        "scan_stream": None,
        "list_transactions": None,
        "count_events": None,
        "watch": None,
    },
    EventWriter: {
        "writeEvent": "write write(value, routing_key=…)",
        "noteTime": "write note_time",
        "last_sequence_id": None,
        "list_topics": None,
        "init_transactions": None,
        "purge": None,
    },
    ValueReader: {
        "fetchEvent": None,
        "committed": "save position",
        "acknowledge": "save position",
        "pause": None,
        "has_message_available": None,
    },
    ReaderGroup: {
        "getStreamNames": None,
        "getStreamCuts": "write reported_cuts()",
        "cancelOutstandingCheckpoints": "cancel_outstanding_checkpoints",
        "getMetrics": "unread_bytes()",
        "list_consumer_group_offsets": None,
    },
    GroupReader: {"acknowledge": "no commit is needed", "get_config": None, "close_at": None},
    Transaction: {"checkStatus": "write status()", "flush": None, "get_transaction_id": None, "extend": None},
    StreamCut: {"compare": None, "to_string": None, "serialize": None},
}


@pytest.mark.parametrize(
    ("owner", "name", "hint"),
    [(owner, name, hint) for owner, probed in PROBES.items() for name, hint in probed.items()],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_people_guess_is_answered_rightly_or_not_at_all(owner, name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(PravegaClient("h") if owner is PravegaClient else blank(owner), name)
    none = f"{owner.__name__} has no {name!r}: unknown name; help({owner.__name__}) lists the names"
    if hint is None:
        assert str(caught.value) == none
    else:
        assert hint in str(caught.value)
        assert "did you mean" not in str(caught.value)


# Kind of what a call returns, where a hint continues with it.
RETURNS = {
    "reader_group": ReaderGroup,
    "follow": ValueReader,
    "describe": StreamDescription,
    "config": StreamConfig,
    "transactions": TransactionalWriter,
    "begin": OpenTransaction,
    "transaction": Transaction,
    "subscriber": Subscriber,
    "writer": EventWriter,
    "by_events": ScalingPolicy,
    "table": Table,
    "transaction_over": StreamsTransaction,
}
STARTS = {
    "client": PravegaClient,
    "pravega_connector": pravega_connector,
    "pyarrow": pa,
    **{each.__name__: each for each in (PravegaClient, PravegaConfig, ScalingPolicy, StreamCut, StreamName)},
}


def test_each_hint_is_true_of_the_client_as_it_is():
    classes = {
        each.__name__: each
        for each in (*vars(package).values(), *vars(wire).values(), *vars(config).values())
        if isinstance(each, type) and issubclass(each, error_hints.HintedNames)
    }
    classes |= {each.__name__: each for each in (ReaderGroup, GroupReader, StreamsTransaction, Table)}
    assert {EventWriter, TransactionalWriter, Transaction, TailReader, StreamsReader, ValueReader} <= {
        *classes.values()
    }
    count = 0
    for kind, meant in error_hints._MEANT.items():
        own = [each for each in classes.values() if kind in (base.__name__ for base in each.__mro__)]
        assert own, kind
        for names, hint in meant.items():
            assert [name for name in names.split() if hasattr(classes[kind], name)] == [], kind
            for expression in expressions(hint):
                resolved(ast.parse(expression, mode="eval").body, [*own, *RETURNS.values()])
                count += 1
    assert count > 120


def expressions(hint: str) -> list[str]:
    """Each call and each attribute that a hint names, as Python has it."""
    text = re.sub(r"\bgroup\.", "", hint).replace("…", "...")
    found = []
    for match in re.finditer(r"(?<![\w.'(])(?:(?:" + "|".join(STARTS) + r")\.|(?<=write )\w|\w+\()", text):
        end = match.start()
        while more := re.match(r"\.?\w+", text[end:]):
            end += more.end()
            if text[end : end + 1] == "(":
                depth = [*accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text[end:])]
                end += depth.index(0) + 1
        found.append(text[match.start() : end])
    return [each for each in found if each not in ("None", "and", "str(name)")]


def resolved(tree: ast.expr, own: list[type]) -> Any:
    """Object of an expression, or its class. Calls must fit their signatures."""
    if isinstance(tree, ast.Name):
        return STARTS.get(tree.id) or next(attribute(each, tree.id) for each in own if has(each, tree.id))
    if isinstance(tree, ast.Attribute):
        owner = resolved(tree.value, own)
        assert has(owner, tree.attr), (owner, tree.attr)
        return attribute(owner, tree.attr)
    assert isinstance(tree, ast.Call), ast.dump(tree)
    function = resolved(tree.func, own)
    if function is pa:
        return pa
    parameters = inspect.signature(function).parameters
    own_self = [None] if next(iter(parameters), "") == "self" else []
    inspect.signature(function).bind_partial(*own_self, *tree.args, **{word.arg: None for word in tree.keywords})
    return RETURNS.get(function.__name__, function)


def has(owner: Any, name: str) -> bool:
    return (
        hasattr(owner, name)
        or name in getattr(owner, "__annotations__", ())
        or (isinstance(owner, type) and f"self.{name} =" in inspect.getsource(owner))
    )


def attribute(owner: Any, name: str) -> Any:
    if name in RETURNS and not inspect.isroutine(getattr(owner, name, None)):
        return RETURNS[name]
    return getattr(owner, name, None)
