"""List and watch against a scripted server: none of these faults loses, freezes or invents anything."""

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
class Play:
    name: str
    lists: Sequence[Reply]
    watches: Sequence[Reply]
    expect: dict[str, str]
    # resourceVersion of each watch, in order, as far as given
    resumed: Sequence[str] = ()
    fact: dict[str, object] = field(default_factory=dict)


PLAYS = [
    Play("added, modified, deleted",
         [FIRST], [stream(ADD_B, event("MODIFIED", pod("a", 3)), event("DELETED", pod("b", 4)))],
         {"a": "3"}, ["1"], {"state": "synced", "events": 3}),
    Play("many lines in one piece, one line in many",
         [FIRST], [stream(ADD_B + ADD_C, *(bytes([byte]) for byte in event("ADDED", pod("d", 5))))],
         {"a": "1", "b": "2", "c": "3", "d": "5"}),
    Play("the server ends the watch: the next begins where it was",
         [FIRST], [stream(ADD_B, then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1, "failures": 0}),
    Play("a bookmark moves the beginning of the next watch",
         [FIRST], [stream(bookmark("77"), then="end"), stream(event("ADDED", pod("b", 78)))],
         {"a": "1", "b": "78"}, ["1", "77"], {"lists": 1}),
    Play("410 as a status",
         [FIRST, page(pod("a", 5), pod("b", 6), rv="6")], [status(410, "Expired")],
         {"a": "5", "b": "6"}, ["1", "6"], {"lists": 2, "state": "synced"}),
    Play("410 as an event",
         [FIRST, page(pod("b", 6), rv="6")], [stream(gone())],
         {"b": "6"}, ["1", "6"], {"lists": 2}),
    Play("an error event without a code",
         [FIRST, page(pod("b", 6), rv="6")], [stream(event("ERROR", {"reason": "Expired"}))],
         {"b": "6"}, ["1", "6"]),
    Play("too large a version, after a restored backup",
         [page(pod("a", 900), rv="900"), page(pod("a", 40), rv="41")],
         [status(504, "Timeout", "Too large resource version"), stream(event("MODIFIED", pod("a", 42)))],
         {"a": "42"}, ["900", "41"]),
    Play("dropped in the middle of a line",
         [FIRST], [stream(ADD_B, cut(ADD_C), then="drop"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Play("ended in the middle of a line",
         [FIRST], [stream(ADD_B, cut(ADD_C), then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Play("a line that is no JSON is asked for again",
         [FIRST], [stream(ADD_B, b"{oops\n", then="end"), stream(ADD_C)],
         {"a": "1", "b": "2", "c": "3"}, ["1", "2"], {"lists": 1}),
    Play("if it stays no JSON, a list is past it",
         [FIRST, page(pod("a", 1), pod("c", 3), rv="9")],
         [stream(b"{oops\n"), stream(b"{oops\n"), stream(event("ADDED", pod("d", 10)))],
         {"a": "1", "c": "3", "d": "10"}, ["1", "1", "9"]),
    Play("an event of a type that nobody knows",
         [FIRST, page(pod("b", 6), rv="6")], [stream(event("RENAMED", pod("x", 2)))] * 2,
         {"b": "6"}, ["1", "1", "6"]),
    Play("duplicates and old news",
         [FIRST], [stream(event("MODIFIED", pod("a", 9)), event("MODIFIED", pod("a", 7)), event("ADDED", pod("a", 1)),
                          event("MODIFIED", pod("a", 9)), ADD_B, ADD_B)],
         {"a": "9", "b": "2"}),
    Play("numbers are compared as numbers",
         [page(pod("a", 9), rv="9")], [stream(event("MODIFIED", pod("a", 10)), event("MODIFIED", pod("a", 9)))],
         {"a": "10"}),
    Play("versions that are no numbers: order is trusted",
         [page(pod("a", "x9"), rv="x9")], [stream(event("MODIFIED", pod("a", "x1")))],
         {"a": "x1"}, ["x9"]),
    Play("late news of a deleted object does not bring it back",
         [FIRST], [stream(event("DELETED", pod("a", 5)), event("MODIFIED", pod("a", 4)), ADD_B)],
         {"b": "2"}),
    Play("a late deletion does not remove the new object of that name",
         [page(pod("a", 1, "old"), rv="1")],
         [stream(event("ADDED", pod("a", 6, "new")), event("DELETED", pod("a", 5, "old")))],
         {"a": "6"}),
    Play("what a second list lacks is gone",
         [page(pod("a", 1), pod("b", 2), rv="2"), page(pod("b", 2), rv="8")], [stream(gone())],
         {"b": "2"}, ["2", "8"]),
    Play("pages",
         [page(pod("a", 1), pod("b", 2), rv="7", more="p2"), page(pod("c", 3), rv="7")], [],
         {"a": "1", "b": "2", "c": "3"}, ["7"]),
    Play("pages that expire are begun again",
         [page(pod("a", 1), rv="1", more="p2"), status(410, "Expired"), page(pod("b", 2), rv="7", more="p2"),
          page(pod("c", 3), rv="7")], [],
         {"b": "2", "c": "3"}, ["7"]),
    Play("null where lists belong",
         [answer({"metadata": {"resourceVersion": "1"}, "items": None})],
         [stream(event("ADDED", {**pod("b", 2), "spec": {"containers": None, "volumes": None},
                                 "status": {"conditions": None, "containerStatuses": None}}))],
         {"b": "2"}, [], {"skipped": 0}),
    Play("null for an object, and one that is odd, cost only themselves",
         [page(pod("a", 1), None, ODD, rv="4")], [],
         {"a": "1"}, [], {"skipped": 2, "state": "synced"}),
    Play("an object that turns odd is not kept as it was",
         [page(pod("odd", 1), rv="1")], [stream(event("MODIFIED", ODD), ADD_B)],
         {"b": "2"}, [], {"skipped": 1, "state": "synced"}),
    Play("and is there again when it makes sense again",
         [page(pod("odd", 1), rv="1")], [stream(event("MODIFIED", ODD), event("MODIFIED", pod("odd", 5)))],
         {"odd": "5"}),
    Play("errors of the server, first on the list, then on the watch",
         [status(500, "InternalError"), status(503, "ServiceUnavailable"), FIRST, page(pod("a", 1), rv="3")],
         [status(500, "InternalError"), stream(event("ADDED", pod("b", 4)))],
         {"a": "1", "b": "4"}, ["1", "3"], {"state": "synced", "last_error": None}),
    Play("a proxy's page instead of JSON",
         [answer(b"<html>502 Bad Gateway</html>", 502), answer(b"<html>hello</html>"), FIRST], [],
         {"a": "1"}),
    Play("a list without a version cannot be watched from",
         [page(pod("z", 1), rv=None), FIRST], [], {"a": "1"}, ["1"]),
]  # fmt: skip


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.name)
def test_faults(play: Play, tmp_path: Path) -> None:
    with ScriptedApi(play.lists, play.watches) as api, following(api, tmp_path) as followed:
        wait_until(lambda: len(api.asked("watch")) >= max(1, len(play.resumed), len(play.watches)), 10, "all watches")
        followed.until_held(play.expect)
        if play.fact:
            followed.until_source(**play.fact)
    watched = [request.query["resourceVersion"] for request in api.asked("watch")]
    assert watched[: len(play.resumed)] == list(play.resumed)


def test_pages_that_keep_expiring_are_given_up(tmp_path: Path) -> None:
    begun, expired = page(pod("a", 1), rv="1", more="p2"), status(410, "Expired")
    with (
        ScriptedApi([begun, expired, begun, expired, page(pod("d", 4), rv="8")]) as api,
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
