"""An incident as a document for people: Markdown for a wiki or a chat, or a standalone HTML page. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jinja2

from monitor.alert.model import Phase
from monitor.base.localtime import local_instant
from monitor.base.logs import printable
from monitor.i18n import CATALOGS, say
from monitor.i18n.figures import duration
from monitor.present.alerts import LocalizedAlert
from monitor.present.findings import subject_labels
from monitor.present.incident import Incident, IncidentEntry
from monitor.present.rows import page_text
from monitor.present.table import table_list
from monitor.present.timeline import entry_text, known_text

# What Markdown takes for markup: an underscore only outside of words, some characters only at the beginning.
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)|^[#+=-]")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])")

HTML = jinja2.Environment(
    autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
).from_string(
    """\
<!doctype html>
<html lang="{{ lang }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ page.title }}</title>
<style>
:root { color-scheme: light dark; --dim: light-dark(#5b6068, #a3a8b0); --edge: light-dark(#d9dce1, #3a3e45);
  --critical: light-dark(#c62828, #ef6b6b); --warning: light-dark(#b26a00, #e0a243);
  --info: light-dark(#1565c0, #6aa9f0);
  --over: light-dark(#2e7d32, #66b36a) }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 56rem; padding: 0 1rem;
  overflow-wrap: anywhere }
header { border-left: 4px solid var(--{{ page.tone }}); padding-left: .8rem }
h1 { font-size: 1.4rem; margin: 0 } header p { font-size: 1.1rem; margin: .3rem 0 0 }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0 0 } dd { margin: 0 }
dt, time, .about, footer { color: var(--dim) } time, .about, footer { font-size: .87rem }
ul { margin: 0; padding-left: 1.2rem } li { margin: .15rem 0 }
ol { list-style: none; margin: 0; padding: 0 }
ol li { border-top: 1px solid var(--edge); display: grid; gap: 0 1rem; margin: 0; padding: .35rem 0 }
.about { display: block } footer { border-top: 1px solid var(--edge); margin-top: 1.6rem; padding-top: .6rem }
@media (min-width: 40rem) { ol li { align-items: baseline; grid-template-columns: 12.5rem 1fr } }
@media print { li { break-inside: avoid } }
</style>
</head>
<body>
<header>
<h1>{{ page.heading }}</h1>
<p>{{ page.headline }}</p>
</header>
<main>
<dl>
{% for name, value in page.summary %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
{% for section in page.sections %}
<h2>{{ section.title }}</h2>
{% set list = "ol" if section.lines[0].time else "ul" %}
<{{ list }}>
{% for line in section.lines %}
<li>{% if line.time %}<time>{{ line.time }}</time> {% endif %}<span>{{ line.what }}
{%- if line.about %} <span class="about">{{ line.about }}</span>{% endif %}</span></li>
{% endfor %}
</{{ list }}>
{% endfor %}
</main>
<footer>{{ page.note }}</footer>
</body>
</html>
"""
)
OVER = "over"  # the colour of an alert that has resolved; others have that of their severity


@dataclass(frozen=True)
class DocumentLine:
    """A line of a list: when, if that matters, and what. `about` names another alert than that of the incident."""

    what: str
    time: str = ""
    about: str = ""


@dataclass(frozen=True)
class DocumentSection:
    """A list with a title."""

    title: str
    lines: tuple[DocumentLine, ...]


@dataclass(frozen=True)
class IncidentDocument:
    """The text of an incident, without markup, and the name of its colour."""

    title: str
    heading: str
    headline: str
    tone: str
    summary: tuple[tuple[str, str], ...]
    sections: tuple[DocumentSection, ...]
    note: str


def incident_document(incident: Incident, lang: str, timezone: str) -> IncidentDocument:
    """What a document about an incident says."""

    def at(moment: float) -> str:
        return local_instant(moment, timezone)

    alert = incident.alert
    over = alert.phase is Phase.RESOLVED
    heading = rule_title(alert.rule, lang)
    lists = (
        ("alert.evidence-then" if over else "alert.evidence", map(DocumentLine, alert.evidence)),
        ("to-do", () if over else map(DocumentLine, alert.advice)),
        ("alert.explains", (DocumentLine(each.headline, at(each.since)) for each in incident.symptoms)),
        ("timeline.title", (_line(each, alert, lang, at) for each in incident.timeline)),
    )
    sections = (DocumentSection(page_text(lang, title), tuple(lines)) for title, lines in lists)
    return IncidentDocument(
        title=_titled(heading, alert.headline, lang),
        heading=heading,
        headline=alert.headline,
        tone=OVER if over else alert.severity.value,
        summary=tuple(_summary(incident, lang, at)),
        sections=tuple(section for section in sections if section.lines),
        note=say(lang, "incident.note", {"at": at(incident.written_at)}),
    )


def as_html(incident: Incident, lang: str, timezone: str) -> str:
    """The incident as a standalone HTML page."""
    return HTML.render(lang=lang, page=incident_document(incident, lang, timezone))


def as_markdown(incident: Incident, lang: str, timezone: str) -> str:
    """The incident as Markdown."""
    page = incident_document(incident, lang, timezone)
    blocks = [
        [f"# {escape(page.title)}"],
        [f"- {_titled(f'**{escape(name)}**', escape(value), lang)}" for name, value in page.summary],
    ]
    for section in page.sections:
        blocks += [[f"## {escape(section.title)}"], [_markdown_line(line) for line in section.lines]]
    blocks.append([escape(page.note)])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """Text without markup, on one line."""
    line = _MARKUP.sub(r"\\\g<0>", " ".join(printable(text).split()))
    return _NUMBERED.sub(r"\1\\\2", line)


def rule_title(rule: str, lang: str) -> str:
    """The title of a rule; its name if this version does not know it."""
    return CATALOGS[lang].get(f"rule.{rule}", rule)


def _titled(title: str, text: str, lang: str) -> str:
    return say(lang, "incident.titled", {"title": title, "text": text})


def _summary(incident: Incident, lang: str, at: Callable[[float], str]) -> list[tuple[str, str]]:
    alert = incident.alert
    severity, phase = page_text(lang, f"severity.{alert.severity.value}"), page_text(lang, f"phase.{alert.phase.value}")
    rows = [
        ("state", table_list(lang, (severity, phase))),
        ("subject", _subject(alert.labels, lang)),
        ("began", at(alert.since)),
        ("resolved", "" if alert.lasted is None or alert.resolved_at is None else at(alert.resolved_at)),
        ("lasted", "" if alert.lasted is None else duration(alert.lasted, lang)),
        ("owner", alert.labels.get("user", "")),
        ("notified", table_list(lang, alert.told)),
        ("acknowledged", "" if alert.acknowledged is None else alert.acknowledged.by),
        ("explained-by", "" if incident.cause is None else incident.cause.headline),
    ]
    return [(say(lang, f"incident.{name}", {}), value) for name, value in rows if value]


def _subject(labels: Mapping[str, str], lang: str) -> str:
    """What an alert is about. Its pod implies namespace and job; its owner is named apart."""
    pod, namespace = labels.get("pod"), labels.get("namespace")
    if pod is not None and namespace is not None:
        labels = {name: value for name, value in labels.items() if name not in ("namespace", "job")}
        labels |= {"pod": f"{namespace}/{pod}"}
    named = ((name, value) for name, value in subject_labels(labels) if name != "user")
    return table_list(lang, (say(lang, f"label.{name}", {"value": value}) for name, value in named))


def _line(each: IncidentEntry, own: LocalizedAlert, lang: str, at: Callable[[float], str]) -> DocumentLine:
    entry = each.entry
    more: Sequence[str] = (at(entry.until) if entry.until is not None else "", entry.detail)
    what = entry_text(entry, lang)
    if entry.reason:
        what += say(lang, "incident.remark", {"text": known_text(lang, "reason", entry.reason)})
    about = "" if each.fingerprint == own.fingerprint else _titled(rule_title(each.rule, lang), each.headline, lang)
    return DocumentLine(" ".join(part for part in (what, *more) if part), at(entry.at), about)


def _markdown_line(line: DocumentLine) -> str:
    about = f" — {escape(line.about)}" if line.about else ""
    return f"- {escape(f'{line.time} {line.what}')}{about}"
