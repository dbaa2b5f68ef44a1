"""Reads of one routing key: the segments that own the key, and in them the events with this key.

An event does not carry its routing key, so a router finds it in the event, as the writer's router did. The filter
compares the keys of all events with the segment that has them. A key that belongs to another segment shows that the
writer used other keys. Then events could be missed, so the read raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.core import arguments
from pravega_connector.core.events import check_key
from pravega_connector.errors import ConfigError, RoutingKeyError
from pravega_connector.reader.rows import Decoded, decode, value_fields
from pravega_connector.reader.slices import EventBatch, Select, batch_part
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import SegmentRange, StreamName
from pravega_serde.columnar import number_column
from pravega_serde.errors import DeserializationError, SerdeError
from pravega_serde.routing import EventRouter, segment_key, segment_keys
from pravega_serde.serializer_interface import Deserializer

#: Returns the routing keys of a batch's events, and the rows that cannot be decoded, which have no key.
FindKeys = Callable[[EventBatch], tuple[pa.StringArray, list[int]]]

_NOT_CARRIED: Final = "an event does not carry its routing key"


@dataclass(frozen=True, slots=True)
class WantedKey:
    """Routing key to read, and the router that finds the key of an event; None to keep the events of all keys."""

    key: str
    router: EventRouter | None

    @classmethod
    def of(cls, key: str | None, router: EventRouter | None, keep_other_keys: bool) -> WantedKey | None:
        """Return the key that the arguments of a read select, or None. Raises ConfigError if they conflict."""
        arguments.instance("router", router, EventRouter, "ByColumn('name'), ByFunction(str)")
        arguments.instance("keep_other_keys", keep_other_keys, bool, "True or False")
        if key is None:
            if router is not None or keep_other_keys:
                raise ConfigError(f"argument {'router' if router is not None else 'keep_other_keys'!r} requires 'key'")
            return None
        check_key(key)
        if (router is None) == (not keep_other_keys):
            raise ConfigError(
                f"argument 'key' requires one of 'router' and 'keep_other_keys', because {_NOT_CARRIED}: pass the "
                "router of the writer, such as router=ByField('camera'). Or pass keep_other_keys=True to read all "
                "events of the segments that own the key"
            )
        return cls(key, router)

    def lineage(self, stores: SegmentStores, stream: StreamName) -> Lineage:
        """Return the segments of a stream that own the key."""
        return Lineage(stores, stream, segment_key(self.key))

    def by_value(self, deserialize: Callable[[bytes], Any] | None) -> Select | None:
        """Return the filter of events for a router that gets values, or without ``deserialize`` bytes."""
        if self.router is None:
            return None
        return KeyFilter(self.key, partial(_keys_of_values, self.router, deserialize))

    def by_column(self, serializer: Deserializer[Any] | None) -> Select | None:
        """Return the filter of events for a router that gets columns: decoded, or without a serializer ``event``.

        Raises SchemaError if the router finds no key in these columns.
        """
        if self.router is None:
            return None
        fields = [pa.field("event", pa.binary())] if serializer is None else value_fields(serializer.arrow_type)
        schema = pa.schema(fields)
        self.router.check(schema)
        return KeyFilter(self.key, partial(_keys_of_columns, self.router, serializer, schema))


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Filter of the events of one routing key. It can be pickled if its router and serializer can."""

    key: str
    find: FindKeys

    def __call__(self, batch: EventBatch, owned: SegmentRange) -> EventBatch:
        """Return the events of the key in a batch of a segment, and events that cannot be decoded.

        The reader decodes the events of the result and raises the errors of the latter, or handles them. ``owned`` has
        the keys of the segment. Raises RoutingKeyError if the segment has an event with a key of another segment, or if
        the router raises an error.
        """
        keys, malformed = self.find(batch)
        self._check(batch, keys, owned)
        wanted = pc.fill_null(pc.equal(keys, self.key), False).to_numpy(zero_copy_only=False)
        if malformed:
            wanted = wanted.copy()
            wanted[malformed] = True
        if wanted.all():
            return batch
        return replace(batch, events=batch.events.filter(number_column(wanted)), offsets=batch.offsets[wanted])

    def _check(self, batch: EventBatch, keys: pa.StringArray, owned: SegmentRange) -> None:
        if owned.low <= 0.0 and owned.high >= 1.0:
            return
        different = pc.unique(keys).drop_null()
        positions = segment_keys(different)
        # Java's writer puts a key at the border of two segments into the first one, this one into the second.
        foreign = np.flatnonzero((positions < owned.low) | (positions > owned.high))
        if len(foreign):
            key = different[int(foreign[0])].as_py()
            raise RoutingKeyError.foreign(_place(batch, pc.index(keys, key).as_py()), key)


def _place(batch: EventBatch, row: int) -> str:
    return f"stream {batch.stream}, segment {batch.segment_id}, offset {int(batch.offsets[row])}"


def _keys_of_values(
    router: EventRouter, deserialize: Callable[[bytes], Any] | None, batch: EventBatch
) -> tuple[pa.StringArray, list[int]]:
    keys: list[str | None] = []
    malformed: list[int] = []
    for row, event in enumerate(batch.events.to_pylist()):
        try:
            value = event if deserialize is None else deserialize(event)
        except DeserializationError:
            keys.append(None)
            malformed.append(row)
            continue
        try:
            keys.append(router.key(value))
        except SerdeError as error:
            raise RoutingKeyError.unknown(_place(batch, row), error.message) from error
    return pa.array(keys, pa.string()), malformed


def _keys_of_columns(
    router: EventRouter, serializer: Deserializer[Any] | None, schema: pa.Schema, batch: EventBatch
) -> tuple[pa.StringArray, list[int]]:
    parts: list[pa.StringArray] = []
    malformed: list[int] = []
    rest: EventBatch | None = batch
    done = 0
    while rest is not None:
        decoded = (
            Decoded(rest.events, [])
            if serializer is None
            else decode(serializer, rest.events, "PERMISSIVE", lambda error: error)
        )
        malformed += [done + row for row in np.flatnonzero(decoded.bad()).tolist()]
        # flatten() and not field(): a null record is null in each of its columns.
        kind = decoded.values.type
        columns = decoded.values.flatten() if serializer is not None and pa.types.is_struct(kind) else [decoded.values]
        try:
            keys = router.keys(pa.RecordBatch.from_arrays(columns, schema=schema))
        except SerdeError as error:
            raise RoutingKeyError.unknown(_place(rest, getattr(error, "row", None) or 0), error.message) from error
        count = len(decoded.values)
        parts.append(pa.nulls(count, pa.string()) if keys is None else keys.cast(pa.string()))
        done += count
        rest = batch_part(batch, done) if done < len(batch.events) else None
    return pa.concat_arrays(parts), malformed
