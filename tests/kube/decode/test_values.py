"""Times, quantities, and what objects share."""

from __future__ import annotations

from itertools import chain
from operator import is_

import msgspec
import pytest

from monitor.kube.decode.stream import decode_pod_list
from monitor.kube.decode.values import parse_quantity, parse_time

AT = 1614834367.0  # 2021-03-04T05:06:07Z
GIB = 1024.0**3


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("2", 2.0),
        ("500m", 0.5),
        ("16Gi", 16 * GIB),
        ("1.5G", 1.5e9),
        ("100k", 1e5),
        ("1e3", 1000.0),
        ("12E", 12e18),
        ("1Ei", 2.0**60),
        ("-3", -3.0),
        ("50n", 50e-9),
        ("128974848", 128974848.0),
        (4, 4),
        (0, 0),
        (None, None),
        ("", None),
        ("many", None),
        ("Gi", None),
        ("1GiB", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_quantities(text: str | int | None, expect: float | None) -> None:
    amount = parse_quantity(text)
    assert amount is None if expect is None else amount == pytest.approx(expect)


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("2021-03-04T05:06:07Z", AT),
        ("2021-03-04T05:06:07.250000Z", AT + 0.25),
        ("2021-03-04T13:06:07+08:00", AT),
        ("0001-01-01T00:00:00Z", None),
        ("2021-03-04T05:06:07", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_times(text: str | None, expect: float | None) -> None:
    assert parse_time(text) == expect


def test_pods_share_what_they_have_in_common() -> None:
    metadata = {"name": "p", "uid": "u", "namespace": "n", "labels": {"job-of-many-pods": "train-of-many-pods"}}
    pod = {"metadata": metadata, "spec": {"nodeSelector": {"gpu-model-of-many-pods": "A100"}}}
    lists = [decode_pod_list(msgspec.json.encode({"metadata": {}, "items": [pod]})) for _ in range(2)]
    (one,), (other,) = (page.items for page in lists)
    assert one.labels == {"job-of-many-pods": "train-of-many-pods"}
    assert all(map(is_, chain(*one.labels.items()), chain(*other.labels.items())))
    assert one.node_selector == {"gpu-model-of-many-pods": "A100"}
    assert one.node_selector is other.node_selector
