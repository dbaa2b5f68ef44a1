"""The descriptor sets of the ``.proto`` files here, compiled when they are asked for."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

__all__ = ["compile_protos", "everything", "older"]

_FOLDER = Path(__file__).parent


def compile_protos(folder: Path, *names: str) -> FileDescriptorSet:
    """The set of files and all that they import."""
    google = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as output:
        target = Path(output) / "set"
        arguments = [f"-I{folder}", f"-I{google}", "--include_imports", f"--descriptor_set_out={target}", *names]
        assert protoc.main(["protoc", *arguments]) == 0
        return FileDescriptorSet.FromString(target.read_bytes())


@cache
def everything() -> FileDescriptorSet:
    """All of proto3."""
    return compile_protos(_FOLDER, "everything.proto")


@cache
def older() -> FileDescriptorSet:
    """Features that only proto2 has."""
    return compile_protos(_FOLDER, "older.proto")
