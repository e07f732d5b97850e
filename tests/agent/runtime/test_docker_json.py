"""Facts from responses of several Docker versions, recorded and invented."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from monitor.agent.runtime.api import EngineError
from monitor.agent.runtime.docker_json import (
    BuildCacheRow,
    ContainerRow,
    ImageRow,
    Inspection,
    ListDecoder,
    VolumeRow,
    container_fact,
    decode,
    image_fact,
    parse_time,
    shared_sizes,
    usage_fact,
)
from monitor.facts import ImageFact, VolumeFact


def listed(**keys: Any) -> ContainerRow:
    return decode(json.dumps({"Id": "c1", **keys}).encode(), ContainerRow)


def inspected(**keys: Any) -> Inspection:
    return decode(json.dumps(keys).encode(), Inspection)


@pytest.mark.parametrize(
    ("name", "given", "expect"),
    [
        ("nothing but an id", {}, {"state": "unknown"}),
        ("null everywhere", {"Names": None, "Labels": None, "Image": None, "State": None, "Created": None}, {}),
        ("a name", {"Names": ["/train"]}, {"name": "train"}),
        ("further names by links", {"Names": ["/web/db", "/db"]}, {"name": "db"}),
        ("no name at all", {"Names": []}, {"name": None}),
        ("an image", {"Image": "bb:1", "ImageID": "sha256:1"}, {"image": "bb:1", "image_id": "sha256:1"}),
        ("keys nobody knows", {"Odd": {"a": [1]}, "SizeRw": 5, "ImageManifestDescriptor": None}, {}),
        ("running", {"State": "running"}, {"state": "running"}),
        ("between two runs", {"State": "restarting"}, {"state": "exited"}),
        ("being removed", {"State": "removing"}, {"state": "exited"}),
        ("could not be removed", {"State": "dead"}, {"state": "unknown"}),
        ("a state nobody knows", {"State": "hibernating"}, {"state": "unknown"}),
        ("created at", {"Created": 1794797712}, {"created_at": 1794797712.0}),
        (
            "a pod's container",
            {
                "Labels": {
                    "io.kubernetes.pod.uid": "u1",
                    "io.kubernetes.pod.name": "train-0",
                    "io.kubernetes.pod.namespace": "lab",
                    "io.kubernetes.container.name": "main",
                    "io.kubernetes.docker.type": "container",
                }
            },
            {"pod_uid": "u1", "pod_name": "train-0", "namespace": "lab", "container": "main", "sandbox": False},
        ),
        (
            "a pod's sandbox",
            {"Labels": {"io.kubernetes.docker.type": "podsandbox", "io.kubernetes.container.name": "POD"}},
            {"sandbox": True, "container": None},
        ),
        (
            "a sandbox with its pod's labels",
            {"Labels": {"io.kubernetes.docker.type": "podsandbox", "userName": "li.lei", "app": "x"}},
            {"user": "li.lei"},
        ),
        (
            "a sandbox with its pod's annotations",
            {"Labels": {"io.kubernetes.docker.type": "podsandbox", "annotation.hub.jupyter.org/username": "han"}},
            {"user": "han"},
        ),
        ("a container's own labels name nobody", {"Labels": {"userName": "image-author"}}, {"user": None}),
        ("labels without a value", {"Labels": {"io.kubernetes.pod.uid": ""}}, {"pod_uid": None}),
    ],
)
def test_container_as_listed(name: str, given: dict[str, Any], expect: dict[str, Any]) -> None:
    fact = container_fact(listed(**given))
    assert {key: getattr(fact, key) for key in expect} == expect
    assert (fact.id, fact.runtime, fact.pid) == ("c1", "docker", None)


RUN = {"Status": "running", "Pid": 77, "StartedAt": "2026-11-16T02:55:11.847377765Z"}


@pytest.mark.parametrize(
    ("name", "given", "expect"),
    [
        ("nothing", {}, {"state": "running", "pid": None, "started_at": None}),
        ("null everywhere", {"State": None, "Config": None, "LogPath": None}, {"state": "running", "pid": None}),
        (
            "running for the first time",
            {"State": {**RUN, "FinishedAt": "0001-01-01T00:00:00Z"}},
            {"pid": 77, "started_at": 1794797711.847377, "finished_at": None},
        ),
        (
            "running again: the end of the run before is not its end",
            {"State": {**RUN, "FinishedAt": "2026-11-16T02:50:00Z", "ExitCode": 1}},
            {"state": "running", "finished_at": None, "exit_code": None},
        ),
        (
            "ended since it was listed",
            {"State": {"Status": "exited", "Pid": 0, "FinishedAt": "2026-11-16T02:55:12Z", "ExitCode": 3}},
            {"state": "exited", "pid": None, "finished_at": 1794797712.0, "exit_code": 3},
        ),
        ("its log", {"LogPath": "/d/c1-json.log"}, {"log_path": "/d/c1-json.log"}),
        ("no log file (journald)", {"LogPath": ""}, {"log_path": None}),
        ("the list shows an id, the configuration a name", {"Config": {"Image": "bb:1"}}, {"image": "bb:1"}),
    ],
)
def test_container_as_inspected(name: str, given: dict[str, Any], expect: dict[str, Any]) -> None:
    fact = container_fact(listed(State="running", Image="06bd7c24ee8a"), inspected(**given))
    assert {key: getattr(fact, key) for key in expect} == expect


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        (b"null", []),
        (b"[]", []),
        (b'[{"Id":"a"},{"Id":"b"}]', ["a", "b"]),
        (b'[{"Id":"a"},{"Names":["no id"]},{"Id":"b"}]', ["a", "b"]),
        (b'[{"Id":"a"},null,{"Id":"b"},[],7]', ["a", "b"]),
        (b'[{"Id":"a","Labels":{"x":1}},{"Id":"b","Labels":{"x":"1"}}]', ["b"]),
        (b'[{"Id":"a","Created":"yesterday"},{"Id":"b"}]', ["b"]),
    ],
)
def test_an_odd_container_does_not_lose_the_list(given: bytes, expect: list[str]) -> None:
    assert [row.id for row in ListDecoder(ContainerRow).decode(given)] == expect


def test_the_same_oddity_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    items = ListDecoder(ContainerRow)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            items.decode(b'[{"Names":[]}]')
    assert len(caplog.records) == 1


@pytest.mark.parametrize("given", [b"", b"oops", b'{"message":"x"}', b'"text"', b"[{]"])
def test_what_is_no_list_is_an_error(given: bytes) -> None:
    with pytest.raises(EngineError, match="not a valid Docker response"):
        ListDecoder(ContainerRow).decode(given)


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        (None, None),
        ("", None),
        ("0001-01-01T00:00:00Z", None),
        ("2026-11-16T02:55:11Z", 1794797711.0),
        ("2026-11-16T02:55:11.5Z", 1794797711.5),
        ("2026-11-16T02:55:11.847377765Z", 1794797711.847377),
        ("2026-11-16T10:55:11+08:00", 1794797711.0),
        ("soon", None),
    ],
)
def test_times(given: str | None, expect: float | None) -> None:
    assert parse_time(given) == expect


@pytest.mark.parametrize(
    ("name", "given", "shared", "expect"),
    [
        (
            "named twice",
            {"RepoTags": ["a:1", "b:1"], "RepoDigests": ["a@sha256:9"], "Size": 10, "Created": 5},
            4,
            ImageFact(
                id="i1", names=("a:1", "b:1"), digests=("a@sha256:9",), size_bytes=10, unique_bytes=6, created_at=5.0
            ),
        ),
        (
            "dangling (Docker 20.10)",
            {"RepoTags": ["<none>:<none>"], "RepoDigests": ["<none>@<none>"], "Size": 10},
            None,
            ImageFact(id="i1", size_bytes=10),
        ),
        (
            "dangling (Docker 26)",
            {"RepoTags": [], "RepoDigests": None, "Size": 10},
            0,
            ImageFact(id="i1", size_bytes=10, unique_bytes=10),
        ),
        ("built here", {"RepoTags": ["a:1"], "RepoDigests": []}, None, ImageFact(id="i1", names=("a:1",), local=True)),
        ("built here (null)", {"RepoTags": ["a:1"]}, None, ImageFact(id="i1", names=("a:1",), local=True)),
        (
            "pulled by its digest",
            {"RepoTags": ["<none>:<none>"], "RepoDigests": ["a@sha256:9"]},
            None,
            ImageFact(id="i1", digests=("a@sha256:9",)),
        ),
        ("null lists", {"RepoTags": None, "RepoDigests": None}, None, ImageFact(id="i1")),
        ("a size that was not worked out", {"Size": -1}, 3, ImageFact(id="i1")),
    ],
)
def test_image(name: str, given: dict[str, Any], shared: int | None, expect: ImageFact) -> None:
    row = decode(json.dumps({"Id": "i1", **given}).encode(), ImageRow)
    assert image_fact(row, shared, ()) == expect


def test_sharing_is_known_where_it_was_worked_out() -> None:
    rows = ListDecoder(ImageRow).decode(b'[{"Id":"a","SharedSize":-1},{"Id":"b","SharedSize":0},{"Id":"c"}]')
    assert shared_sizes(rows) == {"b": 0}


def test_usage() -> None:
    fact = usage_fact(
        900,
        ListDecoder(ContainerRow).decode(b'[{"Id":"c1","SizeRw":5,"SizeRootFs":9},{"Id":"c2"}]'),
        ListDecoder(VolumeRow).decode(
            b'[{"Name":"v1","UsageData":{"Size":7,"RefCount":1}},{"Name":"v2","UsageData":{"Size":-1,"RefCount":-1}},'
            b'{"Name":"v3","UsageData":null}]'
        ),
        ListDecoder(BuildCacheRow).decode(
            b'[{"Size":10,"InUse":false,"Shared":false},{"Size":20,"InUse":true,"Shared":false},'
            b'{"Size":40,"InUse":false,"Shared":true},{"ID":"x"}]'
        ),
    )
    assert (fact.layers_bytes, fact.writable, fact.writable_bytes) == (900, {"c1": 5, "c2": 0}, 5)
    assert (fact.build_cache_bytes, fact.build_cache_reclaimable_bytes) == (30, 10)
    assert fact.volumes == (
        VolumeFact(name="v1", size_bytes=7, references=1),
        VolumeFact(name="v2"),
        VolumeFact(name="v3"),
    )
