"""Selection to the byte: down to the mark, within the caps; and the guaranteed size of images."""

from __future__ import annotations

import re

import msgspec
import pytest

from monitor.cleanup.model import Item, KeptItem, PodWrite, Risk
from monitor.cleanup.plan.images import FreedLayers
from monitor.cleanup.plan.select import Candidate, PlanSubject, Protection, Selection, make_plan, skip_refused
from monitor.cleanup.policy import Caps, PodPolicy
from monitor.facts.storage import ImageCacheFact, ImageFact
from monitor.facts.text import Text

ACT = PodWrite(namespace="team", name="p", uid="u", how="delete")
POLICY = PodPolicy(name="p")


def item(name: str, frees: int | None = None) -> Item:
    why = Text(key="cleanup.why.pod-finished")
    return Item(id=name, name=name, why=why, risk=Risk.LOW, node="n1", frees_bytes=frees, act=ACT)


def taken(selection: Selection) -> list[str]:
    return [taken_item.name for taken_item in selection.items]


@pytest.mark.parametrize(
    ("frees", "needed", "expect", "guaranteed"),
    [
        ((9, 5, 5), 10, ["0", "1"], 14),  # one byte is missing after the first
        ((10, 5, 5), 10, ["0"], 10),
        ((None, 0, 5, 5), 1, ["0", "1", "2"], 5),  # an unknown size does not count
        ((5, 5), 0, [], 0),
        ((5, 5), None, ["0", "1"], 10),
    ],
)
def test_down_to_the_mark_to_the_byte(
    frees: tuple[int | None, ...], needed: int | None, expect: list[str], guaranteed: int
) -> None:
    selection = Selection(Caps())
    assert selection.add([Candidate(item(str(n), size)) for n, size in enumerate(frees)], needed) == guaranteed
    assert taken(selection) == expect


@pytest.mark.parametrize(
    ("sizes", "expect", "capped"),
    [((0, 10), ["0", "1"], None), ((0, 11), ["0"], "bytes"), ((4, 7, 6), ["0", "2"], "bytes")],
)
def test_within_the_cap_to_the_byte(sizes: tuple[int, ...], expect: list[str], capped: str | None) -> None:
    selection = Selection(Caps(bytes=10))
    selection.add([Candidate(item(str(n)), size) for n, size in enumerate(sizes)], None)
    assert (taken(selection), selection.capped_by) == (expect, capped)


def test_what_was_refused_is_kept_with_its_node_and_size() -> None:
    kept: list[KeptItem] = []
    assert list(skip_refused([Candidate(item("a"), 7)], frozenset({"a"}), kept)) == []
    assert kept == [KeptItem(name="a", protection="refused-lately", node="n1", bytes=7)]


def test_the_largest_that_are_kept_come_first() -> None:
    sizes = {"a": None, "b": 5, "c": 9, "d": 1}
    kept = [Protection("pinned", "why").kept_item(name, "n1", size) for name, size in sizes.items()]
    found = make_plan(PlanSubject(POLICY, 1.0), Selection(Caps()), kept)
    assert [kept_item.name for kept_item in found.kept] == ["c", "b", "d", "a"]
    assert found.kept[0] == KeptItem(name="c", protection="pinned", node="n1", bytes=9, detail="why")


def test_a_plan_is_known_by_its_policy_its_node_and_its_time() -> None:
    subjects = [PlanSubject(POLICY, 1.0, "n1"), PlanSubject(POLICY, 1.0, "n2"), PlanSubject(POLICY, 2.0, "n1")]
    subjects.append(PlanSubject(PodPolicy(name="q"), 1.0, "n1"))
    plans = [make_plan(subject, Selection(Caps()), ()) for subject in subjects]
    assert len({plan.id for plan in plans}) == 4
    assert all(re.fullmatch(r"plan-[0-9a-f]{12}", plan.id) for plan in plans)
    assert [(plan.policy, plan.node, plan.at) for plan in plans[1:]] == [
        ("p", "n2", 1.0),
        ("p", "n1", 2.0),
        ("q", "n1", 1.0),
    ]


def layered(size: int | None, unique: int | None) -> ImageFact:
    return ImageFact(id=f"{size}-{unique}", size_bytes=size, unique_bytes=unique)


@pytest.mark.parametrize(
    ("total", "images", "removed", "frees"),
    [
        (14, [(10, 2), (10, 2), (10, 2)], 3, [2, 2, 10]),
        (None, [(10, 2), (10, 2), (10, 2)], 3, [2, 2, 2]),  # unknown total: unique bytes only
        (14, [(10, 2), (10, 2), (None, 2)], 2, [2, 2]),  # the third may have all layers
        (14, [(10, 2), (3, None)], 1, [2]),  # compressed sizes are not comparable
        (14, [(10, 4), (10, 4), (0, 0)], 2, [4, 10]),  # an empty image keeps no layer
        (10, [(0, 0), (10, 4)], 1, [0]),  # and frees none
        (3, [(10, 4)], 1, [3]),  # at most the total
    ],
)
def test_what_is_sure_to_be_free(
    total: int | None, images: list[tuple[int | None, int | None]], removed: int, frees: list[int | None]
) -> None:
    facts = tuple(layered(*sizes) for sizes in images)
    freed = FreedLayers(ImageCacheFact(runtime="docker", images=facts, total_bytes=total))
    assert [freed.remove(fact) for fact in facts[:removed]] == frees


def test_a_candidate_says_what_it_frees_when_it_is_taken() -> None:
    later = Candidate(item("a"), 9, lambda: 5)
    assert later.take() == msgspec.structs.replace(item("a"), frees_bytes=5)
