"""The table of results: a row per platform, a column per step of the scenario."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.e2e.platforms.adapter import Adapter
from tests.lab.modern.build import CONTAINERD, KUBERNETES

FILE = Path(__file__).parents[3] / "bench" / "PLATFORMS.md"
# Tests and the step that each proves.
STEPS = {
    "test_the_pods_of_a_job_have_their_owner": "submitted, owner known",
    "test_why_a_job_waits": "waits, and why",
    "test_a_failed_pull_is_reported": "failed pull",
    "test_a_zombie_is_released": "zombie released",
    "test_a_finished_job_is_gone": "ended, gone",
}
NOT_RUN = "not run"
_CASE = re.compile(r"(?P<test>\w+)\[(?P<platform>[^\]]+)\]")
_HEAD = """\
# Job platforms

Written by `make e2e-platforms`; do not edit.

{date}, {machine}, Kubernetes {kubernetes}, containerd {containerd}.

Each platform runs in the lab, built from its Go module, with its own resource definitions, a real scheduler and a real
kubelet; only the GPU driver is simulated. The steps are the same for all:

1. A job of two pods is submitted as users of the platform do. User, job, role, index and queue of each pod are known,
   as far as the platform defines them.
2. A second job has to wait. `gpuwarden why` gives the reason in both languages, with the queue and the numbers.
3. The image of a third one does not exist. `image-pull` names the job.
4. The first job is deleted while the kubelet is down, and a process of it stays on its GPU. It is reported as a zombie
   and released.
5. A fourth one ends. Its pods are removed, nothing creates them again, and all GPUs are free.

A cell is the time that the step took, or what became of it.

"""


def results(report: Path) -> dict[tuple[str, str], str]:
    """What became of each platform and step, from pytest's report in JUnit's format."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        match = _CASE.fullmatch(case.get("name", ""))
        if match is not None and match["test"] in STEPS:
            found[match["platform"], match["test"]] = _outcome(case)
    return found


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "**failed**"
    return NOT_RUN if case.find("skipped") is not None else f"{float(case.get('time', 0)):.0f} s"


def page(adapters: Mapping[str, type[Adapter]], found: Mapping[tuple[str, str], str]) -> str:
    """The page with the table."""
    machine = f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    versions = {"kubernetes": KUBERNETES.version(), "containerd": CONTAINERD.version()}
    head = _HEAD.format(date=time.strftime("%Y-%m-%d"), machine=machine, **versions)
    titles = ["platform", "version", *STEPS.values(), "not run of it"]
    rows = [titles, ["---"] * len(titles), *(_row(name, kind, found) for name, kind in adapters.items())]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(name: str, kind: type[Adapter], found: Mapping[tuple[str, str], str]) -> list[str]:
    versions = ", ".join(platform.module.version() for platform in kind.platforms) or "no public code"
    return [name, versions, *(found.get((name, test), NOT_RUN) for test in STEPS), kind.left_out]
