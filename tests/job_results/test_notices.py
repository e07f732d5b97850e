"""What the owner of a job reads about its end, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert.delivery.batching import merge
from monitor.alert.message.compose import compose
from monitor.alert.message.locale import Locale
from monitor.alert.model import JOB_RESULTS, Batch
from monitor.explain.keys import Key
from monitor.facts.findings import Severity
from monitor.facts.text import Text
from monitor.i18n import CATALOGS
from monitor.job_results.model import JobEnding, JobOutcome, Why
from monitor.job_results.notices import RULES, result_notifications

NOW = 1_763_260_000.0
OUT_OF_MEMORY = Why(
    cause="crash-out-of-memory",
    headline=Text(Key.CRASH_OUT_OF_MEMORY, {"container": "train"}),
    evidence=(Text(Key.LOG_SAYS, {"message": "Killed"}), Text(Key.MEMORY_LIMIT, {"limit": 2**36})),
    advice=(Text(Key.CRASH_OUT_OF_MEMORY_ADVICE, {"container": "train"}),),
)
DONE = Why(cause="done", headline=Text("job-finished.done"))
DELETED = Why(cause="deleted", headline=Text("job-stopped.deleted"))


def ending(outcome: JobOutcome, why: Why, **more: Any) -> JobEnding:
    fields: dict[str, Any] = {
        "id": "1234", "key": "team-a/bert", "namespace": "team-a", "job": "bert", "user": "zhang", "queue": "nlp",
        "pod": "bert-3", "node": "gpu-01", "started_at": NOW - 3 * 3600, "ended_at": NOW, "gpu_seconds": 8 * 3 * 3600.0,
    }  # fmt: skip
    return JobEnding(outcome=outcome, why=why, **(fields | more))


def message(given: JobEnding, lang: str, utilization: float | None = None) -> list[str]:
    """Lines of the message."""
    (notification,) = result_notifications(given, utilization, ("ops",), NOW + 5)
    batch = Batch(id="b", receiver="ops", notifications=(notification,), at=NOW + 5)
    composed = compose(batch, Locale(lang=lang, page="https://warden.lab"))
    assert composed.mentions == ("zhang",)
    return [composed.title, *("".join(span.text for span in line.spans) for line in composed.lines)]


def test_the_owner_of_a_distributed_job_reads_what_happened_and_what_to_do() -> None:
    given = ending(JobOutcome.FAILED, OUT_OF_MEMORY, count=8, others=7)
    assert message(given, "en", 0.71) == [
        "🟠 WARNING, notice - Job failed: bert",
        "Container train was killed because it exceeded its memory limit (OOMKilled).",
        "Where: namespace team-a",
        "When: 2025-11-15 23:26 UTC to 2025-11-16 02:26 UTC, lasted 3 h",
        "Affected: zhang · job bert",
        "Evidence: Its log says: Killed",
        "• It used 24 GPU hours, at 71% utilisation on average.",
        "• Of 8 pods, bert-3 on gpu-01 failed first; 7 others failed after it.",
        "To do: Raise limits.memory of train, or use less: smaller batches, fewer data loader workers.",
        "Details and silencing",
    ]
    assert message(given, "zh", 0.71) == [
        "🟠 【警告·通知】作业失败：bert",
        "容器 train 使用的内存超过上限，被系统杀死（OOMKilled）。",
        "位置：命名空间 team-a",
        "时间：2025-11-15 23:26 UTC 至 2025-11-16 02:26 UTC，持续 3 小时",
        "影响：zhang · 作业 bert",
        "证据：它的日志：Killed",
        "• 共使用 24 GPU 小时，平均利用率 71%。",
        "• 共 8 个 Pod，gpu-01 上的 bert-3 最先失败，之后另有 7 个失败。",
        "处理：提高 train 的 limits.memory，或减少使用：减小 batch、减少数据加载进程。",
        "查看详情 / 静默",
    ]


@pytest.mark.parametrize(
    ("outcome", "why", "more", "expected"),
    [
        (JobOutcome.FINISHED, DONE, {"count": 2}, ["🔵 INFO, notice - Job finished: bert",
         "The job has finished without an error.", "Evidence: It used 24 GPU hours.", "• All 2 pods are done."]),
        (JobOutcome.FINISHED, DONE, {"gpu_seconds": None}, ["The job has finished without an error."]),
        (JobOutcome.STOPPED, DELETED, {}, ["🟠 WARNING, notice - Job stopped: bert",
         "It was deleted before it finished."]),
        (JobOutcome.STOPPED, DELETED, {"count": 3}, ["• Of 3 pods, bert-3 on gpu-01 was the first."]),
    ],
)  # fmt: skip
def test_a_message_contains(outcome: JobOutcome, why: Why, more: dict[str, Any], expected: list[str]) -> None:
    found = message(ending(outcome, why, **more), "en")
    assert [line for line in expected if line not in found] == []
    assert any("GPU hour" in line for line in found) == ("gpu_seconds" not in more)


def test_a_job_that_does_not_start_has_no_end() -> None:
    given = ending(JobOutcome.NOT_STARTED, OUT_OF_MEMORY, started_at=None, gpu_seconds=None)
    lines = message(given, "en")
    assert lines[0] == "🟠 WARNING, notice - Job does not start: bert"
    assert not any(line.startswith("When: ") for line in lines)


def test_one_notification_per_receiver_has_an_id_that_a_repetition_keeps() -> None:
    given = ending(JobOutcome.FINISHED, DONE)
    first = result_notifications(given, None, ("ops", "chat"), NOW)
    again = result_notifications(given, 0.5, ("ops", "chat"), NOW + 60)
    assert [each.id for each in first] == [each.id for each in again]
    assert len({each.id for each in first}) == 2
    assert {each.severity for each in first} == {Severity.INFO}
    assert first[0].page == "why?q=team-a%2Fbert-3"


def test_the_rules_are_those_that_alerts_know_as_job_results() -> None:
    assert frozenset(RULES) == JOB_RESULTS


@pytest.mark.parametrize("lang", CATALOGS)
@pytest.mark.parametrize("rule", RULES)
def test_every_outcome_has_a_title(lang: str, rule: str) -> None:
    assert CATALOGS[lang][f"rule.{rule}"]


def test_the_digest_of_an_owner_names_each_job() -> None:
    endings = [ending(JobOutcome.FINISHED, DONE, id="1"), ending(JobOutcome.FINISHED, DONE, id="2", job="vit")]
    first, second = (result_notifications(each, None, ("ops",), NOW)[0] for each in endings)
    waiting = [replace(each, group="owner/zhang", not_before=NOW + 3600) for each in (first, second)]
    batch = Batch(id="b", receiver="ops", notifications=(merge(*waiting),), at=NOW + 3600)
    composed = compose(batch, Locale(lang="en"))
    lines = ["".join(span.text for span in line.spans) for line in composed.lines]
    assert composed.title == "🔵 INFO, notice - Job finished (2): team-a"
    assert lines[:2] == [
        "• bert: The job has finished without an error. (took 3 h)",
        "• vit: The job has finished without an error. (took 3 h)",
    ]
    assert not any("late" in line for line in lines)
