"""Generated code is what its sources say."""

import subprocess
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

from pravega_connector.controller._proto import controller_pb2 as pb
from tools.regenerate import PACKAGE, ROOT, arguments


def compiled_schema(folder: Path) -> descriptor_pb2.FileDescriptorProto:
    output = folder / "set"
    proto_path, *_, name = arguments(ROOT / "schemas", folder)
    command = [sys.executable, "-m", "grpc_tools.protoc", proto_path, f"--descriptor_set_out={output}", name]
    subprocess.run(command, check=True)
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file
    return file


def test_module_is_generated_from_the_schema(tmp_path: Path) -> None:
    generated = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(generated)
    expected = compiled_schema(tmp_path)
    for file in (generated, expected):
        for message in file.message_type:
            clear_json_names(message)
    assert generated == expected, "run: python -m tools.regenerate"


def clear_json_names(message: descriptor_pb2.DescriptorProto) -> None:
    """protoc adds these to a descriptor set and leaves them out of the code."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        clear_json_names(nested)


def test_stub_names_every_message() -> None:
    stub = (ROOT / PACKAGE / "controller_pb2.pyi").read_text()
    for name in pb.DESCRIPTOR.message_types_by_name:
        assert f"class {name}(_message.Message)" in stub
