"""`kubectl gpuwarden`: the plugin on its own, and started by a real kubectl."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from monitor.cli.kubectl import plugin
from monitor.cli.main import main
from tests.support import need
from tests.support.command import quiet_environment, run
from tests.support.living_api import LivingApi, kube_node, kube_pod

REPOSITORY = Path(__file__).parents[2]
NAMES = ("fits", "status", "top", "why")
MODULE = "monitor.cli.kubectl"


def scripts() -> dict[str, str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = project["project"]["scripts"]
    return {name: target for name, target in found.items() if target.startswith(MODULE)}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with the programs, as an installation has them."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, target in scripts().items():
        module, _, function = target.partition(":")
        file = directory / name
        file.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        file.chmod(0o755)
    return directory


@pytest.fixture
def environ(tmp_path: Path, programs: Path) -> dict[str, str]:
    paths = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}
    return quiet_environment(tmp_path / "state") | paths


def kubectl(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    need(shutil.which("kubectl") is not None, "kubectl")
    line = ["kubectl", *arguments]
    return subprocess.run(line, env=environ, capture_output=True, text=True, timeout=300, check=False)


def test_kubectl_finds_programs_of_these_names() -> None:
    assert sorted(scripts()) == ["kubectl-gpuwarden", "kubectl_complete-gpuwarden"]
    for target in scripts().values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_commands_are_those_of_gpuwarden() -> None:
    assert isinstance(main, click.Group)
    assert tuple(sorted(plugin.commands)) == NAMES
    assert [plugin.commands[name] is main.commands[name] for name in NAMES] == [True] * len(NAMES)


def test_kubectl_runs_the_plugin(environ: dict[str, str]) -> None:
    told = kubectl(environ, "gpuwarden", "--help")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("Usage: kubectl gpuwarden [OPTIONS] COMMAND")
    assert [name for name in NAMES if f"\n  {name} " in told.stdout] == list(NAMES)
    assert kubectl(environ, "gpuwarden", "fits").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("fits", "--gpus", "4"), 0, "Fits now: 1 x 4 GPUs."),
        (("fits", "--gpus", "8", "--lang", "zh"), 1, "放不下"),
        (("fits", "--gpus", "0"), 2, ""),
        (("why", "-n", "lab", "bert"), 1, "lab/bert"),
    ],
)
def test_answers_and_exit_codes_are_those_of_gpuwarden(
    environ: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    api = LivingApi()
    api.put("nodes", kube_node("n1", 4))
    api.put("pods", kube_pod("bert", None, 8))
    with api.served():
        settings = {"ENABLED": "yes", "KUBECONFIG": api.kubeconfig(tmp_path)}
        config = environ | {f"GPUWARDEN_DAEMON__KUBERNETES__{name}": value for name, value in settings.items()}
        plain, started = run(*arguments, environ=config), kubectl(config, "gpuwarden", *arguments)
    assert (plain.returncode, started.returncode, started.stdout) == (code, code, plain.stdout)
    assert words in started.stdout


def test_without_an_api_server_it_says_so(environ: dict[str, str]) -> None:
    assert kubectl(environ, "gpuwarden", "fits", "--gpus", "8").returncode == 3


@pytest.mark.parametrize(
    ("typed", "offered"),
    [(("",), NAMES), (("fi",), ("fits",)), (("fits", "--per"), ("--per-node",)), (("why", "--lang", "z"), ("zh",))],
)
def test_completion(programs: Path, environ: dict[str, str], typed: tuple[str, ...], offered: tuple[str, ...]) -> None:
    line = [str(programs / "kubectl_complete-gpuwarden"), *typed]
    *items, directive = subprocess.run(
        line, env=environ, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert tuple(item.partition("\t")[0] for item in items) == offered
    assert directive == ":4"


def test_kubectl_asks_for_completions(environ: dict[str, str]) -> None:
    assert kubectl(environ, "__complete", "gpuwarden", "fits", "--per").stdout.startswith("--per-node\t")
