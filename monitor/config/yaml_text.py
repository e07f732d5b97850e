"""Parses YAML into plain values with the line of each, and reports all problems of the text.

The text is untrusted: its size, depth and expanded aliases are limited. Messages quote keys but never values, because
any value may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import yaml

from monitor.base.units import quoted

Path = tuple[str | int, ...]
MAX_DEPTH = 40
MAX_VALUES = 50_000  # with aliases expanded; more is an attack or a mistake
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Flaw:
    """A problem of the text."""

    line: int
    path: Path
    message: str


@dataclass
class Document:
    """Parsed text. `lines` maps the path of every key and list item to its line, () to the first line."""

    value: object = None
    lines: dict[Path, int] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)


_SCALARS: dict[str, Callable[[str], object]] = {
    "str": str,
    "merge": str,
    "null": lambda _: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": float,
}


class _Loader(yaml.SafeLoader):
    """Reads `yes`, `1:30`, `0o7` and dates as text: the type of the setting decides what they mean."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # not shared with the base class; filled below

    def scan_plain(self) -> yaml.ScalarToken:
        """Read `[https://host/?key=x]` as YAML 1.2 does: PyYAML ends a scalar inside brackets at a question mark."""
        token = super().scan_plain()
        while self.flow_level and self.peek() == "?" and self.get_mark().index == token.end_mark.index:
            self.forward()
            rest = super().scan_plain()
            token = yaml.ScalarToken(f"{token.value}?{rest.value}", True, token.start_mark, rest.end_mark)
        return token


_NUMBER_BEGINS = [*"-+.0123456789"]
for _kind, _pattern, _begins in (
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]{1,18}", _NUMBER_BEGINS),
    ("float", r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?", _NUMBER_BEGINS),
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"(?:{_pattern})$"), _begins)


def read(text: str) -> Document:
    """Parse YAML text. Never raises: problems are in the document."""
    document = Document()
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is not None:
            document.lines[()] = _line(node)
            document.value = _NodeConverter(document).value(node, ())
    except yaml.MarkedYAMLError as error:
        document.flaws.append(_syntax_flaw(error, text))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        document.flaws.append(Flaw(line, (), f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"))
    except RecursionError:
        document.flaws.append(Flaw(1, (), "not valid YAML: brackets are nested too deeply"))
    except _LimitExceededError as exceeded:
        document.flaws.append(exceeded.flaw)
    return document


class _LimitExceededError(Exception):
    """Aborts parsing at a limit."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.message)
        self.flaw = flaw


Entries = dict[str, tuple[yaml.Node, yaml.Node]]


class _NodeConverter:
    """Converts YAML nodes to plain values and records lines and flaws in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        """Plain value of a node; an unsupported node becomes None and a flaw."""
        self._bound(node, len(path))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self._child(item, item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            entries = self._entries(node, path, len(path))
            return {key: self._child(key_node, item, (*path, key)) for key, (key_node, item) in entries.items()}
        self._flaw(node, path, "a tag (!name) is not understood here; remove it")
        return None

    def _child(self, marked: yaml.Node, node: yaml.Node, path: Path) -> object:
        self._document.lines[path] = _line(marked)
        return self.value(node, path)

    def _entries(self, node: yaml.MappingNode, path: Path, depth: int) -> Entries:
        """Entries of a mapping, including those merged by `<<`, which its own override."""
        self._bound(node, depth, len(node.value))
        own: Entries = {}
        merged: Entries = {}
        first_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in first_lines:
                self._flaw(key_node, (*path, key), f"duplicate key, already given in line {first_lines[key]}")
            first_lines.setdefault(key, _line(key_node))
            if key_node.tag == _TAG + "merge":
                for part in self._merged_mappings(value_node, path):
                    merged = self._entries(part, path, depth + 1) | merged
            else:
                own.setdefault(key, (key_node, value_node))
        return merged | own

    def _merged_mappings(self, node: yaml.Node, path: Path) -> Iterator[yaml.MappingNode]:
        for part in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(part, yaml.MappingNode):
                yield part
            else:
                self._flaw(part, path, "<<: takes an alias of a mapping, such as <<: *name")

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        self._flaw(node, path, "a key has to be plain text")
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        text, kind = node.value, node.tag.removeprefix(_TAG)
        if kind not in _SCALARS:
            self._flaw(node, path, "a tag (!name) is not understood here; text that begins with ! needs quotes")
            return None
        try:
            return _SCALARS[kind](text)
        except (KeyError, ValueError):  # only with an explicit tag, such as !!int x
            self._flaw(node, path, "the value is not what its tag says")
            return None

    def _flaw(self, node: yaml.Node, path: Path, message: str) -> None:
        self._document.flaws.append(Flaw(_line(node), path, message))

    def _bound(self, node: yaml.Node, depth: int, values: int = 1) -> None:
        self._count += values
        if depth > MAX_DEPTH:
            raise _LimitExceededError(
                Flaw(_line(node), (), f"nested more than {MAX_DEPTH} deep, or an alias of itself")
            )
        if self._count > MAX_VALUES:
            raise _LimitExceededError(Flaw(_line(node), (), f"more than {MAX_VALUES} values, aliases expanded"))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


# Text in the parser's message -> advice; the first match applies.
_ADVICE = (
    ("undefined alias", "no anchor (&name) defines this alias (*name); text that begins with * needs quotes"),
    ("cannot start any token", "a value cannot begin with this character; put it in quotes"),
    (
        "mapping values are not allowed",
        "a ': ' where none can be; is a ':' missing in the line above, or the indentation wrong, or a quote?",
    ),
    ("could not find expected ':'", "this line has no ': '; write 'key: value'"),
    ("another document", "a second document (---) begins here; there may be only one"),
    ("quoted scalar", "the quote that opens in line {opened} is not closed, or holds a wrong \\ escape"),
    ("flow sequence", "the [ that opens in line {opened} is not closed, or a comma is missing"),
    ("flow mapping", "the {{ that opens in line {opened} is not closed, or a comma is missing"),
    ("expected <block end>", "this line's indentation does not fit the lines above"),
    ("block scalar", "after | or > the text begins on the next line; text that begins with | or > needs quotes"),
    ("", "check indentation, quotes and brackets here and in the line before"),
)


def _syntax_flaw(error: yaml.MarkedYAMLError, text: str) -> Flaw:
    mark = error.problem_mark or error.context_mark
    if error.context == "while scanning a simple key":  # detected one line after the missing colon
        mark = error.context_mark
    if mark is None:  # the parser's types allow it
        return Flaw(1, (), "not valid YAML")
    opened = error.context_mark.line + 1 if error.context_mark else mark.line + 1
    message = f"{error.context} {error.problem}"
    advice = next(advice for part, advice in _ADVICE if part in message).format(opened=opened)
    if _indented_by_tab(text, mark.line):
        advice = "a tab; YAML is indented with spaces only"
    return Flaw(mark.line + 1, (), f"column {mark.column + 1}: not valid YAML: {advice}")


def _indented_by_tab(text: str, line: int) -> bool:
    lines = text.split("\n")[line : line + 1]
    return any("\t" in content[: len(content) - len(content.lstrip())] for content in lines)


def describe_key(path: Path) -> str:
    """A path as `agent.mounts[0].path`. Keys with unprintable characters are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if part and part.isprintable() else quoted(part)
            text += f".{key}" if text else key
    return text
