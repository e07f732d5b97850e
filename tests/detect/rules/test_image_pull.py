# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import msgspec
import pytest

from monitor.detect.rules.image_pull import CAUSES, RULE, Limits
from monitor.facts.kube import EventFact
from tests.detect.builders_pods import PODS_UNSEEN, held, none, one, run, text
from tests.explain.builders import IMAGE, event, owned, pod, waiting

DNS = (
    'Failed to pull image "harbor.lab/nlp/bert:1": rpc error: dial tcp: lookup harbor.lab on 10.0.0.2:53: no such host'
)
CASES = [
    ("disk-full", "write /var/lib/docker/tmp/x: no space left on device"),
    ("wrong-architecture", "no matching manifest for linux/arm64 in the manifest list entries"),
    ("rate-limited", "toomanyrequests: You have reached your pull rate limit"),
    ("kubelet-limit", "pull QPS exceeded"),
    ("tls", 'Get "https://harbor.lab/v2/": x509: certificate signed by unknown authority'),
    ("plain-http", "http: server gave HTTP response to HTTPS client"),
    ("dns", "dial tcp: lookup harbor.lab on 10.0.0.2:53: no such host"),
    ("connection-refused", "dial tcp 10.0.0.5:443: connect: connection refused"),
    ("timeout", "dial tcp 10.0.0.5:443: i/o timeout"),
    ("connection-broken", "read: connection reset by peer"),
    ("too-slow", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
    ("proxy", 'Get "https://harbor.lab/v2/": proxyconnect tcp: dial tcp 10.0.0.8:3128: connect: connection refused'),
    (
        "mirror",
        'Head "http://127.0.0.1:65001/v2/nlp/bert/manifests/1?ns=harbor.lab": dial tcp 127.0.0.1:65001: connect: connection refused',
    ),
    ("registry-error", "unexpected status: 502 Bad Gateway"),
    ("unauthorized", "pull access denied, repository does not exist or may require authorization"),
    ("token-expired", "denied: Your authorization token has expired. Reauthenticate and try again."),
    ("credential-helper", "error getting credentials - err: exit status 1"),
    ("policy", "Source image rejected: A signature was required, but no signature exists"),
    ("not-found", "manifest unknown: manifest unknown"),
    ("bad-image", "failed to register layer: archive/tar: invalid tar header"),
    ("old-format", "application/vnd.docker.distribution.manifest.v1+prettyjws not supported"),
    ("damaged-layer", "filesystem layer verification failed for digest sha256:9082"),
    ("corrupt-layer", "failed to register layer: gzip: invalid checksum"),
    ("node-store", "failed to register layer: rename /a /b: file exists"),
    ("node-disk", "failed to extract layer sha256:6f: write /var/lib/containerd/a: input/output error"),
    ("runtime-down", "rpc error: code = Unavailable desc = error reading from server: EOF"),
    (
        "snapshotter",
        "failed to prepare extraction snapshot: dial unix /run/containerd-nydus/nydus.sock: connect: connection refused",
    ),
    ("bad-name", "couldn't parse image reference"),
    ("never-pull", "Container image is not present with pull policy of Never"),
    ("unknown", "the moon is in the wrong phase"),
]


def failing(reason: str = "ErrImagePull", message: str | None = None, **more: object) -> object:
    return pod(node="gpu-1", statuses=(waiting(reason, message),), **more)  # type: ignore[arg-type]  # any field of a pod


@pytest.mark.parametrize(("cause", "message"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(cause: str, message: str) -> None:
    finding = one(RULE, pods=[failing(message=message)], identities=owned(bert_0="li"))
    assert finding.cause == cause
    assert (finding.labels["pod"], finding.labels["node"], finding.labels["image"]) == ("bert-0", "gpu-1", IMAGE)
    assert message in (finding.raw or "")
    assert "bert-0" in text(finding)
    assert "li" in text(finding)
    assert "bert-0" in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert [cause for cause, _ in CASES] == list(CAUSES)


def test_it_says_what_to_do_with_the_numbers() -> None:
    event_ = event("Failed", DNS, count=7, first_at=5.0)
    finding = one(RULE, pods=[failing(message=DNS)], events=[event_])
    assert "The pull was tried 7 times." in text(finding)
    assert "getent hosts harbor.lab" in text(finding)
    assert "已尝试 7 次" in text(finding, "zh")
    assert finding.since == 5.0


QUIET = [
    ("pulling for the first time", pod(node="gpu-1", statuses=(waiting("ContainerCreating"),))),
    ("without a node", pod(statuses=(waiting("ErrImagePull", DNS),))),
    ("being deleted", failing(message=DNS, deletion_at=1.0)),
    ("ended", failing(message=DNS, phase="Failed")),
]


@pytest.mark.parametrize(("name", "given"), QUIET, ids=[case[0] for case in QUIET])
def test_no_failure_no_finding(name: str, given: object) -> None:
    assert none(RULE, pods=[given])


def test_back_off_does_not_hide_why() -> None:
    """Before 1.32 a container in back-off only says that it backs off."""
    backing = failing("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    events = [event("Failed", DNS, ago=60), event("Failed", "Error: ImagePullBackOff", ago=10)]
    assert one(RULE, pods=[backing], events=events).cause == "dns"


def test_an_event_about_the_other_image_of_the_pod_is_no_cause() -> None:
    backing = failing("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    other = event("Failed", 'Failed to pull image "quay.io/x/y": manifest unknown', ago=5)
    assert one(RULE, pods=[backing], events=[event("Failed", DNS, ago=60), other]).cause == "dns"


def test_two_containers_of_one_image_are_one_finding() -> None:
    both = (waiting("ErrImagePull", DNS), waiting("ErrImagePull", DNS, name="main2"))
    images = tuple(type(pod().containers[0])(name=name, image=IMAGE) for name in ("main", "main2"))
    assert one(RULE, pods=[pod(node="gpu-1", statuses=both, containers=images)]).cause == "dns"


def test_another_cause_is_not_another_finding() -> None:
    """A cause that changes is the same failure: what it is known by does not depend on it."""
    missing, unresolved = (one(RULE, pods=[failing(message=each)]) for each in ("manifest unknown", DNS))
    assert (missing.cause, unresolved.cause) == ("not-found", "dns")
    assert missing.key == unresolved.key


def test_the_cause_is_not_forgotten_between_two_attempts() -> None:
    backing = failing("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    first = run(RULE, pods=[failing(message=DNS)])
    later = run(RULE, memory=first.memory, pods=[backing])
    assert [finding.cause for finding in later.findings] == ["dns"]
    assert later.memory == first.memory
    assert one(RULE, pods=[backing]).cause == "unknown"


def at_main(reason: str, message: str, ago: float) -> EventFact:
    return msgspec.structs.replace(event(reason, message, ago=ago), container="main")


STARTING = pod(node="gpu-1", statuses=(waiting("ContainerCreating"),))
FAILED = at_main("Failed", f'Failed to pull image "{IMAGE}": {DNS}', 2)
EVENTS = [
    ("the event is there before the pod shows it", [FAILED], ["dns"]),
    ("the kubelet says more, but nothing new", [FAILED, at_main("Failed", "Error: ErrImagePull", 2)], ["dns"]),
    ("it worked since", [FAILED, at_main("Pulled", "Successfully pulled", 1)], []),
    ("it is tried again", [FAILED, at_main("Pulling", "Pulling image", 1)], []),
    ("something else failed", [at_main("Failed", "Error: context deadline exceeded", 2)], []),
    ("another container's", [msgspec.structs.replace(FAILED, container="other")], []),
]


@pytest.mark.parametrize(("name", "events", "causes"), EVENTS, ids=[case[0] for case in EVENTS])
def test_the_kubelet_s_event_is_believed_at_once(name: str, events: list[EventFact], causes: list[str]) -> None:
    assert [finding.cause for finding in run(RULE, pods=[STARTING], events=events).findings] == causes


def test_every_pull_names_its_registry() -> None:
    assert one(RULE, pods=[failing(message=DNS)]).labels["service"] == "harbor.lab"
    assert one(RULE, pods=[failing(message="manifest unknown")]).labels["service"] == "harbor.lab"


def test_a_limit_of_two_waits_for_the_second_failure() -> None:
    pods = [failing(message=DNS)]
    assert none(RULE, limits=Limits(failures=2), pods=pods, events=[event("Failed", DNS)])
    assert one(RULE, limits=Limits(failures=2), pods=pods, events=[event("Failed", DNS, count=2)])


def test_held_while_pods_cannot_be_seen() -> None:
    (left,) = held(RULE, {"pods": [failing(message=DNS)]}, {"view": PODS_UNSEEN})
    assert left.held
    assert held(RULE, {"pods": [failing(message=DNS)]}, {}) == ()


def test_where_nobody_says_anything_the_reason_is_kept() -> None:
    finding = one(RULE, pods=[failing()])
    assert (finding.cause, finding.raw) == ("unknown", "ErrImagePull")


def test_secrets_are_not_repeated() -> None:
    finding = one(RULE, pods=[failing(message='Get "https://u:hunter2@harbor.lab/v2/": i/o timeout')])
    assert "hunter2" not in text(finding) + (finding.raw or "")


def test_names_without_end_are_cut() -> None:
    image = "harbor.lab/" + "x" * 999
    long = pod(
        node="gpu-1",
        statuses=(waiting("ErrImagePull", "manifest unknown"),),
        containers=(type(pod().containers[0])(name="main", image=image),),
    )
    assert len(run(RULE, pods=[long]).findings[0].labels["image"]) == 253
