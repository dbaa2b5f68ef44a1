"""Serializers compatible with Pravega's Java serializers, by event and by Arrow column."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.adapters import *  # declared in that module alone
    from pravega_serde.avro import AvroSerializer as AvroSerializer
    from pravega_serde.avro import avro_schema_of as avro_schema_of
    from pravega_serde.cbor import CborSerializer as CborSerializer
    from pravega_serde.columnar import ColumnReader as ColumnReader
    from pravega_serde.columnar import ColumnSerializer as ColumnSerializer
    from pravega_serde.columnar import ColumnWriter as ColumnWriter
    from pravega_serde.columnar import PlainPath as PlainPath
    from pravega_serde.columnar import bisecting as bisecting
    from pravega_serde.columnar import per_row as per_row
    from pravega_serde.credentials import Credential as Credential
    from pravega_serde.credentials import CredentialProvider as CredentialProvider
    from pravega_serde.encryption import ConfluentKeys as ConfluentKeys
    from pravega_serde.encryption import DataKeys as DataKeys
    from pravega_serde.encryption import Encrypted as Encrypted
    from pravega_serde.encryption import KeyService as KeyService
    from pravega_serde.encryption import LocalKeys as LocalKeys
    from pravega_serde.envelopes import ChangeDeserializer as ChangeDeserializer
    from pravega_serde.envelopes import Envelope as Envelope
    from pravega_serde.envelopes import Enveloped as Enveloped
    from pravega_serde.envelopes import RowChange as RowChange
    from pravega_serde.envelopes import change_type as change_type
    from pravega_serde.envelopes import distinct_changes as distinct_changes
    from pravega_serde.errors import *  # declared in that module alone
    from pravega_serde.format_table import formats as formats
    from pravega_serde.format_table import serializer_for as serializer_for
    from pravega_serde.framings import Framed as Framed
    from pravega_serde.generating import GeneratedCode as GeneratedCode
    from pravega_serde.generating import generate as generate
    from pravega_serde.java import ClassDescriptor as ClassDescriptor
    from pravega_serde.java import JavaObject as JavaObject
    from pravega_serde.java import JavaSerializer as JavaSerializer
    from pravega_serde.json import JsonSerializer as JsonSerializer
    from pravega_serde.json import json_schema_of as json_schema_of
    from pravega_serde.keycloak import KeycloakProvider as KeycloakProvider
    from pravega_serde.protobuf import ProtobufSerializer as ProtobufSerializer
    from pravega_serde.protobuf import protobuf_schema_of as protobuf_schema_of
    from pravega_serde.registry import AsyncSchemaRegistryClient as AsyncSchemaRegistryClient
    from pravega_serde.registry import Codec as Codec
    from pravega_serde.registry import CodecType as CodecType
    from pravega_serde.registry import Compatibility as Compatibility
    from pravega_serde.registry import EncodingInfo as EncodingInfo
    from pravega_serde.registry import GroupProperties as GroupProperties
    from pravega_serde.registry import MultiTypeSerializer as MultiTypeSerializer
    from pravega_serde.registry import RegistryConfig as RegistryConfig
    from pravega_serde.registry import RegistryDeserializer as RegistryDeserializer
    from pravega_serde.registry import RegistrySerializer as RegistrySerializer
    from pravega_serde.registry import SchemaInfo as SchemaInfo
    from pravega_serde.registry import SchemaRegistryClient as SchemaRegistryClient
    from pravega_serde.registry import SerializationFormat as SerializationFormat
    from pravega_serde.registry import SerializerConfig as SerializerConfig
    from pravega_serde.registry import VersionInfo as VersionInfo
    from pravega_serde.registry import WithSchema as WithSchema
    from pravega_serde.registry import WithSchemaSerializer as WithSchemaSerializer
    from pravega_serde.registry import check_compatibility as check_compatibility
    from pravega_serde.routing import *  # declared in that module alone
    from pravega_serde.serializer_interface import Deserializer as Deserializer
    from pravega_serde.serializer_interface import OnError as OnError
    from pravega_serde.serializer_interface import Serializer as Serializer
    from pravega_serde.sniffing import Sniffed as Sniffed
    from pravega_serde.sniffing import SniffedPart as SniffedPart
    from pravega_serde.sniffing import sniff as sniff
    from pravega_serde.text import ByteArraySerializer as ByteArraySerializer
    from pravega_serde.text import ByteBufferSerializer as ByteBufferSerializer
    from pravega_serde.text import UTF8StringSerializer as UTF8StringSerializer
else:
    import sys
    from importlib import import_module

    from pravega_serde.public_names import public_names

    def _refuse_subinterpreter() -> None:
        """Raise ImportError if this is not the main interpreter of the process: pyarrow would hang at its import."""
        try:
            interpreters = import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
            is_main = interpreters.get_current() == interpreters.get_main()
        except (ImportError, AttributeError):  # an implementation without them
            return
        if not is_main:
            raise ImportError(
                "pravega_serde cannot be imported in a subinterpreter, because pyarrow, numpy and gRPC need the main "
                "interpreter: use a process or a thread instead, and in mod_wsgi set WSGIApplicationGroup %{GLOBAL}"
            )

    _refuse_subinterpreter()
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "adapters": "FunctionSerializer JavaType TypedSerializer arrow_type_of typed",
            "avro": "AvroSerializer avro_schema_of",
            "cbor": "CborSerializer",
            "columnar": "ColumnReader ColumnSerializer ColumnWriter PlainPath bisecting per_row",
            "credentials": "Credential CredentialProvider",
            "encryption": "ConfluentKeys DataKeys Encrypted KeyService LocalKeys",
            "envelopes": "ChangeDeserializer Envelope Enveloped RowChange change_type distinct_changes",
            "errors": (
                "CredentialError CredentialUnavailableError DecryptionError DeserializationError EncryptionKeyError "
                "ForkedError LimitExceededError MissingExtraError MissingKeyError OutputFileError PravegaError "
                "RegistryAuthenticationError RegistryConflictError RegistryError RegistryNotFoundError "
                "RegistryPermissionError RegistryProtocolError RegistryRequestError RegistryUnavailableError "
                "SchemaError SerdeError SerializationError StaleCodeError "
                "UnsupportedCodecError UnsupportedFormatError UnsupportedRuleError UnsupportedTargetError"
            ),
            "format_table": "formats serializer_for",
            "framings": "Framed",
            "generating": "GeneratedCode generate",
            "serializer_interface": "Deserializer OnError Serializer",
            "java": "ClassDescriptor JavaObject JavaSerializer",
            "json": "JsonSerializer json_schema_of",
            "keycloak": "KeycloakProvider",
            "protobuf": "ProtobufSerializer protobuf_schema_of",
            "registry": (
                "AsyncSchemaRegistryClient Codec CodecType Compatibility EncodingInfo GroupProperties "
                "MultiTypeSerializer RegistryConfig RegistryDeserializer RegistrySerializer SchemaInfo "
                "SchemaRegistryClient SerializationFormat SerializerConfig VersionInfo WithSchema "
                "WithSchemaSerializer check_compatibility"
            ),
            "routing": "ByColumn ByConstant ByField ByFunction EventRouter Unrouted segment_key segment_keys",
            "sniffing": "Sniffed SniffedPart sniff",
            "text": "ByteArraySerializer ByteBufferSerializer UTF8StringSerializer",
        },
    )
