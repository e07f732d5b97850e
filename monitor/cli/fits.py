"""`gpuwarden fits`: would a job fit."""

from __future__ import annotations

import sys

import click

from monitor.cli.base import (
    PROBLEM_EXIT_CODE,
    config_option,
    json_option,
    lang_option,
    language,
    load_config,
    or_exit,
    print_json,
)


@click.command()
@click.option("--gpus", required=True, metavar="N", help="GPUs of the job in total.")
@click.option("--per-node", metavar="N", help="GPUs of each of its pods. Default: one pod with all of them.")
@click.option("--model", help="GPU model, or a part of its name.")
@click.option("--queue", help="Queue of Volcano or Kueue.")
@click.option("-n", "--namespace", help="Namespace, whose ResourceQuotas count.")
@click.option("--cpu", metavar="AMOUNT", help="CPU of each pod, such as 8 or 500m.")
@click.option("--memory", metavar="AMOUNT", help="Memory of each pod, such as 64Gi.")
@click.option("--tolerate", multiple=True, metavar="TAINT", help="A tolerated taint: KEY[=VALUE][:EFFECT]. Repeatable.")
@click.option("--resource", metavar="NAME", help="Resource to count. Default: the GPU resource of the configuration.")
@lang_option
@config_option
@json_option
def fits(
    tolerate: tuple[str, ...], lang: str | None, config_path: str | None, as_json: bool, **fields: str | None
) -> None:
    """Say whether a job would fit: now and where, split differently, after which jobs, or never. Creates nothing.

    Exit code 0 if it fits now as requested, else 1.
    """
    config = load_config(config_path)
    from monitor.cli.ask import fits_now
    from monitor.queries.fits import parse_request

    given = {name: text for name, text in fields.items() if text}
    try:
        parse_request(given, tolerate)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    answer = or_exit(lambda: fits_now(config, given, tolerate, language(lang)))
    if as_json:
        print_json(answer)
    else:
        click.echo("\n".join(answer.lines))
    sys.exit(0 if answer.fits else PROBLEM_EXIT_CODE)
