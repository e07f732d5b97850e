"""HTTP over a unix socket, and its error messages."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError, NotServedError
from monitor.agent.runtime.unix_http import UnixHttp
from tests.agent.runtime.scripted import Scripted, scripted_engine
from tests.support import need


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Scripted]:
    with scripted_engine(tmp_path, {"/ok": b'{"a":1}', "/other": b"[]", "/broken": 500, "/slow": b"[]"}) as engine:
        yield engine


def test_answers_come_over_one_connection(engine: Scripted) -> None:
    with UnixHttp(engine.socket) as http:
        assert [http.get("/ok"), http.get("/other"), http.get("/ok")] == [b'{"a":1}', b"[]", b'{"a":1}']


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ("/nothing", GoneError, "/nothing: HTTP 404: as scripted"),
        ("/broken?x=1", GoneError, "/broken: HTTP 404"),
        ("/broken", EngineError, "/broken: HTTP 500: as scripted"),
    ],
)
def test_an_error_says_what_was_asked_and_answered(
    target: str, error: type[Exception], text: str, engine: Scripted
) -> None:
    with UnixHttp(engine.socket) as http:
        with pytest.raises(error, match=text):
            http.get(target)
        assert http.get("/ok") == b'{"a":1}'


def test_after_a_time_out_the_next_answer_is_to_the_next_question(engine: Scripted) -> None:
    engine.stuck.add("/slow")
    with UnixHttp(engine.socket) as http:
        with pytest.raises(NoAnswerError, match="no answer"):
            http.get("/slow", timeout=0.05)
        engine.released.set()
        assert http.get("/ok") == b'{"a":1}'


def test_no_socket_is_no_fault(tmp_path: Path) -> None:
    with UnixHttp(str(tmp_path / "none.sock")) as http, pytest.raises(NotServedError, match="no such socket"):
        http.get("/ok")


def test_a_socket_left_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "left.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    with UnixHttp(path) as http, pytest.raises(EngineError, match=f"{path}: connection refused: start the engine"):
        http.get("/ok")


def test_a_socket_closed_to_us_is_named_with_the_remedy() -> None:
    need(os.geteuid() == 0, "root, to become somebody else")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, scripted_engine(Path(directory), {}) as engine:
        os.chmod(directory, 0o755)
        os.chmod(engine.socket, 0o600)
        os.seteuid(65534)
        try:
            with UnixHttp(engine.socket) as http, pytest.raises(EngineError) as caught:
                http.get("/ok")
        finally:
            os.seteuid(0)
    assert str(caught.value) == (
        f"{engine.socket}: permission denied: run the agent as root or in the group that owns the socket"
    )


def test_an_engine_that_dies_while_it_is_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "dying.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)
        hang_up = threading.Thread(target=lambda: server.accept()[0].close())
        hang_up.start()
        with UnixHttp(path) as http, pytest.raises(EngineError, match=path):
            http.get("/ok")
        hang_up.join()
