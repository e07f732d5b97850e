"""A PodIndex updated one pod at a time equals one built from all pods at once."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.holders import MIRROR_HASH
from monitor.cluster.pod_index import PodIndex
from monitor.facts.cluster import Identity, UsageView
from monitor.facts.facts_index import KnownPod
from monitor.facts.kube import OwnerRef, PodFact
from tests.cluster.builders import GPU, pod

CORES = (None, 0.1, 0.2, 0.7, 1e-6, 63.999999)


def by_label(item: PodFact) -> Identity:
    return Identity(user=item.labels.get("user"), queue=item.labels.get("queue"))


def some_pod(rng: random.Random) -> PodFact:
    return pod(
        f"p{rng.randrange(12)}",
        node=rng.choice((None, "n1", "n2")),
        gpus=rng.choice((0, 1, 0.5, 8)),
        phase=rng.choice(("Running", "Pending", "Succeeded")),
        labels={"user": rng.choice("ab"), "queue": rng.choice("xy")},
    )


def some_usage(rng: random.Random) -> dict[str, UsageView | None]:
    known = UsageView(cpu_cores=rng.choice(CORES), gpu_memory_bytes=rng.choice((None, 0, 80 * 1024**3)))
    return {f"uid-p{rng.randrange(12)}": rng.choice((None, known))}


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_book_with_a_history_equals_one_without(seed: int) -> None:
    rng = random.Random(seed)
    index = PodIndex(by_label, GPU)
    pods: dict[str, PodFact] = {}
    used: dict[tuple[str, str], UsageView | None] = {}
    for _ in range(rng.randrange(60)):
        node, usage, changed = rng.choice(("n1", "n2")), some_usage(rng), some_pod(rng)
        index.use(node, usage)
        used |= {(node, uid): figures for uid, figures in usage.items()}
        if changed.uid in pods and rng.random() < 0.3:
            index.drop(changed.uid)
            del pods[changed.uid]
        else:
            index.put(changed)
            pods[changed.uid] = changed
    anew = PodIndex(by_label, GPU)
    anew.replace(sorted(pods.values(), key=lambda item: rng.random()))
    for (node, uid), figures in used.items():
        anew.use(node, {uid: figures})
    assert (index.views(), index.users(), index.queues()) == (anew.views(), anew.users(), anew.queues())
    assert [view.name for view in index.views()] == sorted(view.name for view in index.views())


def test_what_is_taken_away_leaves_no_trace() -> None:
    index = PodIndex(by_label, GPU)
    for number, cores in enumerate((0.1, 0.2, 0.3)):
        index.use("n1", {f"uid-p{number}": UsageView(cpu_cores=cores, gpu_utilization_ratio=cores)})
        index.put(pod(f"p{number}", labels={"user": "li", "queue": "x"}, gpus=0.1))
    assert index.users() == {"li": UsageView(gpus=0.3, cpu_cores=0.6, gpu_utilization_ratio=0.2)}
    assert index.queues() == {("team", "x"): ({GPU: 0.3}, {})}
    index.use("n1", {"uid-p0": None, "uid-p1": None, "uid-p2": None})
    assert index.users() == {"li": UsageView(gpus=0.3)}, "unknown is not 0"
    for number in range(3):
        index.drop(f"uid-p{number}")
    assert (index.views(), index.users(), index.queues()) == ((), {}, {})


def test_a_static_pod_is_also_known_by_the_hash_that_cgroups_name() -> None:
    index = PodIndex(by_label, GPU)
    static = pod("etcd", annotations={MIRROR_HASH: "4f2a"})
    index.put(static)
    assert (index.by_uid["4f2a"], index.by_uid[static.uid]) == (static, static)
    index.drop(static.uid)
    assert index.by_uid == {}


def test_a_name_belongs_to_the_newest_pod_that_has_it() -> None:
    """DELETED for the old pod may arrive after ADDED for its replacement."""
    index = PodIndex(by_label, GPU)
    old, new = pod("web-0"), msgspec.structs.replace(pod("web-0"), uid="uid-new")
    index.put(old)
    index.put(new)
    index.drop(old.uid)
    assert index.by_name == {("team", "web-0"): new}


def test_a_finished_pod_that_is_identified_again_is_not_shown() -> None:
    users = ["li"]
    index = PodIndex(lambda _: Identity(user=users[-1]), GPU)
    done = pod("done", phase="Succeeded")
    index.put(done)
    users.append("han")
    assert index.identify_again({"team"}) == {done.uid}
    assert index.state(done.uid) == KnownPod(done, Identity(user="han"))
    assert index.views() == ()
    assert index.state("uid-unknown") is None


def test_only_the_pods_of_the_owners_named_are_identified_again() -> None:
    asked: list[str] = []

    def identify(item: PodFact) -> Identity:
        asked.append(item.name)
        return Identity(user="li")

    index = PodIndex(identify, GPU)
    index.put(pod("of-job", owner=OwnerRef(kind="Job", name="j", uid="uid-j")))
    index.put(pod("of-other-job", owner=OwnerRef(kind="Job", name="k", uid="uid-k")))
    index.put(pod("of-nobody", namespace="home"))
    for owners, expect in (({"uid-j"}, ["of-job"]), ({"home"}, ["of-nobody"]), ({"uid-z"}, [])):
        asked.clear()
        index.identify_again(owners)
        assert asked == expect, owners
