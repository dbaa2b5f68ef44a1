"""Schemas of a registry in the result of sniffing, by the ids before the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pravega_serde.errors import RegistryNotFoundError
from pravega_serde.format_table import FORMATS
from pravega_serde.registry.contract import EncodingInfo
from pravega_serde.registry.header import APICURIO, CONFLUENT, PRAVEGA, Framing
from pravega_serde.registry.stores import SchemaStore
from pravega_serde.sniffing.payloads import READ_AS, UNKNOWN
from pravega_serde.sniffing.results import Sniffed, SniffedPart

#: Name of a framing in the result -> framing of a registry.
_FRAMINGS: Final[Mapping[str, Framing]] = {
    "pravega-registry": PRAVEGA,
    "confluent": CONFLUENT,
    "apicurio": APICURIO,
}


def with_schemas(found: Sniffed, store: SchemaStore) -> tuple[Sniffed, dict[int, str]]:
    """Return the result with the names and formats that a registry has for its ids, and a text for each id.

    A part of an unknown format has the format of its schemas, if they have only one. Raises the errors of the registry.
    """
    texts: dict[int, str] = {}
    parts = tuple(_named(part, store, texts) for part in found.parts)
    return replace(found, parts=parts), dict(sorted(texts.items()))


def _named(part: SniffedPart, store: SchemaStore, texts: dict[int, str]) -> SniffedPart:
    framing = _FRAMINGS.get(part.framing[0]) if part.framing else None
    if framing is None or framing not in store.framings:
        return part
    known: dict[int, EncodingInfo] = {}
    for each in part.ids:
        assert isinstance(each, int), "the ids of these registries are numbers"
        try:
            known[each] = store.writer(framing, each)
        except RegistryNotFoundError:
            texts[each] = "not in the registry"
    own = {each: _text(info, with_version=framing is PRAVEGA) for each, info in known.items()}
    texts.update(own)
    if not known:
        return part
    schemas = f"The registry has schemas for its ids: {', '.join(f'{each} is {text}' for each, text in own.items())}."
    formats = {info.schema.format.name.lower() for info in known.values()}
    if part.format != UNKNOWN or len(formats) > 1 or not formats <= READ_AS.keys():
        return replace(part, reason=f"{part.reason} {schemas}")
    (name,) = formats
    return replace(
        part,
        format=name,
        reason=schemas,
        confidence="high" if len(known) == len(part.ids) else "medium",
        proposal=replace(part.proposal, registry_format=FORMATS[name].registry_name),
    )


def _text(info: EncodingInfo, *, with_version: bool) -> str:
    version = f", version {info.version.version}" if with_version else ""
    codec = f", codec {info.codec.name}" if info.codec.name else ""
    return f"{info.version.format} {info.version.type}{version}{codec}"
