"""The GPU map: a row per node, a field per GPU, coloured by state, with a letter for people who cannot see colours.

A small map shows owner and age of each GPU. A large one shows squares, thousands on one page; owners are attributes
of the row, which page.js shows on hover. Rows are rendered again only when their content has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import msgspec
from markupsafe import Markup, escape

from monitor.base.sequences import changed_positions
from monitor.base.text import natural_key
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.i18n.figures import percent
from monitor.present.rows import node_problems
from monitor.web.pages.environment import UNKNOWN, link
from monitor.web.pages.render import PageRequest, PageSection

MAX_RICH_NODES = 48  # with room for names
NODES_PER_SECTION = 16  # of a large map
LETTERS = {
    GpuState.BUSY: "b", GpuState.FREE: "f", GpuState.IDLE_HELD: "i", GpuState.ZOMBIE: "z", GpuState.ORPHAN: "o",
    GpuState.GHOST: "g", GpuState.WEDGED: "w", GpuState.PHANTOM: "p", GpuState.FAULTY: "x", GpuState.UNKNOWN: "u",
}  # fmt: skip
LEVEL_COUNT = 4  # shades of utilization
# Distance from the middle of its level, in levels, at which a GPU changes it: avoids flicker.
HYSTERESIS_FACTOR = 0.8

SQUARES = {state: f"<i class={letter}></i>" for state, letter in LETTERS.items()}
BUSY_SQUARES = tuple(f"<i class=b{level}></i>" for level in range(LEVEL_COUNT))

RowContent = list[object]  # what a row shows of its GPUs
_content = attrgetter("state", "since", "holders", "index")
_rich_content = attrgetter("state", "since", "holders", "index", "utilization_ratio")


@dataclass
class MapRow:
    """A rendered row, and the content it was rendered from. Of a large map, `head` and `tail` surround its squares."""

    node: NodeView
    gpus: tuple[GpuView, ...]
    content: RowContent
    levels: list[int]
    name: str
    html: Markup
    head: str = ""
    tail: str = ""


@dataclass(frozen=True)
class MapStyle:
    """Language of a map, and whether it has room for names."""

    lang: str
    rich: bool


@dataclass(frozen=True)
class DrawnMap:
    """A map as it was drawn last: nodes and their GPUs as given, the rows, and the sections with the order of rows."""

    nodes: Sequence[NodeView] = ()
    gpus: Sequence[tuple[GpuView, ...]] = ()
    names: Sequence[str] = ()
    rows: Sequence[MapRow | None] = ()
    order: Sequence[int] = ()  # positions of the nodes, by name
    sections: Sequence[PageSection] = ()

    def names_of(self, nodes: Sequence[NodeView]) -> Sequence[str]:
        """Names of nodes; the same object if they are the same nodes as before."""
        same = len(nodes) == len(self.nodes)
        if same and all(nodes[each].name == self.names[each] for each in changed_positions(self.nodes, nodes)):
            return self.names
        return [node.name for node in nodes]


class GpuMap:
    """Renders the map, and renders again only rows of nodes that have changed, and their sections.

    Any thread may use it.
    """

    def __init__(self) -> None:
        self._drawn: dict[MapStyle, DrawnMap] = {}

    def sections(self, page: PageRequest, view: ClusterView) -> list[PageSection]:
        """The map as sections that are updated independently."""
        style = MapStyle(page.lang, len(view.nodes) <= MAX_RICH_NODES)
        drawn = self._drawn.get(style, DrawnMap())
        names = drawn.names_of(view.nodes)
        if names is not drawn.names:
            rows = dict(zip(drawn.names, drawn.rows, strict=True))
            drawn = DrawnMap(names=names, rows=[rows.get(name) for name in names], order=_natural_order(names))
        drawn = self._drawn[style] = _redraw(page, style, drawn, view)
        return [*drawn.sections]


def _natural_order(names: Sequence[str]) -> Sequence[int]:
    return sorted(range(len(names)), key=lambda position: natural_key(names[position]))


def _redraw(page: PageRequest, style: MapStyle, before: DrawnMap, view: ClusterView) -> DrawnMap:
    """The map of a view with the same nodes as before."""
    of_node = view.gpus_by_node
    gpus = [of_node.get(name, ()) for name in before.names]
    rows, size = [*before.rows], 1 if style.rich else NODES_PER_SECTION
    changed = {*changed_positions(before.nodes, view.nodes), *changed_positions(before.gpus, gpus)}
    for position in changed:
        rows[position] = _row(page, style, view.nodes[position], gpus[position], rows[position])
    different = {position for position in changed if rows[position] is not before.rows[position]}
    sections = list[PageSection]()
    for number, start in enumerate(range(0, len(rows), size)):
        places = before.order[start : start + size]
        if before.sections and different.isdisjoint(places):
            sections.append(before.sections[number])
        else:
            html = Markup("".join([row.html for place in places if (row := rows[place])]))  # noqa: S704  # escaped
            sections.append(PageSection(f"map{number}", html, css="rows"))
    return replace(before, nodes=view.nodes, gpus=gpus, rows=rows, sections=sections)


def _row(page: PageRequest, style: MapStyle, node: NodeView, gpus: tuple[GpuView, ...], old: MapRow | None) -> MapRow:
    """The row of a node; the old one if nothing has changed."""
    if old is not None and old.node is node and old.gpus is gpus:
        return old
    levels = _levels(gpus, old.levels if old is not None and len(old.levels) == len(gpus) else None)
    content: RowContent = [*map(_rich_content if style.rich else _content, gpus)]
    same_node = old is not None and msgspec.structs.replace(old.node, heard_at=node.heard_at) == node
    if old is None or not same_node or old.content != content:
        name = old.name if old is not None and same_node else _name(page, node)
        row = MapRow(node, gpus, content, levels, name, Markup())
        if not style.rich:
            row.head, row.tail = _around_squares(page, node, gpus, name)
    elif old.levels == levels:
        old.node, old.gpus = node, gpus
        return old
    else:
        row = MapRow(node, gpus, content, levels, old.name, Markup(), old.head, old.tail)
    row.html = _rich(page, node, gpus, levels, row.name) if style.rich else _compact(row)
    return row


def _levels(gpus: Iterable[GpuView], before: Iterable[int] | None) -> list[int]:
    """Shades of the utilizations."""
    loads = [(gpu.utilization_ratio or 0.0) * LEVEL_COUNT for gpu in gpus]
    if before is None:
        return [min(LEVEL_COUNT - 1, int(load)) for load in loads]
    return [
        shade if abs(load - shade - 0.5) <= HYSTERESIS_FACTOR else min(LEVEL_COUNT - 1, int(load))
        for load, shade in zip(loads, before, strict=True)
    ]


def _owner(gpu: GpuView) -> str:
    """Short name of the owner; empty if there is none."""
    holders = gpu.holders
    if not holders:
        return ""
    first = holders[0]
    more = f" +{len(holders) - 1}" if len(holders) > 1 else ""
    return (first.user or first.pod or first.pod_uid or "") + more


def _css_class(gpu: GpuView, level: int) -> str:
    return f"b{level}" if gpu.state is GpuState.BUSY else LETTERS[gpu.state]


# Rows are built without templates, because a page may contain thousands of them. All names are escaped.


def _name(page: PageRequest, node: NodeView) -> str:
    problems = node_problems(node, page.lang)
    note = f'<em title="{escape(", ".join(problems))}">{escape(problems[0])}</em>' if problems else ""
    return f'<span class="name"><a href="{escape(link("nodes", node.name))}">{escape(node.name)}</a>{note}</span>'


def _count(node: NodeView, gpus: Sequence[GpuView]) -> str:
    total = node.allocatable if node.allocatable is not None else node.cards
    free = UNKNOWN if node.free is None else node.free
    return f"<span class=count>{free}/{len(gpus) if total is None else total}</span>"


def _around_squares(page: PageRequest, node: NodeView, gpus: Sequence[GpuView], name: str) -> tuple[str, str]:
    """What a row of a large map has before and after its squares."""
    owners = escape("|".join(_owner(gpu).replace("|", " ") for gpu in gpus))
    times = "|".join("" if gpu.since is None else str(int(gpu.since)) for gpu in gpus)
    first = gpus[0].index if gpus else 0
    empty = "" if gpus else f"<span class=none>{page.t('map.no-cards')}</span>"
    head = f'<div class="node" data-n="{escape(node.name)}" data-i={first} data-o="{owners}" data-t="{times}">{name}'
    return f"{head}<span class=cards>{empty}", f"</span>{_count(node, gpus)}</div>"


def _compact(row: MapRow) -> Markup:
    squares = [
        BUSY_SQUARES[level] if gpu.state is GpuState.BUSY else SQUARES[gpu.state]
        for gpu, level in zip(row.gpus, row.levels, strict=True)
    ]
    return Markup(f"{row.head}{''.join(squares)}{row.tail}")  # noqa: S704  # all names are escaped


def _rich(page: PageRequest, node: NodeView, gpus: Sequence[GpuView], levels: list[int], name: str) -> Markup:
    fields = "".join(_field(page, gpu, level) for gpu, level in zip(gpus, levels, strict=True))
    fields = fields or f"<span class=none>{page.t('map.no-cards')}</span>"
    return Markup(  # noqa: S704  # all names are escaped
        f'<div class="node" data-n="{escape(node.name)}">{name}<span class="cards">{fields}</span>'
        f"{_count(node, gpus)}</div>"
    )


def _field(page: PageRequest, gpu: GpuView, level: int) -> str:
    state, owner = page.t(f"state.{gpu.state.value}"), escape(_owner(gpu))
    detail = state if owner else ""
    if gpu.state is GpuState.BUSY:
        detail = UNKNOWN if gpu.utilization_ratio is None else percent(gpu.utilization_ratio)
    normal = gpu.state in (GpuState.BUSY, GpuState.FREE)
    age = f" <time data-a={int(gpu.since)}></time>" if gpu.since is not None and not normal else ""
    path = escape(link("gpus", gpu.node, gpu.index))
    return (
        f'<a class="c {_css_class(gpu, level)}" href="{path}" aria-label="GPU {gpu.index}: {state} {owner}">'
        f"<b>{owner or state}</b><small>{detail}{age}</small></a>"
    )


def legend(counts: Mapping[GpuState, int]) -> list[tuple[str, str, int]]:
    """Class, state and number of GPUs: of the common states, and of all others that occur."""
    common = (GpuState.BUSY, GpuState.IDLE_HELD, GpuState.FREE)
    states = ((state, counts.get(state, 0)) for state in LETTERS)
    return [(LETTERS[state], state.value, count) for state, count in states if count or state in common]
