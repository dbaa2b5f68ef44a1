"""Options of the Spark source and sink: declared once, checked once, documented from the declaration.

Names are those of the Scala connector where the meaning is the same, so that a job moves over by changing its format.
"""

from connector.options._common import CommonOptions
from connector.options._declare import (
    PravegaOptionWarning,
    choice,
    flag,
    known_names,
    number,
    option,
    parse_options,
    text,
)
from connector.options._formats import FormatOptions
from connector.options._registry import RegistryOptions, codec_names, registry_option

__all__ = [
    "CommonOptions",
    "FormatOptions",
    "PravegaOptionWarning",
    "RegistryOptions",
    "choice",
    "codec_names",
    "flag",
    "known_names",
    "number",
    "option",
    "parse_options",
    "registry_option",
    "text",
]
