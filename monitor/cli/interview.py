"""Asks questions in a terminal, or takes the answers from options."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from monitor.base.text import clean
from monitor.cli.answers import AUTO, NONE, AnswerError
from monitor.i18n import CATALOGS, Value, fields, say

T = TypeVar("T")
MAX_ANSWER_CHARS = 4096
_WORDS = {"none": NONE, "auto": AUTO}  # answers that questions name


@dataclass(frozen=True)
class Interview:
    """Questions in one language; without a terminal, defaults answer what no option does."""

    lang: str
    interactive: bool

    def say(self, key: str, **values: Value) -> str:
        return say(self.lang, f"init.{key}", values)

    def ask(self, name: str, default: str, parse: Callable[[str], T], given: str | None) -> T:
        """Answer to the question of this name, from the option of the same name if it is given."""
        named = fields(CATALOGS[self.lang][f"init.question.{name}"])
        question = self.say(f"question.{name}", **{word: _WORDS[word] for word in named})
        return self.answer(question, default, parse, given, f"--{name}")

    def answer(self, question: str, default: str, parse: Callable[[str], T], given: str | None, option: str) -> T:
        """Answer from the option, else from the terminal, where an invalid one is asked again."""
        if given is not None:
            try:
                return parse(clean(given).strip())
            except AnswerError as error:
                raise click.BadParameter(error.text(self.lang), param_hint=option) from None
        while self.interactive:
            try:
                return parse(_read_line(f"{question} [{default}]: ") or default)
            except AnswerError as error:
                click.echo(f"  {error.text(self.lang)}")
        return parse(default)


def _read_line(prompt: str) -> str:
    """A line from the terminal. Raise click.Abort at its end."""
    click.echo(prompt, nl=False)
    sys.stdout.flush()
    line = sys.stdin.readline(MAX_ANSWER_CHARS)
    if not line:
        raise click.Abort
    return clean(line).strip()
