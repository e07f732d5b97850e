"""Daemon settings as users write them; rejected configurations and their messages are in tests/fixtures/config."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.platforms import PlatformRule
from monitor.config.daemon import DaemonConfig
from monitor.config.file import ConfigError, load

SECRET = "s3cret-t0ken"


def daemon(folder: Path, text: str, **variables: str) -> DaemonConfig:
    file = folder / "gpuwarden.yml"
    file.write_text(text, encoding="utf-8")
    return load(str(file), {f"GPUWARDEN_DAEMON__{name}": value for name, value in variables.items()}).daemon


def test_the_defaults() -> None:
    defaults = load(None, {}).daemon
    assert str(defaults.listen) == "127.0.0.1:9836"
    assert (defaults.agents.static, defaults.agents.port) == ((), 9835)
    assert defaults.kubernetes.enabled == "auto"
    assert defaults.gpu.limits() == StateLimits()
    poll = defaults.agents.settings()
    assert (poll.interval, poll.limit, poll.crew, poll.token) == (10.0, 5.0, 32, None)
    assert poll.limit < poll.interval


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("true", "yes"), ("yes", "yes"), ("'yes'", "yes"),
        ("false", "no"), ("no", "no"), ("'no'", "no"),
        ("auto", "auto"), ("", "auto"), ("~", "auto"),
    ],
)  # fmt: skip
def test_whether_kubernetes_is_watched(tmp_path: Path, written: str, means: str) -> None:
    assert daemon(tmp_path, f"daemon: {{kubernetes: {{enabled: {written}}}}}").kubernetes.enabled == means
    if written and "'" not in written:
        assert daemon(tmp_path, "", KUBERNETES__ENABLED=written).kubernetes.enabled == means


def test_which_kubernetes(tmp_path: Path) -> None:
    kubernetes = daemon(tmp_path, "daemon: {kubernetes: {kubeconfig: /etc/k8s.conf, context: lab}}").kubernetes
    assert (kubernetes.kubeconfig, kubernetes.context, kubernetes.enabled) == ("/etc/k8s.conf", "lab", "auto")


def test_agents_that_are_named(tmp_path: Path) -> None:
    text = """
        daemon:
          agents:
            static:
              - gpu-01:9835
              - 10.0.0.7:1
              - "[fd00::1]:9835"
            interval: 30s
            limit: 2s
            crew: 4
    """
    agents = daemon(tmp_path, text).agents
    assert [str(each) for each in agents.static] == ["gpu-01:9835", "10.0.0.7:1", "[fd00::1]:9835"]
    poll = agents.settings()
    assert (poll.interval, poll.limit, poll.crew) == (30.0, 2.0, 4)
    named = daemon(tmp_path, "", AGENTS__STATIC="[gpu-02:9835]").agents
    assert [str(each) for each in named.static] == ["gpu-02:9835"]


def test_the_token_of_the_agents_is_kept_to_itself(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    inline = daemon(tmp_path, f"daemon: {{agents: {{token: {SECRET}}}}}")
    by_file = daemon(tmp_path, f"daemon: {{agents: {{token_file: {tmp_path}/token}}}}")
    for config in (inline, by_file):
        assert config.agents.settings().token == SECRET
        assert SECRET not in f"{config!r} {config.agents.settings()!r} {config.model_dump_json()}"
    with pytest.raises(ConfigError, match="give token or token_file, not both") as refused:
        daemon(tmp_path, f"daemon: {{agents: {{token: {SECRET}, token_file: {tmp_path}/token}}}}")
    assert SECRET not in str(refused.value)


def test_a_platform_of_ones_own(tmp_path: Path) -> None:
    text = """
        daemon:
          user_labels: [who]
          platforms:
            - name: dlc
              when: [label:pai/job & label:pai/kind=train, "annotation:pai/spec"]
              user: label:pai/user
              job: [annotation:pai/spec#job, owner]
              queue: namespace
              kind: DlcJob
    """
    config = daemon(tmp_path, text)
    assert config.user_labels == ("who",)
    assert [platform.rule() for platform in config.platforms] == [
        PlatformRule(
            name="dlc",
            when=("label:pai/job & label:pai/kind=train", "annotation:pai/spec"),
            user=("label:pai/user",),
            job=("annotation:pai/spec#job", "owner"),
            queue=("namespace",),
            kind="DlcJob",
        )
    ]


def test_limits_are_those_of_the_view(tmp_path: Path) -> None:
    text = "daemon: {gpu: {idle_after: 4h, ghost_bytes: 512MiB, faulty_xids: [79], stale_after: 2m}}"
    assert daemon(tmp_path, text).gpu.limits() == StateLimits(
        idle_after=14400.0, ghost_bytes=512 * 1024**2, faulty_xids=frozenset({79}), stale_after=120.0
    )
