"""Protobuf files of a Confluent-compatible registry: a descriptor in base64, or the text of a ``.proto`` file.

Files that a schema imports are its references, with the paths of the imports as names.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from pravega_serde.errors import MissingExtraError, SchemaError
from pravega_serde.protobuf.bundled_files import bundled, bundled_for_compiler
from pravega_serde.protobuf.proto_source import proto_source
from pravega_serde.registry.interface import SchemaText

#: Name of a file that nothing imports and whose text does not tell its name.
_UNNAMED: Final = "schema.proto"
#: For a file with those that it imports.
_PROTOC_SECONDS: Final = 60.0


def is_descriptor(text: str) -> bool:
    """Return True if a text is a file descriptor in base64."""
    return _descriptor(text) is not None


def files_of(schema: SchemaText) -> FileDescriptorSet:
    """Return the files of a schema, imports first. Raises :class:`SchemaError`.

    Raises :class:`MissingExtraError` if a file is text and protoc is not installed.
    """
    files: dict[str, FileDescriptorProto] = {}
    end = time.monotonic() + _PROTOC_SECONDS
    for imported, text in schema.all_references().items():
        files[imported] = _file(text, imported, list(files.values()), end)
    own = _file(schema, None, list(files.values()), end)
    files.pop(own.name, None)  # the schema's own file is the last one
    return FileDescriptorSet(file=[*files.values(), own])


def text_of(files: FileDescriptorSet, *, source: bool) -> SchemaText:
    """Return the text of the last file, with the files that it imports as references.

    Files of Protobuf itself are no references: each registry and client has them. With ``source``, the text is that of
    a ``.proto`` file. A file that cannot be written as one stays a descriptor.
    """
    known = {file.name: file for file in files.file}
    write = _source if source else _base64
    texts: dict[str, SchemaText] = {}

    def text(file: FileDescriptorProto) -> SchemaText:
        if file.name not in texts:
            wanted = (name for name in file.dependency if name in known and bundled(name) is None)
            texts[file.name] = SchemaText(write(file), {name: text(known[name]) for name in wanted})
        return texts[file.name]

    return text(files.file[-1])


def _base64(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode("ascii")


def _source(file: FileDescriptorProto) -> str:
    try:
        return proto_source(file, "")
    except SchemaError:
        return _base64(file)


def _file(schema: SchemaText, name: str | None, imports: list[FileDescriptorProto], end: float) -> FileDescriptorProto:
    """Return the file of a schema under the name, by default its own name."""
    file = _descriptor(schema.text)
    if file is None:
        file = _compiled(schema.text, name or _UNNAMED, imports, end)
    file.name = name or file.name or _UNNAMED
    return file


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def compiled_file(path: Path) -> FileDescriptorSet:
    """Return a ``.proto`` file on disk after the files that it imports from its folder. Raises :class:`SchemaError`.

    Raises :class:`MissingExtraError` if protoc is not installed.
    """
    end = time.monotonic() + _PROTOC_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"--proto_path={path.parent}", _known(folder, []), "--include_imports"]
        return _protoc(arguments, str(path), path.name, purpose=f"the Protobuf file {path.name!r}", end=end)


def _compiled(text: str, name: str, imports: list[FileDescriptorProto], end: float) -> FileDescriptorProto:
    """Compile the text of a file, until a time of ``time.monotonic()``."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.mkdir()
        # Not under its own name, which may lead out of the folder.
        Path(source, _UNNAMED).write_text(text, encoding="utf-8")
        arguments = [_known(folder, imports), f"--proto_path={source}"]
        purpose = "a Protobuf schema that is registered as text"
        made = _protoc(arguments, _UNNAMED, name, purpose=purpose, end=end)
        return made.file[0]


def _known(folder: str, imports: list[FileDescriptorProto]) -> str:
    """Return the argument with the files that protoc can import from descriptors."""
    names = {each.name for each in imports}
    files = [*(each for each in bundled_for_compiler() if each.name not in names), *imports]
    known = Path(folder, "known.desc")
    known.write_bytes(FileDescriptorSet(file=files).SerializeToString())
    return f"--descriptor_set_in={known}"


def _protoc(arguments: list[str], file: str, name: str, *, purpose: str, end: float) -> FileDescriptorSet:
    """Compile a file with protoc, in a separate process, until a time of ``time.monotonic()``.

    ``name`` is for errors.
    """
    if find_spec("grpc_tools") is None:
        raise MissingExtraError("grpcio-tools", "protoc", purpose=purpose)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.desc")
        command = [sys.executable, "-m", "grpc_tools.protoc", *arguments, f"--descriptor_set_out={made}", file]
        try:
            left = max(end - time.monotonic(), 0)
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
        except subprocess.TimeoutExpired as error:
            raise SchemaError(
                f"protoc did not compile the file {name!r}, with those that it imports, in {_PROTOC_SECONDS:.0f} s"
            ) from error
        if done.returncode:
            raise SchemaError(f"invalid Protobuf file {name!r}: {' '.join(done.stderr.split())[:500]}")
        return FileDescriptorSet.FromString(made.read_bytes())
