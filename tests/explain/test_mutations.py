"""Development rows in other words: the answer stays right or becomes unknown or coarser, never another cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from monitor.explain.error_chain.hosts import registry_of, repository_of
from tests.explain.corpus_cases import explain_row
from tests.explain.corpus_classes import UNKNOWN, class_of
from tests.explain.corpus_rows import CORPUS_DIR, MESSAGE_FILES, CorpusRow, load_classes, load_rows

CLASSES = load_classes()
MAX_EVENT_CHARS = 1024  # the API server cuts messages of events
UNKNOWN_CLAUSE = "frobnicate widget: EWHATEVER"
# Names that contain wording: they must not be read as such.
NASTY_NAME = "timeout-forbidden/no-such-host-503"
# What remains certain where the innermost clause is not understood: who failed, not why.
SPEAKERS = {"attach-failed", "cgroup", "webhook", "taint"}
# Exits are answered by their code, which no wording changes; truncated lists of nodes lose their main reason.
ROWS = [
    row
    for name in MESSAGE_FILES
    for row in load_rows(CORPUS_DIR / f"{name}.tsv", CLASSES)
    if any(row.messages) and not row.subject.startswith("exit:")
]
Mutation = Callable[[str], str]


def other_hosts(message: str) -> str:
    return message.replace("example.com", "example.net")


WRAPPERS: dict[str, Mutation] = {
    "podman": lambda message: f"Error: {message}",
    "kubelet": lambda message: f'failed to "StartContainer" for "main" with RunContainerError: {json.dumps(message)}',
    "json": lambda message: json.dumps(message)[1:-1],
    "k3s": lambda message: f'time="2026-01-02T03:04:05Z" level=error msg={json.dumps(message)}',
    "single quotes": lambda message: message.replace('"', "'"),
    "no quotes": lambda message: message.replace('"', ""),
    "other hosts": other_hosts,
    "cut by the API server": lambda message: message[:MAX_EVENT_CHARS],
}
DOUBTS: dict[str, Mutation] = {
    "unknown clause appended": lambda message: f"{message}: {UNKNOWN_CLAUSE}",
    "innermost clause unknown": lambda message: f"{message.rpartition(': ')[0]}: {UNKNOWN_CLAUSE}",
    "several unknown clauses": lambda message: ": ".join([message, *[UNKNOWN_CLAUSE] * 3]),
}


def other_answers(rows: list[CorpusRow], mutation: Mutation, allowed: set[str]) -> list[tuple[str, str, str]]:
    found = []
    for row in rows:
        messages = tuple(mutation(message) for message in row.messages)
        subject = row.subject.replace("example.com", "example.net") if mutation is other_hosts else row.subject
        answer = class_of(explain_row(replace(row, subject=subject, messages=messages)))
        accepted = {UNKNOWN, *allowed, *row.expect, *(CLASSES[name].parent or UNKNOWN for name in row.expect)}
        if answer not in accepted:
            found.append((row.where, answer, messages[0][:400]))
    return found


@pytest.mark.parametrize("name", WRAPPERS)
def test_other_wrappers(name: str) -> None:
    rows = [row for row in ROWS if row.path.stem != "scheduling"] if name in ("podman", "k3s", "kubelet") else ROWS
    assert other_answers(rows, WRAPPERS[name], set()) == []


@pytest.mark.parametrize("name", DOUBTS)
def test_inner_clauses_that_nobody_knows(name: str) -> None:
    rows = [row for row in ROWS if row.path.stem != "scheduling"]
    assert other_answers(rows, DOUBTS[name], SPEAKERS) == []


def test_many_unknown_clauses_leave_only_certain_answers() -> None:
    """Of mounts, whose wording is the least specific, the statement has to be near the end of the chain."""
    rows = [row for row in ROWS if row.subject == "mount"]
    mutated = [
        replace(row, messages=tuple(DOUBTS["several unknown clauses"](message) for message in row.messages))
        for row in rows
    ]
    unknown = sum(class_of(explain_row(row)) == UNKNOWN for row in mutated)
    assert unknown > len(rows) / 3


def test_names_are_not_wording() -> None:
    for row in ROWS:
        if row.path.stem != "pulls" or registry_of(row.subject) not in row.subject:
            continue
        repository = repository_of(row.subject)
        renamed = replace(
            row,
            subject=row.subject.replace(repository, NASTY_NAME),
            messages=tuple(message.replace(repository, NASTY_NAME) for message in row.messages),
        )
        answer = class_of(explain_row(renamed))
        accepted = {UNKNOWN, *row.expect, *(CLASSES[name].parent or UNKNOWN for name in row.expect)}
        assert answer in accepted, (row.where, answer, renamed.messages)
