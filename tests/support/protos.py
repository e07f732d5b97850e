"""Protocol buffers compiled on demand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

import grpc_tools.protoc  # type: ignore[import-untyped]  # no type stubs
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet


def compiled(proto: Path) -> FileDescriptorProto:
    """Compiler output for a .proto file."""
    with tempfile.NamedTemporaryFile() as out:
        arguments = ["protoc", f"-I{proto.parent}", f"--descriptor_set_out={out.name}", str(proto)]
        assert grpc_tools.protoc.main(arguments) == 0, f"{proto} does not compile"
        return FileDescriptorSet.FromString(out.read()).file[0]


def messages(proto: Path) -> SimpleNamespace:
    """Messages and enum values of a .proto file, by name."""
    file = compiled(proto)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = message_factory.GetMessageClassesForFiles([file.name], pool)
    values = {value.name: value.number for kind in file.enum_type for value in kind.value}
    return SimpleNamespace(**{name.rpartition(".")[2]: made for name, made in classes.items()}, **values)
