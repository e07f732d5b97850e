from __future__ import annotations

import pytest

from monitor.base.endpoint import MAX_QUOTE, Endpoint

WECOM = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=693a91f6-7aoc-4bc4-97a0-0ec2sifa5aaa"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (WECOM, "qyapi.weixin.qq.com"),
        ("http://zhang:secret@127.0.0.1:9093/x", "127.0.0.1:9093"),
        ("http://[::1]:9093/x", "[::1]:9093"),
        ("", "?"),
        ("http://[::1", "?"),
        ("http://host:port/", "?"),
    ],
)
def test_only_the_host_is_shown(url: str, host: str) -> None:
    assert Endpoint(url).host == host


SAID = [
    (WECOM, (), "invalid webhook url, hint: [1600_1]", "invalid webhook url, hint: [1600_1]"),
    (WECOM, (), "no 693a91f6-7aoc-4bc4-97a0-0ec2sifa5aaa here", "no *** here"),
    (WECOM, (), f"at {WECOM}!", "at ***!"),
    (WECOM, (), "POST /cgi-bin/webhook/send?key=693a91f6-7aoc-4bc4-97a0-0ec2sifa5aaa", "POST /***?***"),
    ("https://hooks.slack.com/services/T01ABCDEF/B02ABCDEF/xYz", (), "T01ABCDEF, B02ABCDEF", "***, ***"),
    ("http://zhang:a%2Fb@host/", (), "a/b a%2Fb emhhbmc6YS9i", "*** *** ***"),
    ("http://host/", ("x/y z",), "x/y z x/y%20z x%2Fy%20z", "*** *** ***"),
    ("http://host/", ('a"b',), r'{"a\"b"}', '{"***"}'),
    ("http://host/", (), "two\nlines\x1b[0m", "two lines [0m"),
    ("http://host/", (), "", ""),
]


@pytest.mark.parametrize(("url", "secrets", "said", "shown"), SAID)
def test_what_others_say_is_repeated_without_our_secrets(
    url: str, secrets: tuple[str, ...], said: str, shown: str
) -> None:
    assert Endpoint(url, secrets=secrets).redact(said) == shown


def test_what_is_long_is_cut_after_the_secrets_are_out() -> None:
    way = Endpoint("http://host/", secrets=("secret-of-ours",))
    shown = way.redact("x" * (MAX_QUOTE - 5) + "secret-of-ours" * 10)
    assert len(shown) == MAX_QUOTE
    assert "secret" not in shown


def test_the_secrets_of_a_proxy_are_secrets_too() -> None:
    assert Endpoint("http://host/", proxy="http://warden:pass-word@proxy:3128").redact("pass-word") == "***"


def test_an_address_does_not_show_itself() -> None:
    shown = repr(Endpoint(WECOM, proxy="http://a:b@c", secrets=("d",)))
    assert shown == "Endpoint(timeout=10.0, ca_file=None, verify_tls=True)"
