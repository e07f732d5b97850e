"""The scrape: golden text, the linter of Prometheus, and what a scrape must never do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import GROUPS, AgentMetrics
from monitor.facts import NodeSnapshot, PodDeviceFact
from tests.support import need
from tests.support.snapshots import AT, TRAINER, full_snapshot

GOLDEN = Path(__file__).parents[2] / "fixtures" / "metrics" / "full.prom"


def scrape(snapshot: NodeSnapshot) -> str:
    return AgentMetrics().render(snapshot).decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_full_snapshot_gives_the_golden_scrape() -> None:
    text = scrape(full_snapshot())
    if os.environ.get("UPDATE_GOLDEN"):  # review the diff before committing it
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_promtool_finds_nothing_to_object_to() -> None:
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=GOLDEN.read_bytes(), capture_output=True, timeout=300, check=False
    )
    assert (check.returncode, check.stdout.decode(), check.stderr.decode()) == (0, "", "")


def test_a_device_that_two_claims_of_a_container_share_is_one_series() -> None:
    """Prometheus rejects a scrape with a series that appears twice."""
    held = PodDeviceFact(
        resource="gpu.nvidia.com", device_id="gpu-0", pool="n1", claim="one", source="pod-resources", pod_name="train",
        namespace="team", container="train",
    )  # fmt: skip
    devices = (held, msgspec.structs.replace(held, claim="two"))
    text = scrape(msgspec.structs.replace(full_snapshot(), pod_devices=devices))
    assert text.count("gpuwarden_gpu_allocation_info{") == 1


def test_no_series_appears_twice() -> None:
    text = scrape(full_snapshot())
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))


def test_a_node_of_which_nothing_is_known_has_no_zeroes() -> None:
    text = scrape(NodeSnapshot(node="n", at=AT, agent_version="0.1.0"))
    assert {name for name, _ in samples(text)} == {"gpuwarden_agent_info", "gpuwarden_snapshot_time_seconds"}


@pytest.mark.parametrize(
    "part", sorted(set(NodeSnapshot.__struct_fields__) - {"node", "at", "agent_version", "schema"})
)
def test_a_part_that_is_gone_takes_its_series_with_it(part: str) -> None:
    """Each part of the snapshot appears in the scrape, and disappears when it becomes unknown."""
    exposition = AgentMetrics()
    before = exposition.render(full_snapshot())
    gone = msgspec.structs.replace(full_snapshot(), **{part: () if part == "collectors" else None})
    assert len(samples(exposition.render(gone).decode())) <= len(samples(before.decode()))
    assert exposition.render(gone) != before


def test_series_of_an_ended_container_go() -> None:
    ended = msgspec.structs.replace(
        full_snapshot(),
        containers=(),
        container_usage=(),
        shm=(),
        logs=(),
        gpu_processes=(),
        runtime_usage=(),
        images=(),
    )
    assert TRAINER in scrape(full_snapshot())
    assert TRAINER not in scrape(ended)


def test_a_name_that_is_not_utf8_is_shown_and_breaks_nothing() -> None:
    snapshot = full_snapshot()
    assert snapshot.disk is not None
    odd = msgspec.structs.replace(snapshot.disk[0], mount=os.fsdecode(b"/mnt/\xff\xfe"))
    text = scrape(msgspec.structs.replace(snapshot, disk=(odd,)))
    mounts = {dict(labels).get("mount") for name, labels in samples(text) if name == "gpuwarden_disk_size_bytes"}
    assert mounts == {r"/mnt/\udcff\udcfe"}


def test_a_piece_that_cannot_be_rendered_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("broken on purpose")

    broken = msgspec.structs.replace(full_snapshot(), images=(Unreadable(),))
    found = {name for name, _ in samples(scrape(broken))}
    assert "gpuwarden_exposition_images_failed" in found
    assert {"gpuwarden_gpu_utilization_ratio", "gpuwarden_disk_size_bytes"} <= found
    assert "cannot render the metrics of images" in caplog.text


def test_only_what_changed_is_rendered_again() -> None:
    exposition, snapshot = AgentMetrics(), full_snapshot()
    exposition.render(snapshot)
    kept = {render: text for render, (_, text) in exposition._rendered.items()}
    assert snapshot.host is not None
    exposition.render(msgspec.structs.replace(snapshot, host=msgspec.structs.replace(snapshot.host, load1=1.0)))
    again = {render.__module__ for render, (_, text) in exposition._rendered.items() if text is not kept[render]}
    assert again == {"monitor.agent.metrics.host", "monitor.agent.metrics.snapshot"}


def test_each_piece_names_every_part_that_it_reads() -> None:
    """A part that is read but not listed would never be updated in the scrape."""
    for parts, render in GROUPS:
        blank: dict[str, object] = {
            part: None for part in NodeSnapshot.__struct_fields__ if part not in (*parts, "node", "agent_version")
        }
        blank |= {"schema": 1} | ({} if "collectors" in parts else {"collectors": ()})
        blank |= {} if "at" in parts else {"at": 0.0}
        only_named = msgspec.structs.replace(full_snapshot(), **blank)
        full = [(m.name, m.samples) for m in render(full_snapshot())]
        assert [(m.name, m.samples) for m in render(only_named)] == full, render.__module__
