"""Documented configurations of other programs are accepted by those programs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.helm import CHART, helm
from tests.docs.pages import Block, every_block
from tests.support import need

PROMETHEUS = {block.text: block for block in every_block(("yaml-prometheus",))}
ALERTMANAGER = {block.text: block for block in every_block(("yaml-alertmanager",))}
HELM = sorted(
    {line for block in every_block(("sh",)) for line in re.findall(r"^helm (?:.*\\\n)*.*$", block.text, re.MULTILINE)}
)


def checked(program: tuple[str, ...], text: str, directory: Path) -> None:
    """Check a configuration with a program; its secrets are in files."""
    need(shutil.which(program[0]) is not None, f"{program[0]} (Debian packages prometheus, prometheus-alertmanager)")
    secret = directory / "secret"
    secret.write_text("secret")
    file = directory / "config.yml"
    file.write_text(re.sub(r"(credentials_file): [^\s},]+", rf"\1: {secret}", text), encoding="utf-8")
    ran = subprocess.run([*program, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("block", PROMETHEUS.values(), ids=str)
def test_prometheus(block: Block, tmp_path: Path) -> None:
    # Debian's promtool is built without Kubernetes support.
    text = block.text.replace("kubernetes_sd_configs: [{role: pod}]", "static_configs: [{targets: [gpu-01]}]")
    assert text != block.text
    checked(("promtool", "check", "config"), text, tmp_path)


@pytest.mark.parametrize("block", ALERTMANAGER.values(), ids=str)
def test_alertmanager(block: Block, tmp_path: Path) -> None:
    receiver = re.search(r"name: (\w+)", block.text)
    assert receiver
    checked(("amtool", "check-config"), f"route: {{receiver: {receiver[1]}}}\n{block.text}", tmp_path)


@pytest.mark.parametrize("line", HELM)
def test_the_chart_takes_what_is_set(line: str) -> None:
    _, _, name, chart, *options = shlex.split(line.replace("\\\n", " "))
    assert chart == "deploy/helm/gpuwarden"
    given = [each for each in options if each not in ("--create-namespace", "--reuse-values")]
    rendered = helm("template", name, str(CHART), *given)
    assert rendered.returncode == 0, rendered.stderr


def test_there_are_some() -> None:
    assert len(HELM) >= 2
    assert PROMETHEUS
    assert ALERTMANAGER
