"""The words for protections: each that a planner uses is listed, and each that is listed is a sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import monitor.cleanup.plan
from monitor.cleanup.plan import dataset_protection, gpu_holders, image_protection, pods
from monitor.i18n import en

LISTED = {word for module in (dataset_protection, gpu_holders, image_protection, pods) for word in module.PROTECTIONS}
FOLDER = Path(monitor.cleanup.plan.__file__).parent
PROTECTING = ("select", "dataset_protection", "exempt", "gpu_holders", "gpu_context", "image_protection", "pods")
PLANNERS = ("datasets", "gpus", "images", "pods")


def test_every_protection_is_a_sentence_and_every_sentence_a_protection() -> None:
    said = {key.removeprefix("cleanup.kept.") for key in en.cleanup.WORDS if key.startswith("cleanup.kept.")}
    assert said == LISTED


@pytest.mark.parametrize("name", PROTECTING)
def test_every_protection_that_is_written_out_is_listed(name: str) -> None:
    written = set()
    for found in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(found, ast.Call) and getattr(found.func, "id", "") == "Protection":
            written |= {each.value for each in found.args[:1] if isinstance(each, ast.Constant)}
    assert written <= LISTED
    assert written or name in ("select", "gpu_context")


@pytest.mark.parametrize("path", [FOLDER / f"{name}.py" for name in PLANNERS], ids=lambda path: path.stem)
def test_every_refusal_that_is_written_out_is_a_sentence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for found in ast.walk(ast.parse(text)):
        if isinstance(found, ast.Call) and getattr(found.func, "id", "") == "refuse":
            for word in ast.walk(found.args[1]):
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    assert f"cleanup.refused.{word.value}" in en.cleanup.WORDS
