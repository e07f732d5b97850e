"""The corpus: format, classes, the rows that are kept aside, and no names of real sites."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.explain.error_chain.hosts import registry_of
from tests.explain.corpus_rows import (
    CORPUS_DIR,
    FILE_KINDS,
    FILES,
    KEPT_DIR,
    LOG_FILE,
    MAX_LINE_CHARS,
    MESSAGE_FILES,
    CorpusError,
    CorpusRow,
    load_classes,
    load_rows,
)

GIVEN_ROWS = 80
MIN_NEW_ROWS = 200
MIN_LOG_TAILS = 60
MIN_MASKED_TAILS = 6
MIN_KEPT_ROWS = 60
MIN_KEPT_TAILS = 30
MAX_ACTION_CHARS = 220

CLASSES = load_classes()
DEVELOPMENT = {name: load_rows(CORPUS_DIR / f"{name}.tsv", CLASSES) for name in FILES}
ASIDE = {name: load_rows(KEPT_DIR / f"{name}.tsv", CLASSES) for name in FILES}
ALL_ROWS = {name: (*DEVELOPMENT[name], *ASIDE[name]) for name in FILES}
NEW_ROWS = {name: tuple(row for row in rows if not row.given) for name, rows in ALL_ROWS.items()}

# Hosts of public services that the programs themselves name, and names reserved for examples.
PUBLIC_HOSTS = (
    "docker.io", "cloudflare.docker.com", "www.docker.com", "ghcr.io", "quay.io", "gcr.io", "nvcr.io", "pkg.dev",
    "registry.k8s.io", "k8s.gcr.io", "public.ecr.aws", "cloud.google.com", "huggingface.co", "pytorch.org",
    "docs.nvidia.com", "www.nvidia.com",
)  # fmt: skip
EXAMPLE_HOSTS = ("example.com", "example.net", "example.org", "example.azurecr.io", "localhost", "svc")
EXAMPLE_ACCOUNT = re.compile(r"123456789012\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com")
URL_HOST = re.compile(r"https?://(?:[^\s/@\"']*@)?(\[[^\]]*\]|[^\s/:\"'?\\)]+)")
LOOKUP = re.compile(r"\blookup ([\w.-]+)")
ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
MAIL = re.compile(r"[\w.+-]+@([\w-]+\.[\w.-]+)")
SOURCE = re.compile(r"[\w.-]+(?:/[\w.-]+)?#\d+|source text|text index|observed on|no thread")
VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d+")


def named_rows(rows: dict[str, tuple[CorpusRow, ...]]) -> Iterator[tuple[str, CorpusRow]]:
    return ((name, row) for name, several in rows.items() for row in several)


def test_the_corpus_is_large_enough() -> None:
    assert sum(row.given for _, row in named_rows(ALL_ROWS)) == GIVEN_ROWS
    assert sum(len(NEW_ROWS[name]) for name in MESSAGE_FILES) >= MIN_NEW_ROWS
    assert len(NEW_ROWS[LOG_FILE]) >= MIN_LOG_TAILS


def test_enough_rows_are_kept_aside() -> None:
    assert sum(len(ASIDE[name]) for name in MESSAGE_FILES) >= MIN_KEPT_ROWS
    assert len(ASIDE[LOG_FILE]) >= MIN_KEPT_TAILS
    assert not any(row.given for _, row in named_rows(ASIDE))


def test_classes_fit_the_kind_of_their_rows() -> None:
    for name, row in named_rows(ALL_ROWS):
        assert len(set(row.expect)) == len(row.expect), row.where
        for expected in row.expect:
            assert CLASSES[expected].kinds & FILE_KINDS[name], f"{row.where}: {expected}"


def test_every_class_is_expected_by_a_row_or_is_a_coarser_answer() -> None:
    expected = {name for _, row in named_rows(ALL_ROWS) for name in row.expect}
    parents = {failure.parent for failure in CLASSES.values()}
    assert CLASSES.keys() - expected - parents == set()


def test_parents_end_at_a_class_without_parent() -> None:
    for failure in CLASSES.values():
        seen = {failure.name}
        while failure.parent is not None:
            assert failure.parent not in seen, failure.parent
            seen.add(failure.parent)
            failure = CLASSES[failure.parent]


def test_no_wording_appears_twice() -> None:
    """Numbers, digests and identifiers do not make another wording; an exit has no message."""
    wordings = Counter(
        (name, row.subject if not any(row.messages) else VARIABLE.sub("0", " ".join(row.messages)))
        for name, row in named_rows(ALL_ROWS)
    )
    assert [wording for wording, count in wordings.items() if count > 1] == []


def test_actions_are_short_and_sources_identify_a_text() -> None:
    for _, row in named_rows(NEW_ROWS):
        assert len(row.action) <= MAX_ACTION_CHARS, row.where
        assert SOURCE.search(row.source), f"{row.where}: {row.source}"


def test_new_rows_name_no_real_site() -> None:
    for name, row in named_rows(NEW_ROWS):
        text = "\n".join((*row.messages, row.subject))
        hosts = [*URL_HOST.findall(text), *LOOKUP.findall(text)]
        if name == "pulls":
            hosts.append(registry_of(row.subject).partition(":")[0])
        assert [host for host in hosts if not is_public(host)] == [], row.where
        assert [domain for domain in MAIL.findall(text) if not is_public(domain)] == [], row.where
        addresses = [ipaddress.ip_address(address) for address in ADDRESS.findall(text)]
        assert [address for address in addresses if not address.is_private] == [], row.where


def is_public(host: str) -> bool:
    """Whether a host is a public service, reserved for examples, or an address, which is checked apart."""
    host = host.rstrip(".")
    if host in ("http", "tcp") or host.startswith("[") or ADDRESS.fullmatch(host) or EXAMPLE_ACCOUNT.fullmatch(host):
        return True
    return any(host == known or host.endswith(f".{known}") for known in (*PUBLIC_HOSTS, *EXAMPLE_HOSTS))


def test_the_proving_line_is_in_the_tail() -> None:
    for row in ALL_ROWS[LOG_FILE]:
        assert not row.subject or row.subject in row.messages[0].split("\n"), row.where
        assert row.subject or row.expect == ("unknown",), row.where


def test_some_tails_contain_secrets_that_must_not_leave_the_node() -> None:
    secrets = [
        secret
        for row in ALL_ROWS[LOG_FILE]
        for secret in row.must_not_say
        if secret in row.messages[0] and re.search(r"fake|invalid|not.?a.?real", secret, re.IGNORECASE)
    ]
    assert len(secrets) >= MIN_MASKED_TAILS


HEADER = "# expect\tsource\taction\tkind\tmessage\tmust\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("dns\tsource\taction\timage\tmessage\n", "rows.tsv:2: 5 columns instead of 6"),
        ("no-such-class\tsource\taction\timage\tmessage\t\n", "rows.tsv:2: class no-such-class is not in classes.tsv"),
        ("dns,dsn\tsource\taction\timage\tmessage\t\n", "rows.tsv:2: class dsn is not in classes.tsv"),
        ("dns\t\taction\timage\tmessage\t\n", "rows.tsv:2: a row needs a class, a source and an action"),
        ("dns\tsource\taction\timage\ta \\x\t\n", "rows.tsv:2: unknown escape \\x"),
        ("dns\tsource\taction\timage\tends with \\\t\n", "rows.tsv:2: unknown escape \\"),
        ("dns\tsource\taction\timage\tmessage\thost\n", "rows.tsv:2: a demand begins with + or -: host"),
        ("x" * (MAX_LINE_CHARS + 1) + "\n", f"rows.tsv:2: longer than {MAX_LINE_CHARS} characters"),
    ],
)
def test_a_malformed_row_is_refused_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text(HEADER + content)
    with pytest.raises(CorpusError) as refused:
        load_rows(path, CLASSES)
    assert str(refused.value).endswith(problem)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("dns\t\tpull\tmeaning\taction\ndns\t\tpull\tmeaning\taction\n", "classes.tsv:2: class dns appears twice"),
        ("dns\tnetwork\tpull\tmeaning\taction\n", "parent network of class dns is not in the table"),
        ("DNS\t\tpull\tmeaning\taction\n", "classes.tsv:1: a class needs a name, kinds, a meaning and an action"),
    ],
)
def test_a_malformed_class_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "classes.tsv"
    path.write_text(content)
    with pytest.raises(CorpusError) as refused:
        load_classes(path)
    assert str(refused.value).endswith(problem)


def test_a_row_is_read_with_its_escapes_events_and_demands(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    row = "dns,refused\towner/repo#1\tdo this\timage\tone\\ntwo \\\\n ||| three\t+a host;-a secret"
    path.write_text(f"{HEADER}# given: older\n{row}\n# new: ours\n{row}\n")
    first, second = load_rows(path, CLASSES)
    assert (first.given, second.given) == (True, False)
    assert (first.line, first.where) == (3, "rows.tsv:3")
    assert first.expect == ("dns", "refused")
    assert first.messages == ("one\ntwo \\n", "three")
    assert (first.must_say, first.must_not_say) == (("a host",), ("a secret",))
