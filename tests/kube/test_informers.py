"""List and watch against a scripted API server: no fault loses, freezes or invents objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from monitor.kube import resources
from tests.kube.following import ADD_B, ADD_C, FIRST, ODD, following
from tests.support import wait_until
from tests.support.scripted_api import (
    Reply,
    ScriptedApi,
    answer,
    bookmark,
    cut,
    event,
    gone,
    page,
    pod,
    status,
    stream,
)


@dataclass
class Fault:
    name: str
    lists: Sequence[Reply]
    watches: Sequence[Reply]
    expect: dict[str, str]
    # resourceVersion of the first watches, in order
    resumed: Sequence[str] = ()
    fact: dict[str, object] = field(default_factory=dict)


FAULTS = [
    Fault("added, modified, deleted",
         [FIRST], [stream(ADD_B, event("MODIFIED", pod("a", 3)), event("DELETED", pod("b", 4)))],
         {"a": "3"}, ["1"], {"state": "synced", "events": 3}),
    Fault("several lines in one chunk, one line in several",
         [FIRST], [stream(ADD_B + ADD_C, *(bytes([byte]) for byte in event("ADDED", pod("d", 5))))],
         {"a": "1", "b": "2", "c": "3", "d": "5"}),
    Fault("the server ends the watch: the next one resumes",
         [FIRST], [stream(ADD_B, then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1, "failures": 0}),
    Fault("the next watch starts at the bookmark",
         [FIRST], [stream(bookmark("77"), then="end"), stream(event("ADDED", pod("b", 78)))],
         {"a": "1", "b": "78"}, ["1", "77"], {"lists": 1}),
    Fault("410 as a status",
         [FIRST, page(pod("a", 5), pod("b", 6), rv="6")], [status(410, "Expired")],
         {"a": "5", "b": "6"}, ["1", "6"], {"lists": 2, "state": "synced"}),
    Fault("410 as an event",
         [FIRST, page(pod("b", 6), rv="6")], [stream(gone())],
         {"b": "6"}, ["1", "6"], {"lists": 2}),
    Fault("an error event without a code",
         [FIRST, page(pod("b", 6), rv="6")], [stream(event("ERROR", {"reason": "Expired"}))],
         {"b": "6"}, ["1", "6"]),
    Fault("too large a version, after a restored backup",
         [page(pod("a", 900), rv="900"), page(pod("a", 40), rv="41")],
         [status(504, "Timeout", "Too large resource version"), stream(event("MODIFIED", pod("a", 42)))],
         {"a": "42"}, ["900", "41"]),
    Fault("dropped in the middle of a line",
         [FIRST], [stream(ADD_B, cut(ADD_C), then="drop"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Fault("ended in the middle of a line",
         [FIRST], [stream(ADD_B, cut(ADD_C), then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Fault("a line that is not JSON is requested again",
         [FIRST], [stream(ADD_B, b"{oops\n", then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Fault("if it is still not JSON, a list gets past it",
         [FIRST, page(pod("a", 1), pod("c", 3), rv="9")],
         [stream(b"{oops\n"), stream(b"{oops\n"), stream(event("ADDED", pod("d", 10)))],
         {"a": "1", "c": "3", "d": "10"}, ["1", "1", "9"]),
    Fault("an unknown event type",
         [FIRST, page(pod("b", 6), rv="6")], [stream(event("RENAMED", pod("x", 2)))] * 2,
         {"b": "6"}, ["1", "1", "6"]),
    Fault("duplicate and outdated events",
         [FIRST], [stream(event("MODIFIED", pod("a", 9)), event("MODIFIED", pod("a", 7)), event("ADDED", pod("a", 1)),
                          event("MODIFIED", pod("a", 9)), ADD_B, ADD_B)],
         {"a": "9", "b": "2"}),
    Fault("numbers are compared as numbers",
         [page(pod("a", 9), rv="9")], [stream(event("MODIFIED", pod("a", 10)), event("MODIFIED", pod("a", 9)))],
         {"a": "10"}),
    Fault("non-numeric versions: order is trusted",
         [page(pod("a", "x9"), rv="x9")], [stream(event("MODIFIED", pod("a", "x1")))],
         {"a": "x1"}, ["x9"]),
    Fault("a late event of a deleted object does not revive it",
         [FIRST], [stream(event("DELETED", pod("a", 5)), event("MODIFIED", pod("a", 4)), ADD_B)],
         {"b": "2"}),
    Fault("a late deletion does not remove the new object of that name",
         [page(pod("a", 1, "old"), rv="1")],
         [stream(event("ADDED", pod("a", 6, "new")), event("DELETED", pod("a", 5, "old")))],
         {"a": "6"}),
    Fault("objects missing from a second list are deleted",
         [page(pod("a", 1), pod("b", 2), rv="2"), page(pod("b", 2), rv="8")], [stream(gone())],
         {"b": "2"}, ["2", "8"]),
    Fault("pages",
         [page(pod("a", 1), pod("b", 2), rv="7", more="p2"), page(pod("c", 3), rv="7")], [],
         {"a": "1", "b": "2", "c": "3"}, ["7"]),
    Fault("expired pages are requested again",
         [page(pod("a", 1), rv="1", more="p2"), status(410, "Expired"), page(pod("b", 2), rv="7", more="p2"),
          page(pod("c", 3), rv="7")], [],
         {"b": "2", "c": "3"}, ["7"]),
    Fault("null where lists belong",
         [answer({"metadata": {"resourceVersion": "1"}, "items": None})],
         [stream(event("ADDED", {**pod("b", 2), "spec": {"containers": None, "volumes": None},
                                 "status": {"conditions": None, "containerStatuses": None}}))],
         {"b": "2"}, [], {"skipped": 0}),
    Fault("a null object and a malformed one are skipped",
         [page(pod("a", 1), None, ODD, rv="4")], [],
         {"a": "1"}, [], {"skipped": 2, "state": "synced"}),
    Fault("an object that becomes malformed is not kept",
         [page(pod("odd", 1), rv="1")], [stream(event("MODIFIED", ODD), ADD_B)],
         {"b": "2"}, [], {"skipped": 1, "state": "synced"}),
    Fault("and returns once it is well-formed again",
         [page(pod("odd", 1), rv="1")], [stream(event("MODIFIED", ODD), event("MODIFIED", pod("odd", 5)))],
         {"odd": "5"}),
    Fault("errors of the server, first on the list, then on the watch",
         [status(500, "InternalError"), status(503, "ServiceUnavailable"), FIRST, page(pod("a", 1), rv="3")],
         [status(500, "InternalError"), stream(event("ADDED", pod("b", 4)))],
         {"a": "1", "b": "4"}, ["1", "3"], {"state": "synced", "last_error": None}),
    Fault("a proxy's page instead of JSON",
         [answer(b"<html>502 Bad Gateway</html>", 502), answer(b"<html>hello</html>"), FIRST], [],
         {"a": "1"}),
    Fault("a list without a version cannot be watched from",
         [page(pod("z", 1), rv=None), FIRST], [], {"a": "1"}, ["1"]),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults(fault: Fault, tmp_path: Path) -> None:
    with ScriptedApi(fault.lists, fault.watches) as api, following(api, tmp_path) as followed:
        wait_until(lambda: len(api.asked("watch")) >= max(1, len(fault.resumed), len(fault.watches)), 30, "all watches")
        followed.until_held(fault.expect)
        if fault.fact:
            followed.until_source(**fault.fact)
    watched = [request.query["resourceVersion"] for request in api.asked("watch")]
    assert watched[: len(fault.resumed)] == list(fault.resumed)


def test_pages_that_keep_expiring_are_given_up(tmp_path: Path) -> None:
    first, expired = page(pod("a", 1), rv="1", more="p2"), status(410, "Expired")
    with (
        ScriptedApi([first, expired, first, expired, page(pod("d", 4), rv="8")]) as api,
        following(api, tmp_path) as followed,
    ):
        followed.until_held({"d": "4"})
    limits = [(request.query.get("limit"), request.query.get("continue")) for request in api.asked("list")]
    assert limits == [("2", None), ("2", "p2"), ("2", None), ("2", "p2"), (None, None)]


def test_what_is_asked(tmp_path: Path) -> None:
    with (
        ScriptedApi([page(pod("a", 1), pod("b", 2), rv="7", more="p 2&x"), page(rv="7")]) as api,
        following(api, tmp_path) as followed,
    ):
        followed.until_source(watches=1)
    first, second, watch = api.requests
    assert (first.path, first.query) == ("/api/v1/pods", {"limit": "2"})
    assert second.query == {"limit": "2", "continue": "p 2&x"}
    assert {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7"}.items() <= watch.query.items()
    assert watch.query["timeoutSeconds"] == "1"
    assert watch.headers["accept"] == "application/json"


def test_metadata_only(tmp_path: Path) -> None:
    job = {"metadata": {"name": "j", "namespace": "lab", "uid": "u", "resourceVersion": "1"}}
    with (
        ScriptedApi([page(job, rv="1")]) as api,
        following(api, tmp_path, resource=resources.JOBS) as followed,
    ):
        followed.until_source(watches=1)
    listed, watched = api.requests
    assert listed.path == "/apis/batch/v1/jobs"
    assert "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" in listed.headers["accept"]
    assert "as=PartialObjectMetadata;g=meta.k8s.io;v=v1" in watched.headers["accept"]


def test_how_jobs_end_needs_more_than_their_metadata(tmp_path: Path) -> None:
    job = {"metadata": {"name": "j", "namespace": "lab", "uid": "u", "resourceVersion": "1"}}
    with (
        ScriptedApi([page(job, rv="1")]) as api,
        following(api, tmp_path, resource=resources.ENDING_JOBS) as followed,
    ):
        followed.until_source(watches=1)
    assert [(each.path, each.headers["accept"]) for each in api.requests[:2]] == [
        ("/apis/batch/v1/jobs", "application/json")
    ] * 2
