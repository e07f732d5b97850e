# ruff: noqa: RUF001  # Chinese has its own punctuation
"""The page of messages: a sample of every message of every rule, as receivers get it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docs.generate.job_messages import TITLE, job_messages
from docs.generate.rules_page import ALL_RULES
from docs.generate.tables import intro
from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch
from monitor.alert.sample import Sample, batch_of, samples
from monitor.detect.base import RuleMetadata
from monitor.i18n import CATALOGS

AT = 1_763_259_600.0  # 2025-11-16 02:20:00 UTC
GPUS = ("3", "4", "5")  # of one pod, in the example of a message about several
RESOLVED = {"en": "Resolved:", "zh": "恢复时："}
SEVERAL = {"en": "Several GPUs of one pod:", "zh": "同一个 Pod 的多张 GPU："}
_SPECIAL = re.compile(r"([\\`*_<>\[\]|])")


def page(lang: str) -> str:
    """The page in a language."""
    index = " · ".join(f"[{rule.rule}](#{rule.rule})" for rule in ALL_RULES)
    return "".join((
        intro("messages", lang), f"\n{index}\n", *(_section(rule, lang) for rule in ALL_RULES), _job_results(lang),
    ))  # fmt: skip


def _job_results(lang: str) -> str:
    """A sample of each end of a job."""
    messages = (f"`{name}`\n\n{_quoted(batch, lang)}" for name, batch in job_messages())
    return "\n".join((f"\n## {TITLE[lang]}\n", *messages))


def _section(rule: RuleMetadata, lang: str) -> str:
    title = CATALOGS[lang][f"rule.{rule.rule}"]
    return "\n".join((f"\n## {rule.rule}\n", f"**{title}**\n", *_messages(rule, lang), ""))


def _messages(rule: RuleMetadata, lang: str) -> Iterator[str]:
    """Each sample as a new message; then examples of several GPUs, and of the message that it is over."""
    found = samples(rule.rule)
    for sample in found:
        yield f"`{sample.cause}`\n\n{_quoted(_single(sample), lang)}"
    first = found[0].finding(AT)
    if {"gpu", "pod"} <= first.labels.keys():
        several = tuple(found[0].finding(AT, gpu) for gpu in GPUS)
        yield f"{SEVERAL[lang]}\n\n{_quoted(batch_of(several, '', AT, marked=False), lang)}"
    yield f"{RESOLVED[lang]}\n\n{_quoted(batch_of((first,), '', AT, marked=False, resolved=True), lang)}"


def _single(sample: Sample) -> Batch:
    return batch_of((sample.finding(AT),), "", AT, marked=False)


def _quoted(batch: Batch, lang: str) -> str:
    """A message as a quotation, line by line."""
    message = compose(batch, Locale(lang=lang, cluster="lab"))
    return "".join(f"> {line}\n" for line in "<br>\n".join(_lines(message)).split("\n"))


def _lines(message: AlertMessage) -> Iterator[str]:
    yield f"**{_escaped(message.title)}**"
    for line in message.lines:
        yield _line(line)


def _line(line: TextLine) -> str:
    return "".join(f"`{span.text}`" if span.style is SpanStyle.CODE else _escaped(span.text) for span in line.spans)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
