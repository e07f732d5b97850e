"""What `check-config` says about a good configuration."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from monitor.config.file import load
from monitor.config.root import Config
from monitor.config.summary import summary_lines

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC).timestamp()
WECOM = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=s3cret"
NIGHTLY = {"kind": "pods", "name": "nightly", "cron": "0 3 * * *"}
ALERTS = {"receivers": [WECOM]}

SCHEDULES: list[tuple[str, dict[str, Any], str]] = [
    ("in the zone of the daemon", {"cleanup": {"policies": [NIGHTLY]}},
     "Cleanup: nightly (pods, dry run), next run 2026-11-19 03:00 CST."),
    ("in a zone of its own", {"cleanup": {"policies": [NIGHTLY | {"timezone": "UTC"}]}},
     "Cleanup: nightly (pods, dry run), next run 2026-11-19 03:00 UTC."),
    ("at a high-water mark", {"cleanup": {"policies": [{"kind": "images", "name": "a", "mode": "enforce"}]}},
     "Cleanup: a (images, enforced), runs when a disk is fuller than 80%."),
    ("both", {"cleanup": {"policies": [{"kind": "images", "name": "a", "cron": "0 4 * * *"}]}},
     "Cleanup: a (images, dry run), next run 2026-11-19 04:00 CST, and when a disk is fuller than 80%."),
    ("a report",
     {"alerts": ALERTS, "report": {"cron": "0 9 * * mon"}}, "Report: to wecom, next one 2026-11-23 09:00 CST."),
    ("a report in a zone of its own",
     {"alerts": ALERTS, "report": {"cron": "0 9 * * mon", "timezone": "Europe/Berlin"}},
     "Report: to wecom, next one 2026-11-23 09:00 CET."),
    ("a report to no receiver", {"report": {"cron": "0 9 * * mon"}},
     "Report: not sent, because no receiver is configured."),
    ("a digest", {"alerts": ALERTS | {"digest": {"cron": "30 8 * * *"}}},
     "Digest of alerts: next one 2026-11-19 08:30 CST."),
    ("a window", {"alerts": ALERTS | {"maintenance": [{"cron": "0 2 * * 6", "duration": "2h"}]}},
     "Maintenance: next window 2026-11-21 02:00 CST, for 2 h."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "daemon", "expect"), SCHEDULES, ids=[row[0] for row in SCHEDULES])
def test_every_schedule_with_its_next_run(name: str, daemon: dict[str, Any], expect: str) -> None:
    config = Config.model_validate({"daemon": {"timezone": "Asia/Shanghai"} | daemon})
    assert expect in summary_lines(config, "en", NOW), name


def test_the_summary_names_what_counts_and_no_secret() -> None:
    environ = {"GPUWARDEN_AGENT__TOKEN": "s3cret", "GPUWARDEN_AGENT__NODE_NAME": "gpu-01"}
    environ |= {"GPUWARDEN_DAEMON__TIMEZONE": "Asia/Shanghai", "GPUWARDEN_DAEMON__ALERTS__RECEIVERS": WECOM}
    english, chinese = (summary_lines(load(None, environ), lang, NOW) for lang in ("en", "zh"))
    assert english == (
        "Time zone: Asia/Shanghai, where it is 2026-11-18 20:00 CST.",
        "Agent: node gpu-01, on 127.0.0.1:9835 with a token, 18 of 18 collectors, 0 mounts, 0 registries.",
        "Page: on 127.0.0.1:9836; log level info.",
        "Alerts: to wecom.",
        "Cleanup: no policy is configured.",
        "Report: not scheduled.",
    )
    assert chinese[0] == "时区：Asia/Shanghai，当地时间 2026-11-18 20:00 CST。"
    assert len(chinese) == len(english)


def test_a_policy_names_receivers_that_exist() -> None:
    cleanup = {"policies": [NIGHTLY | {"receivers": ["wecon"]}]}
    with pytest.raises(ValueError, match=r"nightly: 'wecon'.*did you mean 'wecom'"):
        Config.model_validate({"daemon": {"alerts": ALERTS, "cleanup": cleanup}})
