"""Who is told: whether they can be reached, and took a message, where one was sent."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, not_checked, ok, problem, warning

# What keeps a connection from being made; anything else is an `error`.
TROUBLES = ("dns", "refused", "timeout", "tls", "error")
_SAID = {"answer": "answer", "no-agents": "no-agents"}


@dataclass(frozen=True)
class Reached:
    """Somebody outside, by name; `host` is all that is ever shown of the address.

    `trouble` is one of TROUBLES; None if a connection was made.
    `unseen` if nothing says where it would go.
    """

    name: str
    host: str
    trouble: str | None = None
    why: str = ""
    unseen: bool = False


@dataclass(frozen=True)
class Sent:
    """What became of a message: the receiver's own answer, without secrets."""

    name: str
    ok: bool
    answer: str


@dataclass(frozen=True)
class ReceiverFacts:
    """The receivers, and what was sent to them, or why nothing could be sent."""

    reached: tuple[Reached, ...] = ()
    sent: tuple[Sent, ...] = ()
    not_sent: str | None = None


@dataclass(frozen=True)
class ServiceFacts:
    """Alertmanager, Prometheus and the like.

    Beside TROUBLES: `answer` if one answered, and not as it should; `no-agents` if Prometheus scrapes none.
    """

    services: tuple[Reached, ...] = ()


def judge(facts: ReceiverFacts) -> Verdicts:
    """Given the receivers, return who cannot be told."""
    if not facts.reached:
        return (warning("receivers.none"),)
    wrong = [
        problem(f"receivers.{each.trouble}", name=each.name, host=each.host, why=each.why)
        for each in facts.reached
        if each.trouble is not None
    ]
    wrong += [not_checked("receivers.unseen", name=each.name) for each in facts.reached if each.unseen]
    wrong += [problem("receivers.not-sent", name=each.name, why=each.answer) for each in facts.sent if not each.ok]
    if facts.not_sent is not None:
        wrong.append(problem("receivers.nobody-sent", why=facts.not_sent))
    if wrong:
        return tuple(wrong)
    names = ", ".join(each.name for each in facts.reached)
    return (ok("receivers.sent" if facts.sent else "receivers.ok", count=len(facts.reached), names=names),)


def judge_services(facts: ServiceFacts) -> Verdicts:
    """Given what else is asked, return what does not answer."""
    if not facts.services:
        return (not_checked("services.none"),)
    wrong = [
        problem(f"services.{_SAID.get(each.trouble, 'lost')}", name=each.name, host=each.host, why=each.why)
        for each in facts.services
        if each.trouble is not None
    ]
    return tuple(wrong) or (ok("services.ok", names=", ".join(each.name for each in facts.services)),)
