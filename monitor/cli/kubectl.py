"""`kubectl gpuwarden`: the commands that only ask, as a plugin of kubectl, and their completion.

kubectl runs the program `kubectl-gpuwarden` on the PATH, and for completion `kubectl_complete-gpuwarden`.
"""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete

import monitor
from monitor.cli.fits import fits
from monitor.cli.main import status, why
from monitor.cli.top import top
from monitor.cli.usage import LocalizedGroup

PROGRAM = "kubectl gpuwarden"
NO_FILES = ":4"  # the directive of kubectl's completion that file names do not fit


@click.group(cls=LocalizedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(monitor.__version__, prog_name=PROGRAM)
def plugin() -> None:
    """GPUs of the cluster: what runs, why a job waits, and whether another would fit."""


for command in (why, fits, top, status):
    plugin.add_command(command)


def main() -> None:
    """Run the plugin."""
    plugin(prog_name=PROGRAM)


def complete() -> None:
    """Print completions of the last argument, which may be empty, as kubectl reads them."""
    *typed, partial = sys.argv[1:] or [""]
    for item in ShellComplete(plugin, {}, PROGRAM, "").get_completions(typed, partial):
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(NO_FILES)


if __name__ == "__main__":
    main()
