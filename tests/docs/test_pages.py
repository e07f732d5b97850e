"""Documentation pages: valid links, equal sections and blocks in both languages, existing files."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from tests.docs import pages as of

EVERY = (*of.ENGLISH, *of.CHINESE)
PAIRED = [page for page in of.ENGLISH if page.name not in of.ONE_LANGUAGE]


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(of.ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in of.links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in of.anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAIRED, ids=lambda page: page.name)
def test_both_languages_have_the_same_parts(page: Path) -> None:
    other = of.twin(page)
    assert [level for level, _ in of.headings(page)] == [level for level, _ in of.headings(other)]
    ours, theirs = ([(each.kind, shared_text(each), each.mark) for each in of.blocks(one)] for one in (page, other))
    assert ours == theirs


def shared_text(block: of.Block) -> str:
    """What both languages have in common: commands and files, but not what is shown in the reader's language."""
    return "" if block.kind == "text" else re.sub(r"\bLANG=\S+", "LANG", block.text)


def test_there_is_no_page_in_one_language_only() -> None:
    assert {page.name for page in of.CHINESE[1:]} == {page.name for page in PAIRED[1:]}


@pytest.mark.parametrize("page", [page for page in EVERY if page.name == "extending.md"], ids=lambda p: p.parent.name)
def test_files_that_are_to_be_touched_exist(page: Path) -> None:
    named = re.findall(r"`((?:monitor|tests|docs)/[^`]+)`", page.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [path for path in named if not (of.ROOT / path.partition("<")[0]).exists()] == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(of.ROOT)))
def test_files_of_the_deployment_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/])((?:deploy|dashboards|alerts|bench)/[\w./-]+\w)", text))
    assert [path for path in sorted(named) if not (of.ROOT / path).exists()] == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(of.ROOT)))
def test_make_targets_exist(page: Path) -> None:
    makefile = (of.ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|&& )make ([a-z][a-z0-9-]*)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert [name for name in sorted(named) if not re.search(rf"^{name}:", makefile, flags=re.MULTILINE)] == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(of.ROOT)))
def test_values_of_the_chart_exist(page: Path) -> None:
    values = yaml.safe_load((of.ROOT / "deploy" / "helm" / "gpuwarden" / "values.yaml").read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    tops = "|".join(("rbac", "monitors", "prometheusRule", "dashboards", "secrets", "wecom", "image", "networkPolicy"))
    named = set(re.findall(rf"`((?:{tops})\.\w+)`", text)) | set(re.findall(r"(?:--set |`)([a-z]\w*(?:\.\w+)+)=", text))
    assert [name for name in sorted(named) if not _has(values, name.split("."))] == []


def _has(values: object, path: list[str]) -> bool:
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True
