"""Parallel reads: parts of a range in other processes, and iterators that are resumed."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import ConfigError
from pravega_connector.wire import StreamName
from pravega_serde import AvroSerializer, ByField, JsonSerializer
from pravega_serde.errors import DeserializationError

ROWS = JsonSerializer(arrow_type=pa.schema([("key", pa.string()), ("n", pa.int64())]))


def write(client: PravegaClient, stream: StreamName, numbers: range) -> None:
    with client.writer(stream, "json", router=ByField("key")) as writer:
        for number in numbers:
            writer.write({"key": f"key {number % 50}", "n": number})


@pytest.fixture
def scaled(client: PravegaClient, stream_name: StreamName) -> StreamName:
    """A stream of 3 and then 5 segments."""
    client.create_stream(stream_name, 3)
    write(client, stream_name, range(1000))
    client.scale_stream(stream_name, 5)
    write(client, stream_name, range(1000, 2000))
    return stream_name


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30])
def test_the_parts_in_their_order_are_the_range(client, scaled, count):
    columns = client.read_columns(scaled, ROWS, metadata=["segment_id", "offset"])
    whole = columns.to_arrow()
    parts = columns.splits(count)
    assert len(parts) == count
    assert pa.concat_tables([part.to_arrow() for part in parts]).equals(whole)
    assert sum(part.size for part in parts) == columns.size
    if count < 9:  # whole segments
        segments = [set(part.to_arrow()["segment_id"].to_pylist()) for part in parts]
        assert sum(map(len, segments)) == 8
    else:
        assert max(part.size for part in parts) < columns.size / count * 2


def test_parts_of_several_streams_and_of_nothing(client, scope, stream_name):
    streams = [StreamName(scope, name) for name in ("one", "two")]
    for stream in streams:
        client.create_stream(stream, 2)
        write(client, stream, range(300))
    columns = client.read_columns(streams, ROWS, metadata=["stream"])
    parts = columns.splits(3)
    assert pa.concat_tables([part.to_arrow() for part in parts]).equals(columns.to_arrow())
    client.create_stream(stream_name, 2)
    assert client.read_columns(stream_name).splits(4) == []
    with pytest.raises(ConfigError, match="'count' must be a whole number of at least 1"):
        columns.splits(0)


def test_more_parts_than_events(client, stream_name):
    client.create_stream(stream_name)
    write(client, stream_name, range(3))
    parts = client.read_columns(stream_name, ROWS).splits(10)
    assert [part.to_arrow()["n"].to_pylist() for part in parts] == [[0], [1], [2]]


def test_other_processes_read_the_parts(client, scaled):
    columns = client.read_columns(scaled, ROWS)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        tables = list(processes.map(methodcaller("to_arrow"), columns.splits(4)))
    assert pa.concat_tables(tables).equals(columns.to_arrow())


def test_a_pickled_part_keeps_its_key(client, scaled):
    columns = client.read_columns(scaled, ROWS, key="key 7", router=ByField("key"))
    parts = [pickle.loads(pickle.dumps(part)) for part in columns.splits(2)]
    assert parts[0]._stores is parts[1]._stores  # one set of connections for each process
    numbers = [row["n"] for part in parts for row in part.to_arrow().to_pylist()]
    assert numbers == list(range(7, 2000, 50))


def test_an_iterator_is_resumed_at_each_batch(client, scaled):
    columns = client.read_columns(scaled, ROWS)
    whole = columns.to_arrow()
    for part in (columns, pickle.loads(pickle.dumps(columns.splits(2)[1]))):
        found, position = [], None
        while True:
            with part.record_batches(start=position) as rows:
                assert rows.position == position
                if (batch := next(rows, None)) is None:
                    break
                found.append(batch)
                position = rows.position
        assert pa.Table.from_batches(found).equals(part.to_arrow())
        assert len(found) >= 4
    assert whole.num_rows == 2000


def test_a_position_inside_a_batch_of_the_server(client, scaled):
    """The serializer decodes a part of the events at a time."""
    schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}'
    stream = StreamName(scaled.scope, f"{scaled.stream}-avro")
    client.create_stream(stream)
    with client.writer(stream, AvroSerializer(schema)) as writer:
        for number in range(100):
            writer.write({"n": number})
    columns = client.read_columns(stream, FewAtOnce(schema))
    rows = columns.record_batches()
    assert [next(rows)["n"].to_pylist() for _ in range(2)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12, 13]]
    rest = pa.Table.from_batches(columns.record_batches(start=rows.position))
    assert rest["n"].to_pylist() == list(range(14, 100))
    rows.close()


class FewAtOnce(AvroSerializer):
    """A serializer that decodes seven events at a time, as a registry's serializer does with large ones."""

    def decode_first(self, column, *, on_error=None):
        return self.decode_column(column[:7], on_error=on_error)


def test_a_position_at_the_end_and_new_events(client, stream_name):
    client.create_stream(stream_name)
    write(client, stream_name, range(5))
    rows = client.read_columns(stream_name, ROWS).record_batches()
    assert rows.position is None
    assert [batch.num_rows for batch in rows] == [5]
    assert list(client.read_columns(stream_name, ROWS).record_batches(start=rows.position)) == []
    write(client, stream_name, range(5, 7))
    later = client.read_columns(stream_name, ROWS).record_batches(start=rows.position)
    assert [batch["n"].to_pylist() for batch in later] == [[5, 6]]


def test_a_position_of_another_range(client, scaled):
    first, second = client.read_columns(scaled, ROWS).splits(2)
    rows = first.record_batches()
    next(rows)
    with pytest.raises(ConfigError, match="is not in this range"):
        second.record_batches(start=rows.position)
    for text in ("", "a:b", f"{scaled}/0.#epoch.0:x"):
        with pytest.raises(ConfigError, match="invalid position"):
            second.record_batches(start=text)
    rows.close()


def test_after_an_error_the_position_is_before_the_events_that_did_not_come(client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for event in (b'{"key": "a", "n": 1}', b"{"):
            writer.write(event)
    rows = client.read_columns(stream_name, ROWS).record_batches()
    with pytest.raises(DeserializationError, match="offset 28"):
        next(rows)
    assert rows.position is None
