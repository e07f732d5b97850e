from __future__ import annotations

import builtins
import importlib.util
from typing import Any

import pytest

from tests.alert.receivers.batches import batch, receiver, refusal
from tests.support import free_port, need
from tests.support.receivers.http_server import LocalServer, is_silent, says

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it


@pytest.fixture
def _apprise() -> None:
    need(importlib.util.find_spec("apprise") is not None, "the library Apprise")


def address(port: int) -> str:
    return f"json://127.0.0.1:{port}/hook-of-ours-693a91f6"


@pytest.mark.usefixtures("_apprise")
def test_the_real_library_delivers() -> None:
    with LocalServer() as server:
        assert receiver("apprise", address(server.port)).deliver(batch()) == "delivered"
    assert "/data" in server.asked[0].json["message"]
    assert server.asked[0].json["title"]


@pytest.mark.usefixtures("_apprise")
@pytest.mark.parametrize("status", [400, 500])
def test_it_says_no_more_than_that_it_failed_so_it_is_tried_again(status: int) -> None:
    with LocalServer(says(status)) as server:
        error = refusal(receiver("apprise", address(server.port)))
    assert (error.retryable, str(error)) == (True, "Apprise could not deliver and gives no reason")


@pytest.mark.usefixtures("_apprise")
def test_nobody_there() -> None:
    assert refusal(receiver("apprise", address(free_port()))).retryable


@pytest.mark.usefixtures("_apprise")
def test_the_time_limit() -> None:
    with LocalServer(is_silent) as server:
        error = refusal(receiver("apprise", address(server.port), timeout=0.3))
    assert (error.retryable, str(error)) == (True, "Apprise did not finish within 0.3 s")


@pytest.mark.usefixtures("_apprise")
def test_an_address_that_it_does_not_understand_is_not_tried_again() -> None:
    error = refusal(receiver("apprise", "nonsense://key-693a91f6"))
    assert (error.retryable, "693a91f6" in str(error)) == (False, False)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    really = builtins.__import__

    def missing(name: str, *args: Any, **more: Any) -> Any:
        if name == "apprise":
            raise ImportError(name)
        return really(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    error = refusal(receiver("apprise", "json://127.0.0.1/"))
    assert (error.retryable, str(error)) == (False, "Apprise is not installed; run pip install 'gpuwarden[apprise]'")
