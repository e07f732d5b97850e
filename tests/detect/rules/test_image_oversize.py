from __future__ import annotations

import pytest

from monitor.detect.base import Limits, Override, RuleContext
from monitor.detect.rules.image_oversize import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.storage import ImageFact
from tests.detect.builders_storage import (
    GIB,
    NOW,
    Continuous,
    Watch,
    agent,
    brief,
    cache,
    container,
    image,
    once,
    silent,
    text,
)
from tests.detect.running import evaluate
from tests.explain.builders import pod


def node(name: str, *images: ImageFact) -> AgentFact:
    return agent(name, images=(cache(*images),), containers=(container(),))


@pytest.mark.parametrize(
    ("size", "fires"),
    [(30, False), (30.1, True), (59, True), (0, False)],
)
def test_size(size: float, fires: bool) -> None:
    assert brief(once(RULE, node("n1", image(size=size)))) == ([("warning", "image-oversize", False)] if fires else [])


def test_a_size_that_is_not_known_is_not_large() -> None:
    assert once(RULE, agent("n1", images=(cache(ImageFact(id="sha256:1")),))) == []


def test_one_finding_for_all_nodes_with_who_uses_it() -> None:
    images = [image("harbor/bert:1", 59, "train", first_seen_at=NOW - 60), image("harbor/bert:1", 59)]
    found = once(RULE, node("n1", images[0]), node("n2", images[1]), identities={"uid-bert-0": Identity(user="bob")})
    assert [finding.labels for finding in found] == [{"image": "harbor/bert:1"}]
    assert "Image harbor/bert:1 is 59 GiB, on 2 nodes (n1, n2)." in text(found[0])
    assert "Used by team/bert-0 (bob)." in text(found[0])
    assert "镜像 harbor/bert:1 有 59 GiB，在 2 个节点上" in text(found[0], "zh")
    assert found[0].since == NOW - 60


def test_nobody_uses_it() -> None:
    found = once(RULE, node("n1", image(size=59)))
    assert "No container uses it at the moment." in text(found[0])
    assert "没有容器使用" in text(found[0], "zh")


def test_two_names_of_one_image_are_one_image() -> None:
    same = image("z:1", 59, names=("z:1", "a:1", "<none>:<none>"))
    untagged = image("z:1", 59, names=())
    found = once(RULE, node("n1", same), node("n2", untagged))
    assert [finding.labels for finding in found] == [{"image": "a:1"}]


def test_an_image_without_a_name_goes_by_its_id() -> None:
    assert once(RULE, node("n1", image("x", 59, names=())))[0].labels == {"image": "sha256:x"}


def test_exceptions_by_image() -> None:
    strict = Override({"image": "harbor/web*"}, RULE.limits(size=GIB))
    lax = Override({"image": "harbor/cuda*"}, RULE.limits(size=100 * GIB))
    given = node("n1", image("harbor/web:1", 2), image("harbor/cuda:1", 59), image("harbor/other:1", 2))
    context = RuleContext(make_cluster_facts(agents=[given]), NOW, limits=Limits(RULE.limits(), (strict, lax)))
    assert [finding.labels["image"] for finding in evaluate(RULE, context, None).findings] == ["harbor/web:1"]


def test_held_while_those_who_have_it_are_silent() -> None:
    watch = Watch(RULE)
    watch.see(node("n1", image(size=59)), node("n2"))
    assert brief(watch.see(silent(), node("n2"))) == [("warning", "image-oversize", True)]
    assert brief(watch.see(agent("n1"), node("n2"))) == [("warning", "image-oversize", True)]
    assert brief(watch.see()) == [("warning", "image-oversize", True)]
    assert watch.see(node("n1"), silent("n2")) == []


def test_a_change_on_any_node_counts() -> None:
    watch, small, large = Continuous(RULE), node("n1", image("a:1", 20)), node("n2", image("a:1", 59, "train"))
    unused = node("n2", image("a:1", 59))
    assert watch.see(small) == []
    assert ["on 2 nodes" in text(f) for f in watch.see(small, large)] == [True]
    assert ["Used by" in text(f) for f in watch.see(small, unused)] == [False]
    assert ["59 GiB, on 1 node " in text(f) for f in watch.see(node("n1"), large)] == [True]
    assert brief(watch.see(node("n1"), silent("n2"))) == [("warning", "image-oversize", True)]
    assert len(watch.see(small, large)) == 1
    assert watch.see(small, node("n2")) == []


def test_the_owner_may_become_known_later() -> None:
    watch, given = Continuous(RULE), node("n1", image("a:1", 59, "train"))
    of_pod = pod("bert-0", node="n1", namespace="team", uid="uid-bert-0")
    assert "Used by team/bert-0 (team)." in text(watch.see(given, pods=[of_pod])[0])
    owners = {"uid-bert-0": Identity(user="bob")}
    assert "Used by team/bert-0 (bob)." in text(watch.see(given, pods=[of_pod], identities=owners)[0])


def test_what_was_held_is_judged_when_its_node_reports_again() -> None:
    watch, large = Continuous(RULE), node("n1", image(size=59))
    assert len(watch.see(large, node("n2"))) == 1
    assert brief(watch.see(silent(), node("n2"))) == [("warning", "image-oversize", True)]
    assert watch.see(node("n1"), node("n2")) == []
