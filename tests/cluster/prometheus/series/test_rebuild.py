"""A snapshot that is rendered, scraped and rebuilt is unchanged, except for fields that no code reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics
from monitor.cluster.prometheus.series.rebuild import (
    FAST_FAMILIES,
    OWN_LABELS,
    SLOW_FAMILIES,
    Sample,
    SeriesError,
    merge,
    rebuild,
)
from monitor.facts import ContainerFact, GpuFact, GpuInventory, ImageCacheFact, ImageFact, NodeSnapshot
from tests.cluster.prometheus.series.any_facts import NOT_CARRIED, snapshots
from tests.support.snapshots import AT, full_snapshot


def scraped(snapshot: NodeSnapshot) -> list[Sample]:
    """Samples of a scrape of this agent. Stores drop empty labels."""
    families = text_string_to_metric_families(AgentMetrics().render(snapshot).decode())
    return [
        (sample.name, {name: value for name, value in sample.labels.items() if value}, sample.value)
        for family in families
        for sample in family.samples
    ]


def in_any_order(value: Any) -> Any:
    """Fact as plain values in a canonical order, since series have none."""
    if isinstance(value, msgspec.Struct):
        return in_any_order(msgspec.to_builtins(value))
    if isinstance(value, dict):
        return {key: in_any_order(each) for key, each in value.items()}
    return sorted(map(in_any_order, value), key=repr) if isinstance(value, list | tuple) else value


def lost(value: Any) -> Any:
    """Fact without the fields that are not carried."""
    if isinstance(value, tuple):
        return tuple(map(lost, value))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {field.name: field for field in msgspec.structs.fields(value)}
    dropped = NOT_CARRIED.get(type(value), ())
    kept = {name: lost(getattr(value, name)) for name in fields if name not in dropped}
    return type(value)(**kept)


def test_the_full_snapshot_comes_back() -> None:
    assert in_any_order(rebuild(scraped(full_snapshot()))) == in_any_order(lost(full_snapshot()))


PARTS = [name for name in NodeSnapshot.__struct_fields__ if name not in ("node", "at", "agent_version", "schema")]


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_part_comes_back(part: str, data: st.DataObject) -> None:
    snapshot = data.draw(snapshots(part))
    assert in_any_order(rebuild(scraped(snapshot))) == in_any_order(snapshot)


@pytest.mark.parametrize("snapshot", [NodeSnapshot(node="n", at=AT, agent_version="1")])
def test_what_is_not_known_is_not_made_up(snapshot: NodeSnapshot) -> None:
    assert rebuild(scraped(snapshot)) == snapshot


def test_what_is_known_to_be_empty_is_not_unknown() -> None:
    kinds = {field.name: str(field.type) for field in msgspec.structs.fields(NodeSnapshot)}
    many: dict[str, Any] = {name: () for name, kind in kinds.items() if "tuple" in kind}
    empty = NodeSnapshot(node="n", at=AT, agent_version="1", gpu=GpuInventory(gpus=()), **many)
    assert rebuild(scraped(empty)) == empty


def test_cards_come_in_their_order_and_an_image_under_its_first_name() -> None:
    cards = tuple(GpuFact(index=index, uuid=f"GPU-{index}") for index in range(12))
    image = ImageFact(id="sha256:1", names=("z:1", "a:1"))
    snapshot = NodeSnapshot(
        node="n", at=AT, agent_version="1", gpu=GpuInventory(gpus=cards),
        images=(ImageCacheFact(runtime="docker", images=(image,)),),
    )  # fmt: skip
    samples = sorted(scraped(snapshot), key=lambda sample: str(sample[1]))  # in the order of stores
    assert rebuild(samples) == snapshot


def test_a_container_outside_of_a_pod_is_of_no_pod() -> None:
    outside = ContainerFact(id="c1", runtime="docker", state="running", name="web")
    snapshot = NodeSnapshot(node="n", at=AT, agent_version="1", containers=(outside,))
    assert rebuild(scraped(snapshot)) == snapshot


def carried(value: Any) -> Iterator[tuple[type, str]]:
    """Fields with a value of a fact and of its nested facts."""
    if isinstance(value, tuple):
        for each in value:
            yield from carried(each)
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            found = getattr(value, field.name)
            if found != field.default and found not in ((), {}):
                yield type(value), field.name
            yield from carried(found)


def test_the_list_of_what_is_not_carried_is_as_short_as_it_can_be() -> None:
    """Fields that are carried must not be on the list, and fields on the list must exist."""
    back = set(carried(rebuild(scraped(full_snapshot()))))
    listed = {(kind, name) for kind, names in NOT_CARRIED.items() for name in names}
    assert not back & listed
    assert all(name in kind.__struct_fields__ for kind, name in listed)
    assert set(carried(full_snapshot())) - back <= listed


def test_only_series_that_there_are_are_asked_for() -> None:
    """A family or label of a table that no agent exposes would be queried in vain."""
    samples = scraped(full_snapshot())
    names = {sample[0] for sample in samples}
    more = {"gpuwarden_image_name_info"}  # the full snapshot's image has one name
    assert {*FAST_FAMILIES, *SLOW_FAMILIES} - names == more
    assert OWN_LABELS - {label for sample in samples for label in sample[1]} == set()


def test_the_slow_parts_come_from_their_own_answer() -> None:
    full = full_snapshot()
    samples = scraped(full)
    fast = rebuild(sample for sample in samples if sample[0] in FAST_FAMILIES)
    slow = rebuild(sample for sample in samples if sample[0] in SLOW_FAMILIES)
    assert in_any_order(merge(fast, slow)) == in_any_order(lost(full))
    assert merge(fast, None).images is None
    gone = msgspec.structs.replace(fast, images=None)
    assert merge(gone, slow).images is None


def test_a_thing_of_which_half_is_missing_is_left_out() -> None:
    samples = [sample for sample in scraped(full_snapshot()) if sample[0] != "gpuwarden_mount_state_since_seconds"]
    assert rebuild(samples).mounts == ()
    without = [sample for sample in scraped(full_snapshot()) if sample[0] != "gpuwarden_gpu_row_remap_pending"]
    gpu = rebuild(without).gpu
    assert gpu is not None
    assert gpu.gpus[0].row_remaps is None
    assert gpu.gpus[0].ecc is not None


def test_without_the_agents_own_series_there_is_no_snapshot() -> None:
    with pytest.raises(SeriesError, match="make no snapshot"):
        rebuild([("gpuwarden_gpu_lost", {"gpu": "0"}, 0.0)])


def test_series_of_a_newer_agent_are_passed_over() -> None:
    new = ("gpuwarden_gpu_flux_ratio", {"gpu": "0"}, 1.0)
    assert rebuild([*scraped(full_snapshot()), new]) == rebuild(scraped(full_snapshot()))
