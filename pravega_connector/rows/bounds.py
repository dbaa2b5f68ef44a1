"""Positions in options: from the text of an option to a stream cut of each stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping
from typing import Any, Final

from pravega_connector.checkpoint import committed_offset
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.reader.positions import parse_place, valid_cut
from pravega_connector.rows.offsets import Offset, cut_of
from pravega_connector.wire import StreamCut, StreamName
from pravega_serde.errors import PravegaError

_OPEN: Final = "unbounded"
_CHECKPOINT: Final = "checkpoint:"
_WORDS: Final = ("earliest", "latest", _OPEN)
_LONGEST_WORD: Final = 20  # every stream cut is longer
_OTHERS: Final = "*"  # in JSON: all streams without a separate entry


class Positions:
    """Start or end positions of streams from the text of an option.

    ``default`` applies to streams that the text does not mention. If the default is ``unbounded``, the text may use
    this word, too. ``key`` is the routing key of a query that reads only one. Raises ConfigError for an invalid text.
    """

    def __init__(
        self,
        client: PravegaClient,
        name: str,
        text: str | None,
        default: str,
        *,
        end: bool = False,
        key: str | None = None,
    ) -> None:
        self._client, self._name, self._is_end, self._may_be_open = client, name, end, default == _OPEN
        self._key = key
        self._default: Any = default if text is None else text.strip()
        self._own: dict[StreamName, Any] = {}
        self._checkpoints: dict[str, dict[StreamName, StreamCut]] = {}
        self._lock = threading.Lock()  # read a checkpoint once for all streams, because its query may change it
        if self._default.startswith("{"):
            self._own, self._default = self._from_json(self._default, default)

    def check(self, streams: Collection[StreamName]) -> None:
        """Raise ConfigError if a position is set for a stream that is not among these."""
        for stream in self._own:
            if stream not in streams and not isinstance(self._own[stream], StreamCut):
                raise ConfigError(
                    f"option {self._name!r} has a position in stream {stream}, which the query does not read"
                )

    def known(self) -> Collection[StreamName]:
        """Return the streams for which the text has a stream cut, like a checkpoint."""
        if isinstance(self._default, str) and self._default.lower().startswith(_CHECKPOINT):
            return self._checkpoint(self._default[len(_CHECKPOINT) :].strip())
        return [stream for stream, place in self._own.items() if isinstance(place, StreamCut)]

    def cut(self, stream: StreamName) -> StreamCut | None:
        """Return the stream cut of a stream, or None for ``unbounded``.

        Raises StreamNotFoundError, MalformedStreamCutError, TimeUnknownError, ConfigError. Nothing is created.
        """
        value = self._own.get(stream, self._default)
        if isinstance(value, StreamCut):
            return value
        if value is None:
            raise self._no_position(stream, self._own)
        if isinstance(value, Mapping):
            return valid_cut(self._client, self._from_offsets(stream, value))
        return self._from_text(stream, str(value).strip())

    def bounded(self, stream: StreamName) -> StreamCut:
        """Return the stream cut of a stream if the default is not ``unbounded``. Raises the errors of :meth:`cut`."""
        cut = self.cut(stream)
        assert cut is not None
        return cut

    def _from_text(self, stream: StreamName, text: str) -> StreamCut | None:
        if text.lower().startswith(_CHECKPOINT):
            return self._from_checkpoint(stream, text[len(_CHECKPOINT) :].strip())
        return parse_place(
            self._client,
            stream,
            text,
            f"option {self._name!r}",
            end=self._is_end,
            may_be_open=self._may_be_open,
            also=", checkpoint:/path, or JSON with these",
        )

    def _from_checkpoint(self, stream: StreamName, path: str) -> StreamCut:
        positions = self._checkpoint(path)
        if stream not in positions:
            raise self._no_position(stream, positions)
        return positions[stream]

    def _checkpoint(self, path: str) -> dict[StreamName, StreamCut]:
        with self._lock:
            if path not in self._checkpoints:
                self._checkpoints[path] = self._from_offset(committed_offset(path))
            return self._checkpoints[path]

    def _from_offset(self, value: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
        """Return the positions in an offset. Raises ConfigError for the offset of a query of another routing key."""
        offset = Offset.from_json(value)
        if offset.key not in (None, self._key):
            raise ConfigError(
                f"option {self._name!r} has the position of a query that reads only routing key {offset.key!r}: this "
                "query would miss events of other keys"
            )
        return dict(offset.cuts)

    def _no_position(self, stream: StreamName, positions: Mapping[StreamName, Any]) -> ConfigError:
        return ConfigError(
            f"the checkpoint of option {self._name!r} has no position in stream {stream}; it has positions in "
            f"{', '.join(map(str, positions)) or 'no stream'}: set the position of each stream as JSON"
        )

    def _from_offsets(self, stream: StreamName, value: Mapping[str, Any]) -> StreamCut:
        try:
            return cut_of(stream, value)
        except (TypeError, ValueError, PravegaError) as error:
            raise MalformedStreamCutError(
                f"option {self._name!r} has no position in stream {stream}: write segments and offsets as in "
                f'{{"0.#epoch.0": 120}} ({error})'
            ) from None

    def _from_json(self, text: str, default: str) -> tuple[dict[StreamName, Any], Any]:
        """Return the positions of the streams in a JSON object, and the position of all others.

        The object may be an offset copied from a checkpoint.
        """
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"option {self._name!r} has invalid JSON: {error}") from None
        if "streams" in value and "version" in value:
            return self._from_offset(value), None
        others = value.pop(_OTHERS, default)
        return {self._client.name(key): place for key, place in value.items()}, others
