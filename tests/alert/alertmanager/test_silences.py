from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest

from monitor.alert.alertmanager.silences import AlertmanagerSilences, read_silences
from monitor.base.endpoint import Endpoint
from tests.support import wait_until
from tests.support.receivers.http_server import LocalServer, says


def theirs(*matchers: dict[str, Any], state: str = "active", **more: Any) -> dict[str, Any]:
    """Silence in the format of Alertmanager 0.25."""
    return {
        "id": "7d8a", "status": {"state": state}, "updatedAt": "2023-11-14T22:13:20.000Z", "comment": "new disks come",
        "createdBy": "li", "startsAt": "2023-11-14T22:13:20.000Z", "endsAt": "2023-11-14T23:13:20.000Z",
        "matchers": list(matchers) or [matcher("node", "gpu1")], **more,
    }  # fmt: skip


def matcher(name: str, value: str, *, regex: bool = False, equal: bool = True) -> dict[str, Any]:
    return {"name": name, "value": value, "isRegex": regex, "isEqual": equal}


def body(*silences: dict[str, Any]) -> bytes:
    return json.dumps(silences).encode()


def test_all_of_it_is_read() -> None:
    (silence,) = read_silences(body(theirs()))
    assert (silence.id, silence.author, silence.comment) == ("7d8a", "li", "new disks come")
    assert (silence.starts_at, silence.ends_at) == (1_700_000_000.0, 1_700_003_600.0)
    assert [str(each) for each in silence.matchers] == ["node=gpu1"]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (matcher("node", "gpu1", equal=False), "node!=gpu1"),
        (matcher("node", "gpu[0-9]+", regex=True), "node=~gpu[0-9]+"),
        (matcher("node", "gpu.*", regex=True, equal=False), "node!~gpu.*"),
        ({"name": "node", "value": "gpu1", "isRegex": False}, "node=gpu1"),
    ],
)
def test_every_kind_of_matcher(given: dict[str, Any], written: str) -> None:
    (silence,) = read_silences(body(theirs(given)))
    assert [str(each) for each in silence.matchers] == [written]


@pytest.mark.parametrize(("state", "count"), [("active", 1), ("pending", 1), ("expired", 0)])
def test_those_that_are_over_are_left_out(state: str, count: int) -> None:
    assert len(read_silences(body(theirs(state=state)))) == count


def test_one_that_is_not_understood_silences_nothing_and_the_others_do(caplog: pytest.LogCaptureFixture) -> None:
    odd = theirs(matcher("node", "(?=a)", regex=True), id="odd")
    void = theirs(id="void") | {"matchers": []}
    shown = read_silences(body(odd, void, theirs()))
    assert [(each.id, each.disabled is None) for each in shown] == [("odd", False), ("7d8a", True)]
    assert "ignoring Alertmanager silence void" in caplog.text


@pytest.mark.parametrize("answer", [b"", b"{}", b"<html>", b'[{"id": 1}]', b"[null]"])
def test_what_is_no_list_of_silences(answer: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # what msgspec says of it is its own
        read_silences(answer)


def test_the_last_answer_stays_while_there_is_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with LocalServer(says(200, [theirs()])) as server:
        silences = AlertmanagerSilences(Endpoint(f"{server.base}/prefix/"), token="of-ours")
        silences.refresh()
        assert (server.asked[0].path, server.asked[0].headers["authorization"]) == (
            "/prefix/api/v2/silences",
            "Bearer of-ours",
        )
        for behave in (says(500), says(500), says(200, b"<html>")):
            server.behave = behave
            silences.refresh()
            assert len(silences.silences) == 1
            assert silences.error
        server.behave = says(200, [])
        silences.refresh()
    assert (silences.silences, silences.error) == ((), None)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"], "each trouble once"


def test_it_asks_again_and_again_until_it_is_stopped() -> None:
    with LocalServer(says(200, [theirs()])) as server:
        silences = AlertmanagerSilences(Endpoint(server.base), interval=0.05)
        silences.start()
        wait_until(lambda: len(server.asked) >= 3, 30, "it has asked three times")
        silences.stop()
        wait_until(lambda: "alertmanager-silences" not in {t.name for t in threading.enumerate()}, 30, "it has ended")
    assert len(silences.silences) == 1
