"""Errors of usage in the language of the command: that of --lang, else of the locale."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click
from click.exceptions import NoArgsIsHelpError

OPTION = "--lang"
_META = "gpuwarden.lang"


class LocalizedUsageError(click.UsageError):
    """An error of usage whose text is translated when it is shown."""

    def __init__(self, error: click.UsageError, lang: str) -> None:
        super().__init__(error.format_message(), error.ctx)
        self._error = error
        self._lang = lang

    def show(self, file: IO[Any] | None = None) -> None:
        from monitor.i18n.phrases import translated

        text = io.StringIO()
        self._error.show(text)
        click.echo(translated(text.getvalue(), self._lang), file=file, nl=False, err=file is None)


class LocalizedGroup(click.Group):
    """The commands of a program; errors of their usage follow the language."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        lang = _requested(args)
        with _localized(lang):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_META] = lang
        return context

    def invoke(self, ctx: click.Context) -> Any:
        with _localized(ctx.meta.get(_META)):
            return super().invoke(ctx)


@contextmanager
def _localized(lang: str | None) -> Iterator[None]:
    try:
        yield
    except (LocalizedUsageError, NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        from monitor.cli.base import language
        from monitor.i18n import LANGUAGES

        raise LocalizedUsageError(error, language(lang if lang in LANGUAGES else None)) from error


def _requested(args: Sequence[str]) -> str | None:
    """The language that --lang names, which may not have been parsed when an error is found; None if it names none."""
    for number, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name == OPTION:
            return value if equals else next(iter(args[number + 1 : number + 2]), None)
    return None
