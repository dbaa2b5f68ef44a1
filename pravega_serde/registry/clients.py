"""Clients of the registry, with and without asyncio. Both have the operations of ``calls``.

The signatures and docstrings of the operations are defined there. The clients add only operations that need several
calls or none. A process has one shared client for each registry.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Final, ParamSpec, Self, TypeVar

from pravega_serde.blocking import blocking
from pravega_serde.errors import MissingExtraError, RegistryProtocolError, SerdeError
from pravega_serde.per_process import PerProcess
from pravega_serde.registry import calls
from pravega_serde.registry.calls import Call
from pravega_serde.registry.contract import (
    Compatibility,
    EncodingInfo,
    GroupProperties,
    SchemaInfo,
    SchemaWithVersion,
    VersionInfo,
)
from pravega_serde.registry.lookups import MISSING_SECONDS, AsyncLookups, Lookups
from pravega_serde.registry.registry_config import CACHE_ENTRIES, DEFAULT_TIMEOUT, LATEST_SECONDS, RegistryConfig
from pravega_serde.suggestions import HintedNames

if TYPE_CHECKING:
    from pravega_serde.credentials import CredentialProvider
    from pravega_serde.registry.http import AsyncHttp, Http
    from pravega_serde.registry.memory import AsyncMockTransport, MockTransport

_ADD: Final = "write add_schema(group, SchemaInfo(type, format, data))"
_LATEST: Final = "write latest_schemas(group)"
_VERSIONS: Final = "write schema_versions(group)"
#: Method name of another client -> its counterpart here.
_MEANT: Final[dict[str, str]] = {
    # Confluent's client
    "register_schema": _ADD,
    "lookup_schema": "write find_version(group, schema)",
    "get_schema": "write encoding_info(group, encoding_id).schema",
    "get_latest_version": _LATEST,
    "get_versions": _VERSIONS,
    "get_version": _VERSIONS,
    "get_subjects": "write groups()",
    "delete_subject": "write remove_group(group)",
    "delete_version": "write delete_schema_version(group, version)",
    "test_compatibility": "write validate(group, schema)",
    "get_compatibility": "write group_properties(group).compatibility",
    "set_compatibility": "write update_compatibility(group, compatibility)",
    # Java's client
    "list_groups": "write groups()",
    "get_group_properties": "write group_properties(group)",
    "get_group_history": "write history(group)",
    "get_schemas": _LATEST,
    "get_latest_schema_version": _LATEST,
    "get_schema_versions": _VERSIONS,
    "get_schema_for_version": "write schema_for_version(group, version)",
    "get_version_for_schema": "write find_version(group, schema)",
    "get_encoding_id": "write encoding_id(group, version)",
    "get_encoding_info": "write encoding_info(group, encoding_id)",
    "get_codec_types": "write codecs(group)",
    "add_codec_type": "write add_codec(group, codec)",
    "validate_schema": "write validate(group, schema)",
    "can_read_using": "write can_read(group, schema)",
    "get_schema_references": "write schema_references(schema)",
}

#: Groups by name, and the token of the next page.
_Page = tuple[dict[str, GroupProperties], str | None]

P = ParamSpec("P")
T = TypeVar("T")


def _method(make: Callable[P, Call[T]]) -> Callable[Concatenate[SchemaRegistryClient, P], T]:
    """Return the operation as a blocking method."""

    def method(self: SchemaRegistryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(make(*args, **kwargs))

    _describe(method, make)
    return method


def _coroutine(
    make: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncSchemaRegistryClient, P], Coroutine[Any, Any, T]]:
    """Return the operation as a coroutine method."""

    async def method(self: AsyncSchemaRegistryClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(make(*args, **kwargs))

    _describe(method, make)
    return method


def _describe(method: Callable[..., Any], make: Callable[..., Call[Any]]) -> None:
    """Copy the operation's name, docstring and parameters, after ``self``, to a method."""
    functools.update_wrapper(method, make)
    signature = inspect.signature(make)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__dict__["__signature__"] = signature.replace(
        parameters=[own, *signature.parameters.values()], return_annotation=inspect.Signature.empty
    )


class _Base(HintedNames):
    """Configuration of both clients."""

    _meant: ClassVar = {"_Base": _MEANT}

    def __init__(
        self,
        uri: str | RegistryConfig | None = None,
        *,
        namespace: str | None = None,
        username: str | None = None,
        password: str | None = None,
        token: str | None = None,
        keycloak_file: str | None = None,
        credential_provider: CredentialProvider | str | None = None,
        ca_file: str | None = None,
        ca_password: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        latest_seconds: float = LATEST_SECONDS,
        cache_entries: int = CACHE_ENTRIES,
    ) -> None:
        if uri is None or isinstance(uri, str):
            settings: dict[str, Any] = {
                "namespace": namespace,
                "username": username,
                "password": password,
                "token": token,
                "keycloak_file": keycloak_file,
                "credential_provider": credential_provider,
                "ca_file": ca_file,
                "ca_password": ca_password,
                "timeout": timeout,
                "latest_seconds": latest_seconds,
                "cache_entries": cache_entries,
            }
            uri = RegistryConfig.resolve(**settings) if uri is None else RegistryConfig(uri=uri, **settings)
        elif not isinstance(uri, RegistryConfig):
            raise SerdeError(
                f"a registry client requires a URI or a RegistryConfig, not a {type(uri).__name__}: write "
                f"{type(self).__name__}('http://host:9092')"
            )
        if uri.kind != "pravega":
            raise SerdeError(
                f"{type(self).__name__} is the client of Pravega's registry, not of {uri.uri}; read and write events "
                "with deserializer() and serializer()"
            )
        self.config = uri
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"


class SchemaRegistryClient(_Base):
    """Client of one registry. Thread safe. A forked child may use it, with its own connections.

    ``uri`` may be a RegistryConfig, which then holds all settings and describes them. Otherwise,
    :meth:`RegistryConfig.resolve` provides a missing address or setting from the environment
    (``PRAVEGA_REGISTRY_URI``), or from the profile that ``PRAVEGA_PROFILE`` names.

    Every method raises a RegistryError: RegistryUnavailableError if there was no answer before the deadline,
    RegistryAuthenticationError, RegistryPermissionError or RegistryProtocolError. Each method documents its other
    errors.
    """

    def _open(self) -> None:
        self._http = transports(self.config)[0](self.config)
        self._lookups = Lookups(self.config.cache_entries)

    add_codec = _method(calls.add_codec)
    add_group = _method(calls.add_group)
    add_schema = _method(calls.add_schema)
    can_read = _method(calls.can_read)
    codecs = _method(calls.codecs)
    delete_schema = _method(calls.delete_schema)
    delete_schema_version = _method(calls.delete_schema_version)
    find_version = _method(calls.find_version)
    group_properties = _method(calls.group_properties)
    history = _method(calls.history)
    remove_group = _method(calls.remove_group)
    schema_for_id = _method(calls.schema_for_id)
    schema_for_version = _method(calls.schema_for_version)
    schema_references = _method(calls.schema_references)
    schema_versions = _method(calls.schema_versions)
    update_compatibility = _method(calls.update_compatibility)

    def groups(self, namespace: str | None = None) -> Iterator[tuple[str, GroupProperties]]:
        """Yield the name and properties of all groups that the user may see.

        ``namespace`` is the client's by default.
        """
        groups, token = self._run(calls.groups_page(None, namespace))
        while groups:
            yield from groups.items()
            groups, token = _page_after(token, self._run(calls.groups_page(token, namespace)))

    def encoding_id(self, group: str, version: VersionInfo, codec_name: str = "") -> int:
        """Return the encoding id of events with a schema and a codec. The first call creates it. Cached.

        Raises RegistryNotFoundError if the group or schema does not exist or was deleted. Raises RegistryConflictError
        if the group does not have the codec.
        """
        return self._lookups.get(
            ("id", group, version, codec_name),
            lambda: self._run(calls.encoding_id(group, version, codec_name)),
            seconds=math.inf,
        )

    def encoding_info(self, group: str, encoding_id: int) -> EncodingInfo:
        """Return the schema, version and codec of an encoding id. Cached. Raises RegistryNotFoundError."""
        return self._lookups.get(
            ("info", group, encoding_id),
            lambda: self._run(calls.encoding_info(group, encoding_id)),
            seconds=math.inf,
            missing=MISSING_SECONDS,
        )

    def latest_schemas(self, group: str, schema_type: str | None = None) -> list[SchemaWithVersion]:
        """Return the latest schema of each format and type, or of one type.

        The answer may be up to ``latest_seconds`` old. Raises RegistryNotFoundError.
        """
        found = self._lookups.get(
            _latest(group),
            lambda: self._run(calls.latest_schemas(group)),
            seconds=self.config.latest_seconds,
        )
        return _of_type(found, schema_type)

    def validate(self, group: str, schema: SchemaInfo, compatibility: Compatibility | None = None) -> bool:
        """Return True if a policy allows the schema. The policy is the group's by default.

        Raises RegistryNotFoundError.
        """
        policy = compatibility or self.group_properties(group).compatibility
        return self._run(calls.validate(group, schema, policy))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
        try:
            return blocking(lambda: self._http.run(call))
        finally:
            if call.changes and call.group is not None:
                self._lookups.forget(_latest(call.group))


class AsyncSchemaRegistryClient(_Base):
    """Client with coroutines, for the tasks of one event loop; otherwise as :class:`SchemaRegistryClient`."""

    def _open(self) -> None:
        self._http = transports(self.config)[1](self.config)
        self._lookups = AsyncLookups(self.config.cache_entries)

    add_codec = _coroutine(calls.add_codec)
    add_group = _coroutine(calls.add_group)
    add_schema = _coroutine(calls.add_schema)
    can_read = _coroutine(calls.can_read)
    codecs = _coroutine(calls.codecs)
    delete_schema = _coroutine(calls.delete_schema)
    delete_schema_version = _coroutine(calls.delete_schema_version)
    find_version = _coroutine(calls.find_version)
    group_properties = _coroutine(calls.group_properties)
    history = _coroutine(calls.history)
    remove_group = _coroutine(calls.remove_group)
    schema_for_id = _coroutine(calls.schema_for_id)
    schema_for_version = _coroutine(calls.schema_for_version)
    schema_references = _coroutine(calls.schema_references)
    schema_versions = _coroutine(calls.schema_versions)
    update_compatibility = _coroutine(calls.update_compatibility)

    async def groups(self, namespace: str | None = None) -> AsyncIterator[tuple[str, GroupProperties]]:
        """As :meth:`SchemaRegistryClient.groups`."""
        groups, token = await self._run(calls.groups_page(None, namespace))
        while groups:
            for group in groups.items():
                yield group
            groups, token = _page_after(token, await self._run(calls.groups_page(token, namespace)))

    async def encoding_id(self, group: str, version: VersionInfo, codec_name: str = "") -> int:
        """As :meth:`SchemaRegistryClient.encoding_id`."""
        return await self._lookups.get(
            ("id", group, version, codec_name),
            lambda: self._run(calls.encoding_id(group, version, codec_name)),
            seconds=math.inf,
        )

    async def encoding_info(self, group: str, encoding_id: int) -> EncodingInfo:
        """As :meth:`SchemaRegistryClient.encoding_info`."""
        return await self._lookups.get(
            ("info", group, encoding_id),
            lambda: self._run(calls.encoding_info(group, encoding_id)),
            seconds=math.inf,
            missing=MISSING_SECONDS,
        )

    async def latest_schemas(self, group: str, schema_type: str | None = None) -> list[SchemaWithVersion]:
        """As :meth:`SchemaRegistryClient.latest_schemas`."""
        found = await self._lookups.get(
            _latest(group),
            lambda: self._run(calls.latest_schemas(group)),
            seconds=self.config.latest_seconds,
        )
        return _of_type(found, schema_type)

    async def validate(self, group: str, schema: SchemaInfo, compatibility: Compatibility | None = None) -> bool:
        """As :meth:`SchemaRegistryClient.validate`."""
        policy = compatibility or (await self.group_properties(group)).compatibility
        return await self._run(calls.validate(group, schema, policy))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        try:
            return await self._http.run(call)
        finally:
            if call.changes and call.group is not None:
                self._lookups.forget(_latest(call.group))


def _page_after(token: str | None, page: _Page) -> _Page:
    """Return a page of groups. An empty one is the end: the server returns a token even with the last page."""
    if page[0] and page[1] == token:
        raise RegistryProtocolError(f"cannot list the groups: the registry keeps returning the page {token!r}")
    return page


def transports(
    config: RegistryConfig,
) -> tuple[type[Http | MockTransport], type[AsyncHttp | AsyncMockTransport]]:
    """Return the classes that send calls, for threads and for asyncio."""
    if config.is_mock:
        from pravega_serde.registry.memory import AsyncMockTransport, MockTransport  # noqa: PLC0415 - for tests alone

        return MockTransport, AsyncMockTransport
    http = http_module()
    return http.Http, http.AsyncHttp


def http_module() -> ModuleType:
    """Return the module of HTTP clients. Raises MissingExtraError without the package httpx2."""
    try:
        return importlib.import_module("pravega_serde.registry.http")
    except ImportError as error:
        raise MissingExtraError("httpx2", "registry", purpose="a client of the schema registry") from error


def _latest(group: str) -> tuple[str, str]:
    return "latest", group


def _of_type(schemas: list[SchemaWithVersion], schema_type: str | None) -> list[SchemaWithVersion]:
    # The server fails for a type that it does not have, so all types are requested.
    return [found for found in schemas if schema_type is None or found.schema.type == schema_type]


# ---- one for each process ----

_clients: Final[PerProcess[RegistryConfig, SchemaRegistryClient]] = PerProcess(SchemaRegistryClient.close)


def shared_client(config: RegistryConfig) -> SchemaRegistryClient:
    """Return the process's client for a configuration. Do not close it. A forked process gets a new one.

    Spark's workers are reused by later tasks, and so are the cached answers.
    """
    return _clients.get(config, lambda: SchemaRegistryClient(config))
