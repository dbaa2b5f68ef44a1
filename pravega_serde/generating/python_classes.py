"""Python classes of a schema, written by datamodel-code-generator: dataclasses, msgspec Structs or pydantic models.

The module also has ``SCHEMA``, the schema of the events, for the serializer that :func:`typed` wraps. The names and
texts of a schema are untrusted: :func:`python_classes` refuses a module with any statement other than classes.
"""

from __future__ import annotations

import ast
import base64
import json
import unicodedata
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal

from pravega_serde.errors import MissingExtraError, SchemaError
from pravega_serde.generating.class_schemas import ClassSchemas, JsonSchema, refers_to
from pravega_serde.generating.identifiers import is_python_identifier, python_identifier

#: Library of the generated classes.
ClassStyle = Literal["dataclass", "msgspec", "pydantic"]

_MODELS: Final = {
    "dataclass": "DataclassesDataclass",
    "msgspec": "MsgspecStruct",
    "pydantic": "PydanticV2BaseModel",
}
#: Modules that generated code may import.
_MODULES: Final = frozenset(
    {
        *("__future__", "base64", "builtins", "dataclasses", "datetime", "decimal", "enum", "msgspec", "pydantic"),
        *("typing", "typing_extensions", "uuid"),
    }
)
#: Functions that generated code may call, in addition to its own classes.
_CALLED: Final = frozenset({"ConfigDict", "Decimal", "Field", "Meta", "Struct", "dataclass", "field"})
#: Names that the annotations of fields use.
_BUILTINS: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str"})
_FUTURE: Final = "from __future__ import annotations\n"
_ALIAS: Final = "_aliased"
_LINE: Final = 100


def python_classes(classes: ClassSchemas, style: ClassStyle, *, head: str, schema: str | bytes, use: str) -> str:
    """Return the source of a module with classes, and ``SCHEMA`` as text or bytes.

    ``head`` is the comment at its beginning, and ``use`` the documentation of ``SCHEMA``. Raises
    :class:`MissingExtraError` without datamodel-code-generator, and :class:`SchemaError` if it fails.
    """
    if find_spec("datamodel_code_generator") is None:
        raise MissingExtraError("datamodel-code-generator", "generate", purpose=f"--to {style}")
    if style == "msgspec":
        _check_renamed(classes)
    comment = "\n".join(f"# {line}" for line in head.splitlines())
    source = _generated(classes.schemas, style, comment)
    if not _enums_have_their_names(source):
        # Events have the names of an enum's constants, and some texts cannot be names.
        source = _generated(classes.schemas, style, comment, enums="all")
    _check_source(source)
    if isinstance(schema, bytes):
        source = source.replace(_FUTURE, f"{_FUTURE}\nimport base64", 1).replace(
            "import base64\n\n", "import base64\n", 1
        )
    return f'{source.rstrip()}\n\n\n{_constant(schema)}\n"""{use}"""\n'


def for_dataclasses(classes: ClassSchemas) -> ClassSchemas:
    """Return the schemas of the classes whose fields can be attributes of a dataclass, and notes on the others.

    Raises :class:`SchemaError` if it is a class that cannot be left out.
    """
    left_out: dict[str, str] = {}
    for owner, name in _properties(classes.schemas):
        # The generator renames a field that begins with an underscore.
        if not is_python_identifier(name) or name in _BUILTINS or name.startswith("_"):
            left_out.setdefault(owner, f"its field {name!r:.200} cannot have its name in a dataclass")
    waiting = list(left_out)
    while waiting:
        reference = refers_to(waiting.pop())
        for owner, schema in classes.schemas.items():
            if owner not in left_out and any(each == reference for each in _inside(schema)):
                left_out[owner] = f"it refers to {reference['$ref'].rpartition('/')[2]}"
                waiting.append(owner)
    kept = {name: schema for name, schema in classes.schemas.items() if name not in left_out}
    if left_out and (classes.all_needed or not kept):
        name, reason = next(iter(left_out.items()))
        raise SchemaError(f"{name} cannot be a dataclass, because {reason}; use --to msgspec or pydantic")
    notes = [f"left out {name}: {reason}; use --to msgspec or pydantic for it" for name, reason in left_out.items()]
    return ClassSchemas(kept, (*classes.notes, *notes))


def _check_renamed(classes: ClassSchemas) -> None:
    """Raise :class:`SchemaError` for a name that msgspec refuses."""
    for owner, name in _properties(classes.schemas):
        if '"' in name or "\\" in name or any(each < " " for each in name):
            raise SchemaError(f"the field {name!r:.200} of {owner} cannot be in a msgspec Struct; use --to pydantic")


def _enums_have_their_names(source: str) -> bool:
    """Return True if each constant of each enum has its value as its name."""
    enums = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Enum") for base in node.bases)
    ]
    return all(
        isinstance(target, ast.Name) and isinstance(each.value, ast.Constant) and target.id == each.value.value
        for node in enums
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
    )


def _generated(schemas: dict[str, JsonSchema], style: ClassStyle, comment: str, *, enums: str = "none") -> str:
    generator: Any = import_module("datamodel_code_generator")
    # As OpenAPI, each schema is a class. A JSON schema would add another class around them.
    document = {
        "openapi": "3.1.0",
        "info": {"title": "events", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }
    try:
        made = generator.generate(
            json.dumps(document),
            input_file_type=generator.InputFileType.OpenAPI,
            output_model_type=getattr(generator.DataModelType, _MODELS[style]),
            target_python_version=generator.PythonVersion.PY_311,
            formatters=[generator.Formatter.BUILTIN],
            output_datetime_class=generator.DatetimeClassType.Datetime,
            allow_remote_refs=False,
            aliases=_normalized(schemas),
            apply_default_values_for_required_fields=True,
            custom_file_header=comment,
            disable_timestamp=True,
            enum_field_as_literal=generator.LiteralType(enums),
            field_constraints=True,
            keep_model_order=True,
            keyword_only=True,
            strict_nullable=True,
            strict_refs=True,
            use_schema_description=True,
            use_specialized_enum=True,
            use_standard_primitive_types=True,
        )
    except generator.Error as error:
        raise SchemaError(f"datamodel-code-generator cannot write the classes: {str(error)[:300]}") from error
    if not isinstance(made, str):
        raise SchemaError("datamodel-code-generator wrote several modules; rename the types, without dots")
    return made


def _normalized(schemas: dict[str, JsonSchema]) -> dict[str, str]:
    """Return the names of fields that Python would read as others, and the names of their attributes."""
    names = dict.fromkeys(name for _, name in _properties(schemas))
    taken = set(names)
    made: dict[str, str] = {}
    for name in names:
        if name.isidentifier() and unicodedata.normalize("NFKC", name) != name:
            made[name] = python_identifier(name, taken)
            taken.add(made[name])
    return made


def _properties(schemas: dict[str, JsonSchema]) -> Iterator[tuple[str, str]]:
    """Yield the class and the name of each field, also of objects without a name."""
    for owner, schema in schemas.items():
        for each in _inside(schema):
            if isinstance(each.get("properties"), dict):
                yield from ((owner, name) for name in each["properties"])


def _inside(schema: Any) -> Iterator[JsonSchema]:
    """Yield a schema and the schemas in it."""
    if isinstance(schema, list):
        for each in schema:
            yield from _inside(each)
    if not isinstance(schema, dict):
        return
    yield schema
    properties = schema.get("properties")
    for each in properties.values() if isinstance(properties, dict) else ():
        yield from _inside(each)
    for key in ("additionalProperties", "items", "allOf", "anyOf", "oneOf"):
        yield from _inside(schema.get(key))


# ---- SCHEMA ----


def _constant(schema: str | bytes) -> str:
    """Return the lines that define SCHEMA."""
    text = schema if isinstance(schema, str) else base64.b64encode(schema).decode("ascii")
    pieces = [f"    {text[at : at + _LINE]!a}" for at in range(0, len(text), _LINE)] or ["    ''"]
    begin, end = ("(", ")") if isinstance(schema, str) else ("base64.b64decode(", ")")
    return "\n".join([f"SCHEMA = {begin}", *pieces, end])


# ---- untrusted names ----


def _check_source(source: str) -> None:
    """Raise :class:`SchemaError` if a module has code other than imports, classes and type aliases."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for statement in tree.body:
        if not isinstance(
            statement, ast.Import | ast.ImportFrom | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.Expr
        ):
            raise _unexpected(statement)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if not _MODULES.issuperset(modules):
                raise _unexpected(node)
        elif not _is_known(node, own):
            raise _unexpected(node)


def _is_known(node: ast.AST, own: set[str]) -> bool:
    """Return False for calls, texts in annotations and functions that no class needs."""
    if isinstance(node, ast.Call):
        return _is_known_call(node, own)
    if isinstance(node, ast.AnnAssign):
        return _is_plain(node.annotation)
    return not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Await | ast.Yield | ast.JoinedStr)


def _is_known_call(node: ast.Call, own: set[str]) -> bool:
    if isinstance(node.func, ast.Attribute):  # Order.model_rebuild()
        return isinstance(node.func.value, ast.Name) and node.func.value.id in own and node.func.attr == "model_rebuild"
    return isinstance(node.func, ast.Name) and node.func.id.removesuffix(_ALIAS) in _CALLED | own


def _is_plain(annotation: ast.expr) -> bool:
    """Return False if an annotation has text that is not a name: resolving the annotation evaluates it.

    The text of a ``Literal`` and of a call's arguments is not evaluated.
    """
    called = {id(inner) for node in ast.walk(annotation) if _has_texts(node) for inner in ast.walk(node)}
    return all(
        not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.value.isidentifier()
        for node in ast.walk(annotation)
        if id(node) not in called
    )


def _has_texts(node: ast.AST) -> bool:
    literal = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
    return literal or isinstance(node, ast.Call)


def _unexpected(node: ast.AST) -> SchemaError:
    return SchemaError(
        f"datamodel-code-generator wrote unexpected code in line {getattr(node, 'lineno', 0)}, and nothing was "
        "generated; check the names in the schema"
    )
