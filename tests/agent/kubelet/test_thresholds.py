"""Thresholds in a kubelet's file and command line, in the forms that people write."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from monitor.agent.kubelet.thresholds import (
    KubeletArguments,
    KubeletThresholds,
    parse_arguments,
    parse_config,
    parse_percent,
    parse_threshold,
)

# As written by kubeadm 1.20, with additions of an administrator.
KUBEADM = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
clusterDNS:
- 10.96.0.10
evictionSoft:
  nodefs.available: 33%
evictionHard:
  memory.available: "200Mi"
  nodefs.available: "12%"   # of the node
  # a line of its own
  'imagefs.available': 20Gi

evictionPressureTransitionPeriod: 0s
imageGCHighThresholdPercent: 70 # ours
imageGCLowThresholdPercent: 60
imageMinimumGCAge: 0s
kind: KubeletConfiguration
"""
ALL = KubeletThresholds(
    "70", "60", {"memory.available": "200Mi", "nodefs.available": "12%", "imagefs.available": "20Gi"}
)
ONE = {"nodefs.available": "5%"}

FILES: list[tuple[str, str, KubeletThresholds]] = [
    ("as kubeadm writes it", KUBEADM, ALL),
    ("with the line ends of Windows", "\ufeff---\r\n" + KUBEADM.replace("\n", "\r\n"), ALL),
    ("as JSON", msgspec.json.encode(yaml.safe_load(KUBEADM)).decode(), ALL),
    (
        "as JSON, of figures",
        '\n{"imageGCHighThresholdPercent": 85, "evictionHard": {"nodefs.available": 1000}}',
        KubeletThresholds("85", None, {"nodefs.available": "1000"}),
    ),
    ("as JSON, of nothing", '{"evictionHard": null}', KubeletThresholds()),
    ("in braces", "evictionHard: {nodefs.available: 5%, }\nx: 1\n", KubeletThresholds(eviction_hard=ONE)),
    ("in braces and quotes", """evictionHard: {"nodefs.available":"5%"} # x\n""", KubeletThresholds(eviction_hard=ONE)),
    (
        "in braces over lines",
        "evictionHard: {\n  nodefs.available: 5%, # x\n}\nimageGCHighThresholdPercent: 9\n",
        KubeletThresholds("9", None, ONE),
    ),
    ("nothing in braces", "evictionHard: {}\n", KubeletThresholds(eviction_hard={})),
    ("nothing", "", KubeletThresholds()),
    (
        "only comments",
        "#imageGCHighThresholdPercent: 70\n# evictionHard:\n#   nodefs.available: 5%\n",
        KubeletThresholds(),
    ),
    (
        "nothing written",
        "evictionHard:\nimageGCHighThresholdPercent:\nimageGCLowThresholdPercent: ~\n",
        KubeletThresholds(),
    ),
    (
        "below another key",
        "x:\n  imageGCHighThresholdPercent: 70\n  evictionHard: {nodefs.available: 5%}\n",
        KubeletThresholds(),
    ),
    ("quoted keys", "\"imageGCHighThresholdPercent\": '70'\n", KubeletThresholds("70")),
    ("not YAML at all", "\x00\x01 no\n : }{ evictionHard\n", KubeletThresholds()),
]


@pytest.mark.parametrize(("text", "expect"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_a_file(text: str, expect: KubeletThresholds) -> None:
    assert parse_config(text) == expect


def test_a_real_library_reads_the_same() -> None:
    for name, text, expect in FILES[:-1]:
        read = yaml.safe_load(text) or {}
        high, low = (read.get(f"imageGC{which}ThresholdPercent") for which in ("High", "Low"))
        eviction = read.get("evictionHard")
        assert [None if mark is None else str(mark) for mark in (high, low)] == [expect.high, expect.low], name
        assert ({key: str(value) for key, value in eviction.items()} if eviction is not None else None) == (
            expect.eviction_hard
        ), name


def test_broken_json_is_said_to_be() -> None:
    with pytest.raises(ValueError, match="JSON"):
        parse_config('{"imageGCHighThresholdPercent": ')


LINES: list[tuple[str, str, KubeletArguments]] = [
    ("nothing of ours", "kubelet --v=2 --cert-dir /x --bootstrap-kubeconfig=/secret", KubeletArguments()),
    (
        "joined",
        "kubelet --config=/etc/k.yaml --root-dir=/data",
        KubeletArguments(KubeletThresholds(), "/etc/k.yaml", "/data"),
    ),
    ("apart", "kubelet --config /etc/k.yaml --v 2", KubeletArguments(KubeletThresholds(), "/etc/k.yaml")),
    (
        "marks",
        "kubelet --image-gc-high-threshold=90 --image-gc-low-threshold 75",
        KubeletArguments(KubeletThresholds("90", "75")),
    ),
    (
        "the last one counts",
        "kubelet --image-gc-high-threshold=90 --image_gc_high_threshold=88",
        KubeletArguments(KubeletThresholds("88")),
    ),
    (
        "eviction",
        "kubelet --eviction-hard imagefs.available<15%,nodefs.available<10Gi",
        KubeletArguments(KubeletThresholds(eviction_hard={"imagefs.available": "15%", "nodefs.available": "10Gi"})),
    ),
    (
        "eviction in two",
        "kubelet --eviction-hard=a<1 --eviction-hard=b<2",
        KubeletArguments(KubeletThresholds(eviction_hard={"a": "1", "b": "2"})),
    ),
    (
        "no eviction, as in the lab",
        "kubelet --eviction-hard= --port=1",
        KubeletArguments(KubeletThresholds(eviction_hard={})),
    ),
    ("broken off", "kubelet --config", KubeletArguments()),
]


@pytest.mark.parametrize(("line", "expect"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_a_command_line(line: str, expect: KubeletArguments) -> None:
    assert parse_arguments(line.split(" ")) == expect


def test_flags_win_and_eviction_as_a_whole() -> None:
    flags, file = KubeletThresholds("90", None, {"a": "1"}), KubeletThresholds("70", "60", {"b": "2"})
    assert flags.with_defaults(file) == KubeletThresholds("90", "60", {"a": "1"})
    assert KubeletThresholds(eviction_hard={}).with_defaults(file) == KubeletThresholds("70", "60", {})
    assert KubeletThresholds().with_defaults(file) == file


@pytest.mark.parametrize(
    ("text", "expect"),
    [("85", 0.85), ("0", 0.0), ("100", 1.0), ("85.0", 0.85), ("101", None), ("-1", None), ("x", None), (None, None)],
)
def test_a_percentage(text: str | None, expect: float | None) -> None:
    assert parse_percent(text) == expect


@pytest.mark.parametrize(
    ("text", "ratio", "size"),
    [
        ("15%", 0.15, None),
        ("0.5%", 0.005, None),
        ("0%", None, None),  # turns the check off
        ("100%", None, None),
        ("10Gi", None, 10 * 1024**3),
        ("1.5G", None, 1_500_000_000),
        ("500k", None, 500_000),
        ("4096", None, 4096),
        ("1e9", None, 10**9),
        ("much", None, None),
        ("", None, None),
        ("%", None, None),
    ],
)
def test_a_threshold(text: str, ratio: float | None, size: int | None) -> None:
    assert parse_threshold(text) == (ratio, size)
