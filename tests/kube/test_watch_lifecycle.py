"""Watches: missing permissions, absent resources, restarting servers, backoff, stopping, credentials."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.kube import resources as kube_resources
from monitor.kube.client import KubeApi, KubeCredentialsError, connect, load_client
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.informers import KubeInformers
from monitor.kube.reflector import Reflector, WatchTiming
from monitor.kube.store import ObjectStore
from tests.kube.following import ADD_B, ADD_C, FAST, FIRST, ODD, PODS, end, following
from tests.support import wait_until
from tests.support.scripted_api import (
    Reply,
    ScriptedApi,
    answer,
    event,
    gone,
    no_answer,
    page,
    pod,
    silence,
    status,
    stream,
)


def test_changes_are_told_one_by_one(tmp_path: Path) -> None:
    with ScriptedApi([FIRST], [stream(ADD_B, event("DELETED", pod("b", 3)))]) as api:
        with following(api, tmp_path) as followed:
            wait_until(lambda: len(followed.changes) == 3, 30, "three changes")
        changes = [(n, c.old and c.old.name, c.new and c.new.name) for n, c in followed.changes]
    assert changes == [("pods", None, "a"), ("pods", None, "b"), ("pods", "b", None)]


def test_a_listener_that_fails_does_not_stop_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedApi([FIRST], [stream(ADD_B, ADD_C)]) as api:
        store: ObjectStore[Any] = ObjectStore()

        def listen(_name: str, _changes: object) -> None:
            raise RuntimeError("broken")

        reflector = Reflector(connect(api.kubeconfig(tmp_path)), PODS, store, on_change=listen, timing=FAST)
        reflector.start()
        try:
            wait_until(lambda: len(store) == 3, 30, "three pods")
        finally:
            end(reflector)
    assert "a listener failed" in caplog.text


def test_forbidden_says_what_to_grant_and_goes_on_when_granted(tmp_path: Path) -> None:
    refusal = status(403, "Forbidden", 'pods is forbidden: User "weak" cannot list resource "pods"')
    with ScriptedApi([refusal] * 3 + [FIRST]) as api, following(api, tmp_path) as followed:
        assert followed.reflector.wait_settled(30)
        wait_until(lambda: followed.reflector.fact().state in ("forbidden", "synced"), 30, "reported")
        followed.until_held({"a": "1"})
        assert followed.until_source(state="synced").last_error is None


def test_forbidden_message(tmp_path: Path) -> None:
    refusal = status(403, "Forbidden", 'User "weak" cannot list resource "queues"')
    groups = [answer({"versions": [{"version": "v1beta1"}]})]
    resource = kube_resources.VOLCANO_QUEUES
    with ScriptedApi([refusal], groups=groups) as api, following(api, tmp_path, resource) as followed:
        fact = followed.until_source(state="forbidden")
    assert fact.last_error == (
        "may not list queues.scheduling.volcano.sh: grant get, list and watch in a ClusterRole on resource "
        '"queues" of API group "scheduling.volcano.sh" (User "weak" cannot list resource "queues")'
    )


def test_who_may_list_but_not_watch_lists_again_and_again(tmp_path: Path) -> None:
    with (
        ScriptedApi([FIRST, page(pod("a", 2), rv="2")], [status(403, "Forbidden")] * 50) as api,
        following(api, tmp_path) as followed,
    ):
        followed.until_held({"a": "2"})
        assert (followed.until_source(state="forbidden").last_error or "").startswith("may not watch pods:")


CRD = kube_resources.CLUSTER_QUEUES


@pytest.mark.parametrize(
    ("served", "path"),
    [
        (["v1beta1"], "v1beta1"),
        (["v1alpha1", "v1beta1", "v1beta2"], "v1beta2"),
        (["v3"], "v3"),
    ],
)
def test_an_add_on_that_comes_later_is_found_in_the_version_it_serves(
    tmp_path: Path, served: list[str], path: str
) -> None:
    group = {"versions": [{"version": version} for version in served], "preferredVersion": {"version": served[-1]}}
    absent = status(404, "NotFound")
    with (
        ScriptedApi([page(pod("q", 1), rv="1")], groups=[absent, absent, answer(group)]) as api,
        following(api, tmp_path, CRD) as followed,
    ):
        assert followed.reflector.wait_settled(30)
        followed.until_held({"q": "1"})
    assert api.asked("list")[0].path == f"/apis/kueue.x-k8s.io/{path}/clusterqueues"


def test_an_add_on_that_is_removed_takes_its_objects_along(tmp_path: Path) -> None:
    group = answer({"versions": [{"version": "v1beta1"}]})
    with (
        ScriptedApi(
            [page(pod("q", 1), rv="1"), status(404, "NotFound")],
            [status(404, "NotFound")],
            [group, status(404, "NotFound")],
        ) as api,
        following(api, tmp_path, CRD) as followed,
    ):
        followed.until_source(state="absent", objects=0, stale_since=None)


def test_who_may_not_look_around_is_let_in_by_the_usual_door(tmp_path: Path) -> None:
    with (
        ScriptedApi([page(pod("q", 1), rv="1")], groups=[status(403, "Forbidden")]) as api,
        following(api, tmp_path, CRD) as followed,
    ):
        followed.until_held({"q": "1"})


def test_a_server_that_falls_silent_is_left(tmp_path: Path) -> None:
    quick = WatchTiming(watch_duration=0.2, watch_margin=0.2, initial_backoff=0.01, max_backoff=0.05, min_watch=0.05)
    with (
        ScriptedApi([FIRST], [silence, stream(ADD_B)]) as api,
        following(api, tmp_path, timing=quick) as followed,
    ):
        followed.until_held({"a": "1", "b": "2"})
        assert followed.reflector.fact().lists == 1


def test_a_server_that_goes_and_comes_back(tmp_path: Path) -> None:
    with ScriptedApi([FIRST], [stream(ADD_B)]) as api:
        port = api.port
        with following(KubeApi(lambda: load_client(api.kubeconfig(tmp_path), None)), tmp_path) as followed:
            followed.until_held({"a": "1", "b": "2"})
            api.__exit__(None, None, None)
            gone_at = time.time()
            stale = followed.until_source(state="stale")
            assert stale.stale_since == pytest.approx(gone_at, abs=30)
            assert stale.synced_since is None
            assert stale.without == PODS.without
            wait_until(  # the first attempt may be reset instead
                lambda: "Connection refused" in (followed.reflector.fact().last_error or ""),
                30,
                "refusals are reported",
            )
            assert followed.held == {"a": "1", "b": "2"}, "known objects are kept, and marked as stale"
            with ScriptedApi([FIRST], [stream(ADD_C)], port=port) as back:
                followed.until_held({"a": "1", "b": "2", "c": "3"})
                fact = followed.until_source(state="synced", stale_since=None, last_error=None)
                assert (fact.synced_since or 0) >= gone_at
                assert back.asked("watch")[0].query["resourceVersion"] == "2"


def test_tries_are_spaced_ever_wider(tmp_path: Path) -> None:
    timing = WatchTiming(initial_backoff=0.05, max_backoff=0.4)
    with ScriptedApi([status(500, "InternalError")]) as api, following(api, tmp_path, timing=timing) as followed:
        began = time.monotonic()
        time.sleep(1.5)
        # 0.05, 0.1, 0.2, 0.4, 0.4 ..., each with a jitter of down to half of it
        assert len(api.requests) <= _most_attempts(began)
        wait_until(lambda: len(api.requests) >= 4, 30, "four requests")
        assert followed.reflector.fact().state == "failing"


def _most_attempts(began: float) -> float:
    """Most attempts since `began` with a backoff of up to 0.4 s: five quick ones, then one per 0.2 s with jitter."""
    return 5 + (time.monotonic() - began) / 0.2


def test_after_good_news_tries_are_quick_again(tmp_path: Path) -> None:
    timing = WatchTiming(initial_backoff=0.02, max_backoff=10)
    watches = [
        reply
        for number in range(14)
        for reply in (stream(event("MODIFIED", pod("a", 10 + number)), then="end"), status(500, "InternalError"))
    ]
    with ScriptedApi([FIRST], watches) as api, following(api, tmp_path, timing=timing) as followed:
        began = time.monotonic()
        followed.until_source(failures=14, state="synced")
        assert time.monotonic() - began < 30, "it would be more than 40 seconds with growing backoff"


def test_a_watch_that_always_ends_at_once_is_no_busy_loop(tmp_path: Path) -> None:
    timing = WatchTiming(initial_backoff=0.05, max_backoff=0.4, min_watch=0.2)
    with ScriptedApi([FIRST], [stream(then="end")] * 500) as api, following(api, tmp_path, timing=timing):
        began = time.monotonic()
        time.sleep(1.5)
        assert len(api.asked("watch")) <= _most_attempts(began)
        wait_until(lambda: len(api.asked("watch")) >= 3, 30, "three watches")


def test_a_watch_that_is_always_gone_is_no_busy_loop_of_lists(tmp_path: Path) -> None:
    timing = WatchTiming(initial_backoff=0.05, max_backoff=0.4)
    with ScriptedApi([FIRST], [stream(gone())] * 500) as api, following(api, tmp_path, timing=timing):
        began = time.monotonic()
        time.sleep(1.5)
        assert len(api.asked("list")) <= _most_attempts(began)
        wait_until(lambda: len(api.asked("list")) >= 3, 30, "three lists")


def test_retry_after_is_respected(tmp_path: Path) -> None:
    with (
        ScriptedApi([status(429, "TooManyRequests", Retry_After="1"), FIRST]) as api,
        following(api, tmp_path) as followed,
    ):
        began = time.monotonic()
        followed.until_held({"a": "1"})
        assert time.monotonic() - began > 0.9


def test_oddities_are_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with (
        ScriptedApi([page(ODD, rv="4")], [stream(*[event("MODIFIED", ODD)] * 5)]) as api,
        following(api, tmp_path) as followed,
    ):
        followed.until_source(skipped=6)
    (message,) = [r.getMessage() for r in caplog.records if "cannot be decoded" in r.getMessage()]
    assert message.startswith("pods: skipping objects that cannot be decoded: odd: Expected `array | null`, got `str`")


@pytest.mark.parametrize(
    ("lists", "ends"),
    [([FIRST], True), ([no_answer], False)],
    ids=["in an idle watch", "without a response, threads are abandoned"],
)
def test_stopping_takes_no_longer_than_two_seconds(tmp_path: Path, lists: list[Reply], ends: bool) -> None:
    with ScriptedApi(lists) as api:
        watch = KubeInformers(connect(api.kubeconfig(tmp_path)), PodFieldFilter())
        watch.start()
        wait_until(lambda: len(api.requests) >= (19 if ends else 12), 30, "all resources are watched")
        began = time.monotonic()
        watch.stop(30.0 if ends else 2.0)
        took = time.monotonic() - began
        left = [thread for thread in threading.enumerate() if thread.name.startswith("watch-")]
        assert took < 20, "a list without a response times out only after 30 seconds"
        assert not left if ends else all(thread.daemon for thread in left)
    for thread in left:  # the server is gone: they end now
        thread.join(60)
        assert not thread.is_alive()


def test_a_refused_token_is_read_again_from_its_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    ticks = iter(range(0, 100_000, 100))
    with ScriptedApi([FIRST], token="new") as api:
        kubeconfig = api.kubeconfig(tmp_path, user=f"{{tokenFile: {token}}}")
        client = KubeApi(lambda: load_client(kubeconfig, None), clock=lambda: float(next(ticks)))
        with following(client, tmp_path) as followed:
            fact = followed.until_source(state="failing")
            assert "401" in (fact.last_error or "")
            (tmp_path / "next").write_text("new\n")
            (tmp_path / "next").replace(token)  # atomically, as the kubelet does
            followed.until_held({"a": "1"})
    assert {request.headers["authorization"] for request in api.requests} == {"Bearer old", "Bearer new"}


def test_no_credentials_is_said_in_words(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    with pytest.raises(KubeCredentialsError, match=r"no credentials for a cluster in .*nowhere"):
        connect(str(missing))
