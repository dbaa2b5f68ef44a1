"""Unknown names of the client's classes: the error names what is meant, and nothing else about the classes changes."""

import copy
import inspect
import pickle
import re

import pytest

from connector import client as package
from connector import config, hints, wire
from connector.client import (
    EventWriter,
    PravegaClient,
    RetentionPolicy,
    ScalingPolicy,
    StreamCut,
    StreamsReader,
    TailReader,
    Transaction,
    TransactionalWriter,
    ValueReader,
)
from connector.client.group_reader import GroupReader
from connector.client.reader_group import ReaderGroup
from connector.config import PravegaConfig
from connector.wire import StreamName
from pravega_serde import guesses

CUT = StreamCut(StreamName("s", "x"), {0: 5})
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
        (ReaderGroup, "lag", "write unread_bytes()"),
        (ReaderGroup, "resetReaderGroup", "reset(place) has the group begin again: 'earliest'"),
        (ReaderGroup, "addStream", "reset(streams=…, retention=…"),
        (GroupReader, "commit", "nothing is to be committed"),
        (GroupReader, "seek_to_beginning", "of the group, reset(place) has the group begin again"),
        (GroupReader, "assignment", "write position, which has the segments"),
        (CUT, "asText", "write to_text()"),
        (StreamCut, "UNBOUNDED", "StreamCut has no 'UNBOUNDED': leave start or end out"),
        (ScalingPolicy, "byEventRate", "write by_events("),
        (CUT.stream, "get_scope", "did you mean 'scope'?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_right_one(owner, name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


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
        ("key", "; did you mean 'routing_key'?"),
        ("keys", "; did you mean 'keys_of'?"),  # what it would mean is not known here
        ("qwertz", ""),
    ],
)
def test_a_word_is_answered_with_what_it_means_or_the_nearest(word, hint):
    meant = {"key": "routing_key", "keys": "unknown"}
    assert guesses.did_you_mean(word, ["Topic", "routing_key", "keys_of"], meant) == hint


def test_what_is_named_is_there_and_what_is_answered_is_not():
    classes = {
        each.__name__: each
        for each in (*vars(package).values(), *vars(wire).values(), *vars(config).values())
        if isinstance(each, type) and issubclass(each, hints.HintedNames)
    }
    classes |= {each.__name__: each for each in (ReaderGroup, GroupReader)}
    assert {EventWriter, TransactionalWriter, Transaction, TailReader, StreamsReader, ValueReader} <= {
        *classes.values()
    }
    for kind, meant in hints._MEANT.items():
        own = [each for each in classes.values() if kind in (base.__name__ for base in each.__mro__)]
        assert own, kind
        for name, hint in meant.items():
            assert not hasattr(classes[kind], name), (kind, name)
            for called in re.findall(r"client\.(\w+)", hint):
                assert hasattr(PravegaClient, called), hint
            for called in re.findall(r"^write (\w+)", hint):
                known = [
                    "client",
                    "connector",
                    "None",
                    "str",
                    *dir(package),
                    *(name for each in own for name in dir(each)),
                ]
                assert called in known or called in classes or f"self.{called} =" in inspect.getsource(classes[kind]), (
                    hint
                )
