"""The code generated from cri.proto is current, and loads with the oldest supported protobuf."""

from __future__ import annotations

import ast
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from monitor.agent.runtime.proto import cri_pb2
from tests.support.protos import compiled

DIRECTORY = Path(cri_pb2.__file__).parent


def essence(file: FileDescriptorProto) -> bytes:
    """Comparable content of a file: without its path and the optional JSON names."""
    file.ClearField("name")
    for message in file.message_type:
        for field in (*message.field, *(field for nested in message.nested_type for field in nested.field)):
            field.ClearField("json_name")
    return file.SerializeToString(deterministic=True)


def test_the_generated_module_is_in_step() -> None:
    generated = FileDescriptorProto.FromString(cri_pb2.DESCRIPTOR.serialized_pb)
    assert essence(generated) == essence(compiled(DIRECTORY / "cri.proto"))


def test_the_generated_module_loads_with_the_oldest_protobuf_allowed() -> None:
    """A module refuses to load with a protobuf older than the compiler that generated it."""
    lines = (DIRECTORY / "cri_pb2.py").read_text().splitlines()
    made_with = next(line.rpartition(" ")[2] for line in lines if line.startswith("# Protobuf Python Version:"))
    assert tuple(int(part) for part in made_with.split(".")) <= (5, 29, 0)


def test_the_types_are_in_step() -> None:
    stub = ast.parse((DIRECTORY / "cri_pb2.pyi").read_text())
    typed = {
        node.name: [
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        for node in stub.body
        if isinstance(node, ast.ClassDef)
    }
    messages = cri_pb2.DESCRIPTOR.message_types_by_name
    assert typed == {name: [field.name for field in message.fields] for name, message in messages.items()}
