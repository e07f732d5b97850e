# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.error_chain.mounts import classify_mount
from monitor.explain.error_chain.parse import MAX_CHARS, MAX_CLAUSES, parse, parse_list
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.error_chain.starts import classify_start

CHAINS: list[tuple[str, str, list[str]]] = [
    ("a chain", "failed to start: exit status 1: not found", ["failed to start", "exit status 1", "not found"]),
    ("an address has no space after its colon", "dial tcp 10.0.0.5:443: i/o timeout", ["dial tcp 10.0.0.5:443", "i/o timeout"]),
    ("a gRPC status is no clause", "rpc error: code = NotFound desc = a: b", ["a", "b"]),
    ("a description within a description", 'rpc error: code = Unavailable desc = connection error: desc = "transport: dial unix /a: refused"', ["connection error", "transport", "dial unix /a", "refused"]),
    ("runc before 1.0 quotes what it wraps", r'starting container process caused "exec: \"/x\": no such file"', ["starting container process", "exec", "/x", "no such file"]),
    ("three levels deep", r'caused: container init caused \"running hook caused \\\"stderr: nvml error\\\\n\\\"\"', ["caused", "container init", "running hook", "stderr", "nvml error"]),
    ("lines", "exit status 32\nOutput: mount.nfs: timed out", ["exit status 32", "Output", "mount.nfs", "timed out"]),
    ("the registry's words after its status", "403 Forbidden - Server message: denied: no", ["403 Forbidden", "denied", "no"]),
    ("nothing", "", [""]),
    ("only separators", ": : \n: ", [""]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "expect"), CHAINS, ids=[each[0] for each in CHAINS])
def test_clauses(name: str, message: str, expect: list[str]) -> None:
    assert [clause.text for clause in parse(message).clauses] == expect


def test_the_code_belongs_to_the_clause_after_it() -> None:
    chain = parse("failed: rpc error: code = DeadlineExceeded desc = too late: really")
    assert [clause.code for clause in chain.clauses] == [None, "DeadlineExceeded", None]


def test_a_list_of_errors_is_several_chains() -> None:
    chains = parse_list("[rpc error: code = Unknown desc = a: b, rpc error: code = Unknown desc = c: d]")
    assert [chain.last.text for chain in chains] == ["b", "d"]


WORDING = [
    ('Get "https://timeout.lab/v2/x509": EOF', "get _: eof"),
    ('pulling "harbor.lab/denied:503"', "pulling _"),
    ("i/o timeout", "i/o timeout"),
    ("archive/tar: invalid tar header", "archive/tar: invalid tar header"),
    ("open /var/lib/refused/x: denied", "open _: denied"),
    ("layer sha256:0a1b gone", "layer _ gone"),
    ("reading manifest 1 in quay.io/team/unauthorized", "reading manifest 1 in _"),
    ("manifest for timeout:1 unknown", "manifest for _ unknown"),
]


@pytest.mark.parametrize(("message", "expect"), WORDING)
def test_names_are_no_wording(message: str, expect: str) -> None:
    assert parse(message, "timeout:1").words == expect


def test_the_last_statement_is_not_the_name_of_a_code() -> None:
    assert parse("exec: permission denied: unknown").last_statement == "permission denied"


def test_length_and_depth_are_bounded() -> None:
    chain = parse("a: " * 100_000 + "permission denied")
    assert len(chain.clauses) <= MAX_CLAUSES
    assert chain.last_statement == "permission denied"
    assert len(parse("x" * 10 * MAX_CHARS).low) <= MAX_CHARS + 2


def classify_all(message: str) -> None:
    classify_pull(message, "harbor.lab/nlp/bert:1")
    classify_pull(message, message)
    classify_start(message)
    classify_mount(message)
    main_reason(parse_scheduling(message))


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    classify_all(message)


fragments = st.sampled_from(
    [": ", "\n", "rpc error: code = ", " desc = ", '\\"', '"', "[", "]", ", ", "https://", "?ns=", "proxyconnect tcp", "403",
     "dial tcp", "lookup ", "dial unix", "exec", "nvidia-container-cli: ", "mount.nfs: ", "not found", "0/3 nodes are available: ",
     "1 ", "Insufficient ", "taint {", "preemption: ", "5 nodes ", "minAvailable", "secret ", "(13) P", "sha256:", "/"]
)  # fmt: skip


@given(st.lists(st.one_of(fragments, st.text(max_size=5)), max_size=80).map("".join))
def test_no_mixture_breaks_it(message: str) -> None:
    classify_all(message)


HOSTILE = [
    ": ", "\\", '\\"', '"', "'", "/", "a/", " ", "\n", "(", "[", "0", "1 ", ", 1 ", "x: y", "https://", "get https://a@", "taint ",
    "nodes are available: ", "5/5 nodes are available: ", "secret a ", "secret \"", "mount.nfs: ", "image \"", "lookup ", "exec ",
    "1 Pending ", "1 minAvailable ", "insufficient a", "for a in flavor b,", "sha256:", "(13) P", "ret=-", "://", "?ns=", "dial tcp ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_message_takes_no_longer(piece: str) -> None:
    """Twice the length takes about twice the time at most, and the rest of a very long message is dropped."""
    message = piece * (1_000_000 // len(piece))
    before = time.process_time()
    classify_all(message)
    assert time.process_time() - before < 1.0
