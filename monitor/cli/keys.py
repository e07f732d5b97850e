"""The command that creates the keys of actions."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import click

from monitor.cli.base import CONFIG_EXIT_CODE

if TYPE_CHECKING:
    from monitor.base.signing import KeyPair

DEFAULT_DIRECTORY = "/etc/gpuwarden"
PRIVATE_NAME, PUBLIC_NAME = "action-private-key", "action-public-key"
SERVICE_GROUP = "gpuwarden-config"  # of deploy/install.sh
_OBJECT_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,250}[a-z0-9])?")
_MANIFESTS = """\
apiVersion: v1
kind: Secret
metadata: {{name: {name}}}
type: Opaque
stringData:
  {private_name}: "{private}"
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data:
  {public_name}: |
    {public}
"""
_NEXT_STEPS = """\
Created {private} (only for the daemon) and {public} (for all agents).

1. On the daemon's machine, set daemon.cleanup.agents.private_key_file: {private}
   If the daemon is a systemd service: chgrp {group} {private} && chmod 0640 {private}
2. Copy {public} to every node, and set agent.actions.public_key_file to its path there.
3. Restart the agents, then the daemon.

Keep {private} away from the nodes: whoever has it can have every agent act.
To replace keys later, see "Keys of actions" in docs/security.md."""


@click.command()
@click.option(
    "--directory", default=DEFAULT_DIRECTORY, show_default=True, metavar="D", help="Where the two files are created."
)
@click.option(
    "--kubernetes",
    "name",
    metavar="NAME",
    help="Create no files; print a Secret and a ConfigMap of this name, for kubectl create -f -",
)
def keys(directory: str, name: str | None) -> None:
    """Create the pair of keys with which the daemon signs actions and agents verify them. Overwrites nothing."""
    from monitor.base.signing import generate_keys

    pair = generate_keys()
    if name is not None:
        if not _OBJECT_NAME.fullmatch(name):
            raise click.BadParameter("not the name of a Kubernetes object", param_hint="--kubernetes")
        click.echo(_manifests(name, pair), nl=False)
        return
    private, public = (os.path.join(os.path.abspath(directory), file) for file in (PRIVATE_NAME, PUBLIC_NAME))
    try:
        _write_pair(private, public, pair)
    except FileExistsError as error:
        text = f"{error.filename} exists and is kept; choose another --directory, or move it away"
        click.echo(f"gpuwarden: {text}", err=True)
        sys.exit(CONFIG_EXIT_CODE)
    except OSError as error:
        click.echo(f"gpuwarden: cannot write {error.filename}: {error.strerror}", err=True)
        sys.exit(CONFIG_EXIT_CODE)
    click.echo(_NEXT_STEPS.format(private=private, public=public, group=SERVICE_GROUP))


def _manifests(name: str, pair: KeyPair) -> str:
    return _MANIFESTS.format(
        name=name, private=pair.private, public=pair.public, private_name=PRIVATE_NAME, public_name=PUBLIC_NAME
    )


def _write_pair(private: str, public: str, pair: KeyPair) -> None:
    """Create both files or neither. Raise OSError, such as FileExistsError."""
    _create(public, pair.public, 0o644)
    try:
        _create(private, pair.private, 0o600)
    except OSError:
        os.unlink(public)
        raise


def _create(path: str, text: str, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(file, "w", encoding="ascii") as opened:
        os.fchmod(file, mode)  # whatever the umask
        opened.write(f"{text}\n")
