"""An incident as a document for people: Markdown for a wiki or a chat, or a standalone HTML page. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jinja2

from monitor.alert.model import Phase
from monitor.base.localtime import local_instant
from monitor.base.logs import printable
from monitor.i18n import CATALOGS, Value, code, say
from monitor.i18n.figures import duration
from monitor.present.alerts import LocalizedAlert
from monitor.present.findings import subject
from monitor.present.incident import Incident, IncidentEntry
from monitor.present.rows import page_text
from monitor.present.timeline import entry_text, known_text

# What Markdown takes for markup: an underscore only outside of words, some characters only at the beginning.
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)|^[#+=-]")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])")

HTML = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
    """\
<!doctype html>
<html lang="{{ lang }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ page.title }}</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5em auto; max-width: 60em; padding: 0 1em }
body { overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2em 1em } dt { opacity: .7 } dd { margin: 0 }
ol { list-style: none; padding: 0 } ol li { border-top: 1px solid #8884; padding: .4em 0 } small { opacity: .7 }
</style>
</head>
<body>
<h1>{{ page.title }}</h1>
<dl>
{% for name, value in page.summary %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
{% for section in page.sections %}
<h2>{{ section.title }}</h2>
<ul>
{% for line in section.lines %}
<li>{{ line }}</li>
{% endfor %}
</ul>
{% endfor %}
<h2>{{ page.timeline_title }}</h2>
<ol>
{% for line in page.timeline %}
<li><small>{{ line.time }}</small><br>{{ line.what }}
{%- if line.about %}<br><small>{{ line.about }}</small>{% endif %}</li>
{% endfor %}
</ol>
<p><small>{{ page.note }}</small></p>
</body>
</html>
"""
)


@dataclass(frozen=True)
class TimelineLine:
    """An entry of the timeline in words. `about` names another alert than that of the incident."""

    time: str
    what: str
    about: str


@dataclass(frozen=True)
class DocumentSection:
    """A list with a title."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class IncidentDocument:
    """The text of an incident, without markup."""

    title: str
    summary: tuple[tuple[str, str], ...]
    sections: tuple[DocumentSection, ...]
    timeline_title: str
    timeline: tuple[TimelineLine, ...]
    note: str


def incident_document(incident: Incident, lang: str, timezone: str) -> IncidentDocument:
    """What a document about an incident says."""

    def text(key: str, **values: Value) -> str:
        return say(lang, f"incident.{key}", values)

    def at(moment: float) -> str:
        return local_instant(moment, timezone)

    alert = incident.alert
    over = alert.phase is Phase.RESOLVED
    symptoms = tuple(f"{each.headline} ({at(each.since)})" for each in incident.symptoms)
    sections = (
        DocumentSection(page_text(lang, "alert.evidence-then" if over else "alert.evidence"), alert.evidence),
        DocumentSection(page_text(lang, "to-do"), () if over else alert.advice),
        DocumentSection(page_text(lang, "alert.explains"), symptoms),
    )
    return IncidentDocument(
        title=f"{rule_title(alert.rule, lang)}: {alert.headline}",
        summary=tuple(_summary(incident, lang, at)),
        sections=tuple(section for section in sections if section.lines),
        timeline_title=page_text(lang, "timeline.title"),
        timeline=tuple(_line(each, alert, lang, at) for each in incident.timeline),
        note=text("note", at=at(incident.written_at)),
    )


def as_html(incident: Incident, lang: str, timezone: str) -> str:
    """The incident as a standalone HTML page."""
    return HTML.render(lang=lang, page=incident_document(incident, lang, timezone))


def as_markdown(incident: Incident, lang: str, timezone: str) -> str:
    """The incident as Markdown."""
    page = incident_document(incident, lang, timezone)
    blocks = [
        [f"# {escape(page.title)}"],
        [f"- **{escape(name)}**: {escape(value)}" for name, value in page.summary],
    ]
    for section in page.sections:
        blocks += [[f"## {escape(section.title)}"], [f"- {escape(line)}" for line in section.lines]]
    blocks += [[f"## {escape(page.timeline_title)}"], [_markdown_line(line) for line in page.timeline]]
    blocks.append([escape(page.note)])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def escape(text: str) -> str:
    """Text without markup, on one line."""
    line = _MARKUP.sub(r"\\\g<0>", " ".join(printable(text).split()))
    return _NUMBERED.sub(r"\1\\\2", line)


def rule_title(rule: str, lang: str) -> str:
    """The title of a rule; its name if this version does not know it."""
    return CATALOGS[lang].get(f"rule.{rule}", rule)


def _summary(incident: Incident, lang: str, at: Callable[[float], str]) -> list[tuple[str, str]]:
    alert = incident.alert
    severity, phase = page_text(lang, f"severity.{alert.severity.value}"), page_text(lang, f"phase.{alert.phase.value}")
    rows = [
        ("state", f"{severity}, {phase}"),
        ("subject", subject(alert.labels)),
        ("began", at(alert.since)),
        ("resolved", "" if alert.lasted is None or alert.resolved_at is None else at(alert.resolved_at)),
        ("lasted", "" if alert.lasted is None else duration(alert.lasted, lang)),
        ("cause", code(lang, alert.cause)),
        ("owner", alert.labels.get("user", "")),
        ("notified", ", ".join(alert.told)),
        ("acknowledged", "" if alert.acknowledged is None else alert.acknowledged.by),
        ("explained-by", "" if incident.cause is None else incident.cause.headline),
    ]
    return [(say(lang, f"incident.{name}", {}), value) for name, value in rows if value]


def _line(each: IncidentEntry, own: LocalizedAlert, lang: str, at: Callable[[float], str]) -> TimelineLine:
    entry = each.entry
    more: Sequence[str] = (
        at(entry.until) if entry.until is not None else "",
        f"({known_text(lang, 'reason', entry.reason)})" if entry.reason else "",
        entry.detail,
    )
    what = " ".join(part for part in (entry_text(entry, lang), *more) if part)
    about = "" if each.fingerprint == own.fingerprint else f"{rule_title(each.rule, lang)}: {each.headline}"
    return TimelineLine(at(entry.at), what, about)


def _markdown_line(line: TimelineLine) -> str:
    about = f" — {escape(line.about)}" if line.about else ""
    return f"- {escape(line.time)} {escape(line.what)}{about}"
