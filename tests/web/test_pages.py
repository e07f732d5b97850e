"""The pages as HTML: content, permissions, languages, and updates of an open page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from monitor.access.principal import AuthMethod, Principal, Role
from monitor.alert.model import Alert, Phase
from monitor.alert.mute import AlertView
from monitor.explain.fits.model import FitsRequest
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuState,
    GpuView,
    Holder,
    Identity,
    NodeView,
    PodView,
    QueueView,
    UsageView,
)
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Evidence, Text
from monitor.i18n import CATALOGS, LANGUAGES
from monitor.present.alerts import LocalizedAlert
from monitor.present.cleanup import ShownPlan
from monitor.present.findings import LocalizedFinding, localize_findings
from monitor.present.rows import gpu_rows, page_text
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.web.context import PageData, PageDeps
from monitor.web.pages.routes import page_routes
from tests.support.snapshots import AT, LOST, full_snapshot
from tests.web.test_alerts_api import ALERT, FakeAlerts
from tests.web.test_cleanup_api import FakeCleanup

EVIL = "<script>alert(1)</script>\"'&"
TEMPLATES = Path(__file__).parents[2] / "monitor" / "web" / "templates"
ADMIN = Principal("root", Role.ADMIN, csrf="c" * 20, method=AuthMethod.SESSION)
USER = Principal("zhang", Role.USER, "zhang", "c" * 20, AuthMethod.SESSION)


def finding(**more: Any) -> Finding:
    headline = Text(key="node-down.kubelet-silent", values={"node": "gpu-01", "seconds": 90.0})
    given = {"rule": "node-down", "severity": Severity.CRITICAL, "cause": "x", "labels": {"node": "gpu-01"}}
    return Finding(**(given | {"headline": headline} | more))


class FakeCluster:
    """A cluster of one node, of the given name, with two GPUs, a running pod and a waiting pod."""

    def __init__(self, name: str = "gpu-01") -> None:
        self.name = name
        self.utilization = 0.5

    def view(self) -> ClusterView:
        holder = Holder(pod_uid="1", pod="bert-0", namespace="nlp", live=False, user="zhang", queue="vc")
        gpus = (
            GpuView(node=self.name, state=GpuState.ZOMBIE, index=0, since=AT - 60, holders=(holder,), evidence=(
                Evidence(key="pod-deleted", values={"pod": "nlp/bert-0", "pid": 7}),)),
            GpuView(node=self.name, state=GpuState.BUSY, index=1, uuid=LOST, utilization_ratio=self.utilization),
        )  # fmt: skip
        pods = (
            PodView(uid="2", name="vit-0", namespace="cv", phase="Running", node=self.name, requested_gpus=1,
                    identity=Identity(user="li", queue="vc", inference=True), usage=UsageView(gpus=1, cpu_cores=6.0)),
            PodView(uid="3", name=f"wait-{self.name}", namespace="nlp", phase="Pending", requested_gpus=8,
                    identity=Identity(user="zhang", queue="vc"), created_at=AT - 600),
        )  # fmt: skip
        return ClusterView(
            at=AT, nodes=(NodeView(name=self.name, has_agent=True, in_kubernetes=True, ready=True, free=0, cards=2),),
            gpus=gpus, pods=pods, queues=(QueueView(name="vc", used=1, waiting=8),), users={"li": UsageView(gpus=1)},
        )  # fmt: skip

    def overview(self) -> ClusterView:
        return self.view()

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        return localize_findings((finding(), finding(labels={"node": "b"}, explained_by=finding().key)), lang)

    def why(self, names: Sequence[WantedName], _lang: str) -> tuple[PodExplanation, ...]:
        lines = ("No room.", "  - it asks for 8", "What to do:", "  > wait")
        return tuple(
            PodExplanation(name=name, status="pending", cause="no-room", well=False, lines=(f"{name} waits", *lines))
            for name, _ in names
        )

    def fits(self, request: FitsRequest, _lang: str) -> FitsAnswer:
        lines = (f"{request.gpus} do not fit now.", "  - zhang holds 8", "What to do:", "  > ask for less")
        return FitsAnswer(verdict="after", lines=lines)


class Visitor:
    """Requests pages as a browser does."""

    def __init__(self, deps: PageDeps, principal: Principal | None = None) -> None:
        self._routes = page_routes(deps)
        self._principal = principal

    def get(self, address: str, **headers: str) -> Response:
        path, _, query = address.partition("?")
        state = {} if self._principal is None else {"principal": self._principal}
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope: dict[str, Any] = {
            "type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": named,
            "server": ("127.0.0.1", 80), "scheme": "http", "state": state,
        }  # fmt: skip
        for route in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                answer: Response = found["endpoint"](Request(scope | dict(found)))
                return answer
        raise LookupError(path)

    def text(self, address: str, **headers: str) -> str:
        return bytes(self.get(address, **headers).body).decode()


def deps(cluster: FakeCluster | None = None, **data: Any) -> PageDeps:
    snapshot = full_snapshot()
    agent = AgentFact(target="a", node=snapshot.node, snapshot=snapshot, received_at=snapshot.at)
    return PageDeps(cluster or FakeCluster(), PageData(agents=lambda: (agent,), **data))


PATHS = (
    "/nodes?sort=-disk", "/nodes?q=zzz",
    "/", "/nodes", "/nodes/gpu-01", "/gpus/gpu-01/0", "/pods", "/pods/nlp/bert-0", "/users", "/users/zhang",
    "/queues", "/queues/vc", "/why", "/why?q=zhang", "/fits", "/fits?gpus=8",
)  # fmt: skip


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", PATHS)
def test_every_page_speaks_and_needs_nothing_inline(path: str, lang: str) -> None:
    body = Visitor(deps(), ADMIN).text(path, accept_language=lang)
    assert f'<html lang="{lang}"' in body
    assert " style=" not in body
    assert re.findall(r"<script(?! src=)", body) == []
    assert re.search(r"\son[a-z]+=", body) is None
    assert "page." not in re.sub(r"/static/\S+", "", body)  # a key without text


SHOWN = [
    (
        "/",
        ["zhang", "Node gpu-01 is down", "explains 1 other alert", "nlp/wait-gpu-01", "/mnt/数据"],
    ),
    (
        "/nodes/gpu-01",
        ["zombie", "nlp/bert-0 was deleted, but its process 7 is still running", "cv/vit-0", "Other agent messages"],
    ),
    ("/nodes", ["gpu-01", 'title="GPU 0: zombie"', "Fullest disk"]),
    ("/nodes?sort=disk", ['aria-sort="descending"', "/nodes?sort=-disk"]),
    ("/nodes?q=zzz", ["No node name contains zzz.", '<a href="/nodes">Show all</a>']),
    ("/gpus/gpu-01/0", ["zombie", "nlp/bert-0 was deleted"]),
    ("/gpus/gpu-01/1", ["XID 79", "reboot the node"]),
    ("/gpus/gpu-01/1?lang=zh", ["XID 79", "重启节点"]),
    ("/pods", ["cv/vit-0", "nlp/wait-gpu-01", "inference service"]),
    ("/pods/cv/vit-0", ["Class", "inference service"]),
    ("/pods/nlp/bert-0", ["No room.", "it asks for 8", "<li>wait</li>"]),
    ("/users/zhang", ["nlp/wait-gpu-01", "gpu-01/0"]),
    ("/queues/vc", ["cv/vit-0", "zombie"]),
    ("/why?q=zhang", ["No room.", "nlp/wait-gpu-01"]),
    ("/fits", ['name="gpus"', 'inputmode="numeric"', '<option value="vc">']),
    ("/fits?gpus=8&model=A100", ["8 do not fit now.", "zhang holds 8", "ask for less", 'value="A100"']),
    ("/fits?gpus=10&per_node=4", ["gpus (10) is not a multiple of per_node (4)"]),
]


@pytest.mark.parametrize(("path", "shows"), SHOWN, ids=[path for path, _ in SHOWN])
def test_a_page_shows_what_it_is_about(path: str, shows: list[str]) -> None:
    body = Visitor(deps()).text(path)
    assert [each for each in shows if each not in body] == []


def test_a_user_has_as_many_gpus_on_every_page() -> None:
    """Two GPUs of running pods, and one that a finished pod still holds."""
    live = (
        Holder(pod="a", namespace="cv", user="li", live=True),
        Holder(pod="b", namespace="cv", user="li", live=True),
    )
    ended = Holder(pod="c", namespace="cv", user="li", live=False)
    states = (GpuState.BUSY, GpuState.BUSY, GpuState.ZOMBIE)
    gpus = tuple(
        GpuView(node="gpu-01", state=state, index=index, holders=(holder,), utilization_ratio=index / 2)
        for index, (state, holder) in enumerate(zip(states, (*live, ended), strict=True))
    )

    class TwoAndOne(FakeCluster):
        def view(self) -> ClusterView:
            return replace(super().view(), gpus=gpus, users={"li": UsageView(gpus=2)})

    visitor = Visitor(deps(TwoAndOne()))
    said = "and 1 GPU that ended pods still hold"
    assert f'<td class="n">2 <em title="{said}">+1</em></td>' in visitor.text("/users")
    assert f"<dd>2 <em>{said}</em></dd>" in visitor.text("/users/li")
    for path in ("/users", "/users/li"):  # of the GPUs of live pods
        assert "</svg> 25%" in visitor.text(path)


class OneNodeDown(FakeCluster):
    """Of the 12 free GPUs, 3 are on a node that is down; li has 11, 2 of them on a node whose agent is silent."""

    def view(self) -> ClusterView:
        holder = Holder(pod="train", namespace="cv", user="li", live=True)
        gpus = (
            *(GpuView(node="gpu-01", state=GpuState.FREE, index=index) for index in range(9)),
            *(GpuView(node="gpu-02", state=GpuState.FREE, index=index) for index in range(3)),
            *(GpuView(node="gpu-03", state=GpuState.BUSY, index=index, holders=(holder,)) for index in range(9)),
            *(GpuView(node="gpu-04", state=GpuState.UNKNOWN, index=index) for index in range(2)),
        )
        identity = Identity(user="li", queue="vc", job="train")
        pods = tuple(
            PodView(
                uid=name, name=name, namespace="cv", phase="Running", node=node, requested_gpus=count, identity=identity
            )
            for name, node, count in (("train", "gpu-03", 9), ("lost", "gpu-04", 2))
        )
        free = FreeView(model="A100", total=12, free=9, largest_on_one_node=9, on={"gpu-01": 9})
        view = ClusterView(at=AT, gpus=gpus, pods=pods, free=(free,), users={"li": UsageView(gpus=11)})
        return view.with_known_nodes({node: tuple(of) for node, of in groupby(gpus, lambda gpu: gpu.node)})


@pytest.mark.parametrize(
    ("lang", "headline"), [("en", "9 of 23 GPUs in use, 12 free (9 schedulable)"), ("zh", "空闲 12（可调度 9）")]
)
def test_the_headline_and_the_legend_have_the_same_free_gpus(lang: str, headline: str) -> None:
    text = Visitor(deps(OneNodeDown())).text(f"/?lang={lang}")
    assert headline in text
    assert f"{CATALOGS[lang]['page.state.free']} <b>12</b>" in text


@pytest.mark.parametrize("path", ["/users/li", "/jobs/cv/train"])
def test_the_list_of_gpus_adds_up_to_those_in_use(path: str) -> None:
    text = Visitor(deps(OneNodeDown())).text(path)
    assert "<dd>11</dd>" in text
    assert text.count('<a href="/gpus/gpu-03/') == 9
    assert "Plus 2 GPUs on gpu-04 that Kubernetes allocated and no agent reports." in text


def test_gpus_that_agents_report_are_not_counted_again() -> None:
    visitor = Visitor(deps(OneNodeDown()))
    assert "that Kubernetes allocated" not in visitor.text("/pods/cv/train")
    assert "Plus 2 GPUs on gpu-04" in visitor.text("/pods/cv/lost")


@pytest.mark.parametrize("path", ["/nodes/x", "/gpus/gpu-01/9", "/users/x", "/queues/x"])
def test_what_is_not_there_is_said_to_be_so(path: str) -> None:
    assert Visitor(deps()).get(path).status_code == 404


@pytest.mark.parametrize(("lang", "says"), [("en", "There is no x, or it is gone."), ("zh", "x 不存在，或已经消失。")])
def test_what_is_not_there_leads_on(lang: str, says: str) -> None:
    body = Visitor(deps()).text(f"/users/x?lang={lang}")
    assert says in body
    assert '<a href="/why?q=x">' in body


def test_filters_that_nothing_matches_can_be_cleared() -> None:
    assert 'No jobs match these filters. <a href="/pods?what=all">Show all</a>' in Visitor(deps()).text("/pods?q=zzz")


def test_a_pod_that_is_asked_for_by_its_name_is_gone_to() -> None:
    answer = Visitor(deps()).get("/why?q=cv/vit-0")
    assert (answer.status_code, answer.headers["location"]) == (303, "/pods/cv/vit-0")


@pytest.mark.parametrize(("name", "path"), [("gpu-01", "/nodes/gpu-01"), ("vc", "/queues/vc")])
def test_a_node_or_queue_that_is_asked_for_by_its_name_is_gone_to(name: str, path: str) -> None:
    answer = Visitor(deps()).get(f"/why?q={name}")
    assert (answer.status_code, answer.headers["location"]) == (303, path)


def test_names_are_suggested_and_escaped() -> None:
    assert '<option value="nlp/wait-gpu-01" label="Pod">' in Visitor(deps()).text("/suggest?q=wait")
    assert '<option value="li" label="用户">' in Visitor(deps()).text("/suggest?q=li&lang=zh")
    assert "<script>" not in Visitor(deps(FakeCluster(EVIL))).text("/suggest?q=script")


def test_every_name_is_escaped() -> None:
    visitor = Visitor(deps(FakeCluster(EVIL)), ADMIN)
    for path in (
        "/",
        "/nodes",
        "/pods",
        "/users/zhang",
        "/queues/vc",
        "/why?q=zhang",
        f"/why?q={EVIL}",
        f"/fits?gpus=8&model={EVIL}",
    ):
        body = visitor.text(path)
        assert "<script>" not in body
        assert "&lt;script&gt;" in body


ACTIONS = [
    (None, "/nodes/gpu-01", []),
    (Principal("v", Role.VIEWER, method=AuthMethod.SESSION), "/nodes/gpu-01", []),
    (USER, "/nodes/gpu-01", ["delete-pods", "release-gpu"]),
    (ADMIN, "/nodes/gpu-01", ["cordon", "delete-pods", "release-gpu"]),
    (None, "/pods/nlp/wait-gpu-01", []),
    (USER, "/pods/nlp/wait-gpu-01", ["delete-pods"]),
    (USER, "/pods/cv/vit-0", []),
    (ADMIN, "/pods/cv/vit-0", ["delete-pods"]),
]


@pytest.mark.parametrize(("principal", "path", "actions"), ACTIONS)
def test_what_may_be_pressed_depends_on_who_looks(principal: Principal | None, path: str, actions: list[str]) -> None:
    body = Visitor(deps(), principal).text(path)
    assert sorted(set(re.findall(r'data-act="([a-z-]+)"', body))) == actions


def test_a_user_chooses_among_own_jobs_only() -> None:
    body = Visitor(deps(), USER).text("/pods?what=all")
    assert re.findall(r'type="checkbox" value="([^"]+)"', body) == ["nlp/wait-gpu-01"]


def test_no_secret_but_the_one_of_this_session_is_shown() -> None:
    assert 'data-csrf=""' in Visitor(deps()).text("/")
    assert f'data-csrf="{ADMIN.csrf}"' in Visitor(deps(), ADMIN).text("/")


def versions_of(body: str) -> str:
    return ",".join(
        f"{section}.{version}" for section, version in re.findall(r'<section id="(\w+)" data-v="(\w+)"', body)
    )


def test_an_open_page_is_told_only_what_has_changed() -> None:
    cluster = FakeCluster()
    visitor = Visitor(deps(cluster))
    has = versions_of(visitor.text("/"))
    assert visitor.get(f"/?v={has}").status_code == 204
    cluster.utilization = 0.97
    changed = visitor.text(f"/?v={has}")
    assert re.findall(r'<section id="(\w+)"', changed) == ["map0"]
    assert changed.count('hx-swap-oob="true"') == 1
    assert "<html" not in changed


@pytest.mark.parametrize("has", ["", "x.1", "health.0"])
def test_a_page_with_other_sections_begins_anew(has: str) -> None:
    answer = Visitor(deps()).get(f"/?v={has}")
    assert (answer.status_code, answer.headers["hx-refresh"]) == (200, "true")


def test_time_that_passes_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor(deps())
    monkeypatch.setattr("monitor.web.pages.render.time.time", lambda: AT)
    has = {path: versions_of(visitor.text(path)) for path in ("/", "/nodes/gpu-01", "/gpus/gpu-01/0", "/users/zhang")}
    monkeypatch.setattr("monitor.web.pages.render.time.time", lambda: AT + 3600)
    assert {path: visitor.get(f"{path}?v={v}").status_code for path, v in has.items()} == dict.fromkeys(has, 204)


LANGUAGE = [
    ("/", {}, "en"),
    ("/", {"accept_language": "fr, zh-CN;q=0.9, en;q=0.8"}, "zh"),
    ("/", {"cookie": "lang=zh"}, "zh"),
    ("/?lang=en", {"cookie": "lang=zh", "accept_language": "zh"}, "en"),
    ("/?lang=xx", {"cookie": "lang=yy"}, "en"),
]


@pytest.mark.parametrize(("path", "headers", "lang"), LANGUAGE)
def test_the_language_is_the_one_asked_for(path: str, headers: dict[str, str], lang: str) -> None:
    assert f'<html lang="{lang}"' in Visitor(deps()).text(path, **headers)


def test_the_language_that_was_chosen_is_remembered() -> None:
    assert "lang=zh" in Visitor(deps()).get("/?lang=zh").headers["set-cookie"]
    assert "set-cookie" not in Visitor(deps()).get("/").headers


def alert(fingerprint: str, **more: Any) -> Alert:
    given: dict[str, Any] = {"phase": Phase.FIRING, "first_seen_at": AT - 9, "seen_at": AT, "finding": finding()}
    return Alert(fingerprint=fingerprint, **(given | more))


class UnsentAlerts(FakeAlerts):
    """A firing alert that no receiver was notified of."""

    def alerts(self, lang: str) -> tuple[LocalizedAlert, ...]:
        return tuple(replace(alert, told=(), phase=Phase.FIRING) for alert in super().alerts(lang))


@pytest.mark.parametrize(
    ("receivers", "lang", "shown"),
    [(True, "en", "not yet"), (False, "en", "no receiver is configured"), (False, "zh", "没有配置接收者")],
)
def test_an_alert_of_which_nothing_was_sent_says_why(receivers: bool, lang: str, shown: str) -> None:
    given = PageDeps(FakeCluster(), PageData(has_receivers=receivers), alerts=UnsentAlerts())
    for path in (f"/alerts/{ALERT.fingerprint}", "/alerts"):
        assert shown in Visitor(given).text(path, accept_language=lang)


def test_alerts_are_one_line_a_cause_and_silenced_ones_are_no_trouble() -> None:
    shown = (
        AlertView(alert=alert("a"), silenced_by="s"),
        AlertView(alert=alert("b", finding=finding(cause="y", labels={"node": "1"}, severity=Severity.WARNING))),
        AlertView(alert=alert("c", finding=finding(cause="y", labels={"node": "2"}))),
        AlertView(alert=alert("d", finding=finding(cause="z")), explained_by="b"),
        AlertView(alert=alert("e", phase=Phase.RESOLVED, finding=finding(cause="w"))),
    )
    body = Visitor(deps(alerts=lambda: shown, findings=lambda: ())).text("/")
    assert re.findall(r'<li class="(critical|warning)( silenced)?">', body) == [
        ("critical", ""),
        ("critical", " silenced"),
    ]
    assert "×2" in body
    assert "explains 1 other alert" in body
    assert '<span class="sev critical">critical 1</span>' in body


def test_nobody_has_looked_yet_is_not_that_all_is_well() -> None:
    body = Visitor(deps(alerts=lambda: (), findings=lambda: None)).text("/")
    assert "Not evaluated yet" in body
    assert "Healthy" not in body
    assert "Healthy" in Visitor(deps(alerts=lambda: (), findings=lambda: ())).text("/")


def used_keys() -> Iterator[str]:
    for path in (*TEMPLATES.rglob("*.html"), *(TEMPLATES.parent / "pages").glob("*.py")):
        yield from re.findall(r"\bt\(['\"]([a-z0-9.-]*[a-z0-9])['\"]", path.read_text(encoding="utf-8"))


def test_every_word_of_a_template_is_in_the_catalogs() -> None:
    assert {key for key in used_keys() if f"page.{key}" not in CATALOGS["en"]} == set()


@pytest.mark.parametrize("state", list(GpuState))
def test_every_state_of_a_card_has_a_name(state: GpuState) -> None:
    for lang in LANGUAGES:
        assert CATALOGS[lang][f"page.state.{state}"]
        assert CATALOGS[lang][f"page.state.about.{state}"]


class NightlyCleanup(FakeCleanup):
    """A policy with a schedule."""

    def plans(self, policy: str | None, lang: str) -> tuple[ShownPlan, ...]:
        nightly = ShownPlan(policy="nightly", kind="pods", mode="dry-run", at=AT, next_run_at=1_763_319_600.0)
        return (nightly, *super().plans(policy, lang))


@pytest.mark.parametrize(("lang", "expect"), [("en", "Next run: nightly"), ("zh", "下次执行： nightly")])
def test_the_next_run_is_in_the_time_zone_of_the_configuration(lang: str, expect: str) -> None:
    given = PageDeps(FakeCluster(), PageData(timezone="Asia/Shanghai"), cleanup=NightlyCleanup())
    html = Visitor(given).text(f"/cleanup/plan?lang={lang}")
    assert f"{expect} 2025-11-17 03:00 CST" in html


def test_pages_name_the_time_zone_for_their_times() -> None:
    given = PageDeps(FakeCluster(), PageData(timezone="Asia/Shanghai"), cleanup=FakeCleanup())
    html = Visitor(given).text("/cleanup")
    assert 'data-zone="Asia/Shanghai"' in html
    assert " CST</time>" in html


CURRENT = [
    ("/", "/"), ("/nodes/gpu-01", "/nodes"), ("/gpus/gpu-01/0", "/nodes"), ("/jobs/nlp/bert", "/pods"), ("/why", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "entry"), CURRENT)
def test_the_menu_marks_where_a_page_belongs(path: str, entry: str | None) -> None:
    marked = re.findall(r'<a href="([^"]+)" aria-current="page"', Visitor(deps()).text(path))
    assert marked == ([] if entry is None else [entry])


def test_the_reason_of_a_state_is_told_once() -> None:
    held = tuple(Evidence(key="held", values={"pod": "nlp/bert-0", "by": by}) for by in ("kubelet", "process"))
    gpu = GpuView(node="n", state=GpuState.BUSY, index=0, evidence=held)
    assert len(gpu_rows([gpu], "en")[0].evidence) == 1


def test_what_an_agent_reports_besides_is_in_the_language_of_the_page() -> None:
    body = Visitor(deps()).text("/nodes/gpu-01", accept_language="zh")
    assert "<h3>采集器</h3>" in body
    assert "Collectors" not in body


def test_a_pod_that_is_not_scheduled_waits_on_its_page_as_in_the_list() -> None:
    visitor, said = Visitor(deps()), page_text("en", "pods.waits")
    assert f"<dd>{said}</dd>" in visitor.text("/pods/nlp/wait-gpu-01", accept_language="en")
    assert f">{said}</strong>" in visitor.text("/pods?what=all", accept_language="en")
