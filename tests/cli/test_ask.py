"""Command-line queries: answered by the daemon if it responds, otherwise read from the cluster."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.cli.ask import QueryError, UnreachableError, locale_language, view_now, why_now
from monitor.config.root import Config
from monitor.facts.cluster import ClusterView, NodeView, SourceView
from monitor.queries.cluster import PodExplanation
from tests.support import free_port
from tests.support.command import quiet_environment, run
from tests.support.fake_agents import Behaviour, FakeAgent, answers, reports, resets, says, says_nothing
from tests.support.living_api import LivingApi, kube_node, kube_pod
from tests.support.local_token import LOCAL_TOKEN
from tests.web.cluster import ACCESS, site
from tests.web.test_app import FakeCluster

NOBODY = "127.0.0.1:1"
VIEW = ClusterView(at=1.0, nodes=(NodeView(name="gpu-01", has_agent=True),))
WHY = PodExplanation(name="bert", status="pending", cause="quota", well=False, lines=("等待 quota",))


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Restore logging, which commands configure."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def config(listen: str = NOBODY, agents: tuple[str, ...] = (NOBODY,), **kubernetes: Any) -> Config:
    return Config.model_validate(
        {
            "daemon": {
                "listen": listen,
                "agents": {"static": list(agents), "interval": "100ms", "limit": "500ms"},
                "kubernetes": {"enabled": False} | kubernetes,
            }
        }
    )


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "POSIX"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": ""}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "C", "LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "en_US"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}, "zh"),
        ({"LANG": "en_US.UTF-8", "LC_CTYPE": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_language_of_the_locale(environ: dict[str, str], language: str) -> None:
    assert locale_language(environ) == language


# A daemon answers


def test_a_daemon_is_asked_for_the_view() -> None:
    with FakeAgent(answers(msgspec.json.encode(VIEW))) as daemon:
        assert view_now(config(daemon.target)) == VIEW
    assert daemon.paths == ["/healthz", "/v1/view"]


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        (None, "/v1/why?name=a%26b&lang=zh"),
        ("team a", "/v1/why?name=a%26b&lang=zh&namespace=team+a"),
    ],
)
def test_a_daemon_is_asked_why(namespace: str | None, path: str) -> None:
    with FakeAgent(answers(msgspec.json.encode(WHY.as_dict()))) as daemon:
        assert why_now(config(daemon.target), "a&b", namespace, "zh") == WHY
    assert daemon.paths == ["/healthz", path]


def test_a_daemon_that_listens_everywhere_is_asked_here() -> None:
    with FakeAgent(answers(msgspec.json.encode(VIEW))) as daemon:
        assert view_now(config(f"0.0.0.0:{daemon.port}")) == VIEW


def test_a_daemon_of_a_later_version_is_understood() -> None:
    later = msgspec.json.encode({"at": 1, "nodes": [{"name": "n", "colour": "blue"}], "galaxies": []})
    with FakeAgent(answers(later)) as daemon:
        assert view_now(config(daemon.target)) == ClusterView(at=1, nodes=(NodeView(name="n"),))


def test_a_daemon_that_requires_it_gets_the_local_token_and_others_do_not(tmp_path: Path) -> None:
    (tmp_path / "cli.token").write_text(LOCAL_TOKEN)
    with site(ACCESS | {"anonymous": "none"}) as url:
        asked = Config.model_validate({"daemon": {"listen": url.removeprefix("http://"), "state": str(tmp_path)}})
        assert view_now(asked) == FakeCluster().view()
    with FakeAgent(answers(msgspec.json.encode(VIEW))) as daemon:
        asked = Config.model_validate({"daemon": {"listen": daemon.target, "state": str(tmp_path)}})
        assert view_now(asked) == VIEW
    assert "authorization" not in daemon.headers[0]


# No daemon responds: the cluster is read


@pytest.mark.parametrize(
    ("name", "behave"),
    [
        ("is broken", answers(b"oops", 500)),
        ("does not know the question", answers(b"{}", 404)),
        ("is another program", answers(b"<html>It works!</html>")),
        ("answers something else", answers(b'{"status": "ok"}')),
        ("answers no text", answers(b'{"at": 1, "nodes": [{"name": "\xff"}]}')),
        ("speaks no HTTP", says(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("hangs up", resets),
    ],
)
def test_who_does_not_answer_is_not_needed(name: str, behave: Behaviour) -> None:
    with FakeAgent(behave) as daemon, FakeAgent(reports("gpu-07")) as agent:
        view = view_now(config(daemon.target, agents=(agent.target,)))
    assert [node.name for node in view.nodes] == ["gpu-07"]
    assert {each.name: each.ok for each in view.sources} == {"kubernetes": False, "agents": True}


def test_without_daemon_kubernetes_and_agents_there_is_nothing_to_show() -> None:
    with pytest.raises(UnreachableError) as refused:
        view_now(config())
    assert str(refused.value) == (
        f"no daemon answers on {NOBODY}, and there is nothing else to ask (kubernetes: switched off by "
        f"daemon.kubernetes.enabled; agents: 1 of 1 silent: {NOBODY})"
    )


def test_pods_cannot_be_explained_without_kubernetes() -> None:
    with FakeAgent(reports("gpu-07")) as agent, pytest.raises(UnreachableError) as refused:
        why_now(config(agents=(agent.target,)), "bert", None, "en")
    assert str(refused.value) == (
        f"no daemon answers on {NOBODY}, and there is no API server to ask: switched off by daemon.kubernetes.enabled"
    )


def unreachable_api() -> str:
    """Address on which nothing listens."""
    return f"127.0.0.1:{free_port()}"


def kubeconfig(directory: Path, address: str) -> str:
    file = directory / "kubeconfig"
    cluster = {"name": "lab", "cluster": {"server": f"http://{address}"}}
    context = {"name": "lab", "context": {"cluster": "lab", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    file.write_text(
        json.dumps({"clusters": [cluster], "users": users, "contexts": [context], "current-context": "lab"})
    )
    return str(file)


@pytest.mark.parametrize("ask", [view_now, lambda config: why_now(config, "bert", None, "en")], ids=["view", "why"])
def test_an_api_server_that_is_down_is_one_sentence(tmp_path: Path, ask: Callable[[Config], object]) -> None:
    address = unreachable_api()
    with pytest.raises(UnreachableError) as refused:
        ask(config(agents=(), enabled=True, kubeconfig=kubeconfig(tmp_path, address)))
    told = str(refused.value)
    assert told.startswith(f"no daemon answers on {NOBODY}, and the API server http://{address} does not respond: ")
    assert "Connection refused" in told
    assert "\n" not in told
    assert "object at" not in told


def test_an_api_server_that_says_nothing_is_given_up_at_once(tmp_path: Path) -> None:
    with FakeAgent(says_nothing) as api, pytest.raises(UnreachableError, match="does not respond"):
        why_now(config(agents=(), enabled=True, kubeconfig=kubeconfig(tmp_path, api.target)), "bert", None, "en")
    assert api.paths == ["/version"]  # nothing else is tried


def test_an_api_server_that_rejects_the_credentials(tmp_path: Path) -> None:
    with (
        FakeAgent(answers(b'{"kind": "Status", "message": "expired"}', 401)) as api,
        pytest.raises(UnreachableError, match=r"rejects the credentials: HTTP 401.*expired"),
    ):
        view_now(config(agents=(), enabled=True, kubeconfig=kubeconfig(tmp_path, api.target)))


@pytest.mark.parametrize("ask", [view_now, lambda config: why_now(config, "bert", None, "en")], ids=["view", "why"])
def test_a_daemon_that_says_nothing_is_reported_instead_of_waited_for(ask: Callable[[Config], object]) -> None:
    with FakeAgent(says_nothing) as daemon, pytest.raises(UnreachableError) as refused:
        ask(config(daemon.target))
    assert str(refused.value).startswith(f"the daemon on {daemon.target} accepts connections but has not responded")
    assert daemon.paths == ["/healthz"]


def test_a_daemon_that_cannot_see_the_pods_has_no_answer_either() -> None:
    lines = ("lab/bert cannot be explained now", "The pods of the cluster cannot be read: unreachable.")
    unseen = PodExplanation(name="bert", status="unseen", cause="pods-unseen", well=False, lines=lines)
    with (
        FakeAgent(answers(msgspec.json.encode(unseen.as_dict()))) as daemon,
        pytest.raises(UnreachableError, match=r"^The pods of the cluster cannot be read: unreachable$"),
    ):
        why_now(config(daemon.target), "bert", None, "en")


def test_the_cluster_is_asked_without_a_daemon(tmp_path: Path) -> None:
    api = LivingApi()
    api.put("nodes", kube_node("n1", 4))
    api.put("pods", kube_pod("bert", None, 8))
    with api.served():
        asked = config(agents=(), enabled=True, kubeconfig=api.kubeconfig(tmp_path))
        view = view_now(asked)
        why = why_now(asked, "bert", "lab", "en")
    assert [(node.name, node.free) for node in view.nodes] == [("n1", 4)]
    assert [pod.name for pod in view.pods] == ["bert"]
    assert SourceView(name="pods", ok=True) in view.sources
    assert (why.name, why.status, why.well) == ("bert", "pending", False)
    assert any("8" in line for line in why.lines)


@pytest.mark.parametrize("content", [None, "", "no: [yaml", "a: b", "\x00"])
def test_credentials_that_have_to_be_there_and_are_not(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    with pytest.raises(QueryError) as refused:
        view_now(config(enabled=True, kubeconfig=str(file)))
    told = str(refused.value)
    assert told.startswith(f"no daemon answers on {NOBODY}, and no credentials for a cluster in {file}: ")
    assert told.endswith(
        "; name a kubeconfig in daemon.kubernetes.kubeconfig, or set daemon.kubernetes.enabled to auto"
    )
    assert "\n" not in told


# The commands


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return quiet_environment(
        tmp_path, DAEMON__LISTEN=NOBODY, DAEMON__AGENTS__LIMIT="500ms", DAEMON__AGENTS__STATIC=f"[{NOBODY}]"
    )


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["why", "bert"]], ids=" ".join)
def test_no_credentials_is_one_sentence_and_code_3(environ: dict[str, str], tmp_path: Path, words: list[str]) -> None:
    missing = str(tmp_path / "nowhere")
    yes = {"GPUWARDEN_DAEMON__KUBERNETES__ENABLED": "yes", "GPUWARDEN_DAEMON__KUBERNETES__KUBECONFIG": missing}
    result = run(*words, environ=environ | yes)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith(f"gpuwarden: no daemon answers on {NOBODY}, and no credentials for a cluster in ")
    assert result.stderr.count("\n") == 1


def test_status_for_people_and_for_programs(environ: dict[str, str]) -> None:
    with FakeAgent(answers(msgspec.json.encode(VIEW))) as daemon:
        listen = {"GPUWARDEN_DAEMON__LISTEN": daemon.target}
        people, programs = run("status", environ=environ | listen), run("status", "--json", environ=environ | listen)
    assert (people.returncode, people.stderr, programs.returncode) == (0, "", 0)
    assert people.stdout.startswith("1970-01-01 00:00:01 UTC, 1 node, 0 GPUs: none seen\n")
    assert "gpu-01" in people.stdout
    assert msgspec.json.decode(programs.stdout, type=ClusterView) == VIEW


def test_status_without_a_daemon_says_what_is_missing(environ: dict[str, str]) -> None:
    with FakeAgent(reports("gpu-07")) as agent:
        result = run("status", environ=environ | {"GPUWARDEN_DAEMON__AGENTS__STATIC": f"[{agent.target}]"})
    assert (result.returncode, result.stderr) == (1, "")
    assert "switched off by daemon.kubernetes.enabled" in result.stdout
    assert "gpu-07" in result.stdout


@pytest.mark.parametrize(
    "words",
    [["status"], ["why", "bert"], ["alerts", "list"], ["cleanup", "history"], ["report"], ["login-link"]],
    ids=" ".join,
)
def test_what_cannot_be_asked_is_one_sentence_and_code_3(environ: dict[str, str], words: list[str]) -> None:
    result = run(*words, environ=environ)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith(f"gpuwarden: no daemon answers on {NOBODY}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("well", "code"), [(True, 0), (False, 1)])
def test_why_in_the_language_of_the_locale(environ: dict[str, str], well: bool, code: int) -> None:
    answer = WHY.as_dict() | {"well": well}
    with FakeAgent(answers(msgspec.json.encode(answer))) as daemon:
        asked = environ | {"GPUWARDEN_DAEMON__LISTEN": daemon.target, "LC_ALL": "zh_CN.UTF-8", "PYTHONUTF8": "1"}
        people = run("why", "-n", "lab", "bert", environ=asked)
        programs = run("why", "--lang", "en", "--json", "bert", environ=asked)
    assert (people.returncode, people.stdout) == (code, "等待 quota\n")
    assert msgspec.json.decode(programs.stdout) == answer | {"lines": ["等待 quota"], "found": []}
    queries = [path for path in daemon.paths if path != "/healthz"]
    assert queries == ["/v1/why?name=bert&lang=zh&namespace=lab", "/v1/why?name=bert&lang=en"]
