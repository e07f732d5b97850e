"""What is kept of pods as they come, change and go one at a time is what adding them all up would give."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.pod_index import PodIndex
from monitor.facts.cluster import Identity, UsageView
from monitor.facts.kube import OwnerRef, PodFact
from tests.cluster.builders import GPU, pod

CORES = (None, 0.1, 0.2, 0.7, 1e-6, 63.999999)


def by_label(item: PodFact) -> Identity:
    return Identity(user=item.labels.get("user"), queue=item.labels.get("queue"))


def some_pod(chance: random.Random) -> PodFact:
    return pod(
        f"p{chance.randrange(12)}",
        node=chance.choice((None, "n1", "n2")),
        gpus=chance.choice((0, 1, 0.5, 8)),
        phase=chance.choice(("Running", "Pending", "Succeeded")),
        labels={"user": chance.choice("ab"), "queue": chance.choice("xy")},
    )


def some_usage(chance: random.Random) -> dict[str, UsageView | None]:
    known = UsageView(cpu_cores=chance.choice(CORES), gpu_memory_bytes=chance.choice((None, 0, 80 * 1024**3)))
    return {f"uid-p{chance.randrange(12)}": chance.choice((None, known))}


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_book_with_a_history_equals_one_without(seed: int) -> None:
    chance = random.Random(seed)
    book = PodIndex(by_label, GPU)
    pods: dict[str, PodFact] = {}
    used: dict[tuple[str, str], UsageView | None] = {}
    for _ in range(chance.randrange(60)):
        node, usage, changed = chance.choice(("n1", "n2")), some_usage(chance), some_pod(chance)
        book.use(node, usage)
        used |= {(node, uid): figures for uid, figures in usage.items()}
        if changed.uid in pods and chance.random() < 0.3:
            book.drop(changed.uid)
            del pods[changed.uid]
        else:
            book.put(changed)
            pods[changed.uid] = changed
    anew = PodIndex(by_label, GPU)
    anew.replace(sorted(pods.values(), key=lambda item: chance.random()))
    for (node, uid), figures in used.items():
        anew.use(node, {uid: figures})
    assert (book.views(), book.users(), book.queues()) == (anew.views(), anew.users(), anew.queues())
    assert [view.name for view in book.views()] == sorted(view.name for view in book.views())


def test_what_is_taken_away_leaves_no_trace() -> None:
    book = PodIndex(by_label, GPU)
    for number, cores in enumerate((0.1, 0.2, 0.3)):
        book.use("n1", {f"uid-p{number}": UsageView(cpu_cores=cores, gpu_utilization_ratio=cores)})
        book.put(pod(f"p{number}", labels={"user": "li", "queue": "x"}, gpus=0.1))
    assert book.users() == {"li": UsageView(gpus=0.3, cpu_cores=0.6, gpu_utilization_ratio=0.2)}
    assert book.queues() == {("team", "x"): (0.3, 0.0)}
    book.use("n1", {"uid-p0": None, "uid-p1": None, "uid-p2": None})
    assert book.users() == {"li": UsageView(gpus=0.3)}, "unknown is not 0"
    for number in range(3):
        book.drop(f"uid-p{number}")
    assert (book.views(), book.users(), book.queues()) == ((), {}, {})


def test_only_the_pods_of_the_owners_named_are_identified_again() -> None:
    asked: list[str] = []

    def whose(item: PodFact) -> Identity:
        asked.append(item.name)
        return Identity(user="li")

    book = PodIndex(whose, GPU)
    book.put(pod("of-job", owner=OwnerRef(kind="Job", name="j", uid="uid-j")))
    book.put(pod("of-other-job", owner=OwnerRef(kind="Job", name="k", uid="uid-k")))
    book.put(pod("of-nobody", namespace="home"))
    for owners, expect in (({"uid-j"}, ["of-job"]), ({"home"}, ["of-nobody"]), ({"uid-z"}, [])):
        asked.clear()
        book.identify_again(owners)
        assert asked == expect, owners
