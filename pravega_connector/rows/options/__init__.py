"""Options of the Spark source and sink: each is declared, checked and documented in one place.

``declaration`` turns a dataclass field into an option and parses the values that Spark passes. ``common`` has the
options that source and sink share. ``source`` and ``sink`` have the options of one side, and ``tables`` the options
of key-value tables. Where the meaning is the same, the names are those of the Scala connector. So a job migrates when
its format is changed.
"""

from pravega_connector.rows.options.common import (
    CommonOptions,
    ConnectionOptions,
    FormatOptions,
    RegistryOptions,
    codec_names,
    provider_name,
    registry_option,
    secret_option,
)
from pravega_connector.rows.options.declaration import (
    PravegaOptionWarning,
    choice,
    flag,
    known_names,
    number,
    option,
    option_hint,
    overridden,
    parse_options,
    text,
    texts,
)

__all__ = [
    "CommonOptions",
    "ConnectionOptions",
    "FormatOptions",
    "PravegaOptionWarning",
    "RegistryOptions",
    "choice",
    "codec_names",
    "flag",
    "known_names",
    "number",
    "option",
    "option_hint",
    "overridden",
    "parse_options",
    "provider_name",
    "registry_option",
    "secret_option",
    "text",
    "texts",
]
