"""The parser of error chains: clauses in the order in which programs wrapped them, and lists of errors.

Runs in linear time and bounds the length of the text and the number of clauses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

MAX_CHARS = 8192
MAX_CLAUSES = 96
# A chain states its cause at its end; a cause that is mentioned further out is that of another error.
MAX_STATEMENTS = 4

# runc and Docker before 2021 quote the error they wrap, each level with one more backslash per quote.
_ESCAPED = re.compile(r"(?<!\\)\\+([\"'nt])")
_UNESCAPED = {"n": "\n", "t": " "}
# Where one program's sentence ends and that of the program it called begins. Addresses have no space after a colon.
_SEPARATORS = (
    ": ",
    ":\n",
    " - Server message",
    ' caused "',
    " caused by ",
    " caused by:",
    " err:",
    "\n",
    '{"message":"',
)
_END_OF_CLAUSE = "\x00"
_NEXT_ERROR = ", rpc error: "
_CODE, _DESCRIPTION = "code = ", "desc = "
_CODE_NAMES = frozenset(("unknown", "unavailable", "failed precondition", "not implemented", "canceled", "output"))
# Arguments of mount(8) and of NVIDIA's hook contain options, hosts and paths.
_ARGUMENTS = ("-t ", "[--description", "exec command", "[/usr/bin/nvidia-container-cli", "mount -t ")
_TRIM = " \t\r\"'`,;[]{}"
_QUOTES = "\"'`"
_END_OF_NAME = ",.;:)"


class Clause(NamedTuple):
    """One sentence of the chain. `words` is its lower-cased text without names, `code` the gRPC code before it."""

    text: str
    low: str
    words: str
    code: str | None = None


@dataclass(frozen=True)
class Chain:
    """Clauses from the outermost to the innermost program, and all of them together.

    `low` is the lower-cased text, `words` the wording without names.
    """

    clauses: tuple[Clause, ...]
    low: str = field(init=False)
    words: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", ": ".join([clause.low for clause in self.clauses]))
        object.__setattr__(self, "words", ": ".join([clause.words for clause in self.clauses]))

    @cached_property
    def statements(self) -> tuple[Clause, ...]:
        """The innermost clauses, without arguments of commands and names of codes: what may state the cause."""
        found: list[Clause] = []
        for clause in reversed(self.clauses):
            if clause.words not in _CODE_NAMES and not clause.low.startswith(_ARGUMENTS):
                found.append(clause)
                if len(found) == MAX_STATEMENTS:
                    break
        return tuple(reversed(found))

    @cached_property
    def end(self) -> str:
        """The wording of the statements."""
        return ": ".join([clause.words for clause in self.statements])

    @cached_property
    def end_low(self) -> str:
        """The lower-cased text of the statements."""
        return ": ".join([clause.low for clause in self.statements])

    @property
    def last(self) -> Clause:
        return self.clauses[-1]

    @property
    def last_statement(self) -> str:
        """The wording of the innermost clause; gRPC's name of an error that follows it says nothing more."""
        for clause in reversed(self.clauses):
            if clause.words not in _CODE_NAMES:
                return clause.words
        return self.last.words


EMPTY = Clause("", "", "")


def parse(message: str | None, name: str | None = None) -> Chain:
    """The chain of one error. `name` (an image) is not taken as wording."""
    return _chain(normalized(message), _spellings(name))


def parse_list(message: str | None, name: str | None = None) -> tuple[Chain, ...]:
    """Chains of a list of errors (`[first, second]`), as the kubelet joins those of several attempts."""
    text, names = normalized(message), _spellings(name)
    if _NEXT_ERROR not in text:
        return (_chain(text, names),)
    return tuple([_chain(part, names) for part in text.split(_NEXT_ERROR)])


def _spellings(name: str | None) -> tuple[str, ...]:
    """How messages spell the name of an image: in full, without its registry, without its tag."""
    if not name:
        return ()
    name = name.lower()
    host, _, path = name.partition("/")
    short = path if path and ("." in host or ":" in host) else name
    untagged = short.partition("@")[0].rpartition(":")[0]
    # A single word without its tag may be wording: an image may be called `timeout`.
    return tuple(dict.fromkeys((name, short, untagged) if "/" in untagged else (name, short)))


def normalized(message: str | None) -> str:
    """The message without the escapes of nested quotes; the middle of a very long one is dropped."""
    text = message or ""
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]}: {text[-MAX_CHARS // 2 :]}"
    return _ESCAPED.sub(_unescape, text) if "\\" in text else text


def _unescape(match: re.Match[str]) -> str:
    return _UNESCAPED.get(match[1], match[1])


def _chain(text: str, names: tuple[str, ...]) -> Chain:
    for separator in _SEPARATORS:
        text = text.replace(separator, _END_OF_CLAUSE)
    parts = text.split(_END_OF_CLAUSE)
    if len(parts) > MAX_CLAUSES:
        parts = parts[: MAX_CLAUSES // 2] + parts[-MAX_CLAUSES // 2 :]
    clauses, code = [], None
    for part in parts:
        sentence = part.strip(_TRIM)
        if sentence.startswith(_CODE):
            code, _, sentence = sentence[len(_CODE) :].partition(f" {_DESCRIPTION}")
            sentence = sentence.strip(_TRIM)
        if sentence.startswith(_DESCRIPTION):
            sentence = sentence[len(_DESCRIPTION) :].strip(_TRIM)
        if sentence and sentence != "rpc error":
            clauses.append(_clause(sentence, code, names))
            code = None
    return Chain(tuple(clauses) or (EMPTY,))


def _clause(text: str, code: str | None, names: tuple[str, ...]) -> Clause:
    low = text.lower()
    return Clause(text, low, _wording(low, names), code)


def _wording(low: str, names: tuple[str, ...]) -> str:
    """The clause without names: an image may be called `timeout`, a path may contain `503`."""
    for name in names:
        if name in low:
            low = low.replace(name, "_")
    if "/" not in low and '"' not in low and "'" not in low and "sha256:" not in low:
        return low
    tokens = low.split(" ")
    words = [
        "_" if ("/" in token or token[:1] in _QUOTES or token[:7] == "sha256:") and _is_name(token) else token
        for token in tokens
    ]
    if len(tokens) > 1 and tokens[-1][:1] == '"':
        words[-1] = "_"  # a name whose closing quote ended the clause
    return " ".join(words)


def _is_name(token: str) -> bool:
    """Whether a token is a quoted word, an address, a path or a digest. `i/o` and `archive/tar` are words."""
    if len(token) > 1 and token[0] in _QUOTES:
        return token.rstrip(_END_OF_NAME)[-1] in _QUOTES or "/" in token or ":" in token
    if "/" in token:
        first = token.lstrip("(").partition("/")[0]
        return not first or "." in first or ":" in token.rstrip(_END_OF_NAME) or token.count("/") > 1
    return token.startswith("sha256:")
