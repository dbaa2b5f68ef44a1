"""Kind of the server at a registry's address: Pravega's registry, Confluent's or Apicurio's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Kind = Literal["pravega", "confluent", "apicurio"]
_FOREIGN: Final[Mapping[str, Kind]] = {"confluent": "confluent", "apicurio": "apicurio"}


def kind_of(uri: str) -> Kind:
    """Return the kind of the server at a URI. Its name is before the URI, as in ``confluent+http://…``."""
    return _FOREIGN.get(uri.partition("+")[0], "pravega")
