"""Identifiers and literals of generated source, from names that events and schemas contain.

Such a name is untrusted. It becomes a part of the source only as an identifier that is valid in the language, or as an
escaped literal.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection
from typing import Final

#: Keywords and literals of Java, and type names that its grammar reserves (Java Language Specification 21, 3.9).
_JAVA_RESERVED: Final = frozenset(
    {
        *("_", "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const"),
        *("continue", "default", "do", "double", "else", "enum", "extends", "false", "final", "finally"),
        *("float", "for", "goto", "if", "implements", "import", "instanceof", "int", "interface", "long"),
        *("native", "new", "null", "package", "private", "protected", "public", "return", "short", "static"),
        *("strictfp", "super", "switch", "synchronized", "this", "throw", "throws", "transient", "true"),
        *("try", "void", "volatile", "while"),
    }
)
_JAVA_RESERVED_TYPES: Final = frozenset(["permits", "record", "sealed", "var", "when", "yield"])
#: Unicode categories of the first character of a Java identifier, and of the others.
_START: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART: Final = _START | {"Nd", "Mn", "Mc"}
_NOT_ASCII: Final = re.compile("[^\0-\x7f]")


def is_java_identifier(name: str) -> bool:
    """Return True if a name can be a variable or a constant in Java's source."""
    categories = [unicodedata.category(each) for each in name]
    return bool(name) and categories[0] in _START and _PART.issuperset(categories) and name not in _JAVA_RESERVED


def is_java_type_name(name: str) -> bool:
    """Return True if a name can be a class in Java's source."""
    return is_java_identifier(name) and name not in _JAVA_RESERVED_TYPES


def java_ascii(source: str) -> str:
    """Return Java's source in ASCII, with Unicode escapes, so that the encoding of the compiler has no effect."""
    return _NOT_ASCII.sub(lambda match: _units(match.group()), source)


def _units(char: str) -> str:
    raw = char.encode("utf-16-be")
    return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))


def is_python_identifier(name: str) -> bool:
    """Return True if a name can be an attribute of a class in Python, and stays the same name."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("__")
        and unicodedata.normalize("NFKC", name) == name
    )


def python_identifier(name: str, taken: Collection[str] = ()) -> str:
    """Return an identifier like a name, other than the ones in ``taken``."""
    made = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name)).lstrip("_") or "field"
    if not made.isidentifier():
        made = f"x{made}"
    if not made.isidentifier():
        made = "field"
    while keyword.iskeyword(made) or made in taken:
        made += "_"
    return made
