"""Signatures as pages show them: complete, without ``self``, a parameter in each line if one line is too short."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

__all__ = ["names", "shown"]

_WIDTH: Final = 96
_EMPTY: Final = inspect.Parameter.empty
_ANY: Final = "Any"


class _Text:
    """Text that is shown without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def shown(name: str, function: Callable[..., Any], defaults: Callable[[str], Callable[..., Any] | None]) -> str:
    """Return the signature of a function or a class.

    ``defaults`` returns the function with the defaults of a TypedDict's options, by the name of the TypedDict.
    """
    signature = inspect.signature(function)
    variants = [inspect.signature(each) for each in _overloads(function)]
    parameters = [
        each.replace(annotation=_Text(_annotation(each, variants)) if _text(each.annotation) else _EMPTY)
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    parts = list(_parts(_expanded(parameters, function, variants, defaults)))
    end = "" if inspect.isclass(function) else _returned(function, signature, variants)
    before = "await " if inspect.iscoroutinefunction(function) else ""
    line = f"{before}{name}({', '.join(parts)}){end}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{before}{name}(", *(f"    {part}," for part in parts), f"){end}"])


def _overloads(function: Any) -> list[Callable[..., Any]]:
    plain = inspect.unwrap(function)
    return [] if inspect.isclass(plain) else list(typing.get_overloads(plain))


def _text(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    if isinstance(annotation, TypeVar):
        return annotation.__name__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    return re.sub(r"\b(?:typing|collections\.abc|(?:pravega_\w+\.)[a-z_.]+)\.(?=[A-Z])", "", text)


def _annotation(parameter: inspect.Parameter, variants: list[inspect.Signature]) -> str:
    own = _text(parameter.annotation)
    found = [each.parameters.get(parameter.name) for each in variants]
    return _union([_text(each.annotation) for each in found if each is not None]) if own == _ANY and any(found) else own


def _union(annotations: list[str]) -> str:
    """Return one annotation for all overloads: the general ones include the special ones."""
    parts = list(dict.fromkeys(part for each in annotations for part in _alternatives(each)))
    general = {part.partition("[")[0] for part in parts if part.endswith("[T]")}
    kept = [
        part
        for part in parts
        if part.endswith("[T]")
        or (part.partition("[")[0] not in general and not ("str" in parts and part.startswith("Literal[")))
    ]
    return " | ".join(sorted(kept, key=lambda part: part == "None"))


def _alternatives(annotation: str) -> list[str]:
    parts, depth = [""], 0
    for character in annotation:
        depth += (character in "[(") - (character in "])")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _expanded(
    parameters: list[inspect.Parameter],
    function: Any,
    variants: list[inspect.Signature],
    defaults: Callable[[str], Callable[..., Any] | None],
) -> Iterator[inspect.Parameter]:
    """Yield the parameters, with the single options of a TypedDict in place of ``**options: Unpack[…]``."""
    known = {each.name for each in parameters}
    for each in parameters:
        texts = [repr(each.annotation)]
        texts += [
            _text(variant.parameters[each.name].annotation) for variant in variants if each.name in variant.parameters
        ]
        unpacked = re.search(r"\bUnpack\[(\w+)\]", " ".join(texts))
        if each.kind is not inspect.Parameter.VAR_KEYWORD or unpacked is None:
            yield each
            continue
        options = inspect.unwrap(function).__globals__[unpacked[1]]
        source = defaults(unpacked[1])
        values = inspect.signature(source).parameters if source else {}
        for name, annotation in options.__annotations__.items():
            if name not in known:
                default = values[name].default if name in values else _Text("…")
                text = _Text(_text(getattr(annotation, "__forward_arg__", annotation)))
                yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=text)


def _parts(parameters: Iterator[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or each.kind is inspect.Parameter.VAR_POSITIONAL
        yield _plain(str(each))


def _plain(text: str) -> str:
    text = re.sub(r"<([A-Z]\w+\.\w+): [^<>]*>", r"\1", text)  # members of enumerations
    while (without := re.sub(r"<[^<>]*>", "…", text)) != text:  # objects without a text, such as a lambda
        text = without
    return text


def _returned(function: Any, signature: inspect.Signature, variants: list[inspect.Signature]) -> str:
    text = _text(signature.return_annotation)
    if variants:
        text = _union([_text(each.return_annotation) for each in variants])
    if not text and hasattr(function, "__wrapped__"):  # a method of the registry's clients, from the call that it sends
        text = _text(inspect.signature(function.__wrapped__).return_annotation)
        text = text.removeprefix("Call[").removesuffix("]") if text.startswith("Call[") else text
    return f" -> {text}" if text else ""


def names(text: str) -> list[str]:
    """Return the names in a signature that can be types, in their order."""
    return re.findall(r"(?<![.\w'\"])[A-Z]\w+", text)
