"""The scenes of the demo: their texts, their order, and what leads to the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.detect.rules import RULES
from monitor.i18n import CATALOGS, LANGUAGES
from monitor.present.guide import guide_text
from monitor.sim.outages import OUTAGES
from monitor.sim.scenes import OVER_AT, SCENES, Scene, guide_of, scene_at

NODES = {"disk": "gpu04", "lost": "gpu06"}
TEXTS = ("title", "now", "says", "look")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("index", range(len(SCENES)), ids=[scene.key for scene in SCENES])
def test_every_scene_has_all_its_texts(index: int, lang: str) -> None:
    text = guide_text(guide_of(index, NODES, 0.0, 1.0), lang)
    assert all((text.title, text.now, text.says, text.look))
    assert (text.next_title is None) == (index == len(SCENES) - 1)
    if SCENES[index].rule is not None:
        assert CATALOGS[lang][f"rule.{SCENES[index].rule}"] in text.says


def test_there_are_texts_of_no_other_scene() -> None:
    known = {f"demo.{scene.key}.{text}" for scene in SCENES for text in TEXTS}
    assert {key for key in CATALOGS["en"] if key.startswith("demo.") and key.count(".") == 2} == known


def test_every_outage_has_a_scene_that_begins_with_it() -> None:
    told = [scene.at for scene in SCENES if scene.rule is not None]
    assert sorted(outage.at for outage in OUTAGES) == told
    assert {scene.rule for scene in SCENES if scene.rule} <= {rule.rule for rule in RULES}


def test_the_story_ends_after_the_last_outage() -> None:
    assert len({outage.name for outage in OUTAGES}) == len(OUTAGES)
    assert [scene.key for scene in SCENES if scene.at >= OVER_AT] == ["recovery", "healthy"]
    assert 8 * 60 <= SCENES[-1].at <= 12 * 60


@pytest.mark.parametrize(
    ("elapsed", "scene"), [(0.0, "calm"), (19.9, "calm"), (20.0, "registry"), (499.0, "deletion"), (1e6, "healthy")]
)
def test_the_scene_at_a_time(elapsed: float, scene: str) -> None:
    assert SCENES[scene_at(elapsed)].key == scene


def test_the_next_scene_comes_sooner_in_a_faster_story() -> None:
    assert guide_of(0, NODES, 1000.0, 1.0).next_at == 1020.0
    assert guide_of(0, NODES, 1000.0, 4.0).next_at == 1005.0
    assert guide_of(len(SCENES) - 1, NODES, 1000.0, 1.0).next_at is None


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.key)
def test_paths_name_nodes_of_the_cluster(scene: Scene) -> None:
    path = scene.path.format_map(NODES)
    assert Path(path).is_absolute()
    assert "{" not in path
