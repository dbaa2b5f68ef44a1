"""Options of the Spark source and sink: declared once, checked once, documented from the declaration.

``declaration`` makes a dataclass field an option and parses what Spark passes. ``common`` has the options that source
and sink share, ``source`` and ``sink`` their own, and ``sql_tables`` the options of SQL tables. Names are those of the
Scala connector where the meaning is the same, so that a job moves over by changing its format.
"""

from pravega_connector.spark.options.common import (
    CommonOptions,
    FormatOptions,
    RegistryOptions,
    codec_names,
    registry_option,
)
from pravega_connector.spark.options.declaration import (
    PravegaOptionWarning,
    choice,
    flag,
    known_names,
    misspelt,
    number,
    option,
    parse_options,
    text,
)

__all__ = [
    "CommonOptions",
    "FormatOptions",
    "PravegaOptionWarning",
    "RegistryOptions",
    "choice",
    "codec_names",
    "flag",
    "known_names",
    "misspelt",
    "number",
    "option",
    "parse_options",
    "registry_option",
    "text",
]
