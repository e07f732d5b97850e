"""JSON to facts: malformed and incomplete responses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from monitor.facts.kube import (
    ContainerStatusFact,
    OwnerRef,
    PodContainerFact,
    PodFact,
)
from monitor.kube.decode import stream
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.decode.stream import MalformedResponseError, decode_pod_list, decode_status, lines
from monitor.kube.decode.values import MAX_MESSAGE_CHARS

KEEP = PodFieldFilter()
META = {"name": "q", "uid": "u", "resourceVersion": "3"}


def pod_json(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "lab", "uid": "u", "resourceVersion": "7"}, **parts}


def listed(*items: object) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}, ensure_ascii=False).encode()


def one(**parts: Any) -> PodFact:
    page = decode_pod_list(listed(pod_json(**parts)), KEEP)
    assert page.problem is None
    return page.items[0]


SPEC_NULLS = dict.fromkeys(
    (
        "containers",
        "initContainers",
        "volumes",
        "tolerations",
        "affinity",
        "nodeSelector",
        "schedulingGates",
        "overhead",
    ),
)
STATUS_NULLS = dict.fromkeys(("conditions", "containerStatuses", "initContainerStatuses", "startTime", "phase"))
META_NULLS = dict.fromkeys(("labels", "annotations", "ownerReferences", "finalizers", "creationTimestamp"))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("no spec and no status", {}),
        ("both null", {"spec": None, "status": None}),
        ("both empty", {"spec": {}, "status": {}}),
        ("every list and map null", {"spec": SPEC_NULLS, "status": STATUS_NULLS}),
        ("unknown fields", {"spec": {"new": [{"x": {}}]}, "status": {"new": None}, "other": 1}),
    ],
)
def test_a_pod_of_which_little_is_said(name: str, parts: dict[str, Any]) -> None:
    assert one(**parts) == PodFact(uid="u", name="p", namespace="lab", resource_version="7"), name


def test_null_metadata_fields() -> None:
    item = {"metadata": {"name": "p", "namespace": "lab", "uid": "u", **META_NULLS}}
    assert decode_pod_list(listed(item)).items == (PodFact(uid="u", name="p", namespace="lab"),)


def test_null_inside_parts() -> None:
    pod = one(
        spec={
            "containers": [{"name": "c", "resources": None, "env": None, "image": None}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}],
            "affinity": {"nodeAffinity": None, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
        },
        status={"containerStatuses": [{"name": "c", "state": None, "lastState": None, "restartCount": None}]},
    )
    assert pod.containers == (PodContainerFact(name="c"),)
    assert pod.statuses == (ContainerStatusFact(name="c"),)
    assert [volume.kind for volume in pod.volumes] == ["emptyDir", "other"]
    assert (pod.node_affinity, pod.pod_affinity, pod.requests) == ((), False, {})


GOOD = pod_json()


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("null", None),
        ("a string", "pod"),
        ("no metadata", {"spec": {}}),
        ("no uid", {"metadata": {"name": "p"}}),
        ("containers a string", pod_json(spec={"containers": "x"})),
        ("a number for a name", {"metadata": {"name": 5, "uid": "u"}}),
        ("resources a list", pod_json(spec={"containers": [{"name": "c", "resources": [1]}]})),
        ("tolerations a map", pod_json(spec={"tolerations": {"a": 1}})),
        ("a volume that is a string", pod_json(spec={"volumes": ["x"]})),
        ("a restart count in words", pod_json(status={"containerStatuses": [{"restartCount": "many"}]})),
        ("a label that is a number", {"metadata": {"name": "p", "uid": "u", "labels": {"a": 1}}}),
    ],
)
def test_an_odd_object_costs_only_itself(name: str, bad: object) -> None:
    page = decode_pod_list(listed(GOOD, bad, GOOD))
    assert (len(page.items), page.skipped) == (2, 1), name
    assert page.problem is not None


def test_an_object_that_is_no_utf8_costs_only_itself() -> None:
    raw = listed(GOOD, pod_json(spec={"nodeName": "XX"}), GOOD).replace(b"XX", b"\xff\xfe")
    page = decode_pod_list(raw)
    assert (len(page.items), page.skipped) == (2, 1)


@pytest.mark.parametrize("garbage", [b"", b"{", b"null", b"[]", b"<html>", b'{"items": 5}', b"\xff", b"[" * 100_000])
def test_what_is_no_list_is_said_so(garbage: bytes) -> None:
    with pytest.raises(MalformedResponseError, match="not a list"):
        decode_pod_list(garbage)


@pytest.mark.parametrize("garbage", [b"{", b"null", b'{"type": "ADDED"}', b'{"type": 1, "object": {}}', b"\xff"])
def test_what_is_no_watch_event_is_said_so(garbage: bytes) -> None:
    with pytest.raises(MalformedResponseError, match="not a watch event"):
        stream.pods(KEEP).line(garbage)


@pytest.mark.parametrize(
    ("length", "expect"),
    [
        (10, 10),
        (MAX_MESSAGE_CHARS, MAX_MESSAGE_CHARS),
        (MAX_MESSAGE_CHARS + 1, MAX_MESSAGE_CHARS),
        (5_000_000, MAX_MESSAGE_CHARS),
    ],
)
def test_huge_messages_are_cut(length: int, expect: int) -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "镜" * length}}
    message = one(status={"containerStatuses": [{"name": "c", "state": waiting}]}).statuses[0].message or ""
    assert len(message) == expect
    assert ("…" in message) == (length > MAX_MESSAGE_CHARS)


def container(cpu: str, gpu: str | None = None, **fields: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpu} if gpu else {}
    return {"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": limits}, **fields}


@pytest.mark.parametrize(
    ("name", "spec", "expect"),
    [
        ("one container", {"containers": [container("2", "8")]}, {"cpu": 2, "nvidia.com/gpu": 8}),
        ("containers together", {"containers": [container("2", "1"), container("500m")]},
         {"cpu": 2.5, "nvidia.com/gpu": 1}),
        ("a large init container", {"initContainers": [container("8")], "containers": [container("2")]}, {"cpu": 8}),
        ("small ones", {"initContainers": [container("1"), container("1")], "containers": [container("2")]},
         {"cpu": 2}),
        ("a sidecar stays", {"initContainers": [container("1", restartPolicy="Always"), container("3")],
                             "containers": [container("2", "4")]}, {"cpu": 4, "nvidia.com/gpu": 4}),
        ("overhead", {"overhead": {"cpu": "250m"}, "containers": [container("2")]}, {"cpu": 2.25}),
        ("for the pod as a whole", {"resources": {"requests": {"cpu": "9"}}, "containers": [container("2", "1")]},
         {"cpu": 9, "nvidia.com/gpu": 1}),
    ],
)  # fmt: skip
def test_what_the_scheduler_counts(name: str, spec: dict[str, Any], expect: dict[str, float]) -> None:
    assert one(spec=spec).requests == expect, name


def test_what_a_pod_asks_kai_for_counts_as_a_request() -> None:
    spec = {"schedulerName": "kai-scheduler", "containers": [container("2")]}
    asks = one(metadata={"name": "p", "uid": "u", "annotations": {"gpu-fraction": "0.5"}}, spec=spec)
    assert asks.requests == {"cpu": 2, "kai.scheduler/gpu-fraction": 50}


def resized(pending: str | None, allocated: dict[str, str] | None = None, resize: str = "Pending") -> dict[str, Any]:
    """A pod whose one container asks for 8 CPUs and has 2, or what is allocated."""
    condition = {"type": f"PodResize{resize}", "status": "True", "reason": pending}
    status = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    if allocated:
        status["allocatedResources"] = allocated
    return {"phase": "Running", "containerStatuses": [status], "conditions": [condition] if resize else []}


@pytest.mark.parametrize(
    ("name", "status", "expect"),
    [
        ("not enough room yet", resized("Deferred"), {"cpu": 2, "nvidia.com/gpu": 1}),
        ("never enough room", resized("Infeasible"), {"cpu": 2, "nvidia.com/gpu": 1}),
        ("more is allocated than applied", resized("Deferred", {"cpu": "3"}), {"cpu": 3, "nvidia.com/gpu": 1}),
        ("in progress, both count", resized(None, resize="InProgress"), {"cpu": 8, "nvidia.com/gpu": 1}),
        ("no resize", resized(None, resize=""), {"cpu": 8, "nvidia.com/gpu": 1}),
        ("no status yet", resized("Deferred") | {"containerStatuses": None}, {"cpu": 8, "nvidia.com/gpu": 1}),
    ],
)
def test_a_pending_resize_does_not_count(name: str, status: dict[str, Any], expect: dict[str, float]) -> None:
    assert one(spec={"containers": [container("8", "1")]}, status=status).requests == expect, name


def test_what_a_shrinking_pod_still_holds_counts() -> None:
    status = resized(None, resize="InProgress")
    assert one(spec={"containers": [container("1")]}, status=status).requests == {"cpu": 2}


def test_sidecars_are_told_from_init_containers() -> None:
    spec = {"initContainers": [container("1", restartPolicy="Always") | {"name": "s"}, container("1") | {"name": "i"}]}
    status = {"initContainerStatuses": [{"name": "s", "started": True}, {"name": "i", "started": False}]}
    statuses = one(spec=spec, status=status).statuses
    assert [(part.name, part.init, part.sidecar, part.started) for part in statuses] == [
        ("s", True, True, True),
        ("i", True, False, False),
    ]


KEPT_CONDITIONS: list[tuple[str | None, list[str]]] = [
    ("Running", ["Ready", "Odd", "PodResizePending"]),  # that a running pod is scheduled is never read
    ("Pending", ["PodScheduled", "Ready", "Odd", "PodResizePending"]),
    ("Succeeded", ["PodScheduled", "Ready", "Odd", "PodResizePending"]),  # all: they give the end time
    ("Failed", ["PodScheduled", "Ready", "Odd", "PodResizePending"]),
    (None, ["PodScheduled", "Ready", "Odd", "PodResizePending"]),
]


@pytest.mark.parametrize(("phase", "expect"), KEPT_CONDITIONS)
def test_which_conditions_are_kept(phase: str | None, expect: list[str]) -> None:
    given = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}, {"type": "Odd"}]
    given.append({"type": "PodResizePending", "status": "True"})
    assert [condition.type for condition in one(status={"phase": phase, "conditions": given}).conditions] == expect


def test_an_image_mounted_as_a_volume() -> None:
    volume = {"name": "model", "image": {"reference": "lab.io/llama:3", "pullPolicy": "IfNotPresent"}}
    (found,) = one(spec={"volumes": [volume]}).volumes
    assert (found.kind, found.image) == ("image", "lab.io/llama:3")


@pytest.mark.parametrize(
    ("times", "first", "last"),
    [
        ({"eventTime": "2026-11-18T12:00:00.250000Z"}, 0.25, 0.25),
        ({"eventTime": "2026-11-18T12:00:00.250000Z", "firstTimestamp": None, "lastTimestamp": None}, 0.25, 0.25),
        ({"eventTime": None, "firstTimestamp": "2026-11-18T12:00:01Z", "lastTimestamp": "2026-11-18T12:00:09Z"}, 1, 9),
        ({"lastTimestamp": "2026-11-18T12:00:09Z"}, 5, 9),
        ({"eventTime": "0001-01-01T00:00:00Z"}, 5, 5),
    ],
)
def test_times_of_events(times: dict[str, str | None], first: float, last: float) -> None:
    meta = {"name": "e", "namespace": "lab", "uid": "u", "creationTimestamp": "2026-11-18T12:00:05Z"}
    noon = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
    (event,) = stream.EVENTS.page(json.dumps({"items": [{"metadata": meta, **times}]}).encode()).items
    assert (event.first_at, event.last_at) == (noon + first, noon + last)


def test_the_token_volume_of_every_pod_is_left_out() -> None:
    token = {"name": "kube-api-access-x7k2p", "projected": {"sources": [{"serviceAccountToken": {}}]}}
    raw = json.dumps({"items": [pod_json(spec={"volumes": [token]})]}, separators=(",", ":")).encode()
    assert decode_pod_list(raw).items[0].volumes == ()


@pytest.mark.parametrize(
    ("name", "chunks", "expect"),
    [
        ("one line", [b"a\n"], [b"a"]),
        ("two in one chunk", [b"a\nb\n"], [b"a", b"b"]),
        ("one in several chunks", [b"a", b"b", b"\n"], [b"ab"]),
        ("an end and a start in one chunk", [b"a", b"b\nc", b"d\ne\n"], [b"ab", b"cd", b"e"]),
        ("an incomplete rest is dropped", [b"a\nb"], [b"a"]),
        ("empty lines are ignored", [b"\n\na\n\n"], [b"a"]),
        ("nothing", [], []),
    ],
)
def test_lines(name: str, chunks: list[bytes], expect: list[bytes]) -> None:
    assert list(lines(chunks)) == expect, name


def test_a_line_without_end_is_not_collected_for_ever() -> None:
    chunk = b"x" * (1 << 20)
    with pytest.raises(MalformedResponseError, match="line of more than"):
        list(lines(chunk for _ in range(100)))


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}', "Forbidden", "no"),
        (b"<html>502 Bad Gateway</html>", None, "<html>502 Bad Gateway</html>"),
        (b"", None, None),
    ],
)
def test_refusals(body: bytes, reason: str | None, message: str | None) -> None:
    error = decode_status(body)
    assert (error.reason, error.message) == (reason, message)


@pytest.mark.parametrize(
    ("conditions", "completed", "failed_by"),
    [
        (None, False, None),
        ([{"type": "Suspended", "status": "True", "reason": "JobSuspended"}], False, None),
        ([{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}], False, None),
        ([{"type": "Complete", "status": "True", "reason": "CompletionsReached"}], True, None),
        ([{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}], False, "DeadlineExceeded"),
        ([{"type": "Failed", "status": "True"}], False, "Failed"),
        ([{"type": "Failed", "status": "False", "reason": "x"}], False, None),
    ],
)
def test_jobs_say_how_they_end(conditions: list[dict[str, str]] | None, completed: bool, failed_by: str | None) -> None:
    item = {"metadata": {**META, "namespace": "lab"}, "status": {"conditions": conditions}}
    (job,) = stream.JOBS.page(listed(item)).items
    assert (job.completed, job.failed_by, job.ended) == (completed, failed_by, completed or failed_by is not None)


def test_owners_and_namespaces_from_metadata_alone() -> None:
    owner = {"kind": "CronJob", "name": "nightly", "uid": "c", "apiVersion": "batch/v1", "controller": True}
    (job,) = stream.OWNERS.page(listed({"metadata": {**META, "namespace": "lab", "ownerReferences": [owner]}})).items
    assert job.owner == OwnerRef(kind="CronJob", name="nightly", uid="c", api_version="batch/v1")
    labels = [{"kueue.x-k8s.io/queue-name": "team-a"}, {"kueue.x-k8s.io/queue-name": ""}, {}]
    queued = [{"metadata": {**META, "labels": each}} for each in labels]
    assert [each.queue for each in (job, *stream.OWNERS.page(listed(*queued)).items)] == [None, "team-a", None, None]
    mine = {"metadata": {**META, "annotations": {"owner": "li@lab", "other": "x"}}}
    assert [n.owner for n in stream.NAMESPACES.page(listed(mine, {"metadata": META})).items] == ["li@lab", None]
