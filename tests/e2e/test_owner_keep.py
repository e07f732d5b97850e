"""An owner keeps an idle notebook with a phone: on real pods, with a stand-in for the WeCom group.

The four hours pass by moving the clock of agent and daemon.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cleaning import Account, Cleaner, Pods, cleaning
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until
from tests.support.local_token import local_headers
from tests.support.moved_clock import MovedClock
from tests.support.receivers.bots import WeComBot
from tests.web.browser.conftest import SCREENSHOTS, open_chromium
from tests.web.browser.owner_phone import keep_for, phone, wait_link

HOUR_SECONDS = 3600.0
NAME = "idle-gpus"
POLICY = {
    "kind": "gpus", "name": NAME, "mode": "enforce", "announce": "0s", "cron": "0 0 29 2 *",  # on demand
    "zombie_after": None, "idle_after": "10m", "notice": "2s",
}  # fmt: skip


@contextmanager
def cleaner_with(lab: Lab, kubeconfig: Path, directory: Path, robot: WeComBot, clock: MovedClock) -> Iterator[Cleaner]:
    """Agent and daemon with this clock."""
    more = {
        "alerts": {
            "receivers": [{"name": "group", "kind": "wecom", "url": robot.url}],
            "routes": [{"match": {"alertname": "~Cleanup.*"}, "receivers": ["group"]}],
            "language": "zh", "owners": {"zhang": {"wecom": "zhang.wei"}},
        },
        "gpu": {"stale_after": "5s", "settle": "3s", "terminating_grace": "5s", "idle_after": "2s"},
        "timezone": "Asia/Shanghai",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clock.environment.items():
            patch.setenv(name, value)
        with cleaning(lab, kubeconfig, directory, [POLICY], {}, more) as cleaner:
            for index in range(len(lab.gpu_ids)):
                cleaner.nvml.gpu(index, util=0)
            yield cleaner


def names(cleaner: Cleaner) -> list[str]:
    return [item.name for item in cleaner.plan(NAME).items]


def kept(cleaner: Cleaner) -> dict[str, tuple[str, str | None]]:
    """What the plan keeps: protection, and who keeps it and why."""
    return {item.name: (item.protection, item.detail) for item in cleaner.plan(NAME).kept}


def audited(directory: Path, cleaner: Cleaner) -> list[tuple[str, str, str, str]]:
    """Who, how, what and result of the audit log, oldest first."""
    ask = urllib.request.Request(f"{cleaner.page}/v1/audit", headers=local_headers(directory / "daemon"))
    with urllib.request.urlopen(ask, timeout=60) as answer:
        entries: list[dict[str, Any]] = json.load(answer)
    return [(one["who"], one["how"], one["what"], one["result"]) for one in reversed(entries)]


def test_a_notebook_is_kept_for_four_hours_on_a_phone_and_released_afterwards(lab: Lab, tmp_path: Path) -> None:
    with Scene(lab, "owner") as scene, WeComBot() as robot, open_chromium() as chromium:
        kubeconfig, pods = Account(scene).kubeconfig(lab.kubeconfig, tmp_path), Pods(lab, scene.name)
        clock = MovedClock(tmp_path / "clock")
        try:
            with cleaner_with(lab, kubeconfig, tmp_path, robot, clock) as cleaner:
                pod = pods.run("notebook", gpus=1, labels={"userName": "zhang"})
                full = f"{pod.metadata.namespace}/{pod.metadata.name}"
                cleaner.becomes(cleaner.card_of(pod).uuid or "", "idle-held")
                clock.ahead(0.25 * HOUR_SECONDS)
                wait_until(lambda: names(cleaner) == [full], 60, "the notebook has been idle for long enough")
                cleaner.run(NAME)
                link = wait_link(robot, full)
                with phone(chromium) as page:
                    page.goto(link)
                    assert pods.now(pod) is not None, "opening the link changes nothing"
                    assert names(cleaner) == [full]
                    assert page.get_by_role("button", name="立即释放").count() == 0, "it was posted to a group"
                    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
                    keep_for(page, link, "4 小时", "实验明早继续")
                    page.screenshot(path=SCREENSHOTS / "owner-keeps-notebook.png")
                assert kept(cleaner)[full] == ("kept", "zhang: 实验明早继续")
                assert audited(tmp_path, cleaner)[-1] == ("zhang", "link", "keep", "done")
                clock.ahead(4.15 * HOUR_SECONDS)
                wait_until(lambda: kept(cleaner).get(full, ("",))[0] == "kept", 60, "it is kept")
                assert cleaner.run(NAME).items == ()
                assert pods.now(pod) is not None
                clock.ahead(4.35 * HOUR_SECONDS)
                wait_until(lambda: names(cleaner) == [full], 60, "the time is over")

                def is_gone() -> bool:
                    cleaner.run(NAME)
                    return pods.now(pod) is None

                wait_until(is_gone, 90, "the notebook is released")
                entries = [entry for shown in cleaner.history(NAME) for entry in shown.items]
                assert [one.item.name for one in entries if one.outcome == "evicted"] == [full]
                found = audited(tmp_path, cleaner)
                assert found.count(("zhang", "link", "keep", "done")) == 1
                assert ("local", "machine", "cleanup-run", "done") in found
        finally:
            pods.clear()
