"""The chart as rendered by Helm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support import need

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "deploy" / "helm" / "gpuwarden"
FETCH = REPOSITORY / "deploy" / "setup" / "helm"
FETCH_LIMIT = 300

Object = dict[str, Any]


@cache
def program() -> str:
    """Path of Helm: from the cache, downloaded into it, or from PATH."""
    fetched = subprocess.run([str(FETCH)], capture_output=True, text=True, timeout=FETCH_LIMIT, check=False)
    found = fetched.stdout.strip() if fetched.returncode == 0 else shutil.which("helm")
    need(found is not None, f"Helm, which deploy/setup/helm could not fetch: {fetched.stderr[-300:]}")
    return str(found)


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm, optionally with values."""
    line = [program(), *arguments, *(["--values", "-"] if values is not None else [])]
    given = yaml.safe_dump(dict(values)) if values is not None else None
    return subprocess.run(line, input=given, capture_output=True, text=True, timeout=300, check=False)


def template(
    values: Mapping[str, Any] | None = None, *, namespace: str = "gpuwarden", version: str = "1.31.0"
) -> subprocess.CompletedProcess[str]:
    """Render the chart for this Kubernetes version."""
    line = ("template", "gpuwarden", str(CHART), "--namespace", namespace, "--kube-version", version)
    return helm(*line, values=values or {})


def render(
    values: Mapping[str, Any] | None = None, *, namespace: str = "gpuwarden", version: str = "1.31.0"
) -> list[Object]:
    """Objects the chart renders with these values."""
    return deepcopy(_rendered(yaml.safe_dump(dict(values or {})), namespace, version))


@cache
def _rendered(values: str, namespace: str, version: str) -> list[Object]:
    done = template(yaml.safe_load(values), namespace=namespace, version=version)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.load_all(done.stdout, yaml.CSafeLoader) if found]


def one(objects: list[Object], kind: str, name: str | None = None) -> Object:
    """The only object of a kind and, if given, name."""
    (found,) = [each for each in objects if each["kind"] == kind and name in (None, each["metadata"]["name"])]
    return found


def refusal(values: Mapping[str, Any]) -> str:
    """Helm's error for invalid values."""
    done = template(values)
    assert done.returncode != 0, "these values are not refused"
    return done.stderr
