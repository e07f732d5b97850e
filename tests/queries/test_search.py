"""The search for pods by name, job or user."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from monitor.facts.cluster import ClusterView, Identity, PodView
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.search import MAX_EXPLAINED_PODS, MAX_FOUND_PODS, FoundPods, find_pods, search_why, split_name


def pod(name: str, namespace: str = "lab", user: str | None = None, job: str | None = None, **more: object) -> PodView:
    fields = {"phase": "Running", "node": "n1"} | more
    identity = Identity(user=user, job=job)
    return PodView(uid=f"{namespace}/{name}", name=name, namespace=namespace, identity=identity, **fields)  # type: ignore[arg-type]


PODS = (
    pod("bert-0", user="zhang", job="bert"),
    pod("bert-1", user="zhang", job="bert"),
    pod("vit-0", user="li", job="vit"),
    pod("vit-0", namespace="cv", user="wang"),
    pod("zhang-notebook", user="li"),
)


@pytest.mark.parametrize(
    ("wanted", "namespace", "names"),
    [
        ("bert-0", None, ["lab/bert-0"]),
        (" bert-0 ", None, ["lab/bert-0"]),
        ("lab/bert-0", None, ["lab/bert-0"]),
        ("cv/bert-0", None, []),
        ("vit-0", None, ["lab/vit-0", "cv/vit-0"]),
        ("cv/vit-0", None, ["cv/vit-0"]),
        ("vit-0", "cv", ["cv/vit-0"]),
        ("bert", None, ["lab/bert-0", "lab/bert-1"]),
        ("bert", "cv", []),
        ("zhang", None, ["lab/bert-0", "lab/bert-1"]),
        ("ZHANG", None, ["lab/bert-0", "lab/bert-1"]),
        ("notebook", None, ["lab/zhang-notebook"]),
        ("lab/v", None, ["lab/vit-0"]),
        ("nothing", None, []),
        ("", None, []),
        ("lab/", None, []),
    ],
)
def test_a_name_stands_for_these_pods(wanted: str, namespace: str | None, names: list[str]) -> None:
    found = find_pods(PODS, wanted, namespace)
    assert [f"{each.namespace}/{each.name}" for each in found.pods] == names


def test_only_one_pod_of_exactly_the_name_is_meant() -> None:
    assert find_pods(PODS, "bert-0").only == PODS[0]
    assert find_pods(PODS, "vit-0").only is None
    assert find_pods(PODS, "notebook").only is None
    assert FoundPods().only is None


@pytest.mark.parametrize(
    ("wanted", "namespace", "name"),
    [("a", None, ("a", None)), ("x/a", None, ("a", "x")), ("x/a", "y", ("a", "y")), ("a", "y", ("a", "y"))],
)
def test_a_name_may_contain_its_namespace(wanted: str, namespace: str | None, name: tuple[str, str | None]) -> None:
    assert split_name(wanted, namespace) == name


class FakeCluster:
    """Explains only the pods of its view; each waiting one is unwell."""

    def __init__(self, *pods: PodView) -> None:
        self._view = ClusterView(at=0.0, pods=pods)
        self.asked: list[str] = []

    def view(self) -> ClusterView:
        return self._view

    def why(self, names: Sequence[WantedName], _lang: str) -> tuple[PodExplanation, ...]:
        return tuple(self._explain(name, namespace) for name, namespace in names)

    def _explain(self, name: str, namespace: str | None) -> PodExplanation:
        self.asked.append(f"{namespace}/{name}")
        known = [pod for pod in self._view.pods if pod.name == name and namespace in (None, pod.namespace)]
        if not known:
            return PodExplanation(name=name, status="not-created", cause="unknown-name", well=False, lines=("none",))
        waits = known[0].node is None
        status, cause = ("pending", "quota") if waits else ("running", "running")
        return PodExplanation(name=name, status=status, cause=cause, well=not waits, lines=(f"{name} is {status}",))


def test_a_pod_is_explained_alone() -> None:
    cluster = FakeCluster(*PODS)
    assert search_why(cluster, "lab/bert-0", None, "en").lines == ("bert-0 is running",)
    assert cluster.asked == ["lab/bert-0"]


def test_a_user_stands_for_all_pods_the_waiting_ones_first() -> None:
    waiting = pod("wait", user="zhang", phase="Pending", node=None)
    answer = search_why(FakeCluster(*PODS, waiting), "zhang", None, "en")
    assert answer.lines == (
        "zhang stands for 3 pods:", "", "wait is pending", "", "bert-0 is running", "", "bert-1 is running",
    )  # fmt: skip
    assert (answer.name, answer.status, answer.cause, answer.well) == ("zhang", "pending", "quota", False)
    assert answer.found == ("lab/wait", "lab/bert-0", "lab/bert-1")


def test_one_similar_pod_is_explained_as_if_its_name_had_been_given() -> None:
    answer = search_why(FakeCluster(*PODS), "notebook", None, "en")
    assert (answer.lines, answer.found) == (("zhang-notebook is running",), ("lab/zhang-notebook",))


def test_many_pods_cost_a_few_explanations() -> None:
    cluster = FakeCluster(*(pod(f"p-{number:03}", user="zhang") for number in range(2 * MAX_FOUND_PODS)))
    answer = search_why(cluster, "zhang", None, "zh")
    assert len(cluster.asked) == 1 + MAX_EXPLAINED_PODS
    assert len(answer.found) == MAX_FOUND_PODS
    assert answer.lines[-1] == f"……还有 {2 * MAX_FOUND_PODS - MAX_EXPLAINED_PODS} 个 Pod"


def test_an_unknown_name_stays_unknown() -> None:
    assert search_why(FakeCluster(*PODS), "nothing", None, "en").cause == "unknown-name"
