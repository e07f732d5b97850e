"""The generated module matches containerd.proto and loads with every supported protobuf version."""

from __future__ import annotations

import ast
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from monitor.agent.runtime.proto import containerd_pb2
from tests.agent.runtime.test_proto import essence
from tests.support.protos import compiled

DIRECTORY = Path(containerd_pb2.__file__).parent


def test_the_generated_module_is_in_step() -> None:
    generated = FileDescriptorProto.FromString(containerd_pb2.DESCRIPTOR.serialized_pb)
    assert essence(generated) == essence(compiled(DIRECTORY / "containerd.proto"))


def test_the_generated_module_loads_with_the_oldest_protobuf_allowed() -> None:
    lines = (DIRECTORY / "containerd_pb2.py").read_text().splitlines()
    made_with = next(line.rpartition(" ")[2] for line in lines if line.startswith("# Protobuf Python Version:"))
    assert tuple(int(part) for part in made_with.split(".")) <= (5, 29, 0)


def test_the_types_are_in_step() -> None:
    stub = ast.parse((DIRECTORY / "containerd_pb2.pyi").read_text())
    typed = {
        node.name: [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        for node in stub.body
        if isinstance(node, ast.ClassDef)
    }
    messages = containerd_pb2.DESCRIPTOR.message_types_by_name
    assert typed == {name: [field.name for field in message.fields] for name, message in messages.items()}
