"""Parts of pages: the GPU map, charts, links, and cached explanations."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import partial
from itertools import chain

import pytest
from starlette.requests import Request

from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, NodeView
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.web.context import PageDeps
from monitor.web.pages.cached import MAX_ANSWERS, CachedQueries, TimedCache
from monitor.web.pages.charts import Chart, draw
from monitor.web.pages.environment import link, with_query
from monitor.web.pages.gpumap import MAX_RICH_NODES, NODES_PER_SECTION, GpuMap
from monitor.web.pages.render import PageRequest
from tests.web.test_pages import FakeCluster

NOW = 1_794_873_600.0


def page() -> PageRequest:
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], "state": {}}
    return PageRequest(Request(scope), PageDeps(FakeCluster()))


def view(nodes: int, load: float | None = 0.4, state: GpuState = GpuState.BUSY) -> ClusterView:
    names = [f"n{number}" for number in range(nodes)]
    gpus = tuple(
        GpuView(node=name, state=state, index=index, utilization_ratio=load, since=NOW, holders=(Holder(user="li"),))
        for name in names
        for index in range(8)
    )
    return ClusterView(at=NOW, nodes=tuple(NodeView(name=name, has_agent=True) for name in names), gpus=gpus)


def test_a_small_map_names_owners_a_large_one_has_squares() -> None:
    small, large = GpuMap().sections(page(), view(MAX_RICH_NODES)), GpuMap().sections(page(), view(MAX_RICH_NODES + 1))
    assert len(small) == MAX_RICH_NODES
    assert small[0].html.count("<b>li</b>") == 8
    assert len(large) == -(-(MAX_RICH_NODES + 1) // NODES_PER_SECTION)
    assert large[0].html.count("<i class=b1>") == 8 * NODES_PER_SECTION
    assert 'data-o="li|li|' in large[0].html


def test_what_a_card_does_is_a_question_where_nobody_knows() -> None:
    unknown, idle = (GpuMap().sections(page(), view(1, load))[0].html for load in (None, 0.0))
    assert unknown.count("?") - idle.count("?") == 8
    assert "0%" not in unknown
    assert idle.count("0%") == 8


LOADS = [(0.26, "b1"), (0.24, "b1"), (0.05, "b0"), (0.30, "b0"), (0.99, "b3"), (0.68, "b3"), (0.60, "b2")]


def test_a_square_keeps_its_shade_until_it_clearly_has_another() -> None:
    made, shades = GpuMap(), []
    for load, _ in LOADS:
        section = made.sections(page(), view(MAX_RICH_NODES + 1, load))[0]
        shades.append(re.findall(r"<i class=(\w+)>", section.html)[0])
    assert shades == [shade for _, shade in LOADS]


def test_sections_of_a_map_stay_the_same_while_nothing_changes() -> None:
    made = GpuMap()
    first, second = made.sections(page(), view(60)), made.sections(page(), view(60))
    assert all(one is other for one, other in zip(first, second, strict=True))
    third = made.sections(page(), view(60, state=GpuState.ZOMBIE))
    assert not {each.version for each in first} & {each.version for each in third}


def test_after_any_changes_a_map_shows_what_a_new_one_would() -> None:
    """Except for shades, which depend on what was shown before: here loads are in the middle of their level."""
    chance, kept, nodes = random.Random(3), GpuMap(), dict[str, tuple[NodeView, tuple[GpuView, ...]]]()
    for _ in range(60):
        for number in chance.sample(range(60), 20):
            nodes[f"n{number}"] = some_node(f"n{number}", chance)
        if len(nodes) > MAX_RICH_NODES and chance.random() < 0.5:
            del nodes[chance.choice(list(nodes))]
        gpus = {name: gpus for name, (_, gpus) in nodes.items() if gpus}
        together = ClusterView(
            at=NOW, nodes=tuple(node for node, _ in nodes.values()), gpus=tuple(chain.from_iterable(gpus.values()))
        ).with_known_nodes(gpus)
        assert kept.sections(page(), together) == GpuMap().sections(page(), together)


def some_node(name: str, chance: random.Random) -> tuple[NodeView, tuple[GpuView, ...]]:
    gpus = tuple(
        GpuView(
            node=name,
            state=chance.choice((GpuState.BUSY, GpuState.FREE)),
            index=index + chance.randrange(2),
            since=NOW - chance.randrange(2),
            utilization_ratio=chance.choice((0.125, 0.875)),
            holders=chance.choice(((), (Holder(user="li"),))),
        )
        for index in range(chance.randrange(3))
    )
    return NodeView(
        name=name, has_agent=chance.random() < 0.8, free=chance.randrange(2), heard_at=chance.random()
    ), gpus


def test_a_node_that_goes_is_forgotten() -> None:
    made = GpuMap()
    made.sections(page(), view(60))
    assert [each.id for each in made.sections(page(), view(50))] == ["map0", "map1", "map2", "map3"]


def test_a_chart_has_gaps_where_nothing_is_known() -> None:
    points = [(NOW - 60.0 * minute, None if 20 < minute < 30 else 0.5) for minute in range(50, 0, -1)]
    drawn = draw(NOW, "en", Chart("load", points, 1.0, "50%"))
    assert drawn.count("<polyline") == 2
    assert "load · 1 h" in drawn
    assert draw(NOW, "en", Chart("load", [(NOW, None)])) == ""
    assert "style" not in drawn


@pytest.mark.parametrize(("minutes", "span"), [(3, "10 min"), (50, "1 h"), (300, "6 h"), (1200, "1 d"), (5000, "1 d")])
def test_a_chart_is_as_long_as_what_is_known(minutes: int, span: str) -> None:
    points = [(NOW - 60.0 * minute, 0.5) for minute in range(minutes, 0, -1)]
    assert f"load · {span}" in draw(NOW, "en", Chart("load", points))


def test_a_chart_does_not_move_with_every_second() -> None:
    points = [(NOW - 60.0 * minute, minute / 2000) for minute in range(1440, 0, -1)]
    chart = Chart("load", points, 1.0)
    assert draw(NOW + 100, "en", chart) == draw(NOW + 101, "en", chart)


def test_addresses_hold_whatever_a_name_holds() -> None:
    assert link("pods", "a b", "x/../y?z") == "/pods/a%20b/x%2F..%2Fy%3Fz"
    assert with_query("/pods", user="li&x", node="", queue=None) == "/pods?user=li%26x"


def test_a_slow_explanation_is_not_worked_out_for_everybody() -> None:
    clock, computed = [0.0], list[tuple[str, str]]()

    class Slow(FakeCluster):
        def why(self, names: Sequence[WantedName], lang: str) -> tuple[PodExplanation, ...]:
            computed.append((names[0][0], lang))
            clock[0] += 0.3
            return super().why(names, lang)

    queries = CachedQueries(Slow(), lambda: clock[0])
    for at, name, lang in ((0, "a", "en"), (1, "a", "en"), (1, "a", "zh"), (3.2, "a", "en"), (4.5, "a", "en")):
        clock[0] = max(clock[0], at)
        assert queries.why([(name, "nlp")], lang)[0].name == name
    assert computed == [("a", "en"), ("a", "zh"), ("a", "en")]


def test_answers_that_are_no_longer_needed_are_forgotten() -> None:
    clock = [0.0]
    cache = TimedCache[int](lambda: clock[0])
    for number in range(3 * MAX_ANSWERS):
        clock[0] += 1
        assert cache.get((str(number),), partial(int, number)) == number
    assert len(cache._answers) <= MAX_ANSWERS
