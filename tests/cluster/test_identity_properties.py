"""Identities equal those of a naive evaluation of the platform table: the shortcuts make no difference."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners, workload_of
from monitor.cluster.platforms import PlatformRule, all_rules
from monitor.cluster.selectors import parse_selector
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerRef, PodContainerFact, PodFact

OWN = PlatformRule(
    name="own",
    when=("label:userName=ann & annotation:team", "namespace-owner & env:JOB"),
    user=("annotation:team#lead",),
    job=("env:JOB",),
    index=("label:replica-index",),
    queue=("env:QUEUE", "label:team"),
)
RULES = all_rules((OWN,))
TRUSTING = all_rules((OWN,), trusted=("annotation:team#lead", "label:userName"))
SELECTORS = {parse_selector(text) for rule in RULES for text in rule.selectors()}
samples = st.sampled_from(
    ["ann", " bob ", "", " ", "kubeflow.org", "kubedl.io", "inference", json.dumps({"user": "eve", "lead": "dan"})]
)


def values(source: str) -> st.SearchStrategy[dict[str, str]]:
    keys = sorted({selector.key for selector in SELECTORS if selector.source == source})
    return st.dictionaries(st.sampled_from(keys), samples, max_size=6)


def value_of(text: str, pod: PodFact, namespace_owner: str | None) -> str:
    """Value of one selector."""
    selector = parse_selector(text)
    found = {
        "label": pod.labels.get(selector.key),
        "annotation": pod.annotations.get(selector.key),
        "env": pod.env.get(selector.key),
        "namespace": pod.namespace,
        "namespace-owner": namespace_owner,
        "owner": workload_of(pod, no_owners).name,
        "owner-queue": None,  # no owner is known
        "name": pod.name,
        "text": selector.value,
        "kind": selector.key if workload_of(pod, no_owners).kind == selector.key else None,
        "serves": "true" if any(container.serves for container in pod.containers) else None,
    }[selector.source]
    if selector.field and found is not None:
        found = json.loads(found)[selector.field] if found.startswith("{") else None
    return (found or "").strip()


def read(texts: tuple[str, ...], pod: PodFact, namespace_owner: str | None) -> str | None:
    return next((found for text in texts if (found := value_of(text, pod, namespace_owner))), None)


def applies(rule: PlatformRule, pod: PodFact, namespace_owner: str | None) -> bool:
    def holds(entry: str) -> bool:
        found = [(value_of(text, pod, namespace_owner), parse_selector(text).value) for text in entry.split(" & ")]
        return all(has and (not wanted or has == wanted) for has, wanted in found)

    return not rule.when or any(holds(entry) for entry in rule.when)


def expected(rules: tuple[PlatformRule, ...], pod: PodFact, namespace_owner: str | None) -> Identity:
    rules = tuple(rule for rule in rules if applies(rule, pod, namespace_owner))
    readable = [rule.trusted if namespace_owner else rule.user for rule in rules]
    users = [user for texts in readable if (user := read(texts, pod, namespace_owner))] + [namespace_owner]
    queues = [queue for rule in rules if (queue := read(rule.queue, pod, namespace_owner))]
    user, queue, kind = next(iter(users), None), next(iter(queues), None), workload_of(pod, no_owners).kind
    inference = next((rule.inference for rule in rules if rule.inference is not None), None) is True
    for rule in rules:
        if job := read(rule.job, pod, namespace_owner):
            role, index = read(rule.role, pod, namespace_owner), read(rule.index, pod, namespace_owner)
            return Identity(
                user=user, job=job, role=role, index=index, queue=queue, platform=rule.name,
                workload_kind=rule.kind or kind, inference=inference,
            )  # fmt: skip
    return Identity(user=user, queue=queue, workload_kind=kind, inference=inference)


@given(
    labels=values("label"),
    annotations=values("annotation"),
    env=values("env"),
    owner=st.sampled_from([None, "bert", " "]),
    kind=st.sampled_from(["Job", "StatefulSet"]),
    serves=st.booleans(),
    namespace_owner=st.sampled_from([None, "fay", " "]),
    rules=st.sampled_from([RULES, RULES[:-1], TRUSTING, ()]),
)
def test_it_is_what_the_table_says(
    labels: dict[str, str],
    annotations: dict[str, str],
    env: dict[str, str],
    owner: str | None,
    kind: str,
    serves: bool,
    namespace_owner: str | None,
    rules: tuple[PlatformRule, ...],
) -> None:
    made_by = OwnerRef(kind=kind, name=owner) if owner is not None else None
    containers = (PodContainerFact(name="c", serves=serves),)
    pod = PodFact(
        uid="u", name="p", namespace="n", labels=labels, annotations=annotations, env=env, owner=made_by,
        containers=containers,
    )  # fmt: skip
    assert identify(pod, no_owners, rules, {"n": namespace_owner} if namespace_owner else {}) == expected(
        rules, pod, (namespace_owner or "").strip() or None
    )
