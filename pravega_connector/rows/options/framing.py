"""Options of framings: a header, a length or compression that another system adds around each event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.declaration import choice, option
from pravega_serde import framings
from pravega_serde.format_table import FRAMINGS
from pravega_serde.serializer_interface import Serializer

#: Framings with the id of a schema in their header.
_WITH_ID: Final = ("aws-glue", "azure")


@dataclass(frozen=True, kw_only=True)
class FramingOptions:
    """Framing of the events, and the id in its header."""

    framing: str | None = option(
        None,
        f"what another system added around each event: {', '.join(f'`{name}`' for name in FRAMINGS)}. Requires "
        "`format` or `registry`; for data that stays raw, set `format=bytes`. See docs/serialization/framings.md",
        choice(*FRAMINGS),
    )
    framing_id: str | None = option(
        None,
        "writing with `framing=aws-glue`: the UUID of the schema version; with `framing=azure`: the schema id, 32 hex "
        "digits. A read accepts any id",
    )

    def check_framing(self, *, writing: bool = False) -> None:
        """Raise ConfigError for an id without a framing, and for a framing that is written without its id."""
        if self.framing_id is not None and self.framing is None:
            raise ConfigError("option 'framing_id' requires option 'framing'")
        if writing and self.framing in _WITH_ID and self.framing_id is None:
            raise ConfigError(f"option 'framing' requires option 'framing_id' to write {self.framing}: the schema's id")

    def framed(self, serializer: Serializer[Any]) -> Serializer[Any]:
        """Return the serializer with the framing, if the options have one. Raises SerdeError for an invalid id."""
        if self.framing is None:
            return serializer
        return framings.Framed(serializer, self.framing, id=self.framing_id)
