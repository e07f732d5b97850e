"""The manifests and the chart's copies are up to date, and `make generate` covers every generator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from tests.deploy.helm import REPOSITORY, one, program


def content(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_manifests_and_the_charts_copies_are_up_to_date(tmp_path: Path) -> None:
    program()
    subprocess.run([str(REPOSITORY / "deploy/setup/manifests"), str(tmp_path)], check=True, timeout=300)
    for part in ("manifests", "helm/gpuwarden/files"):
        fresh, kept = content(tmp_path / part), content(REPOSITORY / "deploy" / part)
        stale = sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))
        assert stale == [], f"stale in deploy/{part}: run `make generate`"


def test_make_generate_runs_every_generator() -> None:
    recipe = (REPOSITORY / "Makefile").read_text().partition("\ngenerate:")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=1)[-1] for line in recipe.splitlines()[1:]] == [
        "-m docs.generate",
        "-m dashboards.generate",
        "deploy/setup/manifests",
    ]


def test_the_manifests_hold_no_token_and_say_how_to_make_them() -> None:
    text = (REPOSITORY / "deploy/manifests/gpuwarden.yaml").read_text()
    objects = [each for each in yaml.safe_load_all(text) if each]
    assert [each for each in objects if each["kind"] == "Secret"] == []
    assert "create secret generic gpuwarden" in text
    labels = one(objects, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
