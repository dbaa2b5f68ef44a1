"""Protobuf files of a Confluent-compatible registry: a descriptor in base64, or the text of a ``.proto`` file.

Files that a schema imports are its references, with the paths of the imports as names.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from pravega_serde.errors import MissingExtraError, SchemaError
from pravega_serde.protobuf.proto_source import proto_source
from pravega_serde.protobuf.schema import bundled
from pravega_serde.registry.interface import SchemaText

#: Name of a file that nothing imports and whose text does not tell its name.
_UNNAMED: Final = "schema.proto"
_PROTOC_SECONDS: Final = 60.0


def is_descriptor(text: str) -> bool:
    """Return True if a text is a file descriptor in base64."""
    return _descriptor(text) is not None


def files_of(schema: SchemaText) -> FileDescriptorSet:
    """Return the files of a schema, imports first. Raises :class:`SchemaError`.

    Raises :class:`MissingExtraError` if a file is text and protoc is not installed.
    """
    files: dict[str, FileDescriptorProto] = {}
    _add(schema, None, files)
    return FileDescriptorSet(file=files.values())


def text_of(files: FileDescriptorSet, *, source: bool) -> SchemaText:
    """Return the text of the last file, with the files that it imports as references.

    Files of Protobuf itself are no references: each registry and client has them. With ``source``, the text is that of
    a ``.proto`` file. A file that cannot be written as one stays a descriptor.
    """
    known = {file.name: file for file in files.file}
    return _text(files.file[-1], known, _source if source else _base64)


def _text(
    file: FileDescriptorProto, known: dict[str, FileDescriptorProto], write: Callable[[FileDescriptorProto], str]
) -> SchemaText:
    wanted = (name for name in file.dependency if name in known and bundled(name) is None)
    return SchemaText(write(file), {name: _text(known[name], known, write) for name in wanted})


def _base64(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode("ascii")


def _source(file: FileDescriptorProto) -> str:
    try:
        return proto_source(file, "")
    except SchemaError:
        return _base64(file)


def _add(schema: SchemaText, name: str | None, files: dict[str, FileDescriptorProto]) -> None:
    """Add the files that a schema imports, then its own under the name, by default its own name."""
    for imported, text in schema.references.items():
        if imported not in files:
            _add(text, imported, files)
    file = _descriptor(schema.text)
    if file is None:
        file = _compiled(schema.text, name or _UNNAMED, list(files.values()))
    file.name = name or file.name or _UNNAMED
    files[file.name] = file


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def compiled_file(path: Path) -> FileDescriptorSet:
    """Return a ``.proto`` file on disk after the files that it imports from its folder. Raises :class:`SchemaError`.

    Raises :class:`MissingExtraError` if protoc is not installed.
    """
    arguments = [f"--proto_path={path.parent}", "--include_imports"]
    return _protoc(arguments, str(path), path.name, purpose=f"the Protobuf file {path.name!r}")


def _compiled(text: str, name: str, imports: list[FileDescriptorProto]) -> FileDescriptorProto:
    """Compile the text of a file."""
    with tempfile.TemporaryDirectory() as folder:
        source, known = (Path(folder, each) for each in ("source", "known.desc"))
        source.mkdir()
        # Not under its own name, which may lead out of the folder.
        Path(source, _UNNAMED).write_text(text, encoding="utf-8")
        known.write_bytes(FileDescriptorSet(file=imports).SerializeToString())
        arguments = [f"--descriptor_set_in={known}", f"--proto_path={source}"]
        made = _protoc(arguments, _UNNAMED, name, purpose="a Protobuf schema that is registered as text")
        return made.file[0]


def _protoc(arguments: list[str], file: str, name: str, *, purpose: str) -> FileDescriptorSet:
    """Compile a file with protoc, in a separate process. ``name`` is for errors."""
    if find_spec("grpc_tools") is None:
        raise MissingExtraError("grpcio-tools", "protoc", purpose=purpose)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.desc")
        command = [sys.executable, "-m", "grpc_tools.protoc", *arguments, f"--descriptor_set_out={made}", file]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PROTOC_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise SchemaError(f"protoc did not compile the file {name!r} within {_PROTOC_SECONDS:.0f} s") from error
        if done.returncode:
            raise SchemaError(f"invalid Protobuf file {name!r}: {' '.join(done.stderr.split())[:500]}")
        return FileDescriptorSet.FromString(made.read_bytes())
