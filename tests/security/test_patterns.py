"""Patterns of users, and texts of outsiders for our own patterns: none of them can keep the daemon busy."""

from __future__ import annotations

import ast
import http.client
import json
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from monitor.alert.alertmanager.silences import read_silences
from monitor.alert.matchers import matches, parse_matcher
from monitor.alert.model import Alert, Phase, fingerprint_of
from monitor.alert.notify import NotifyDecision
from monitor.alert.silences import active_silences
from monitor.alert.store import FILE, AlertStore
from monitor.base.globs import compile_file_glob, matches_glob
from monitor.base.units import parse_duration
from tests.alert.scenario import finding
from tests.security.pattern_costs import calls_of_re, cpu_limit
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, quiet_environment, run, running

HOSTILE = "(([a-z0-9]+)-?)+x!"  # backtracks 2^n times on a name of n letters
UNSUPPORTED = r"(?=gpu)(.*)-\1"
NODES = tuple(f"gpu-node-with-a-long-name-in-rack-{number % 40}-{number:05d}" for number in range(2000))
ANSWER_SECONDS = 60.0  # for a request that takes milliseconds
TOKEN = "a-token-for-changes"  # of the test


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Settings of a daemon with thousands of alerts in its state."""
    state = tmp_path / "state"
    state.mkdir()
    now = time.time()
    alerts = [
        Alert(fingerprint=fingerprint_of(found), finding=found, phase=Phase.FIRING, first_seen_at=now, seen_at=now)
        for found in map(finding, NODES)
    ]
    with closing(AlertStore(str(state / FILE))) as store:
        store.record({alert.fingerprint: alert for alert in alerts}, NotifyDecision(), now)
    settings = quiet_environment(
        state, DAEMON__LISTEN=f"127.0.0.1:{free_port()}", DAEMON__TOKEN=TOKEN, DAEMON__CYCLE="200ms"
    )
    return settings | {"LC_ALL": "C.UTF-8"}


@contextmanager
def daemon(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: _listens(environ), ANSWER_SECONDS, "the daemon answers")
        yield process


def _listens(environ: dict[str, str]) -> bool:
    try:
        return request(environ, "GET", "/healthz")[0] == 200
    except ConnectionError:
        return False


def request(environ: dict[str, str], method: str, path: str, content: object = None) -> tuple[int, str]:
    """Status and body of a response; fails if it does not arrive in time."""
    connection = http.client.HTTPConnection(environ["GPUWARDEN_DAEMON__LISTEN"], timeout=ANSWER_SECONDS)
    with closing(connection):
        body = None if content is None else json.dumps(content)
        connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}"})
        response = connection.getresponse()
        return response.status, response.read().decode()


def new_silence(*matchers: str, duration: str = "1h") -> dict[str, object]:
    return {"matchers": matchers, "duration": duration, "author": "mallory", "comment": ""}


def test_a_hostile_silence_delays_neither_alerts_nor_the_end_of_the_daemon(environ: dict[str, str]) -> None:
    with daemon(environ) as process:
        status, created = request(environ, "POST", "/v1/silences", new_silence(f"node=~{HOSTILE}"))
        assert status == 201, created
        status, created = request(environ, "POST", "/v1/silences", new_silence("node=~.*-rack-7-.*"))
        by_rack = json.loads(created)["id"]
        shown = json.loads(request(environ, "GET", "/v1/alerts")[1])
        silenced = {alert["labels"]["node"]: alert.get("silenced_by") for alert in shown if "node" in alert["labels"]}
        assert silenced == {node: by_rack if "-rack-7-" in node else None for node in NODES}
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def test_a_stored_silence_of_an_older_version_cannot_stop_a_start(environ: dict[str, str]) -> None:
    for name, pattern in (("hostile", HOSTILE), ("unsupported", UNSUPPORTED)):
        store_as_before(Path(environ["GPUWARDEN_DAEMON__STATE"]), name, pattern)
    with daemon(environ) as process:
        status, body = request(environ, "GET", "/v1/silences")
        silences = {silence["id"]: silence for silence in json.loads(body)}
        assert (status, set(silences)) == (200, {"hostile", "unsupported"})
        assert "disabled" not in silences["hostile"]
        assert "invalid perl operator" in silences["unsupported"]["disabled"]
        shown = json.loads(request(environ, "GET", "/v1/alerts")[1])
        assert {alert.get("silenced_by") for alert in shown} == {None}
        assert "disabled: invalid pattern" in " ".join(run("alerts", "list", environ=environ).stdout.split())
        assert "Disabled, mutes nothing: invalid pattern" in request(environ, "GET", "/alerts")[1]
        assert request(environ, "DELETE", "/v1/silences/unsupported")[0] == 200
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=STOP_LIMIT)[1]
        assert process.returncode == 0
    assert log.count("silence unsupported is disabled and mutes nothing: invalid pattern") == 1


def store_as_before(state: Path, name: str, pattern: str) -> None:
    """Store a silence as the previous version wrote it."""
    body = {
        "id": name,
        "matchers": [{"name": "node", "op": "=~", "value": pattern}],
        "starts_at": 0.0,
        "ends_at": time.time() + 86400,
        "author": "mallory",
        "comment": "",
    }
    with closing(sqlite3.connect(state / FILE)) as database, database:
        database.execute("INSERT INTO silences VALUES (?, ?, ?)", (name, body["ends_at"], msgspec.json.encode(body)))


EXPENSIVE = (
    ([f"node=~{UNSUPPORTED}"], "1h", "without look-around and backreferences"),
    (["node=~(a{1000}){1000}"], "1h", "invalid repetition size"),
    (["node=~((a|b|c|d)?){1000}"], "1h", "too complex"),
    (["node=~" + "a" * 4100], "1h", "of length <= 4096"),
    (["node=" + " " * 4_000_000 + "b"], "1h", "of length <= 4096"),
    (["node=a"] * 200, "1h", "too many"),
    (["node=a"] * 1000, "1h", "of length <= 256"),
    (["node=a"], "1" * 200, "is not a duration"),
    (["node=a"], "1" * 4_000_000, "of length <= 256"),
)


def test_a_request_with_an_expensive_pattern_is_refused_at_once(environ: dict[str, str]) -> None:
    with daemon(environ):
        for matchers, duration, says in EXPENSIVE:
            status, body = request(environ, "POST", "/v1/silences", new_silence(*matchers, duration=duration))
            assert (status, says in json.loads(body)["error"]) == (400, True), body[:500]


def test_long_durations_and_matchers_are_refused_before_they_are_parsed() -> None:
    """Those of the configuration and of stored silences, which no request limits."""
    for text, parse in (("1s" * 60, parse_duration), ("node=" + "a" * 4200, parse_matcher)):
        with pytest.raises(ValueError, match=r"is not a duration|is too long for a matcher"):
            parse(text)


MATCHING_AT_THE_END = """
import threading, time
from monitor.base.patterns import matches_pattern
from monitor.base.process import end_process
matched = threading.Barrier(5)
def match():
    matches_pattern("(.*a.*b?){100}x", "ab" * 150)
    matched.wait()
    while True:
        matches_pattern("(.*a.*b?){100}x", "ab" * 150)
class SlowToEnd:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # the other threads run while the interpreter ends
slow = SlowToEnd()
for _ in range(4):
    threading.Thread(target=match, daemon=True).start()
matched.wait()
print("bye")
end_process(3)
"""


def test_a_match_in_progress_does_not_abort_the_process_when_it_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", MATCHING_AT_THE_END],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "bye\n", "")


def test_silences_of_an_alertmanager_are_evaluated_in_linear_time_or_disabled() -> None:
    hostile, unsupported = read_silences(
        json.dumps(
            [
                {
                    "id": pattern,
                    "status": {"state": "active"},
                    "matchers": [{"name": "node", "value": pattern, "isRegex": True, "isEqual": equal}],
                    "startsAt": "2020-01-01T00:00:00Z",
                    "endsAt": "2040-01-01T00:00:00Z",
                }
                for pattern, equal in ((HOSTILE, True), (UNSUPPORTED, False))
            ]
        ).encode()
    )
    assert active_silences((hostile, unsupported), 1.7e9) == (hostile,)
    assert "invalid perl operator" in (unsupported.disabled or "")
    assert [node for node in NODES if matches(hostile.matchers, {"node": node})] == []
    assert not matches(unsupported.matchers, {"node": "gpu"})


def test_a_linear_engine_gives_the_answer_that_a_backtracking_one_would() -> None:
    matcher = parse_matcher(f"node=~{HOSTILE}")
    with cpu_limit(10.0):
        assert matcher.matches({"node": "gpu-1x!"})
        assert not matcher.matches({"node": "gpu-1x! "})
        assert not matcher.matches({"node": "a" * 100_000})


def test_shell_patterns_take_linear_time() -> None:
    for pattern in ("*a" * 50 + "*b", "*?" * 50 + "b", "*[ab]*[!b]" * 25 + "*b", "*" * 50 + "b"):
        with cpu_limit(10.0):
            assert not matches_glob("a" * 100_000, pattern)
            assert not compile_file_glob(pattern).match("a" * 100_000)


def test_no_text_from_outside_makes_a_pattern_of_the_product_backtrack() -> None:
    count, *slow = pattern_costs("3")
    assert int(count) > 50
    assert slow == []


def test_a_pattern_that_backtracks_would_be_found() -> None:
    count, *slow = pattern_costs("0.3", HOSTILE, "(a|a)*b", "a+b")
    assert (int(count), slow) == (3, [HOSTILE, "(a|a)*b"])


def pattern_costs(*arguments: str) -> list[str]:
    """Number of patterns tried, and those that exceed a limit of CPU seconds; in a process with a limit of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.security.pattern_costs", *arguments],
        cwd=Path(__file__).parents[2],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (100, 100)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_functions_compile_no_pattern_that_is_not_a_literal() -> None:
    """Patterns from outside belong in monitor.base.patterns.

    Only file names of the agent's requests are globs; fragments of kernel lines, and templates of our own error texts,
    are escaped literals.
    """
    dynamic = {name for name, call, nested in calls_of_re() if nested and not isinstance(call.args[0], ast.Constant)}
    assert dynamic == {"monitor.agent.kmsg", "monitor.base.globs", "monitor.i18n.phrases"}
