"""The generated module matches its .proto file and works with the oldest supported protobuf."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import need

ROOT = Path(__file__).parents[3]
PROTO = "monitor/agent/kubelet/podresources.proto"


def serialized_descriptor(module: Path) -> object:
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "AddSerializedFile" and isinstance(node.args[0], ast.Constant):
            return node.args[0].value
    pytest.fail(f"{module} adds no descriptor")


def test_the_generated_module_is_in_step(tmp_path: Path) -> None:
    need(importlib.util.find_spec("grpc_tools") is not None, "grpcio-tools")
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        "-I",
        str(ROOT),
        f"--python_out={tmp_path}",
        str(ROOT / PROTO),
    ]
    subprocess.run(command, check=True, timeout=300)
    module = PROTO.replace(".proto", "_pb2.py")
    assert serialized_descriptor(ROOT / module) == serialized_descriptor(tmp_path / module)


def test_the_generated_module_loads_with_the_oldest_protobuf_we_allow() -> None:
    assert "# Protobuf Python Version: 5.29.0\n" in (ROOT / PROTO.replace(".proto", "_pb2.py")).read_text()
