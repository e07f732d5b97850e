"""A weekly report of a small lab, including a user name with injection attempts."""

from __future__ import annotations

from monitor.alert.model import Alert, Phase
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.findings import Finding, Severity
from monitor.facts.prices import GpuPrices
from monitor.facts.text import Text
from monitor.report.buckets import DAY, HOUR, Bucket, By
from monitor.report.disk_use import DiskUse, DiskUseKind
from monitor.report.model import CleanedItem, Report, ReportInputs, make_report
from monitor.report.team import TeamReport, make_team_report

UNTIL = 1_763_260_000.0  # 2025-11-16 02:26:40 UTC
SINCE = UNTIL // HOUR * HOUR - 7 * DAY
GIB = 1 << 30
EVIL = "=cmd|' /C calc'!A0<script>alert(1)</script>"


A100, T4 = "NVIDIA A100-SXM4-80GB", "Tesla T4"
MODELS = {"gpu01": A100, "gpu02": A100, "gpu03": T4}
PRICES = GpuPrices("CNY", (("NVIDIA A100*", 12.5), ("NVIDIA*", 4.0)))


def bucket(node: str, user: str | None = None, queue: str | None = None, **gpu_hours: float) -> Bucket:
    seconds = {name: value * HOUR for name, value in gpu_hours.items()}
    return Bucket(hour=int(SINCE), node=node, user=user, queue=queue, model=MODELS[node], **seconds)


BUCKETS = (
    bucket("gpu01", "zhang", "nlp", allocated=812.5, used=690.25, measured=812.5),
    bucket("gpu02", "zhang", "nlp", allocated=100, used=20, measured=80, idle=40, zombie=12),
    bucket("gpu02", "li", "cv", allocated=400, used=360, measured=400),
    bucket("gpu03", "wang", "dev", allocated=168, idle=168, measured=168),
    bucket("gpu03", "chen", "cv", allocated=60, used=30, measured=60),
    bucket("gpu03", "zhao", "nlp", allocated=50),
    bucket("gpu03", EVIL, "nlp", allocated=1.5, used=1, measured=1.5),
    bucket("gpu01", free=300),
    bucket("gpu02", free=600, unknown=4, zombie=3),
    bucket("gpu03", free=700, faulty=168),
)

# A busy cluster that is half empty at night, and whose daemon stood still for four hours.
HOURS = tuple(
    Bucket(hour=int(SINCE) + number * HOUR, allocated=(24 if 8 <= number % 24 < 22 else 10) * HOUR, free=6 * HOUR)
    for number in range(7 * 24)
    if not 50 <= number < 54
)


def alert(rule: str, cause: str, fired_at: float, explained_by: str | None = None) -> Alert:
    finding = Finding(
        rule=rule, severity=Severity.WARNING, cause=cause, labels={"node": "gpu01"}, headline=Text(key="x"),
        explained_by=explained_by,
    )  # fmt: skip
    return Alert(
        fingerprint="f", finding=finding, phase=Phase.FIRING, first_seen_at=fired_at, seen_at=fired_at,
        fired_at=fired_at,
    )  # fmt: skip


def fired(rule: str, cause: str, at: float, **more: str) -> AlertEvent:
    return AlertEvent(at=at, what=AlertEventKind.FIRED, alert=alert(rule, cause, at, **more))


def resolved(rule: str, cause: str, at: float, after: float, **more: str) -> AlertEvent:
    return AlertEvent(at=at, what=AlertEventKind.RESOLVED, alert=alert(rule, cause, at - after, **more))


EVENTS = (
    fired("gpu-zombie", "pod-finished", UNTIL - 3000),
    resolved("disk-full", "images", UNTIL - 4000, 600),
    fired("disk-full", "images", UNTIL - 4600),
    resolved("disk-full", "images", UNTIL - 5000, 1200),
    fired("disk-full", "images", UNTIL - 6200),
    fired("image-pull", "dns", UNTIL - 6300, explained_by="registry-unreachable|node=gpu01"),
    resolved("node-down", "silent", SINCE + 60, 7200),
    fired("node-down", "silent", SINCE - 7140),
)
DISKS = (
    DiskUse(day=0, kind=DiskUseKind.DATASETS, node="nas-01", user="li", bytes=900 * GIB),
    DiskUse(day=0, kind=DiskUseKind.WRITABLE, node="gpu01", user="zhang", bytes=30 * GIB),
    DiskUse(day=0, kind=DiskUseKind.WRITABLE, node="gpu02", user="zhang", bytes=5 * GIB),
    DiskUse(day=0, kind=DiskUseKind.IMAGES, node="gpu01", bytes=400 * GIB),
)
CLEANED = (
    CleanedItem(at=UNTIL - 900, freed_bytes=120 * GIB, node="gpu01"),
    CleanedItem(at=UNTIL - 900, freed_bytes=20 * GIB, node="nas-01", user="li"),
    CleanedItem(at=SINCE - 1, freed_bytes=999 * GIB, node="gpu01"),
)


def report(
    by: By = "user", cleaned: tuple[CleanedItem, ...] | None = CLEANED, prices: GpuPrices | None = None
) -> Report:
    inputs = ReportInputs(
        buckets=BUCKETS, hours=HOURS, watched_seconds=UNTIL - SINCE - 3600, events=EVENTS, disks=DISKS, cleaned=cleaned,
        prices=prices,
    )  # fmt: skip
    return make_report(inputs, SINCE, UNTIL, by)


WEEK_OF_NLP = tuple(
    Bucket(hour=int(SINCE) + number * HOUR, queue=queue, model=model, allocated=busy * 4 * HOUR, used=busy * 3 * HOUR,
           measured=busy * 4 * HOUR, idle=(1 - busy) * HOUR, zombie=(number == 30) * 2 * HOUR)
    for number in range(7 * 24)
    for queue, model in (("nlp", A100), ("nlp-dev", T4))
    for busy in (1.0 if 8 <= number % 24 < 22 else 0.25,)
)  # fmt: skip


def digest(prices: GpuPrices | None = PRICES, timezone: str = "Asia/Shanghai") -> TeamReport:
    """The week of a team with two queues."""
    inputs = ReportInputs(buckets=WEEK_OF_NLP, events=EVENTS[:2], prices=prices)
    return make_team_report("nlp*", inputs, SINCE, UNTIL, timezone)


REPORT = report()
PRICED = report("queue", prices=PRICES)
