"""`gpuwarden fits`: answered by the daemon if it responds, otherwise from the cluster itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from monitor.explain.fits.model import FitsVerdict
from monitor.queries.fits import FitsAnswer
from tests.cli.leftovers import english_in
from tests.support.command import quiet_environment, run
from tests.support.fake_agents import FakeAgent, answers
from tests.support.living_api import LivingApi, kube_node, kube_pod

NOBODY = "127.0.0.1:1"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return quiet_environment(tmp_path / "state", DAEMON__LISTEN=NOBODY, DAEMON__AGENTS__LIMIT="500ms")


@contextmanager
def cluster(tmp_path: Path, environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """Environment for a cluster of two nodes with 8 GPUs each; a pod holds those of the first."""
    api = LivingApi()
    for name in ("n1", "n2"):
        api.put("nodes", kube_node(name, 8))
    api.put("pods", kube_pod("bert", "n1", 8))
    with api.served():
        settings = {"ENABLED": "yes", "KUBECONFIG": api.kubeconfig(tmp_path)}
        yield environ | {f"GPUWARDEN_DAEMON__KUBERNETES__{name}": value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("words", "code", "first"),
    [
        (("--gpus", "8"), 0, "Fits now: 1 x 8 GPUs."),
        (("--gpus", "8", "--per-node", "4", "--lang", "zh"), 0, "现在放得下：2 x 4 张 GPU。"),
        (("--gpus", "16"), 1, "Never fits with 16 GPUs per pod. It fits as 2 x 8 once 1 job has finished."),
        (("--gpus", "24", "--per-node", "8"), 1, "Does not fit, and waiting for other jobs does not help."),
        (("--gpus", "8", "--model", "B200"), 1, "Cannot be determined."),
    ],
)
def test_without_a_daemon(
    environ: dict[str, str], tmp_path: Path, words: tuple[str, ...], code: int, first: str
) -> None:
    with cluster(tmp_path, environ) as asked:
        result = run("fits", *words, environ=asked)
    assert (result.returncode, result.stderr, result.stdout.splitlines()[0]) == (code, "", first)


def test_answers_are_in_chinese(environ: dict[str, str], tmp_path: Path) -> None:
    with cluster(tmp_path, environ) as asked:
        result = run("fits", "--gpus", "16", "--lang", "zh", environ=asked)
    assert english_in(result.stdout, ["lab", "bert"]) == []


def test_json(environ: dict[str, str], tmp_path: Path) -> None:
    with cluster(tmp_path, environ) as asked:
        result = run("fits", "--gpus", "16", "--per-node", "8", "--json", environ=asked)
    answer = msgspec.json.decode(result.stdout, type=FitsAnswer)
    assert (result.returncode, answer.verdict) == (1, FitsVerdict.AFTER)
    assert [(job.job, job.gpus, job.nodes) for job in answer.waits_for] == [("bert", 8.0, ("n1",))]


def test_the_daemon_is_asked(environ: dict[str, str]) -> None:
    told = FitsAnswer(verdict="split", lines=("Split it.",))
    with FakeAgent(answers(msgspec.json.encode(told))) as daemon:
        result = run(
            "fits",
            "--gpus",
            "8",
            "--tolerate",
            "a=b",
            "--tolerate",
            "c",
            environ=environ | {"GPUWARDEN_DAEMON__LISTEN": daemon.target},
        )
    assert (result.returncode, result.stdout) == (1, "Split it.\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "Missing option '--gpus'"),
        (("--gpus", "none"), "gpus is a number from 1 to"),
        (("--gpus", "10", "--per-node", "4"), "gpus (10) is not a multiple of per_node (4)"),
        (("--gpus", "1", "--memory", "lots"), "memory is that of each pod"),
    ],
)
def test_wrong_usage_is_code_2(environ: dict[str, str], words: tuple[str, ...], error: str) -> None:
    result = run("fits", *words, environ=environ)
    assert (result.returncode, result.stdout) == (2, "")
    assert error in result.stderr


def test_no_daemon_and_no_api_server_is_code_3(environ: dict[str, str]) -> None:
    result = run("fits", "--gpus", "8", environ=environ)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith(f"gpuwarden: no daemon answers on {NOBODY}, and ")


def test_a_daemon_that_cannot_read_the_cluster_is_code_3(environ: dict[str, str]) -> None:
    told = FitsAnswer(verdict="unseen", lines=("The cluster cannot be read: pods: forbidden.",))
    with FakeAgent(answers(msgspec.json.encode(told))) as daemon:
        result = run("fits", "--gpus", "8", environ=environ | {"GPUWARDEN_DAEMON__LISTEN": daemon.target})
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == "gpuwarden: The cluster cannot be read: pods: forbidden\n"
