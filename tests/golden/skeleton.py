"""Golden files without prose: names, keys, types, values, codes and order stay, sentences become `…`."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from tests.golden.text import as_json

MASK = "…"
SCHEMA_PROSE = frozenset({"description", "summary", "title"})
SCHEMA_DATA = frozenset({"default", "enum", "const", "examples"})
SENT_PROSE = frozenset(
    {"content", "text", "title", "fallback", "summary", "description", "advice", "message", "Subject"}
)
OF_THE_BODY = ("Content-Length", "X-Gpuwarden-Signature")  # headers that depend on the body
# Machine-readable parts of prose: addresses, markup and mentions.
_LINK = re.compile(r"<(https?://[^|>]+)\|[^>]*>")
_KEPT = re.compile(r"<[^<>]+>|https?://[^\s)>\"'|<]+|(?<![\w.])@\w+")
_ROW = re.compile(r"^  (\S+(?: \S+)*)(?:  +(.*))?$")
_FACTS = re.compile(r"\s\[((?:default|required|env var|x[<>]|\d).*)\]$")


def skeleton(name: str, text: str) -> str:
    """Text of a golden file with its prose masked."""
    return next((mask for ends, mask in _MASKS.items() if name.endswith(ends)), _same)(text)


def masked(prose: str) -> str:
    """Symbols, markup, addresses and mentions of each line of a message, in order."""
    return "\n".join(_line(line) for line in prose.split("\n"))


def _line(line: str) -> str:
    bare = _LINK.sub(r"\1", line)
    symbols = [each for each in bare if unicodedata.category(each) == "So"]
    return " ".join([*symbols, MASK, *_KEPT.findall(bare)]) if line.strip() else ""


def _same(text: str) -> str:
    return text


def _metrics(text: str) -> str:
    return re.sub(r"^(# HELP \S+) .*$", rf"\1 {MASK}", text, flags=re.MULTILINE)


def _sql(text: str) -> str:
    return re.sub(r"(?<=\S)[ \t]+-- .*$", "", text, flags=re.MULTILINE)


def _schema(text: str) -> str:
    return as_json(_schema_node(json.loads(text)))


def _schema_node(node: Any, names: bool = False, parent: str = "") -> Any:
    """Mask the sentences of a schema. In a map of properties (`names`) no key is a keyword."""
    if isinstance(node, list):
        return [_schema_node(each) for each in node]
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if not names and key in SCHEMA_PROSE and isinstance(value, str) and parent != "info":
            made[key] = MASK
        elif not names and key in SCHEMA_DATA:
            made[key] = value
        else:
            made[key] = _schema_node(value, not names and key == "properties", key)
    if parent == "info" and "description" in made:
        made["description"] = MASK
    return made


def _errors(text: str) -> str:
    """Mask configuration error sentences, also at the end of a line."""
    told = json.loads(text)
    for checked in (each for part in told.values() for each in part.values()):
        problems = checked["problems"]
        lines, count = checked["text"][: len(problems)], checked["text"][len(problems) :]
        checked["text"] = [
            line.removesuffix(problem["message"]) + MASK if line.endswith(problem["message"]) else line
            for line, problem in zip(lines, problems, strict=True)
        ] + count
        for problem in problems:
            problem["message"] = MASK
    return as_json(told)


def _pages(text: str) -> str:
    told = json.loads(text)
    for each in told:
        if "error" in each.get("body", {}):
            each["body"]["error"] = MASK
    return as_json(told)


def _sent(text: str) -> str:
    return as_json(_sent_node(json.loads(text)))


def _sent_node(node: Any) -> Any:
    if isinstance(node, list):
        if len(node) == 2 and isinstance(node[0], str):  # a header
            return [node[0], _header(*node)]
        return [_sent_node(each) for each in node]
    if isinstance(node, dict):
        return {
            key: masked(value) if key in SENT_PROSE and isinstance(value, str) else _sent_node(value)
            for key, value in node.items()
        }
    return node


def _header(name: str, value: str) -> str:
    if name == "Content-Transfer-Encoding":  # whichever results in the shorter text
        return MASK
    if name in OF_THE_BODY:
        return re.sub(r"[0-9a-f]+$", MASK, value)
    return masked(value) if name in SENT_PROSE else value


def _help(text: str) -> str:
    return "".join(f"{line}\n" for line in _help_lines(text))


def _help_lines(text: str) -> Iterator[str]:
    """Usage, headings, names in lists with facts such as defaults, and one line per paragraph."""
    for block in re.split(r"\n(?=\S)|\n\n", text):
        first, _, rest = block.partition("\n")
        if first.startswith(("$ ", "Usage:")):
            yield " ".join(block.split())
        elif first.endswith(":") and not first.startswith(" "):
            yield first
            yield from _list(rest)
        elif block.strip():
            yield f"  {MASK}"


def _list(text: str) -> Iterator[str]:
    entries: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        found = _ROW.match(line)
        if found is not None:
            entries.append((found[1], [found[2] or ""]))
        elif entries:
            entries[-1][1].append(line.strip())
    for name, words in entries:
        about = " ".join(words).strip()
        facts = _FACTS.search(f" {about}")
        yield f"  {name}  {MASK}{f' [{facts[1]}]' if facts else ''}"


_MASKS: dict[str, Callable[[str], str]] = {
    ".prom": _metrics,
    ".sql": _sql,
    ".schema.json": _schema,
    "openapi.json": _schema,
    "config-errors.json": _errors,
    "agent-pages.json": _pages,
    ".sent.json": _sent,
    "cli-help.txt": _help,
}
