"""Explanations as lines of text in one language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.explain.keys import Key
from monitor.explain.model import Explanation
from monitor.facts.text import Text, Value
from monitor.i18n import say


@dataclass(frozen=True)
class ExplanationParts:
    """Subject, answer, evidence and advice."""

    well: bool
    subject: str
    headline: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]


def render_explanation(explanation: Explanation, lang: str) -> list[str]:
    """Lines of an explanation: pod and status, headline, evidence, advice. Raise KeyError for an unknown text."""
    told = lines_of(explanation.headline, explanation.evidence, explanation.advice, lang)
    return [_who(explanation, lang), *told]


def lines_of(headline: Text, evidence: Iterable[Text], advice: Sequence[Text], lang: str) -> list[str]:
    """Lines of headline, evidence and advice."""
    lines = [_say(headline, lang), *(f"  - {_say(text, lang)}" for text in evidence)]
    if advice:
        lines.append(say(lang, Key.WHAT_TO_DO, {}))
        lines += [f"  > {_say(text, lang)}" for text in advice]
    return lines


def _who(explanation: Explanation, lang: str) -> str:
    pod = explanation.pod
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name
    key = Key[f"STATUS_{explanation.status.name}"]
    parts = [say(lang, key, {"pod": name})]
    if explanation.seconds is not None:
        parts.append(say(lang, Key.FOR_SECONDS, {"seconds": explanation.seconds}))
    job = pod.job if pod.job != pod.name else None  # it would only say the same again
    owner: list[tuple[Key, str | None]] = [(Key.OF_USER, pod.user), (Key.OF_JOB, job), (Key.IN_QUEUE, pod.queue)]
    parts += [say(lang, key, {"name": value}) for key, value in owner if value]
    return say(lang, Key.LIST_COMMA, {}).join(parts)


def _say(reason: Text, lang: str) -> str:
    values: dict[str, Value] = reason.values
    return say(lang, reason.key, values)


def explanation_parts(name: str, lines: Sequence[str], *, well: bool) -> ExplanationParts:
    """Split the lines that `gpuwarden why` prints."""
    return ExplanationParts(
        well=well,
        subject=lines[0] if lines else name,
        headline=lines[1] if len(lines) > 1 else "",
        evidence=tuple(line[4:] for line in lines if line.startswith("  - ")),
        advice=tuple(line[4:] for line in lines if line.startswith("  > ")),
    )
