"""The map: a row a node, a field a card, coloured by state and lettered for those who see no colours.

A small cluster shows on each card whose it is and since when. A large one shows squares, eight thousand of them in one
page; whose they are is on the row, for the script that shows it when somebody points at one. A row is made again only
when what it shows has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup, escape

from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.i18n.figures import percent
from monitor.web.pages.render import PageSection, PageRequest, link

RICH = 48  # nodes up to which there is room for names
TOGETHER = 16  # nodes in a section of a large map
LETTERS = {
    GpuState.BUSY: "b", GpuState.FREE: "f", GpuState.IDLE_HELD: "i", GpuState.ZOMBIE: "z", GpuState.ORPHAN: "o",
    GpuState.GHOST: "g", GpuState.WEDGED: "w", GpuState.PHANTOM: "p", GpuState.FAULTY: "x", GpuState.UNKNOWN: "u",
}  # fmt: skip
LEVELS = 4  # of how hard a card works
STICKY = 0.8  # how far from the middle of its level a card has to be to get another: a map that flickers tells nothing

Shown = list[object]  # what a row shows of its cards


@dataclass
class Row:
    """A row as it was made, and of what."""

    node: NodeView
    shown: Shown
    levels: list[int]
    name: str
    html: Markup


@dataclass(frozen=True)
class Style:
    """In which language a map is, and whether it has room for names."""

    lang: str
    rich: bool


class GpuMap:
    """Makes the map, for any number of visitors, and remembers what it has made."""

    def __init__(self) -> None:
        self._rows: dict[Style, dict[str, Row]] = {}
        self._batches: dict[Style, list[tuple[list[Markup], PageSection]]] = {}

    def sections(self, visit: PageRequest, view: ClusterView) -> list[PageSection]:
        """Return the map as sections that are renewed on their own."""
        cards: dict[str, list[GpuView]] = {}
        for gpu in view.gpus:
            cards.setdefault(gpu.node, []).append(gpu)
        style = Style(visit.lang, len(view.nodes) <= RICH)
        known = self._rows.get(style, {})
        rows = {node.name: _row(visit, style, node, cards.get(node.name, []), known) for node in view.nodes}
        self._rows[style] = rows
        return self._joined(style, (row.html for row in rows.values()))

    def _joined(self, style: Style, rows: Iterator[Markup]) -> list[PageSection]:
        """Return rows as sections: the same ones as before, where all rows are."""
        known = self._batches.get(style, [])
        made: list[tuple[list[Markup], PageSection]] = []
        while batch := list(islice(rows, 1 if style.rich else TOGETHER)):
            number = len(made)
            if number < len(known) and known[number][0] == batch:
                made.append(known[number])
            else:
                made.append((batch, PageSection(f"map{number}", Markup("").join(batch), css="rows")))
        self._batches[style] = made
        return [section for _, section in made]


def _row(visit: PageRequest, style: Style, node: NodeView, cards: list[GpuView], known: dict[str, Row]) -> Row:
    """Return the row of a node: the one there is, unless it shows something else by now."""
    old = known.get(node.name)
    before = old.levels if old is not None and len(old.levels) == len(cards) else None
    levels = [_level(gpu, before[place] if before is not None else None) for place, gpu in enumerate(cards)]
    if style.rich:
        shown: Shown = [(gpu.state, gpu.since, gpu.holders, gpu.index, gpu.utilization_ratio) for gpu in cards]
    else:
        shown = [(gpu.state, gpu.since, gpu.holders) for gpu in cards]
    same = old is not None and old.node == node
    if old is not None and same and old.levels == levels and old.shown == shown:
        return old
    name = old.name if old is not None and same else _name(visit, node)
    made = _rich(visit, node, cards, levels, name) if style.rich else _compact(visit, node, cards, levels, name)
    return Row(node, shown, levels, name, made)


def _level(gpu: GpuView, before: int | None) -> int:
    """Return how hard a card works, in few steps; the same as before, if it is not clearly another."""
    load = (gpu.utilization_ratio or 0.0) * LEVELS
    if before is not None and abs(load - before - 0.5) <= STICKY:
        return before
    return min(LEVELS - 1, int(load))


def owner(gpu: GpuView) -> str:
    """Return whose a card is, shortly; nothing if it is nobody's."""
    holders = gpu.holders
    if not holders:
        return ""
    first = holders[0]
    more = f" +{len(holders) - 1}" if len(holders) > 1 else ""
    return (first.user or first.pod or first.pod_uid or "") + more


def _letter(gpu: GpuView, level: int) -> str:
    """Return the class of a card on the map."""
    return f"b{level}" if gpu.state is GpuState.BUSY else LETTERS[gpu.state]


def node_notes(visit: PageRequest, node: NodeView) -> list[str]:
    """Return what is odd about a node, in words."""
    words = []
    if node.in_kubernetes and not node.ready:
        words.append(visit.t("node.not-ready"))
    if node.in_kubernetes and not node.schedulable:
        words.append(visit.t("node.cordoned"))
    if node.silent_since is not None:
        words.append(visit.t("node.silent"))
    elif not node.has_agent:
        words.append(visit.t("node.no-agent"))
    return words


# Rows are made by hand, not by a template: of these there are thousands in one page. Every name is escaped.


def _name(visit: PageRequest, node: NodeView) -> str:
    notes = node_notes(visit, node)
    told = f'<em title="{escape(", ".join(notes))}">{escape(notes[0])}</em>' if notes else ""
    return f'<span class="name"><a href="{escape(link("nodes", node.name))}">{escape(node.name)}</a>{told}</span>'


def _count(node: NodeView, cards: list[GpuView]) -> str:
    total = node.allocatable if node.allocatable is not None else node.cards
    return (
        f"<span class=count>{'?' if node.free is None else node.free}/{len(cards) if total is None else total}</span>"
    )


def _compact(visit: PageRequest, node: NodeView, cards: list[GpuView], levels: list[int], name: str) -> Markup:
    owners = escape("|".join(owner(gpu).replace("|", " ") for gpu in cards))
    times = "|".join("" if gpu.since is None else str(int(gpu.since)) for gpu in cards)
    squares = "".join(f"<i class={_letter(gpu, level)}></i>" for gpu, level in zip(cards, levels, strict=True))
    first = cards[0].index if cards else 0
    fields = squares if cards else f"<span class=none>{visit.t('map.no-cards')}</span>"
    return Markup(  # noqa: S704  # every name in it is escaped
        f'<div class="node" data-n="{escape(node.name)}" data-i={first} data-o="{owners}" data-t="{times}">'
        f"{name}<span class=cards>{fields}</span>{_count(node, cards)}</div>"
    )


def _rich(visit: PageRequest, node: NodeView, cards: list[GpuView], levels: list[int], name: str) -> Markup:
    fields = "".join(_card(visit, gpu, level) for gpu, level in zip(cards, levels, strict=True))
    fields = fields or f"<span class=none>{visit.t('map.no-cards')}</span>"
    return Markup(  # noqa: S704  # every name in it is escaped
        f'<div class="node" data-n="{escape(node.name)}">{name}<span class="cards">{fields}</span>'
        f"{_count(node, cards)}</div>"
    )


def _works(gpu: GpuView) -> str:
    """Return how much a card works; a question mark if that is not known, which is not the same as nothing."""
    return "?" if gpu.utilization_ratio is None else percent(gpu.utilization_ratio)


def _card(visit: PageRequest, gpu: GpuView, level: int) -> str:
    state, who = visit.t(f"state.{gpu.state.value}"), escape(owner(gpu))
    quiet = gpu.state in (GpuState.BUSY, GpuState.FREE)
    told = _works(gpu) if gpu.state is GpuState.BUSY else state if who else ""
    age = f" <time data-a={int(gpu.since)}></time>" if gpu.since is not None and not quiet else ""
    place = escape(link("gpus", gpu.node, gpu.index))
    return (
        f'<a class="c {_letter(gpu, level)}" href="{place}" aria-label="GPU {gpu.index}: {state} {who}">'
        f"<b>{who or state}</b><small>{told}{age}</small></a>"
    )


def legend(counts: Mapping[GpuState, int]) -> list[tuple[str, str, int]]:
    """Return class, state and number of cards for every state: those that are always named, and those there are."""
    always = (GpuState.BUSY, GpuState.IDLE_HELD, GpuState.FREE)
    found = ((state, counts.get(state, 0)) for state in LETTERS)
    return [(LETTERS[state], state.value, count) for state, count in found if count or state in always]
