"""Errors of the serializers, and the base that every error of this project shares.

Spark hands only an exception's text to the user, so the text is one line and begins with the code.
"""

from __future__ import annotations

from typing import ClassVar, Literal

__all__ = [
    "DeserializationError",
    "Fault",
    "ForkedError",
    "LimitExceededError",
    "MissingExtraError",
    "PravegaError",
    "RegistryAuthenticationError",
    "RegistryConflictError",
    "RegistryError",
    "RegistryNotFoundError",
    "RegistryPermissionError",
    "RegistryProtocolError",
    "RegistryRequestError",
    "RegistryUnavailableError",
    "SchemaError",
    "SerdeError",
    "SerializationError",
    "UnsupportedCodecError",
    "UnsupportedFormatError",
]

Fault = Literal["local", "remote", "data"]


class PravegaError(Exception):
    """Base of every error of this project.

    ``code`` is stable and stands at the start of the text. ``fault`` says whose it is: the caller's ("local"), the
    server's or the network's ("remote"), or the events' ("data"). ``retriable`` says whether the same call may
    succeed later.

    Cause: the base of all; what is raised is a kind of it.

    Mend: catch it where any error of this project is to be handled alike.
    """

    code: ClassVar[str] = "PRAVEGA-ERROR"
    fault: ClassVar[Fault] = "local"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        self.message = " ".join(message.split())
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class ForkedError(PravegaError):
    """An object is used in a forked process, and belongs to the process that forked it.

    Connections, background threads and locks cannot be shared with a child. The error is raised at once, before
    anything is written, and the parent's object is not affected. Closing such an object in the child has no effect.

    Cause: a client, writer, reader or transaction was used, then the process forked (``os.fork``, or
    ``multiprocessing`` with the start method ``fork``), and the child uses the same object; or the child calls a
    controller although its parent has called one, which gRPC does not support.

    Mend: start processes with the method ``spawn`` or ``forkserver``, or use the first client after the fork.
    """

    code = "PRAVEGA-FORKED"


class SerdeError(PravegaError):
    """Base of what the serializers raise.

    Cause: an argument of a serializer that cannot be right, or a kind below.

    Mend: the text names the argument and what it may be.
    """

    code = "PRAVEGA-SERDE"


class SerializationError(SerdeError):
    """A value cannot be written in the format asked for.

    ``field_path`` is the place inside the value (``$.a[0]``), ``row`` the position in the column that was encoded.

    Cause: the value has another type than its schema says, or a number that the type cannot hold; the text has the
    field and, of a column, the row.

    Mend: correct the value, or write with a schema that holds it.
    """

    code = "PRAVEGA-SERIALIZATION"
    fault = "data"

    def __init__(self, message: str, *, field_path: str | None = None, row: int | None = None) -> None:
        self.reason = " ".join(message.split())
        self.field_path, self.row = field_path, row
        before = "" if row is None else f"row {row}: "
        after = "" if field_path is None else f" (field {field_path})"
        super().__init__(f"{before}{self.reason}{after}")

    def in_row(self, row: int) -> SerializationError:
        """The same error with the position of its value in a column."""
        return type(self)(self.reason, field_path=self.field_path, row=row)


class DeserializationError(SerdeError):
    """Bytes are not a valid event of the format asked for.

    ``field_path`` is the place inside the event (``$.a[0]``), ``row`` the position in the column that was decoded.
    ``scope``, ``stream``, ``segment_id`` and ``offset`` are filled by the reader of the event (see :meth:`at`).

    Cause: the event was written in another format or with another schema, with an encoding header that the reader
    does not expect, or is damaged; the text has stream, segment, offset and field.

    Mend: read with the writer's format and schema, or with the registry; let bad events pass by ``mode`` or dead
    letters.
    """

    code = "PRAVEGA-DESERIALIZATION"
    fault = "data"

    def __init__(
        self,
        message: str,
        *,
        field_path: str | None = None,
        row: int | None = None,
        scope: str | None = None,
        stream: str | None = None,
        segment_id: int | None = None,
        offset: int | None = None,
        encoding_id: int | None = None,
    ) -> None:
        self.reason = " ".join(message.split())
        self.field_path, self.row = field_path, row
        self.scope, self.stream, self.segment_id, self.offset = scope, stream, segment_id, offset
        self.encoding_id = encoding_id
        super().__init__(self._text())

    def _text(self) -> str:
        where = []
        if self.stream is not None:
            where.append(f"stream {self.scope}/{self.stream}")
        for label, value in (
            ("segment", self.segment_id),
            ("offset", self.offset),
            ("row", self.row if self.offset is None else None),
            ("encoding id", self.encoding_id),
            ("field", self.field_path),
        ):
            if value is not None:
                where.append(f"{label} {value}")
        return f"{self.reason} (at {', '.join(where)})" if where else self.reason

    def at(self, *, scope: str, stream: str, segment_id: int, offset: int) -> DeserializationError:
        """The same error with the event's coordinates added."""
        return type(self)(
            self.reason,
            field_path=self.field_path,
            row=self.row,
            scope=scope,
            stream=stream,
            segment_id=segment_id,
            offset=offset,
            encoding_id=self.encoding_id,
        )


class LimitExceededError(DeserializationError):
    """Bytes would take more depth, handles or memory than a named limit allows.

    Cause: an event nests, refers back or unfolds further than a named limit; events made to do harm do so.

    Mend: raise the limit that the text names, if the event is to be trusted.
    """

    code = "PRAVEGA-LIMIT-EXCEEDED"


class SchemaError(SerdeError):
    """A schema cannot be parsed, or reader and writer schema do not fit.

    Cause: the schema's text is wrong, a type is named that it does not have, or the schemas of reader and writer
    differ in a way that resolution does not allow.

    Mend: correct the schema; the text names the place in it.
    """

    code = "PRAVEGA-SCHEMA"


class UnsupportedCodecError(SerdeError):
    """Events are wrapped in a codec that this reader was not given, or a codec name is unknown.

    Cause: a group of the registry has codecs of its own, or the name of one is misspelt.

    Mend: give the codec (``codecs``), or set ``fail_on_codec_mismatch`` to false if no event has it.
    """

    code = "PRAVEGA-UNSUPPORTED-CODEC"


class UnsupportedFormatError(SerdeError):
    """A format is not in the table of formats.

    Cause: the name of the format is misspelt, or it is one that the place asked does not take.

    Mend: take one of the formats that the text lists.
    """

    code = "PRAVEGA-UNSUPPORTED-FORMAT"


class RegistryError(SerdeError):
    """The schema registry refused a call or could not answer it. Says nothing about events: their bytes may be fine.

    ``status`` is the HTTP status of the last answer, None where there was none.

    Cause: a request at which the server fails each time, or a kind below.

    Mend: read what the server said, which is in the text, and its log.
    """

    code = "PRAVEGA-REGISTRY"
    fault: ClassVar[Fault] = "remote"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class RegistryUnavailableError(RegistryError):
    """The schema registry gave no answer, or none but server faults, until the deadline.

    Cause: the registry is down, slow, or at another address; or a proxy answers for it.

    Mend: check the address; try again when it is up. The text says so if a change may have been made all the same.
    """

    code = "PRAVEGA-REGISTRY-UNAVAILABLE"
    retriable = True


class RegistryAuthenticationError(RegistryError):
    """Credentials for the schema registry are missing or wrong (401).

    Cause: no credentials were given, or wrong ones.

    Mend: give ``username`` and ``password`` or ``token`` (in Spark ``registry_username`` and so on), by argument,
    environment or profile.
    """

    code = "PRAVEGA-REGISTRY-AUTHENTICATION"
    fault = "local"


class RegistryPermissionError(RegistryError):
    """The user of the schema registry is not permitted to do this (403).

    Cause: the user may not do this in the namespace or group.

    Mend: have the permission granted, or act as another user.
    """

    code = "PRAVEGA-REGISTRY-PERMISSION"
    fault = "local"


class RegistryNotFoundError(RegistryError):
    """The group, schema, version or encoding is not in the schema registry (404).

    Cause: a group that no writer has made yet, a misspelt name, another namespace, or another registry than the
    writer's.

    Mend: check group and namespace; make it with ``create_group`` and ``register_schema``, or beforehand by
    ``add_group``.
    """

    code = "PRAVEGA-REGISTRY-NOT-FOUND"
    fault = "local"


class RegistryConflictError(RegistryError):
    """The request conflicts with the group's contents: incompatible, of another format or type (409, 412, 417).

    Cause: the schema is not compatible by the group's policy, or the group has another format, type or codec.

    Mend: see what stands against it with ``pravega-serde registry check``; change the schema, or the policy.
    """

    code = "PRAVEGA-REGISTRY-CONFLICT"
    fault = "local"


class RegistryRequestError(RegistryError):
    """The schema registry rejected the request as malformed: a schema that it cannot parse, an unknown policy.

    Cause: a schema that the server cannot parse, or a policy that the format does not have.

    Mend: correct what the text names.
    """

    code = "PRAVEGA-REGISTRY-REQUEST"
    fault = "local"


class RegistryProtocolError(RegistryError):
    """Something answered that is not a schema registry, or not one that speaks this interface.

    Cause: the address is that of something else, such as the controller or a proxy's page, or the certificate is
    not trusted.

    Mend: check the address; name the authority's certificate with ``ca_file``.
    """

    code = "PRAVEGA-REGISTRY-PROTOCOL"


class MissingExtraError(SerdeError):
    """An optional package is needed and not installed.

    Cause: an extra of this package was not installed, on this machine or on an executor.

    Mend: run the ``pip install`` of the text, on the driver and on all executors.
    """

    code = "PRAVEGA-MISSING-EXTRA"

    def __init__(self, package: str, extra: str, *, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: pip install 'pravega-serde[{extra}]'"
        )
