from __future__ import annotations

import gc
import select
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from monitor.base.endpoint import Endpoint
from monitor.base.http import MAX_BODY_BYTES, MAX_RETRY_AFTER_SECONDS, Reply, RequestError, get, post_json, retry_after
from tests.support import free_port, wait_until
from tests.support.receivers.http_server import (
    Behaviour,
    Handler,
    LocalServer,
    hangs_up,
    is_silent,
    make_certificate,
    resets,
    resets_in_the_middle,
    says,
    speaks_no_http,
    trickles_its_body,
    trickles_its_headers,
)

PATH = "/send?key=693a91f6-7aoc"


@pytest.fixture(autouse=True)
def _no_proxies_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def _no_socket_of_the_library_left() -> Iterator[None]:
    """`SSLSocket._create` of Python 3.11 leaves a socket open if the peer resets it before the handshake."""
    yield
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed <ssl.SSLSocket", ResourceWarning)
        gc.collect()


RESETS_EARLY = pytest.mark.usefixtures("_no_socket_of_the_library_left")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def failure(way: Endpoint) -> RequestError:
    with pytest.raises(RequestError) as caught:
        post_json(way, {})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "what led to it names the address"
    return caught.value


REDIRECT = says(302, Location="https://login.example.com/?token=693a91f6-7aoc")
ANSWERS: list[tuple[str, Behaviour, bool, str]] = [
    ("a server error", says(500), True, "answered 500 Internal Server Error"),
    ("a gateway error", says(502, b"<html>nginx</html>"), True, "answered 502 Bad Gateway"),
    ("not now", says(503), True, "answered 503 Service Unavailable"),
    ("request timed out", says(408), True, "answered 408 Request Timeout"),
    ("too many", says(429, b"rate_limited"), True, "answered 429 Too Many Requests: rate_limited"),
    ("bad request", says(400, b"invalid_payload"), False, "answered 400 Bad Request: invalid_payload"),
    ("not allowed", says(401), False, "answered 401 Unauthorized"),
    ("not found", says(404, b"no_service"), False, "answered 404 Not Found: no_service"),
    ("gone", says(410), False, "answered 410 Gone"),
    ("too large", says(413), False, "answered 413"),
    ("a status that nobody knows", says(599), True, "answered 599"),
    ("elsewhere", REDIRECT, False, "redirects (302, to login.example.com)"),
    ("elsewhere, unsaid", says(307), False, "redirects (307, to ?)"),
    ("not modified", says(304), False, "redirects (304"),
    ("hanging up", hangs_up, True, "the connection was closed"),
    ("reset", resets, True, "the connection was closed"),
    ("reset in the middle", resets_in_the_middle, True, "the connection was closed"),
    ("no HTTP", speaks_no_http, True, "the connection was closed"),
]


@pytest.mark.parametrize(
    ("behave", "retryable", "words"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS]
)
def test_what_is_tried_again_and_what_is_not(behave: Behaviour, retryable: bool, words: str) -> None:
    with LocalServer(behave) as server:
        error = failure(Endpoint(server.base + PATH, timeout=60.0))
    assert error.retryable is retryable
    assert words in str(error)
    assert len(server.asked) == 1, "one attempt is one request"


@pytest.mark.parametrize("behave", [is_silent, trickles_its_headers, trickles_its_body])
def test_the_time_limit_is_one_for_all_of_it(behave: Behaviour) -> None:
    with LocalServer(behave) as server:
        began = time.monotonic()
        error = failure(Endpoint(server.base + PATH, timeout=0.4))
        took = time.monotonic() - began
        wait_until(lambda: not _outgoing(), 2, "the thread has ended with its connection")
    assert error.retryable
    assert str(error) == f"127.0.0.1:{server.port}: no complete answer within 0.4 s"
    assert 0.3 < took < 30.0, "the server never completes its response"


def _outgoing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "with-deadline"]


@RESETS_EARLY
def test_trickling_in_tls_is_limited_too(certificate: tuple[Path, Path]) -> None:
    with LocalServer(trickles_its_body, certificate) as server:
        error = failure(Endpoint(server.base + PATH, timeout=0.6, ca_file=str(certificate[0])))
        wait_until(lambda: not _outgoing(), 2, "the thread has ended with its connection")
    assert (error.retryable, "no complete answer" in str(error)) == (True, True)


@RESETS_EARLY
def test_somebody_who_accepts_and_never_shakes_hands(certificate: tuple[Path, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        error = failure(Endpoint(f"https://127.0.0.1:{mute.getsockname()[1]}/", timeout=0.3))
    assert (error.retryable, "no complete answer" in str(error)) == (True, True)


def test_nobody_there() -> None:
    error = failure(Endpoint(f"http://127.0.0.1:{free_port()}{PATH}"))
    assert (error.retryable, "connection refused" in str(error)) == (True, True)


def test_a_name_that_does_not_exist() -> None:
    error = failure(Endpoint(f"http://hooks.invalid{PATH}"))
    assert str(error) == "hooks.invalid: the name cannot be resolved"
    assert error.retryable


@pytest.mark.parametrize("url", ["", "hooks.example.com/x", "ftp://hooks.example.com/", "http://[::1", "http://"])
def test_an_address_that_is_none_is_not_tried_again(url: str) -> None:
    assert failure(Endpoint(url)).retryable is False


@RESETS_EARLY
def test_a_certificate_that_nobody_has_signed_is_not_trusted(certificate: tuple[Path, Path]) -> None:
    with LocalServer(certificate=certificate) as server:
        error = failure(Endpoint(server.base + PATH))
        assert server.asked == []
    assert (error.retryable, "the certificate is not trusted (self-signed" in str(error)) == (False, True)


@RESETS_EARLY
def test_a_certificate_of_somebody_else_is_not_trusted(certificate: tuple[Path, Path]) -> None:
    with LocalServer(certificate=certificate) as server:
        error = failure(Endpoint(f"https://localhost:{server.port}{PATH}", ca_file=str(certificate[0])))
    assert (error.retryable, "Hostname mismatch" in str(error)) == (False, True)


@RESETS_EARLY
def test_a_certificate_of_our_own_authority_is_trusted(certificate: tuple[Path, Path]) -> None:
    with LocalServer(certificate=certificate) as server:
        assert post_json(Endpoint(server.base, ca_file=str(certificate[0])), {}).status == 200


@RESETS_EARLY
def test_verification_can_be_switched_off(certificate: tuple[Path, Path]) -> None:
    with LocalServer(certificate=certificate) as server:
        assert post_json(Endpoint(server.base, verify_tls=False), {}).status == 200


@RESETS_EARLY
def test_tls_where_there_is_none() -> None:
    with LocalServer() as server:
        error = failure(Endpoint(f"https://127.0.0.1:{server.port}/"))
    assert (error.retryable, "TLS failed" in str(error)) == (True, True)


@RESETS_EARLY
def test_an_authority_that_is_not_there(tmp_path: Path) -> None:
    error = failure(Endpoint("https://127.0.0.1:1/", ca_file=str(tmp_path / "none.pem")))
    assert error.retryable
    assert "https://" not in str(error)


def never_ends(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not handler.server.local.closing.is_set():  # or until the client hangs up
        handler.wfile.write(b"a" * MAX_BODY_BYTES)


def test_a_body_without_end_is_not_read_to_it() -> None:
    with LocalServer(never_ends) as server:
        assert len(get(Endpoint(server.base, timeout=20.0)).body) == MAX_BODY_BYTES


NOW = 1_700_000_000.0
AFTER: list[tuple[str | None, float | None]] = [
    ("30", 30.0),
    ("0", 0.0),
    (formatdate(NOW + 90, usegmt=True), 90.0),
    (formatdate(NOW - 90, usegmt=True), 0.0),
    ("999999999", MAX_RETRY_AFTER_SECONDS),
    ("soon", None),
    ("-5", None),
    ("", None),
    (None, None),
]


@pytest.mark.parametrize(("header", "seconds"), AFTER)
def test_how_long_somebody_wants_to_be_left_alone(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_passed_on(status: int) -> None:
    with LocalServer(says(status, Retry_After="17")) as server:
        assert failure(Endpoint(server.base)).after == 17.0


def test_a_refusal_for_good_is_not_for_later() -> None:
    with LocalServer(says(403, Retry_After="17")) as server:
        assert failure(Endpoint(server.base)).after is None


def test_a_proxy_is_asked_when_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with LocalServer() as proxy:
        way = Endpoint("http://hooks.invalid/x", proxy=f"http://warden:pass-of-proxy@127.0.0.1:{proxy.port}")
        assert get(way).status == 200
    assert proxy.asked[0].headers["host"] == "hooks.invalid"
    assert proxy.asked[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert get(Endpoint("http://hooks.invalid/x")).status == 200
    assert len(proxy.asked) == 1


def test_whom_the_environment_excepts_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LocalServer() as server:
        assert get(Endpoint(server.base)).status == 200


def connects(handler: Handler) -> None:
    """CONNECT handler of a proxy: relay both directions."""
    host, _, port = handler.path.partition(":")
    with socket.create_connection((host, int(port)), 60) as there:
        handler.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        here = handler.connection
        while True:
            for ready in select.select([here, there], [], [], 60)[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (there if ready is here else here).sendall(data)


@RESETS_EARLY
def test_through_a_proxy_tls_is_with_whom_we_mean(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_CONNECT", Handler.do_POST, raising=False)
    with LocalServer(connects) as proxy, LocalServer(certificate=certificate) as server:
        way = Endpoint(server.base + PATH, proxy=f"http://127.0.0.1:{proxy.port}", ca_file=str(certificate[0]))
        assert post_json(way, {}).status == 200
        assert "not trusted" in str(failure(replace(way, ca_file=None)))
        server.behave = trickles_its_headers
        assert "no complete answer" in str(failure(replace(way, timeout=3.0)))
    assert "key" not in str(proxy.asked[0])
    assert len(server.asked) == 2


def refuses_to_connect(status: int) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.say(status, b"pass-of-proxy")

    return behave


@pytest.mark.parametrize(("status", "retryable"), [(407, False), (502, True)])
def test_a_proxy_that_does_not_connect(status: int, retryable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer() as proxy:
        proxy.behave = refuses_to_connect(status)
        monkeypatch.setattr(Handler, "do_CONNECT", Handler.do_POST, raising=False)
        error = failure(
            Endpoint("https://hooks.invalid/x", proxy=f"http://warden:pass-of-proxy@127.0.0.1:{proxy.port}")
        )
    assert error.retryable is retryable
    assert "pass-of-proxy" not in str(error)


def test_a_proxy_that_is_not_there() -> None:
    error = failure(Endpoint("https://hooks.invalid/x", proxy=f"http://warden:pass-of-proxy@127.0.0.1:{free_port()}"))
    assert (str(error), error.retryable) == ("the proxy: connection refused", True)


def test_a_login_of_the_address_is_used_and_one_of_a_netrc_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with LocalServer() as server:
        get(Endpoint(server.base), {"Authorization": "Bearer of-ours"})
        get(Endpoint(server.base.replace("//", "//zhang:secret-word@")))
    assert [each.headers["authorization"] for each in server.asked] == [
        "Bearer of-ours",
        "Basic emhhbmc6c2VjcmV0LXdvcmQ=",
    ]


def test_characters_are_sent_as_they_are_and_broken_ones_do_not_stop_it() -> None:
    with LocalServer() as server:
        post_json(Endpoint(server.base), {"text": "磁盘将满 \ud800"})
    assert server.asked[0].body == '{"text":"磁盘将满 ?"}'.encode()
    assert server.asked[0].headers["content-type"] == "application/json; charset=utf-8"
    assert server.asked[0].headers["user-agent"].startswith("gpuwarden/")


def test_an_answer_does_not_show_itself() -> None:
    assert repr(Reply(200, {"x": "secret"}, b"secret")) == "Reply(status=200)"


def test_several_at_once_do_not_break_off_each_other() -> None:
    replies: list[int] = []
    with LocalServer(is_silent) as slow, LocalServer() as quick:
        hanging = threading.Thread(target=failure, args=(Endpoint(slow.base, timeout=0.5),))
        hanging.start()
        while hanging.is_alive():
            replies.append(get(Endpoint(quick.base)).status)
        hanging.join()
    assert set(replies) == {200}
