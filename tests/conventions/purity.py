"""Docstrings that claim what only an import contract can guarantee."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from tests.conventions.sources import ROOT, module_of, python_files

CONTRACT = "decisions are pure: no network, no files, no clock"
# What a module imports is for the contracts in pyproject.toml to say: a docstring would only go stale.
_CLAIM = re.compile(
    r"\b(?:may(?: not)? import|only importer|alone imports?|imports nothing|imports only)\b", re.IGNORECASE
)
_PURE = re.compile(r"\bpure\b", re.IGNORECASE)


@cache
def _contract() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Pure packages, and the modules below them that are exempt."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    contract = next(each for each in contracts if each["name"] == CONTRACT)
    exempt = {rule.split(" -> ")[0].removesuffix(".**") for rule in contract["ignore_imports"]}
    return tuple(contract["source_modules"]), tuple(sorted(exempt))


def is_pure(module: str) -> bool:
    """Whether the contract covers a module."""
    packages, exempt = _contract()
    return _below(module, packages) and not _below(module, exempt)


def pure_files(package: str) -> list[Path]:
    """Files of a package that the contract covers."""
    return [path for path in python_files(f"monitor/{package}") if is_pure(module_of(path))]


def objections(module: str, text: str) -> list[str]:
    """Claims in a docstring that the contracts do not support."""
    found = [match.group(0) for match in _CLAIM.finditer(" ".join(text.split()))]
    if _PURE.search(text) and not is_pure(module):
        found.append("pure, but not in the contract")
    return found


def _below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
