"""The templates of pages, and what they use: paths, times, bars and figures."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape

from monitor.alert.message.commands import with_commands
from monitor.base.localtime import local_instant
from monitor.base.logs import printable
from monitor.base.units import format_size, parse_duration
from monitor.i18n.figures import number, percent
from monitor.present.cluster import source_reason
from monitor.present.shares import gpu_value, gpus_cell, holder_share, queue_free, queue_used, share_lines
from monitor.present.timeline import entry_text

TEMPLATES = Path(__file__).parents[1] / "templates"
STATIC = Path(__file__).parents[1] / "static"
UNKNOWN = "?"
MAX_QUOTED = 8192  # segments of paths whose quoted form is kept
ASSETS = (
    "page.css", "login.css", "page.js", "htmx.min.js", "chart.css", "figures.js", "chart.js", "heatmap.js",
    "uplot.min.css", "uplot.min.js",
)  # fmt: skip


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The templates, and the functions and filters they use."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        auto_reload=False,  # else every use asks the file system for a newer version
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(link=link, since=since, moment=moment, bar=bar, assets=assets(), with_query=with_query)
    templates.globals.update(
        with_commands=with_commands,
        gpus_cell=gpus_cell,
        share_lines=share_lines,
        holder_share=holder_share,
        source_reason=source_reason,
        seconds_of=parse_duration,
        gpu_value=gpu_value,
        queue_used=queue_used,
        queue_free=queue_free,
        entry_text=entry_text,
    )
    templates.filters.update(size=_size, ratio=_ratio, figure=_figure, plain=_plain)
    return templates


@lru_cache(maxsize=1)
def assets() -> dict[str, str]:
    """Paths of styles and scripts, with a hash of the content so that browsers can cache them."""
    paths = {}
    for name in ASSETS:
        version = hashlib.blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
        paths[name.removesuffix(".min.js").replace(".", "_")] = f"/static/{name}?{version}"
    return paths


def link(*segments: str | int) -> str:
    """A path of quoted segments."""
    return "".join([f"/{_quoted(segment)}" for segment in segments])


@lru_cache(maxsize=MAX_QUOTED)
def _quoted(segment: str | int) -> str:
    return quote(str(segment), safe="")


def with_query(path: str, **values: object) -> str:
    """A path with a query; empty values are omitted."""
    query = urlencode({name: str(value) for name, value in values.items() if value not in (None, "")})
    return f"{path}?{query}" if query else path


@jinja2.pass_context
def since(context: jinja2.runtime.Context, at: float | None) -> Markup:
    """A time that page.js shows as an age, so that the HTML does not change as time passes."""
    return _time(at, "data-s", context["timezone"])


@jinja2.pass_context
def moment(context: jinja2.runtime.Context, at: float | None) -> Markup:
    """A time that page.js shortens if it is today."""
    return _time(at, "data-m", context["timezone"])


def _time(at: float | None, attribute: str, timezone: str) -> Markup:
    if at is None:
        return Markup("?")
    text = local_instant(at, timezone)
    return Markup(f"<time {attribute}={int(at)}>{escape(text)}</time>")  # noqa: S704  # the rest is a constant


def bar(ratio: float | None, css: str = "") -> Markup:
    """A bar of a length from 0 to 1; nothing if it is unknown."""
    if ratio is None:
        return Markup("")
    width = round(100 * min(1.0, max(0.0, ratio)))
    return Markup(  # noqa: S704  # a number; the rest is escaped
        f'<svg class="bar {escape(css)}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="all" width="100" height="6"/><rect class="part" width="{width}" height="6"/></svg>'
    )


def _size(amount: float | None) -> str:
    return UNKNOWN if amount is None else format_size(int(amount))


def _ratio(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else percent(ratio)


def _figure(value: float | None) -> str:
    return UNKNOWN if value is None else number(round(value, 1))


def _plain(text: str | None) -> str:
    return UNKNOWN if text is None else printable(text)
