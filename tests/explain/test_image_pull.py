# ruff: noqa: E501  # messages are quoted in full
"""Recorded messages of Docker 18 to 28, containerd 1.5 to 2, CRI-O 1.18 to 1.30, and the kubelet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.error_chain.hosts import registry_of
from monitor.explain.image_pull import PULL_REASONS, classify

P = PullFailureCause
CONTAINERD = 'failed to pull and unpack image "harbor.lab/nlp/bert:1": '
RESOLVE = CONTAINERD + 'failed to resolve reference "harbor.lab/nlp/bert:1": '
HEAD = RESOLVE + 'failed to do request: Head "https://harbor.lab/v2/nlp/bert/manifests/1": '
RPC = "rpc error: code = Unknown desc = "
DOCKER = RPC + "Error response from daemon: "
GET = DOCKER + 'Get "https://harbor.lab/v2/": '
OLD_GET = DOCKER + "Get https://harbor.lab/v2/: "
CRIO = RPC + "pinging container registry harbor.lab: "

MESSAGES: list[tuple[str, PullFailureCause, str]] = [
    ("containerd: disk full", P.DISK_FULL, RPC + CONTAINERD + "failed to copy: failed to send write: write /var/lib/containerd/io.containerd.content.v1.content/ingest/a1/data: no space left on device: unknown"),
    ("docker: disk full, while registering a layer", P.DISK_FULL, DOCKER + "failed to register layer: Error processing tar file(exit status 1): write /opt/conda/lib/libtorch_cuda.so: no space left on device"),
    ("docker: disk full, write", P.DISK_FULL, RPC + "write /var/lib/docker/tmp/GetImageBlob123: no space left on device"),
    ("containerd: architecture, with a not found behind it", P.WRONG_ARCHITECTURE, RPC + CONTAINERD + "no match for platform in manifest: not found"),
    ("docker: architecture", P.WRONG_ARCHITECTURE, DOCKER + "no matching manifest for linux/arm64/v8 in the manifest list entries"),
    ("cri-o: architecture", P.WRONG_ARCHITECTURE, RPC + 'choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"'),
    ("docker hub: rate", P.RATE_LIMITED, DOCKER + "toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit"),
    ("containerd: rate", P.RATE_LIMITED, RPC + RESOLVE + "unexpected status from HEAD request to https://harbor.lab/v2/nlp/bert/manifests/1: 429 Too Many Requests"),
    ("cri-o: rate", P.RATE_LIMITED, RPC + "reading manifest 1 in harbor.lab/nlp/bert: toomanyrequests: too many"),
    ("kubelet's own rate", P.KUBELET_LIMIT, "pull QPS exceeded"),
    ("containerd: CA", P.TLS, HEAD + "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ("docker: CA", P.TLS, GET + "x509: certificate signed by unknown authority"),
    ("docker: expired", P.TLS, OLD_GET + "x509: certificate has expired or is not yet valid: current time 2025-11-16T02:40:00Z is after 2025-10-01T00:00:00Z"),
    ("cri-o: another name", P.TLS, CRIO + 'Get "https://harbor.lab/v2/": x509: certificate is valid for registry.lab, not harbor.lab'),
    ("handshake fails", P.TLS, HEAD + "remote error: tls: handshake failure"),
    ("handshake times out: no matter of certificates", P.TIMEOUT, GET + "net/http: TLS handshake timeout"),
    ("plain HTTP", P.PLAIN_HTTP, GET + "http: server gave HTTP response to HTTPS client"),
    ("plain HTTP, other words", P.PLAIN_HTTP, HEAD + "tls: first record does not look like a TLS handshake"),
    ("DNS", P.DNS, HEAD + "dial tcp: lookup harbor.lab on 10.96.0.10:53: no such host"),
    ("DNS server does not answer", P.DNS, GET + "dial tcp: lookup harbor.lab on 192.168.1.1:53: read udp 192.168.1.7:40412->192.168.1.1:53: i/o timeout"),
    ("DNS server refuses: not the registry", P.DNS, OLD_GET + "dial tcp: lookup harbor.lab on [::1]:53: read udp [::1]:54528->[::1]:53: read: connection refused"),
    ("DNS server misbehaves", P.DNS, GET + "dial tcp: lookup harbor.lab on 10.0.0.2:53: server misbehaving"),
    ("libc resolver", P.DNS, CRIO + 'Get "https://harbor.lab/v2/": dial tcp: lookup harbor.lab: Temporary failure in name resolution'),
    ("refused", P.CONNECTION_REFUSED, HEAD + "dial tcp 10.0.0.5:443: connect: connection refused"),
    ("docker 18: refused", P.CONNECTION_REFUSED, OLD_GET + "dial tcp 10.0.0.5:443: getsockopt: connection refused"),
    ("timeout", P.TIMEOUT, HEAD + "dial tcp 10.0.0.5:443: i/o timeout"),
    ("timeout, headers", P.TIMEOUT, OLD_GET + "net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)"),
    ("timeout, newer Go", P.TIMEOUT, GET + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    ("no route", P.TIMEOUT, HEAD + "dial tcp 10.0.0.5:443: connect: no route to host"),
    ("reset", P.CONNECTION_BROKEN, RPC + CONTAINERD + 'failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://harbor.lab/v2/nlp/bert/blobs/sha256:1": read tcp 10.0.0.7:51000->10.0.0.5:443: read: connection reset by peer'),
    ("EOF", P.CONNECTION_BROKEN, GET + "EOF"),
    ("unexpected EOF", P.CONNECTION_BROKEN, RPC + CONTAINERD + "failed to copy: unexpected EOF"),
    ("http2", P.CONNECTION_BROKEN, RPC + CONTAINERD + "failed to copy: stream error: stream ID 7; INTERNAL_ERROR; received from peer"),
    ("too slow", P.TOO_SLOW, "rpc error: code = DeadlineExceeded desc = " + CONTAINERD + "context deadline exceeded"),
    ("no progress: docker gives up", P.TOO_SLOW, RPC + "context canceled"),
    ("no progress: containerd gives up", P.TOO_SLOW, "rpc error: code = Canceled desc = " + CONTAINERD + "context canceled"),
    ("502", P.REGISTRY_ERROR, RPC + RESOLVE + "unexpected status from HEAD request to https://harbor.lab/v2/nlp/bert/manifests/1: 502 Bad Gateway"),
    ("500", P.REGISTRY_ERROR, DOCKER + "received unexpected HTTP status: 500 Internal Server Error"),
    ("503 without words", P.REGISTRY_ERROR, RPC + "reading manifest 1 in harbor.lab/nlp/bert: received unexpected HTTP status: 503"),
    ("token service down", P.REGISTRY_ERROR, RPC + RESOLVE + "failed to authorize: failed to fetch oauth token: unexpected status from POST request to https://harbor.lab/service/token: 503 Service Unavailable"),
    ("containerd: denied", P.UNAUTHORIZED, RPC + RESOLVE + "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"),
    ("docker: denied", P.UNAUTHORIZED, DOCKER + "pull access denied for harbor.lab/nlp/bert, repository does not exist or may require 'docker login': denied: requested access to the resource is denied"),
    ("docker: harbor", P.UNAUTHORIZED, DOCKER + "unauthorized: unauthorized to access repository: nlp/bert, action: pull: unauthorized to access repository: nlp/bert, action: pull"),
    ("containerd: 401", P.UNAUTHORIZED, RPC + RESOLVE + "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://harbor.lab/service/token?scope=repository: 401 Unauthorized"),
    ("403", P.UNAUTHORIZED, HEAD.rsplit("failed to do", 1)[0] + "unexpected status from HEAD request to https://harbor.lab/v2/: 403 Forbidden"),
    ("no credentials", P.UNAUTHORIZED, GET + "no basic auth credentials"),
    ("cri-o: denied", P.UNAUTHORIZED, RPC + "Error reading manifest latest in harbor.lab/nlp/bert: errors: denied: requested access to the resource is denied unauthorized: authentication required"),
    ("containerd: not found", P.NOT_FOUND, "rpc error: code = NotFound desc = " + RESOLVE + "harbor.lab/nlp/bert:1: not found"),
    ("docker: not found", P.NOT_FOUND, DOCKER + "manifest for harbor.lab/nlp/bert:1 not found: manifest unknown: manifest unknown"),
    ("harbor: not found", P.NOT_FOUND, DOCKER + "unknown: artifact nlp/bert:1 not found"),
    ("cri-o: not found", P.NOT_FOUND, RPC + "reading manifest 1 in harbor.lab/nlp/bert: manifest unknown: manifest unknown"),
    ("a layer that exists already", P.NODE_STORE, DOCKER + "failed to register layer: rename /var/lib/docker/image/overlay2/layerdb/tmp/write-set-09 /var/lib/docker/image/overlay2/layerdb/sha256/9d32: file exists"),
    ("a layer directory that is not empty", P.NODE_STORE, DOCKER + "failed to register layer: rename /var/lib/docker/image/a /var/lib/docker/image/b: directory not empty"),
    ("content that is gone: not the image", P.NODE_STORE, RPC + CONTAINERD + "failed to extract layer sha256:9d32: failed to get reader from content store: content digest sha256:4f4f: not found"),
    ("bad name", P.BAD_NAME, 'Failed to apply default image tag "harbor.lab/NLP/bert:1": couldn\'t parse image reference "harbor.lab/NLP/bert:1": invalid reference format: repository name must be lowercase'),
    ("cri-o: short name", P.BAD_NAME, RPC + 'short-name "bert:1" did not resolve to an alias and no unqualified-search registries are defined in "/etc/containers/registries.conf"'),
    ("never", P.NEVER_PULL, 'Container image "harbor.lab/nlp/bert:1" is not present with pull policy of Never'),
    ("only backing off tells nothing", P.UNKNOWN, 'Back-off pulling image "harbor.lab/nlp/bert:1"'),
    ("1.32: backing off, and why", P.NOT_FOUND, 'Back-off pulling image "harbor.lab/nlp/bert:1": ErrImagePull: ' + RESOLVE + "harbor.lab/nlp/bert:1: not found"),
    ("a name is no message: quoted", P.UNAUTHORIZED, 'Failed to pull image "harbor.lab/x509:/timeout": ' + RPC + "pull access denied, repository does not exist"),
    ("a path is no message", P.UNAUTHORIZED, OLD_GET.replace("/v2/", "/v2/503/i/o timeout-not-found/") + "no basic auth credentials"),
    ("something new", P.UNKNOWN, RPC + "the moon is full"),
    ("nothing", P.UNKNOWN, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expect", "message"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_cause(name: str, expect: PullFailureCause, message: str) -> None:
    assert classify("ErrImagePull", message).cause is expect
    assert classify("ImagePullBackOff", f'Failed to pull image "harbor.lab/nlp/bert:1": {message}').cause is expect


def test_a_name_without_quotes_is_no_message_either() -> None:
    image = "harbor.lab/unauthorized/bert:1"
    message = f"{DOCKER}manifest for {image} not found: manifest unknown"
    assert classify("ErrImagePull", message, image).cause is PullFailureCause.NOT_FOUND


# Each has a sentence that another speaker uses for something else.
NEW_CAUSES = [
    (P.PROXY, HEAD + "proxyconnect tcp: tls: first record does not look like a TLS handshake"),
    (P.MIRROR, RESOLVE + 'failed to do request: Head "http://127.0.0.1:65001/v2/nlp/bert/manifests/1?ns=harbor.lab": dial tcp 127.0.0.1:65001: connect: connection refused'),
    (P.TOKEN_EXPIRED, DOCKER + "denied: Your authorization token has expired. Reauthenticate and try again."),
    (P.CREDENTIAL_HELPER, DOCKER + 'error getting credentials - err: exec: "docker-credential-ecr-login": executable file not found in $PATH, out: ``'),
    (P.POLICY, RESOLVE + "unexpected status from HEAD request to https://harbor.lab/v2/nlp/bert/manifests/1: 412 Precondition Failed"),
    (P.BAD_IMAGE, DOCKER + "failed to register layer: archive/tar: invalid tar header"),
    (P.OLD_FORMAT, DOCKER + "application/vnd.docker.distribution.manifest.v1+prettyjws not supported"),
    (P.DAMAGED_LAYER, CONTAINERD + 'failed commit on ref "layer-sha256:a": unexpected commit digest sha256:b, expected sha256:a: failed precondition'),
    (P.CORRUPT_LAYER, CONTAINERD + "failed to extract layer sha256:9d32: gzip: invalid checksum"),
    (P.NODE_DISK, CONTAINERD + "failed to extract layer sha256:9d32: write /var/lib/containerd/a: input/output error: unknown"),
    (P.RUNTIME_DOWN, "rpc error: code = Unavailable desc = error reading from server: EOF"),
    (P.SNAPSHOTTER, CONTAINERD + 'failed to prepare extraction snapshot "extract-1": connection error: desc = "transport: Error while dialing: dial unix /run/containerd-nydus/containerd-nydus-grpc.sock: connect: connection refused": unavailable'),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "message"), NEW_CAUSES, ids=[cause.value for cause, _ in NEW_CAUSES])
def test_the_speaker_decides(expect: PullFailureCause, message: str) -> None:
    assert classify("ErrImagePull", message, "harbor.lab/nlp/bert:1").cause is expect


def test_every_cause_has_a_message() -> None:
    assert {expect for _, expect, _ in MESSAGES} | {expect for expect, _ in NEW_CAUSES} == set(PullFailureCause)


REASON_DECIDES = [
    ("InvalidImageName", "whatever", P.BAD_NAME),
    ("ErrImageNeverPull", "whatever", P.NEVER_PULL),
    ("RegistryUnavailable", "whatever", P.REGISTRY_ERROR),
    ("RegistryUnavailable", "dial tcp 10.0.0.5:443: connect: connection refused", P.CONNECTION_REFUSED),
    (None, None, P.UNKNOWN),
]


@pytest.mark.parametrize(("reason", "message", "expect"), REASON_DECIDES)
def test_the_reason_alone(reason: str | None, message: str | None, expect: PullFailureCause) -> None:
    assert classify(reason, message).cause is expect


HOSTS: list[tuple[str, str, str | None]] = [
    ("the host of the address", HEAD + "dial tcp 10.0.0.5:443: i/o timeout", "harbor.lab"),
    ("a mirror, not the image's registry", 'Get "https://mirror.lab:5000/v2/": EOF', "mirror.lab:5000"),
    ("the name that was looked up", "dial tcp: lookup hub.lab: no such host", "hub.lab"),
    ("the proxy, not the registry", 'Get "https://harbor.lab/v2/": proxyconnect tcp: dial tcp: lookup proxy.lab: no such host', "proxy.lab"),
    ("an address", "dial tcp 10.0.0.5:443: connect: connection refused", "10.0.0.5:443"),
    ("an IPv6 address", "dial tcp [fd00::5]:443: connect: connection refused", "[fd00::5]:443"),
    ("a password is no host", 'Get "https://bob:hunter2@harbor.lab/v2/": EOF', "harbor.lab"),
    ("the registry, where nothing else is said", RESOLVE + "not found", "harbor.lab"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "expect"), HOSTS, ids=[h[0] for h in HOSTS])
def test_host(name: str, message: str, expect: str | None) -> None:
    assert classify("ErrImagePull", message, "harbor.lab/nlp/bert:1").host == expect


IMAGES = [
    ("ubuntu", "docker.io"),
    ("pytorch/pytorch:2.1", "docker.io"),
    ("harbor.lab/nlp/bert:1", "harbor.lab"),
    ("harbor:5000/bert", "harbor:5000"),
    ("localhost/bert", "localhost"),
    ("10.0.0.5/bert@sha256:1", "10.0.0.5"),
]


@pytest.mark.parametrize(("image", "expect"), IMAGES)
def test_registry(image: str, expect: str) -> None:
    assert registry_of(image) == expect


def test_image_out_of_the_message() -> None:
    failure = classify("ErrImagePull", RESOLVE + "not found")
    assert (failure.image, failure.registry) == ("harbor.lab/nlp/bert:1", "harbor.lab")


@pytest.mark.parametrize(
    "message",
    [
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"',
        "rpc error: code = Unavailable desc = error reading from server: EOF",
    ],
)
def test_a_runtime_that_is_down_is_not_a_registry_that_refuses(message: str) -> None:
    failure = classify("ErrImagePull", message)
    assert failure.cause is PullFailureCause.RUNTIME_DOWN


def test_the_message_stays_but_not_its_secrets() -> None:
    signed = 'Get "https://blobs.lab/data?X-Amz-Signature=562c9085464cc071&X-Amz-Credential=abc": i/o timeout'
    failure = classify("ErrImagePull", signed)
    assert failure.message == 'Get "https://blobs.lab/data?***": i/o timeout'


@given(
    st.one_of(st.none(), st.sampled_from(sorted(PULL_REASONS)), st.text()), st.text(), st.one_of(st.none(), st.text())
)
def test_no_message_breaks_it(reason: str | None, message: str, image: str | None) -> None:
    assert classify(reason, message, image).cause in PullFailureCause
