"""Protection codes: each code that a planner uses is listed, and each listed code has a text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import monitor.cleanup.plan
from monitor.cleanup.plan import dataset_protection, gpu_holders, image_protection, pods
from monitor.i18n import en

LISTED = {code for module in (dataset_protection, gpu_holders, image_protection, pods) for code in module.PROTECTIONS}
FOLDER = Path(monitor.cleanup.plan.__file__).parent
PROTECTING = ("select", "dataset_protection", "exempt", "gpu_holders", "gpu_context", "image_protection", "pods")
PLANNERS = ("datasets", "gpus", "images", "pods")


def test_every_protection_is_a_sentence_and_every_sentence_a_protection() -> None:
    texts = {key.removeprefix("cleanup.kept.") for key in en.cleanup.WORDS if key.startswith("cleanup.kept.")}
    assert texts == LISTED


@pytest.mark.parametrize("name", PROTECTING)
def test_every_protection_that_is_written_out_is_listed(name: str) -> None:
    used = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Protection":
            used |= {argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)}
    assert used <= LISTED
    assert used or name in ("select", "gpu_context")


@pytest.mark.parametrize("path", [FOLDER / f"{name}.py" for name in PLANNERS], ids=lambda path: path.stem)
def test_every_refusal_that_is_written_out_is_a_sentence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refuse":
            for reason in ast.walk(node.args[1]):
                if isinstance(reason, ast.Constant) and isinstance(reason.value, str):
                    assert f"cleanup.refused.{reason.value}" in en.cleanup.WORDS
