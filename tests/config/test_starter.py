"""The file that `gpuwarden init` writes, for all combinations of answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from monitor.base.signing import generate_keys
from monitor.config.file import load
from monitor.config.root import Config
from monitor.config.starter import StarterAnswers, StarterReceiver, starter_file

ROBOT = StarterReceiver("dingtalk", "https://oapi.dingtalk.com/robot/send?access_token=a\"b'c#d", "SEC: {x}")
FULL = StarterAnswers("zh", "Asia/Shanghai", ROBOT, ("/mnt/share",), "nas-01", cleanup=True, report_day="mon")


def loaded(folder: Path, answers: StarterAnswers) -> Config:
    file = folder / "gpuwarden.yml"
    file.write_text(starter_file(answers, str(file)), encoding="utf-8")
    return load(str(file), {})


@pytest.mark.parametrize(
    ("language", "receiver", "roots", "cleanup", "day", "kubernetes"),
    list(
        product(
            ("en", "zh"), (None, ROBOT), ((), ("/mnt/a",)), (True, False), (None, "sun"), ("auto", "no", "/etc/k: #y")
        )
    ),
)
def test_every_combination_is_a_valid_file(
    language: str,
    receiver: StarterReceiver | None,
    roots: tuple[str, ...],
    cleanup: bool,
    day: str | None,
    kubernetes: str,
    tmp_path: Path,
) -> None:
    daemon = loaded(
        tmp_path, StarterAnswers(language, "Asia/Shanghai", receiver, roots, "n", cleanup, day, kubernetes)
    ).daemon
    assert (daemon.alerts.language, daemon.zone) == (language, "Asia/Shanghai")
    assert len(daemon.alerts.receivers) == (receiver is not None)
    assert (daemon.report is not None) is (day is not None)
    assert (daemon.kubernetes.enabled, daemon.kubernetes.kubeconfig) == {
        "auto": ("auto", None),
        "no": ("no", None),
    }.get(kubernetes, ("yes", kubernetes))
    kinds = ([] if kubernetes == "no" else ["pods"]) + ["images"] + ["datasets"] * len(roots)
    assert [policy.kind for policy in daemon.cleanup.policies] == (kinds if cleanup else [])


def test_secrets_are_written_as_given(tmp_path: Path) -> None:
    (receiver,) = loaded(tmp_path, FULL).daemon.alerts.receiver_settings("http://127.0.0.1:9836")
    assert (receiver.url, receiver.secret) == (ROBOT.url, ROBOT.secret)


def test_policies_of_roots_have_names_of_their_own(tmp_path: Path) -> None:
    roots = ("/mnt/share", "/mnt-share", "/数据", "/mnt/" + "x" * 200)
    policies = loaded(tmp_path, replace(FULL, dataset_roots=roots)).daemon.cleanup.policies
    names = [policy.name for policy in policies if policy.kind == "datasets"]
    assert names[:3] == ["datasets-mnt-share", "datasets-mnt-share-2", "datasets-3"]
    assert len(set(names)) == len(roots)


def test_without_the_comment_signs_the_keys_are_those_beside_the_file(tmp_path: Path) -> None:
    file, pair = tmp_path / "gpuwarden.yml", generate_keys()
    (tmp_path / "action-public-key").write_text(pair.public)
    (tmp_path / "action-private-key").write_text(pair.private)
    text = starter_file(FULL, str(file))
    assert f"gpuwarden keys --directory {tmp_path}" in text
    head, _, agent = text.replace("# agents: {", "agents: {").partition("# agent:")
    file.write_text(head + ("# agent:" + agent).replace("# ", ""), encoding="utf-8")
    config = load(str(file), {})
    assert config.agent.actions.dataset_roots == ("/mnt/share",)
    assert config.daemon.cleanup.agents.private_key_file == str(tmp_path / "action-private-key")
