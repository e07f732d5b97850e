"""Lease decisions by each replica's own clock: tables, and replicas under random delays and failures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.leader.lease import (
    Lease,
    LeaseClaim,
    LeaseStep,
    ObservedLease,
    WireLease,
    decide_step,
    held_body,
    lease_of,
    observe,
    released_body,
)
from monitor.leader.lease_api import LeaseConflictError, LeaseError
from monitor.leader.lease_keeper import LeaseKeeper

ME = LeaseClaim("me", 15.0)


def lease(holder: str | None, version: str = "1", seconds: int | None = 15, **more: Any) -> Lease:
    return Lease(version, holder, seconds, transitions=3, annotations={}, body={}, **more)


@pytest.mark.parametrize(
    ("name", "observed", "now", "step", "wait"),
    [
        ("it does not exist", ObservedLease(None, 0.0), 0.0, LeaseStep.CREATE, 0.0),
        ("we hold it", ObservedLease(lease("me"), 0.0), 999.0, LeaseStep.RENEW, 0.0),
        ("it was released", ObservedLease(lease(None), 0.0), 0.0, LeaseStep.TAKE, 0.0),
        ("another replica holds it", ObservedLease(lease("you"), 100.0), 100.0, LeaseStep.WAIT, 3.0),
        ("another replica holds it, about to expire", ObservedLease(lease("you"), 100.0), 114.0, LeaseStep.WAIT, 1.0),
        ("another replica did not renew in time", ObservedLease(lease("you"), 100.0), 115.0, LeaseStep.TAKE, 0.0),
        (
            "another has it for longer than we would",
            ObservedLease(lease("you", seconds=60), 100.0),
            130.0,
            LeaseStep.WAIT,
            3.0,
        ),
        (
            "another has it for less than we would",
            ObservedLease(lease("you", seconds=1), 100.0),
            105.0,
            LeaseStep.WAIT,
            3.0,
        ),
    ],
)
def test_what_to_do(name: str, observed: ObservedLease, now: float, step: LeaseStep, wait: float) -> None:
    decision = decide_step(observed, ME, now)
    assert decision.step is step, name
    assert decision.wait == pytest.approx(wait), name


def test_one_that_was_written_to_is_seen_anew() -> None:
    first = observe(None, lease("you"), 10.0)
    assert observe(first, lease("you"), 12.0) == first
    assert observe(first, lease("you", version="2"), 12.0).since == 12.0
    assert observe(first, None, 12.0) == ObservedLease(None, 12.0)
    assert observe(ObservedLease(None, 1.0), None, 12.0).since == 1.0


def test_what_others_wrote_into_it_is_kept() -> None:
    body = {
        "metadata": {"name": "l", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"x": "y"}},
        "spec": {"holderIdentity": "you", "leaseTransitions": 4, "strategy": "OldestEmulationVersion"},
    }
    before = Lease("7", "you", 15, 4, {"x": "y"}, body)
    made = held_body(before, "l", ME, 1_763_260_000.25, {"x": "y", "mine": "1"})
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["resourceVersion"] == "7"
    assert made["metadata"]["annotations"] == {"x": "y", "mine": "1"}
    assert made["spec"] == {
        "holderIdentity": "me", "leaseTransitions": 5, "strategy": "OldestEmulationVersion",
        "leaseDurationSeconds": 15, "acquireTime": "2025-11-16T02:26:40.250000Z",
        "renewTime": "2025-11-16T02:26:40.250000Z",
    }  # fmt: skip
    assert "holderIdentity" not in released_body(Lease("8", "me", 15, 5, {}, made))["spec"]
    assert body["spec"]["holderIdentity"] == "you"  # type: ignore[index]  # any JSON


def test_one_that_says_little_is_nobodys() -> None:
    assert lease_of({}, WireLease()) == Lease("", None, None, 0, {}, {})


# Replicas under random delays and failures


class Simulation:
    """One Lease, real time, and replicas whose clocks run at different rates. Events are random."""

    def __init__(self, random: Random, rates: list[float], *, reliable: bool = False) -> None:
        self.random = random
        self.time = 0.0
        self.lease: Lease | None = None
        self._versions = itertools.count(1)
        self.replicas = [Replica(self, number, rate) for number, rate in enumerate(rates)]
        self.reliable = reliable

    def pass_time(self, most: float) -> None:
        self.time += self.random.uniform(0.0, most)

    def meanwhile(self) -> None:
        """Let time pass and other replicas act during a request."""
        if self.reliable:
            self.time += 0.01
            return
        self.pass_time(self.random.choice((0.01, 0.01, 1.0, 8.0)))
        for replica in self.replicas:
            if not replica.busy and self.random.randrange(4) == 0:
                replica.step()
        self.check()

    def check(self) -> None:
        acting = [replica.keeper.identity for replica in self.replicas if replica.keeper.holds()]
        assert len(acting) <= 1, f"at {self.time}: {acting}"

    def write(self, body: Mapping[str, Any], version: str | None) -> Lease:
        if (self.lease.version if self.lease is not None else None) != version:
            raise LeaseConflictError("conflict")
        spec, new_version = body["spec"], str(next(self._versions))
        made = {**body, "metadata": {**body["metadata"], "resourceVersion": new_version}}
        annotations = body["metadata"].get("annotations", {})
        self.lease = Lease(
            new_version, spec.get("holderIdentity"), spec["leaseDurationSeconds"], spec["leaseTransitions"],
            annotations, made,
        )  # fmt: skip
        return self.lease


@dataclass
class LossyStore:
    """Connection of one replica to the Lease: slow, and messages get lost."""

    simulation: Simulation
    namespace: str = "ops"
    name: str = "gpuwarden"

    def get(self) -> Lease | None:
        self._send()
        found = self.simulation.lease
        self._receive()
        return found

    def create(self, body: Mapping[str, Any]) -> Lease:
        return self._write(body, None)

    def replace(self, body: Mapping[str, Any]) -> Lease:
        return self._write(body, body["metadata"]["resourceVersion"])

    def _write(self, body: Mapping[str, Any], version: str | None) -> Lease:
        self._send()
        written = self.simulation.write(body, version)
        self._receive()
        return written

    def _send(self) -> None:
        self.simulation.meanwhile()
        self._may_fail("the request was lost")

    def _receive(self) -> None:
        self.simulation.meanwhile()
        self._may_fail("the reply was lost")

    def _may_fail(self, why: str) -> None:
        if not self.simulation.reliable and self.simulation.random.randrange(6) == 0:
            raise LeaseError(why)


@dataclass
class Replica:
    simulation: Simulation
    number: int
    rate: float
    busy: bool = False
    keeper: LeaseKeeper = field(init=False)

    def __post_init__(self) -> None:
        claim = LeaseClaim(f"replica-{self.number}", 15.0)
        offset = 1000.0 * self.number
        self.keeper = LeaseKeeper(
            LossyStore(self.simulation), claim, lambda: offset + self.simulation.time * self.rate, lambda: 1e9
        )

    def step(self) -> float:
        self.busy = True
        try:
            return self.keeper.step()
        finally:
            self.busy = False

    def write(self) -> None:
        self.busy = True
        try:
            self.keeper.write("note", lambda before: f"{before or ''}{self.number}")
        except LeaseError:
            assert not self.keeper.holds()
        finally:
            self.busy = False


RATES = st.lists(st.floats(0.85, 1.15), min_size=2, max_size=3)


@settings(max_examples=300, deadline=None)
@given(st.integers(0), RATES)
def test_never_two_act_at_the_same_time_and_in_the_end_somebody_does(seed: int, rates: list[float]) -> None:
    simulation = Simulation(Random(seed), rates)
    for _ in range(40):
        replica = simulation.random.choice(simulation.replicas)
        if simulation.random.randrange(5) == 0:
            replica.write()
        else:
            replica.step()
        simulation.check()
        simulation.pass_time(simulation.random.choice((0.5, 6.0, 16.0)))
        simulation.check()
    simulation.reliable = True
    began = simulation.time
    while not any(replica.keeper.holds() for replica in simulation.replicas):
        for replica in simulation.replicas:
            replica.step()
        simulation.time += 1.0
        assert simulation.time - began < 30, "no replica takes over"
        simulation.check()


@pytest.mark.parametrize("rates", [[1.0, 1.0], [1.15, 0.85], [0.85, 1.15]])
def test_another_takes_over_within_half_a_minute_of_the_last_sign_of_life(rates: list[float]) -> None:
    simulation = Simulation(Random(0), rates, reliable=True)
    first, second = simulation.replicas
    first.step()
    assert first.keeper.holds()
    waits = second.step()
    died = simulation.time
    while not second.keeper.holds():
        simulation.time += waits / second.rate
        waits = second.step()
        simulation.check()
    assert 10.0 < simulation.time - died < 19.0
    assert (first.keeper.term(), second.keeper.term()) == (None, 1)


def test_what_was_given_back_is_taken_at_once() -> None:
    simulation = Simulation(Random(0), [1.0, 1.0], reliable=True)
    first, second = simulation.replicas
    first.step()
    second.step()
    first.keeper.start()
    first.keeper.stop()
    assert not first.keeper.holds()
    second.step()
    assert second.keeper.holds()
    assert simulation.lease is not None
    assert simulation.lease.transitions == 1


def test_who_comes_back_after_a_pause_does_not_act_on_what_was_true_before() -> None:
    simulation = Simulation(Random(0), [1.0, 1.0], reliable=True)
    first, second = simulation.replicas
    first.step()
    simulation.time += 10.0  # less than the lease duration: the holder must stop, others may not start yet
    assert not first.keeper.holds()
    with pytest.raises(LeaseError):
        first.keeper.write("note", lambda _: "x")
    first.step()
    assert first.keeper.term() == 2
    first.keeper.write("note", lambda before: f"{before}!")
    second.step()
    assert second.keeper.annotations == {"note": "None!"}
    assert second.keeper.holder == "replica-0"


def test_a_conflict_means_that_it_is_lost() -> None:
    simulation = Simulation(Random(0), [1.0], reliable=True)
    (replica,) = simulation.replicas
    replica.step()
    assert simulation.lease is not None
    simulation.write(simulation.lease.body, simulation.lease.version)  # another client edits it
    with pytest.raises(LeaseConflictError):
        replica.keeper.write("note", lambda _: "x")
    assert replica.keeper.term() is None
    replica.step()
    assert replica.keeper.term() == 2
    assert replica.keeper.annotations == {}
