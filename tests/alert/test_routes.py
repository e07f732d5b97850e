from __future__ import annotations

from typing import Any

import pytest

from monitor.alert.matchers import parse_matcher
from monitor.alert.routes import Route, receivers_of, routes_for, shortest_intervals


def route(*receivers: str, match: str = "", continue_matching: bool = False) -> Route:
    return Route(receivers, tuple(parse_matcher(each) for each in match.split()), continue_matching=continue_matching)


ROUTES = (
    route("audit", continue_matching=True),
    route("oncall", match="severity=critical"),
    route("zhang", match="user=zhang severity!=info", continue_matching=True),
    route("team"),
    route("never"),
)


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ({"severity": "critical", "user": "zhang"}, ["audit", "oncall"]),
        ({"severity": "warning", "user": "zhang"}, ["audit", "zhang", "team"]),
        ({"severity": "info", "user": "zhang"}, ["audit", "team"]),
        ({}, ["audit", "team"]),
    ],
)
def test_the_first_route_wins_unless_it_goes_on(labels: dict[str, str], receivers: list[str]) -> None:
    assert [each.receivers[0] for each in routes_for(labels, ROUTES)] == receivers


def test_what_no_route_is_met_by_goes_nowhere() -> None:
    assert routes_for({"node": "n1"}, (route("a", match="node=n2"),)) == ()


def test_all_receivers_of_the_routes() -> None:
    assert receivers_of(ROUTES) == {"audit", "oncall", "zhang", "team", "never"}


def test_a_group_of_several_routes_waits_for_none_of_them() -> None:
    given = {Route(("a",), repeat=60.0, group_wait=5.0, group_interval=10.0), Route(("a",), repeat=90.0)}
    found = shortest_intervals(tuple(given))
    assert (found.repeat, found.group_wait, found.group_interval) == (60.0, 0.5, 10.0)


@pytest.mark.parametrize("given", [{"repeat": 0.0}, {"repeat": -1.0}, {"group_wait": -1.0}, {"group_interval": -0.1}])
def test_times_that_would_flood_or_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="repeat must be more than 0"):
        Route(("a",), **given)
