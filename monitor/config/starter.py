"""A commented configuration file made from the answers that `gpuwarden init` asks for."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from monitor.i18n import Value, say

CLEANUP_CRON, REPORT_HOUR_CRON = "0 3 * * *", "0 9 * * {day}"
MAX_NAME_CHARS = 60


@dataclass(frozen=True)
class StarterReceiver:
    """Address of a robot or webhook, and the secret with which its messages are signed."""

    kind: str
    url: str
    secret: str | None = None


@dataclass(frozen=True)
class StarterAnswers:
    """The answers. `kubernetes` is auto, no, or the path of a kubeconfig; `report_day` is None for no report."""

    language: str
    timezone: str
    receiver: StarterReceiver | None = None
    dataset_roots: tuple[str, ...] = ()
    node: str = ""  # whose agent sees the dataset roots
    cleanup: bool = True
    report_day: str | None = None
    kubernetes: str = "auto"


def starter_file(answers: StarterAnswers, path: str) -> str:
    """Text of the configuration file; `path` is named in its comments."""
    return "\n".join(_lines(answers, path)) + "\n"


def _lines(answers: StarterAnswers, path: str) -> Iterator[str]:
    lang = answers.language
    yield from _comment(lang, "", "head", path=path)
    yield "daemon:"
    yield from _comment(lang, "  ", "timezone")
    yield f"  timezone: {_quoted(answers.timezone)}"
    yield from _comment(lang, "  ", "kubernetes")
    yield f"  kubernetes: {_kubernetes(answers.kubernetes)}"
    yield "  alerts:"
    yield from _comment(lang, "    ", "language")
    yield f"    language: {lang}"
    yield from _receivers(answers)
    if answers.report_day is not None:
        yield from _comment(lang, "  ", "report")
        yield f"  report: {{cron: {_quoted(REPORT_HOUR_CRON.format(day=answers.report_day))}}}"
    if answers.cleanup:
        yield from _cleanup(answers, posixpath.dirname(path))


def _receivers(answers: StarterAnswers) -> Iterator[str]:
    receiver = answers.receiver
    if receiver is None:
        yield from _comment(answers.language, "    ", "no-receiver")
        yield "    receivers: []"
        return
    yield from _comment(answers.language, "    ", "receivers")
    yield "    receivers:"
    yield f"      - kind: {receiver.kind}"
    yield f"        url: {_quoted(receiver.url)}"
    if receiver.secret is not None:
        yield f"        secret: {_quoted(receiver.secret)}"


def _cleanup(answers: StarterAnswers, directory: str) -> Iterator[str]:
    """The policies; the keys of actions are expected beside the configuration file, in `directory`."""
    lang, roots = answers.language, answers.dataset_roots
    cron = _quoted(CLEANUP_CRON)
    yield from _comment(lang, "  ", "cleanup")
    yield "  cleanup:"
    if roots:
        yield from _comment(lang, "    ", "allow")
        yield f"    allow: [{', '.join(map(_quoted, roots))}]"
        yield from _comment(lang, "    ", "keys", directory=directory)
        yield f"    # agents: {{private_key_file: {_quoted(f'{directory}/action-private-key')}}}"
    yield "    policies:"
    if answers.kubernetes != "no":
        yield from _comment(lang, "      ", "pods")
        yield f"      - {{kind: pods, name: finished-pods, cron: {cron}}}"
    yield from _comment(lang, "      ", "images")
    yield f"      - {{kind: images, name: unused-images, cron: {cron}}}"
    if roots:
        yield from _comment(lang, "      ", "datasets")
    for name, root in zip(_policy_names(roots), roots, strict=True):
        where = f"root: {_quoted(root)}, node: {_quoted(answers.node)}"
        yield f"      - {{kind: datasets, name: {name}, {where}, cron: {cron}}}"
    if roots:
        yield from _comment(lang, "", "agents")
        yield "# agent:"
        yield "#   actions:"
        yield "#     enabled: true"
        yield f"#     public_key_file: {_quoted(f'{directory}/action-public-key')}"
        yield f"#     dataset_roots: [{', '.join(map(_quoted, roots))}]"


def _kubernetes(kubernetes: str) -> str:
    if kubernetes == "auto":
        return "{enabled: auto}"
    return '{enabled: "no"}' if kubernetes == "no" else f'{{enabled: "yes", kubeconfig: {_quoted(kubernetes)}}}'


def _policy_names(roots: tuple[str, ...]) -> Iterator[str]:
    """A name for the policy of each root, such as `datasets-mnt-share`."""
    known: set[str] = set()
    for number, root in enumerate(roots, 1):
        words = re.sub(r"[^A-Za-z0-9]+", "-", root).strip("-")[:MAX_NAME_CHARS]
        name = f"datasets-{words or number}"
        name = f"{name}-{number}" if name in known else name
        known.add(name)
        yield name


def _comment(lang: str, indent: str, key: str, **values: Value) -> Iterator[str]:
    return (f"{indent}# {line}" for line in say(lang, f"init.file.{key}", values).split(" | "))


def _quoted(text: str) -> str:
    """A YAML string: those of JSON are a subset."""
    return json.dumps(text, ensure_ascii=False)
