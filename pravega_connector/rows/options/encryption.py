"""Options of encrypted fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.declaration import choice, flag, option
from pravega_serde import encryption
from pravega_serde.serializer_interface import Serializer


def _paths(name: str, value: str) -> tuple[str, ...]:
    """Parse the paths of fields, separated by commas."""
    paths = tuple(each.strip() for each in value.split(","))
    if not all(paths):
        raise ConfigError(f"invalid option {name!r}: a path is empty; write paths such as email,card.number")
    return paths


def _keys(name: str, value: str) -> str:
    """Parse a set of data keys: its JSON text, or the path of its file, which is read now."""
    if value.lstrip().startswith("{"):
        return value
    try:
        return Path(value).read_text()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"invalid option {name!r}: the file {value[:200]!r} cannot be read: {reason}") from None


@dataclass(frozen=True, kw_only=True)
class EncryptionOptions:
    """Fields that are encrypted, and their keys."""

    encrypted_fields: tuple[str, ...] | None = option(
        None,
        "fields to encrypt and decrypt, as paths separated by commas: `email,card.number`. Requires `format` or "
        "`registry`, `encryption_keys` and `encryption_key_service`. See docs/serialization/encrypt-fields.md",
        _paths,
    )
    encryption_keys: str | None = option(
        None,
        "set of wrapped data keys: the absolute path of its file, which the driver reads for each batch, or its JSON "
        "text",
        _keys,
    )
    encryption_key_service: str | None = option(
        None,
        "service that unwraps the data keys: `package.module:name` of a `KeyService`, importable on every node, or the "
        "absolute path of a file of local keys, the same on every node",
    )
    encryption_stream: str | None = option(
        None,
        "name of the stream that encrypted values are bound to, as `scope/stream` (default: the stream). Required for "
        "several streams, tables and column functions",
    )
    encryption_missing_key: str = option(
        "error",
        "a field whose data key is missing: `error` makes its event a malformed record, `null` makes the field null",
        choice("error", "null"),
    )
    encryption_deterministic: bool = option(
        True,
        "if false, equal values differ when they are encrypted. `exactly_once` requires true, because a repeated batch "
        "must have equal bytes",
        flag,
    )

    def check_encryption(self) -> None:
        """Raise ConfigError for options of encryption that are incomplete."""
        if self.encrypted_fields is None:
            for each in fields(EncryptionOptions):
                if getattr(self, each.name) != each.default:
                    raise ConfigError(f"option {each.name!r} requires option 'encrypted_fields'")
            return
        for name in ("encryption_keys", "encryption_key_service"):
            if getattr(self, name) is None:
                raise ConfigError(f"option 'encrypted_fields' requires option {name!r}")

    def encrypted(self, serializer: Serializer[Any], wanted: pa.DataType | None = None) -> Serializer[Any]:
        """Return the serializer with encryption, if the options have encrypted fields.

        ``wanted`` is the type to read events as. A field that it lacks is not read, so it is not decrypted.

        Raises ConfigError, SchemaError, MissingExtraError, EncryptionKeyError.
        """
        if self.encrypted_fields is None or self.encryption_keys is None or self.encryption_key_service is None:
            return serializer
        paths = [
            each
            for each in self.encrypted_fields
            if wanted is None or encryption.FieldPath.by_name(each).exists_in(wanted)
        ]
        if not paths:
            return serializer
        stream = self.encryption_stream or self._single_stream()
        if stream is None:
            raise ConfigError(
                "encrypted values are bound to a stream, and the options name no single one: set option "
                "'encryption_stream', such as scope/stream, the same for writing and reading"
            )
        return encryption.Encrypted(
            serializer,
            paths,
            encryption.DataKeys.load(self.encryption_keys, self.encryption_key_service),
            stream=stream,
            deterministic=self.encryption_deterministic,
            missing_key="null" if self.encryption_missing_key == "null" else "error",
        )

    def _single_stream(self) -> str | None:
        """Return the name of the only stream of the options."""
        return None
