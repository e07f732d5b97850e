"""Writes the results of a siege: bench/SIEGE.md and bench/siege.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.report import HERE, Goal, Report, section
from monitor import __version__
from tests.siege.attackers import DRIPPING, IDLE, PATH_CHARS
from tests.siege.canaries import EVERY_SECONDS
from tests.siege.cluster import PODS, PODS_PER_SECOND
from tests.siege.limits import DESCRIPTORS, MIB
from tests.siege.run import AGENT_BYTES, DAEMON_BYTES, SiegeCourse

HOW = """\
`gpuwarden agent` and `gpuwarden daemon` {version} run under the limits of the chart: {agent} and {daemon} MiB of memory
({kind}) and {descriptors} open files. For {minutes:g} minutes, all at once:

- {idle:,} idle connections to each, and {dripping} that send a byte per second (to the agent also as bodies). Each
  comes back when it is disconnected; half come from one address, the others from 40 addresses.
- Bodies with a padded `Content-Length`, endless bodies of 4 MiB, refused requests with paths of {path:,} characters,
  and malformed requests.
- An agent that lies: snapshots of 8 MiB with the longest accepted string in every field, different with each poll.
- {pods} pods with image names of a megabyte that cannot be pulled, {rate:g} of which change per second.
- Silences with patterns that backtrack in other engines, and with the most expensive patterns that are accepted.

Settings are the defaults, except for a webhook, one group per pod, updates about services after a second, and services
that are probed every second and may fail for a second. A *canary* is a service that fails and a pod whose image cannot
be pulled, both every {every:g} s; its latency is from the failure until the webhook has the message. Agent and daemon
run at a raised priority where permitted, because the attackers share their cores.
"""


def report(course: SiegeCourse, goals: Sequence[Goal]) -> Report:
    """Markdown report of a siege."""
    how = HOW.format(
        version=__version__, agent=AGENT_BYTES // MIB, daemon=DAEMON_BYTES // MIB, kind=course.limit_kind,
        descriptors=DESCRIPTORS, minutes=course.minutes, idle=IDLE, dripping=DRIPPING, path=PATH_CHARS, pods=PODS,
        rate=PODS_PER_SECOND, every=EVERY_SECONDS,
    )  # fmt: skip
    attacks = [(name.replace("_", " "), f"{count:,}") for name, count in sorted(course.attacks.items())]
    return Report("siege", f"{course.minutes:g} minutes", how, goals, [("Attacks", ("attack", "times"), attacks)])


def write(course: SiegeCourse, goals: Sequence[Goal], directory: Path = HERE) -> None:
    """Write both files."""
    figures = {goal.key: goal.value for goal in goals} | {"memory_limit": course.limit_kind, "attacks": course.attacks}
    (directory / "siege.json").write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    head = "# Siege\n\nWritten by `make siege`; do not edit.\n\n"
    (directory / "SIEGE.md").write_text(f"{head}{section(report(course, goals))}")
