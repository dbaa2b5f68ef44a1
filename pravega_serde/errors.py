"""Errors of the serializers, and the base class of all errors of this project.

Spark shows only an exception's text to the user, so the text is one line and begins with the code.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

__all__ = [
    "CredentialError",
    "CredentialUnavailableError",
    "DecryptionError",
    "DeserializationError",
    "EncryptionKeyError",
    "ForkedError",
    "LimitExceededError",
    "MissingExtraError",
    "MissingKeyError",
    "OutputFileError",
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
    "StaleCodeError",
    "UnsupportedCodecError",
    "UnsupportedFormatError",
    "UnsupportedRuleError",
    "UnsupportedTargetError",
]

Fault = Literal["local", "remote", "data"]
# Characters of an error's text: servers and events can put texts of any length into it. A list of the 256 streams of a
# transaction fits.
_LONGEST: Final = 16_384


def one_line(text: str) -> str:
    """Return a text for a terminal, a log line and a table cell: one line of limited length.

    Characters that are not printable, such as escape sequences and the controls of bidirectional text, are escaped. The
    middle of a longer text is left out, because the advice is at its end.
    """
    line = escaped(" ".join((text if len(text) <= _LONGEST else _without_middle(text)).split()))
    return line if len(line) <= _LONGEST else _without_middle(line)


def escaped(text: str) -> str:
    """Return a text with escapes in place of characters that are not printable."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _without_middle(text: str) -> str:
    half = _LONGEST // 2 - 8
    return f"{text[:half]} […] {text[-half:]}"


class PravegaError(Exception):
    """Base class of all errors of this project.

    ``code`` is stable and is the first word of the text. ``fault`` names the side at fault: the caller ("local"), the
    server or the network ("remote"), or the events ("data"). ``retriable`` means that the same call may succeed later.

    Cause: the base class of all errors; a raised error is an instance of a subclass.

    Fix: catch this class to handle all errors of the project in one place.
    """

    code: ClassVar[str] = "PRAVEGA-ERROR"
    fault: ClassVar[Fault] = "local"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        # A library that recreates an error from its text, as polars does, has the code in it.
        self.message = one_line(message).removeprefix(f"[{self.code}] ")
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class ForkedError(PravegaError):
    """An object was used in a forked process but belongs to the parent process.

    Connections, background threads and locks cannot be shared with a child. The error is raised before anything is
    written, and the parent's object is not affected. Closing such an object in the child has no effect.

    Cause: a client, writer, reader or transaction was used, then the process forked (``os.fork``, or
    ``multiprocessing`` with the start method ``fork``). The child then used the same object. Or the child called a
    controller after its parent had called one, which gRPC does not support.

    Fix: start processes with the method ``spawn`` or ``forkserver``, or use the first client after the fork.
    """

    code = "PRAVEGA-FORKED"


class OutputFileError(PravegaError):
    """A file or standard output cannot be written; no partial file is left under its name.

    Cause: the disk is full, a permission is missing, the folder does not exist, or standard output is closed.

    Fix: free disk space or name another file, then run the same command again.
    """

    code = "PRAVEGA-OUTPUT-FILE"
    retriable = True


class SerdeError(PravegaError):
    """Base class of the serializers' errors.

    Cause: an argument of a serializer is invalid, or the error is of a subclass below.

    Fix: correct the argument that the message names. See its type and default in docs/reference/api/serializers.md, or
    call ``help`` on the class.
    """

    code = "PRAVEGA-SERDE"


class SerializationError(SerdeError):
    """A value cannot be written in the requested format.

    ``field_path`` is the place inside the value (``$.a[0]``). ``row`` is the position in the encoded column.

    Cause: the value has another type than its schema, or a number is out of the type's range. The message names the
    field and, for a column, the row.

    Fix: correct the value, or write with a schema that accepts it.
    """

    code = "PRAVEGA-SERIALIZATION"
    fault = "data"

    def __init__(self, message: str, *, field_path: str | None = None, row: int | None = None) -> None:
        self.reason = one_line(message)
        self.field_path, self.row = field_path, row
        before = "" if row is None else f"row {row}: "
        after = "" if field_path is None else f" (field {field_path})"
        super().__init__(f"{before}{self.reason}{after}")

    def in_row(self, row: int) -> SerializationError:
        """Return the same error with the position of its value in a column."""
        return type(self)(self.reason, field_path=self.field_path, row=row)


class DeserializationError(SerdeError):
    """Bytes are not a valid event of the requested format.

    ``field_path`` is the place inside the event (``$.a[0]``). ``row`` is the position in the decoded column. The reader
    of the event fills in ``scope``, ``stream``, ``segment_id`` and ``offset`` (see :meth:`at`).

    Cause: the event was written in another format, with another schema, or with an encoding header that the reader does
    not expect; or it is damaged. The message names stream, segment, offset and field.

    Fix: read with the writer's format and schema, or with the registry. To skip malformed records, set ``mode`` or a
    dead-letter queue.
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
        self.reason = one_line(message)
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
        """Return the same error with the position of the event in its stream."""
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


class DecryptionError(DeserializationError):
    """An encrypted field of an event cannot be decrypted.

    Cause: the value was changed, was encrypted with another key, or for another stream or field. Or it is not
    encrypted, because it was written without ``Encrypted``.

    Fix: read with the keys, the ``stream`` and the ``fields`` of the writer. If the events were copied from another
    stream, pass the name of that stream. Keep the event if none of this helps, because it may have been changed.
    """

    code = "PRAVEGA-DECRYPTION"


class MissingKeyError(DecryptionError):
    """An encrypted field names a data key that the reader does not have.

    Cause: the writer has rotated its keys, and the reader has an older set. Or the data key was removed from the set.

    Fix: pass the writer's set of keys. To read the other fields without the key, set ``missing_key="null"``, in Spark
    the option ``encryption_missing_key``.
    """

    code = "PRAVEGA-MISSING-KEY"


class LimitExceededError(DeserializationError):
    """Bytes need more depth, handles or memory than a named limit allows.

    Cause: an event nests, refers back or expands further than a named limit. Events that are made to attack a reader do
    so.

    Fix: skip the event with ``mode`` or a dead-letter queue. For Java objects that you trust, pass higher limits:
    ``JavaSerializer(limits=Limits(…))``. The limits of other formats are fixed, so split such an event.
    """

    code = "PRAVEGA-LIMIT-EXCEEDED"


class SchemaError(SerdeError):
    """A schema cannot be parsed, or the reader's schema does not match the writer's.

    Cause: the schema is malformed, names an unknown type, or differs from the other schema in a way that resolution
    does not allow.

    Fix: correct the schema at the path in the message, such as ``$.items``. To test it, create the serializer, for
    example ``AvroSerializer(schema)``. For two schemas that differ, give the new fields of the reader's schema a
    default, or read with the writer's schema.
    """

    code = "PRAVEGA-SCHEMA"


class CredentialError(SerdeError):
    """A credential provider returned no credential.

    A client raises its own error with the same text: ``PRAVEGA-AUTHENTICATION``, or from a registry's client
    ``PRAVEGA-REGISTRY-AUTHENTICATION``. A provider may raise this error. Its text must not contain a secret.

    Cause: the identity server refused the provider's request, or the provider failed or returned another value. The
    message names the provider.

    Fix: call the provider in a separate program. For Keycloak, check the account in ``keycloak_file``.
    """

    code = "PRAVEGA-CREDENTIAL"


class CredentialUnavailableError(CredentialError):
    """A credential provider cannot return a credential now, but a retry may help.

    The call that needs the credential is retried until its timeout. A client then raises its own error with the same
    text: ``PRAVEGA-CONTROLLER-UNAVAILABLE``, or from a registry's client ``PRAVEGA-REGISTRY-UNAVAILABLE``.

    Cause: the identity server is unreachable or answers too slowly, or the provider raised an ``OSError``.

    Fix: check the identity server and its address.
    """

    code = "PRAVEGA-CREDENTIAL-UNAVAILABLE"
    fault = "remote"
    retriable = True


class EncryptionKeyError(SerdeError):
    """A set of data keys is invalid, or the key service cannot unwrap or wrap a data key.

    No event is at fault, so it is not handled as a malformed record.

    Cause: a file of keys is missing or malformed, a key-encryption key is unknown or another one, or the key service
    failed. The message names the key or the file.

    Fix: correct the file or the name of the key. If the key service failed, check its access and its log, then retry.
    """

    code = "PRAVEGA-ENCRYPTION-KEY"


class StaleCodeError(SerdeError):
    """A generated file differs from the code that its schema or its events generate now.

    Cause: the schema changed after the file was generated, the file was edited, or another version of a generator
    wrote it. Or the file does not exist. The message names the file.

    Fix: run the same ``pravega-serde generate`` without ``--check``, and commit the file.
    """

    code = "PRAVEGA-STALE-CODE"


class UnsupportedCodecError(SerdeError):
    """Events have a codec that this reader does not have, or a codec name is unknown.

    Cause: the registry group uses custom codecs, or the name of a codec is misspelled.

    Fix: pass the codec in ``codecs``. If no event uses it, set ``fail_on_codec_mismatch`` to false.
    """

    code = "PRAVEGA-UNSUPPORTED-CODEC"


class UnsupportedRuleError(SerdeError):
    """A schema of a Confluent registry has a rule that this reader or writer cannot run.

    No event is read or written without the rule: its fields could be encrypted, or its values unchecked.

    Cause: the type of the rule, its action or a parameter is not known here. The message names the rule.

    Fix: disable the rule in the registry if nothing depends on it, or use Confluent's client for these events.
    """

    code = "PRAVEGA-UNSUPPORTED-RULE"


class UnsupportedFormatError(SerdeError):
    """The format is unknown or not supported here.

    Cause: the name of the format is misspelled, this function does not accept the format, or the package of the format
    cannot be imported.

    Fix: use ``avro``, ``bytes``, ``cbor``, ``java``, ``json``, ``protobuf`` or ``string``. With a schema registry, use
    ``avro``, ``json`` or ``protobuf``. For another format, write ``package.module:name`` of its serializer. Install its
    package in each process that uses it, with Spark on the driver and every executor.
    """

    code = "PRAVEGA-UNSUPPORTED-FORMAT"


class RegistryError(SerdeError):
    """The schema registry refused a call or could not answer it.

    ``status`` is the HTTP status of the last answer, or None without an answer. The error says nothing about the
    events: their bytes may be valid.

    Cause: the server fails on this request each time, or the error is of a subclass below.

    Fix: find the failed request in the log of the schema registry, and fix its cause on the server. The message has
    the status and the answer.
    """

    code = "PRAVEGA-REGISTRY"
    fault: ClassVar[Fault] = "remote"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class RegistryUnavailableError(RegistryError):
    """The schema registry did not answer, or answered only with server errors, until the deadline.

    Cause: the registry is down, slow or at another address, or a proxy answers in its place.

    Fix: check the address with ``pravega-serde registry groups``. Start the registry, or raise ``timeout``, then retry.
    If the message warns that a change may have been made, check the group before you repeat the change.
    """

    code = "PRAVEGA-REGISTRY-UNAVAILABLE"
    retriable = True


class RegistryAuthenticationError(RegistryError):
    """Credentials for the schema registry are missing or wrong (401).

    Cause: no credentials were passed, or they are wrong, or a credential provider or Keycloak returned none.

    Fix: set ``username`` and ``password``, ``token``, ``keycloak_file`` or ``credential_provider``, with an argument,
    the environment or a profile. In Spark the options are ``registry_username`` and so on.
    """

    code = "PRAVEGA-REGISTRY-AUTHENTICATION"
    fault = "local"


class RegistryPermissionError(RegistryError):
    """The user of the schema registry lacks a permission (403).

    Cause: the user may not do this in the namespace or group.

    Fix: ask the administrator of the registry to grant the user READ on the group, or READ_UPDATE for changes. Or use
    another user.
    """

    code = "PRAVEGA-REGISTRY-PERMISSION"
    fault = "local"


class RegistryNotFoundError(RegistryError):
    """The group, schema, version or encoding is not in the schema registry (404).

    Cause: no writer has created the group yet, its name is misspelled or has the stream's scope, or it is in another
    namespace or registry. Or the registered schema has another text, such as the schema of a Java class with
    ``avro.java.string``.

    Fix: check group and namespace. To create the group, use ``create_group`` and ``register_schema``, or call
    ``add_group`` first. For another text, pass the registered schema: ``client.latest_schemas(group)[0].schema``.
    """

    code = "PRAVEGA-REGISTRY-NOT-FOUND"
    fault = "local"


class RegistryConflictError(RegistryError):
    """The request conflicts with the group: incompatible schema, other format or type (409, 412, 417).

    Cause: the schema is not compatible under the group's policy, or the group has another format, type or codec.

    Fix: list the conflicts with ``pravega-serde registry check``, then change the schema or the policy.
    """

    code = "PRAVEGA-REGISTRY-CONFLICT"
    fault = "local"


class RegistryRequestError(RegistryError):
    """The schema registry rejected a malformed request.

    Cause: the server cannot parse the schema, or the format does not have the policy.

    Fix: correct the schema or the name in the message. For formats other than Avro, use the policy ``ALLOW_ANY`` or
    ``DENY_ALL``.
    """

    code = "PRAVEGA-REGISTRY-REQUEST"
    fault = "local"


class RegistryProtocolError(RegistryError):
    """The server that answered is not a schema registry, or has another interface.

    Cause: the address belongs to another server, such as the controller or a proxy, or the certificate is not trusted.

    Fix: check the address. For a private certificate authority, set ``ca_file``.
    """

    code = "PRAVEGA-REGISTRY-PROTOCOL"


class UnsupportedTargetError(SerdeError):
    """The target of ``generate`` cannot be generated from the source.

    Cause: no generator is known for this combination, such as Java source for an Avro schema, or pydantic models for
    Java objects. Or the source has no schema.

    Fix: use the target or the tool that the message names. docs/tools/generate.md lists the combinations.
    """

    code = "PRAVEGA-UNSUPPORTED-TARGET"


class MissingExtraError(SerdeError):
    """An optional package is required but not installed.

    Cause: an extra of this package is not installed on this machine or on an executor.

    Fix: install the extra that the message names, for example ``pip install 'pravega-serde[spark]'``, on the driver and
    on all executors. docs/operate/deploy.md lists the extras.
    """

    code = "PRAVEGA-MISSING-EXTRA"

    def __init__(self, package: str, extra: str, *, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: pip install 'pravega-serde[{extra}]'"
        )
