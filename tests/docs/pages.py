"""Parsed user documentation: pages, fenced blocks with their marks, headings, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGLISH = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CHINESE = (ROOT / "README.zh-CN.md", *sorted((ROOT / "docs" / "zh").glob("*.md")))
# English only: developer pages and the generated CLI reference.
ONE_LANGUAGE = {"decisions.md", "commands.md", "performance.md", "quality.md"}
_FENCE = re.compile(r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block; `mark` is the comment directly before it."""

    page: Path
    kind: str
    text: str
    mark: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text.splitlines()[0] if self.text else '(empty)'}"


def blocks(page: Path) -> list[Block]:
    return [
        Block(page, found["kind"], found["text"], found["mark"] or "")
        for found in _FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def every_block(kinds: tuple[str, ...]) -> list[Block]:
    return [block for page in (*ENGLISH, *CHINESE) for block in blocks(page) if block.kind in kinds]


def prose(page: Path) -> str:
    """A page without fenced blocks and comments."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def headings(page: Path) -> list[tuple[int, str]]:
    return [(len(signs), text) for signs, text in re.findall(r"^(#+) (.+)$", prose(page), flags=re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """Anchors of a page as GitHub generates them from headings; duplicates are numbered."""
    seen: dict[str, int] = {}
    found = set()
    for _, text in headings(page):
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def links(page: Path) -> list[str]:
    bare = re.sub(r"`[^`\n]*`", "", prose(page))
    return re.findall(r"\[[^\]\n]*\]\(([^)\s]+)\)", bare)


def twin(page: Path) -> Path:
    """The Chinese counterpart of an English page."""
    return ROOT / "README.zh-CN.md" if page.name == "README.md" else page.parent / "zh" / page.name
