"""Execution of items: requests to agents, retries, and recovery."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError, AgentTarget
from monitor.cleanup.execute.executor import ExecutorDeps, RemoteItemExecutor, names_to_keep
from monitor.cleanup.execute.run_plan import ItemOutcome, ShutdownError
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.model import PodWrite, RegistryWrite
from monitor.cleanup.plan.references import References
from monitor.facts.actions import ActionFact, ActionRequest, ActionState, RemoveImage
from monitor.facts.image_names import reference_keys
from monitor.kube.pod_writes import PodState, WriteResult, WriteState
from tests.cleanup.support import NOW, item, run

A, B = "a" * 64, "b" * 64


class Agent(ActionClient):
    """Answers as configured, and records the requests."""

    def __init__(self, *answers: Exception | ActionFact | None) -> None:
        self._answers = list(answers)
        self.requests: list[ActionRequest] = []
        self.awaited: list[str] = []

    def submit(self, _target: AgentTarget, request: ActionRequest) -> ActionFact:
        self.requests.append(request)
        return self._next()

    def finish(self, _target: AgentTarget, started: ActionFact, *_: Any) -> ActionFact:
        self.awaited.append(started.id)
        return self._next()

    def _next(self) -> ActionFact:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer or fact("running")


def fact(state: str = "done", **more: Any) -> ActionFact:
    return ActionFact(id="act-1", kind="remove-image", state=ActionState(state), started_at=1.0, **more)


class Pods:
    """Pod writes with configured answers."""

    def __init__(self, written: WriteResult | None = None, state: PodState | None = None) -> None:
        self.written, self.state = written, state
        self.calls: list[tuple[Any, ...]] = []

    def evict(self, *given: str) -> Any:
        self.calls.append(("evict", *given))
        return self.written

    def delete(self, *given: str, force: bool) -> Any:
        self.calls.append(("force" if force else "delete", *given))
        return self.written

    def look(self, *_: str) -> PodState | None:
        return self.state


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CleanupJournal]:
    journal = CleanupJournal(str(tmp_path / "cleanup.db"))
    yield journal
    journal.close()


def executor(
    journal: CleanupJournal, agent: Agent | None = None, stopping: threading.Event | None = None, **deps: Any
) -> RemoteItemExecutor:
    given: dict[str, Any] = {
        "target": lambda node: AgentTarget(node, "127.0.0.1:1"),
        "references": lambda _: References({}),
        "recheck": lambda *_: None,
    }
    return RemoteItemExecutor(
        agent or Agent(), ExecutorDeps(**(given | deps)), journal, stopping or threading.Event(), lambda: NOW
    )


def test_the_request_for_an_image(journal: CleanupJournal) -> None:
    agent = Agent(None, fact(outcome="removed", freed_bytes=7))
    needed = (
        reference_keys("lab/i1:2")
        | reference_keys("other/x:1")
        | reference_keys(f"other/y@sha256:{A}")
        | reference_keys(B)
    )
    done = executor(
        journal, agent, references=lambda node: References(dict.fromkeys(needed, f"Pod on {node}"))
    ).execute(run(), item(1), "act-1")
    assert done == ItemOutcome(ItemState.DONE, "removed", None, 7)
    (request,) = agent.requests
    assert isinstance(request.action, RemoveImage)
    assert set(request.action.keep_names) == {"docker.io/lab/i1:2", f"sha256:{A}", f"sha256:{B}"}
    assert (request.id, request.plan, request.policy) == ("act-1", "run-1", "p")
    assert 0 < request.expires_at - request.issued_at <= 300
    assert names_to_keep(References({}), frozenset()) == ()


@pytest.mark.parametrize(
    ("name", "deps", "expected"),
    [
        (
            "a pod names it now",
            {"references": lambda _: References(dict.fromkeys(reference_keys("lab/i1:1"), "Pod t/p"))},
            ItemOutcome(ItemState.REFUSED, "needed", "Pod t/p"),
        ),
        (
            "the references are unknown",
            {"references": lambda _: References({}, ("jobs.batch",))},
            ItemOutcome(ItemState.REFUSED, "unknown", "the cluster cannot list jobs.batch"),
        ),
        ("it is protected by now", {"recheck": lambda *_: "busy"}, ItemOutcome(ItemState.REFUSED, "busy")),
        (
            "no agent",
            {"target": lambda _: None},
            ItemOutcome(ItemState.FAILED, "no-agent", "the agent of n1 is unknown"),
        ),
    ],
)
def test_an_agent_is_not_even_asked(
    journal: CleanupJournal, name: str, deps: dict[str, Any], expected: ItemOutcome
) -> None:
    agent = Agent()
    assert executor(journal, agent, **deps).execute(run(), item(1), "act-1") == expected
    assert agent.requests == []


def test_one_that_is_too_busy_is_asked_again_under_the_same_id(journal: CleanupJournal) -> None:
    busy = AgentRefusesError("too-many", "wait", 0.01)
    agent = Agent(busy, busy, None, fact(outcome="removed"))
    assert executor(journal, agent).execute(run(), item(1), "act-1").code == "removed"
    assert [request.id for request in agent.requests] == ["act-1"] * 3
    agent = Agent(*[busy] * 9)
    assert executor(journal, agent).execute(run(), item(1), "act-1").state is ItemState.LATER


def test_what_was_lost_on_the_way_is_asked_for_and_never_sent_again(journal: CleanupJournal) -> None:
    agent = Agent(AgentSilentError("broke off"), fact(outcome="removed"))
    assert executor(journal, agent).execute(run(), item(1), "act-1").code == "removed"
    assert (len(agent.requests), agent.awaited) == (1, ["act-1"])
    agent = Agent(AgentSilentError("broke off"), AgentSilentError("gone"))
    assert executor(journal, agent).execute(run(), item(1), "act-1") == ItemOutcome(ItemState.FAILED, "lost", "gone")
    assert len(agent.requests) == 1


@pytest.mark.parametrize("word", ["token", "disabled", "replayed", "expired", "malformed"])
def test_a_refusal_is_a_failure(journal: CleanupJournal, word: str) -> None:
    agent = Agent(AgentRefusesError(word, "no"))
    assert executor(journal, agent).execute(run(), item(1), "act-1") == ItemOutcome(ItemState.FAILED, word, "no")


def test_a_pod_that_is_starting_is_no_lasting_refusal(journal: CleanupJournal) -> None:
    agent = Agent(None, fact("refused", outcome="starting", message="pod lab/a is starting"))
    done = executor(journal, agent).execute(run(), item(1), "act-1")
    assert done == ItemOutcome(ItemState.LATER, "starting", "pod lab/a is starting")
    agent = Agent(None, fact("refused", outcome="in-use"))
    assert executor(journal, agent).execute(run(), item(1), "act-1").state is ItemState.REFUSED


def test_stopped_while_waiting_nothing_is_said_of_it(journal: CleanupJournal) -> None:
    stopping = threading.Event()
    stopping.set()
    agent = Agent(None, AgentSilentError("the daemon is stopping"))
    with pytest.raises(ShutdownError):
        executor(journal, agent, stopping).execute(run(), item(1), "act-1")


def test_whatever_breaks_is_what_became_of_it(journal: CleanupJournal) -> None:
    def broken(*_: Any) -> str | None:
        raise RuntimeError("odd")

    assert executor(journal, recheck=broken).execute(run(), item(1), "act-1") == ItemOutcome(
        ItemState.FAILED, "failed", "RuntimeError: odd"
    )


def pod(how: str) -> Any:
    return replace(item(1), act=PodWrite(namespace="t", name="p", uid="u1", how=how))


@pytest.mark.parametrize("how", ["evict", "delete", "force"])
def test_pods(journal: CleanupJournal, how: str) -> None:
    pods = Pods(WriteResult(WriteState.LATER, "budget", "no"))
    assert executor(journal, pods=pods).execute(run(), pod(how), "act-1") == ItemOutcome(
        ItemState.LATER, "budget", "no"
    )
    assert pods.calls == [(how, "t", "p", "u1")]
    assert journal.first_evictions() == (
        {pod(how).id: NOW} if how == "evict" else {}
    )  # `delete_after` counts from here
    assert executor(journal).execute(run(), pod(how), "act-1").code == "failed"


@pytest.mark.parametrize(
    ("name", "how", "state", "became"),
    [
        ("gone", "evict", None, (ItemState.DONE, "gone")),
        ("another of that name", "delete", PodState("u2", deleting=False), (ItemState.DONE, "gone")),
        ("on its way", "evict", PodState("u1", deleting=True), (ItemState.DONE, "deleted")),
        ("it was on its way before", "force", PodState("u1", deleting=True), (ItemState.FAILED, "lost")),
        ("still there", "evict", PodState("u1", deleting=False), (ItemState.FAILED, "lost")),
    ],
)
def test_what_became_of_a_pod(
    journal: CleanupJournal, name: str, how: str, state: PodState | None, became: tuple[ItemState, str]
) -> None:
    entry = JournalEntry(item=pod(how), place=0, state=ItemState.INTENDED, request="act-1", intended_at=NOW)
    done = executor(journal, pods=Pods(state=state)).recover(entry)
    assert (done.state, done.code) == became


def test_a_registry_that_is_not_there_any_more(journal: CleanupJournal) -> None:
    act = RegistryWrite(registry="https://harbor.lab", what="gc", dry_run=False)
    assert executor(journal).execute(run(), replace(item(1), act=act), "act-1").state is ItemState.FAILED
    entry = JournalEntry(
        item=replace(item(1), act=act), place=0, state=ItemState.INTENDED, request="act-1", intended_at=NOW
    )
    assert executor(journal).recover(entry).code == "lost"
