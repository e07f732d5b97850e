"""What the page behind the link of a notice shows: the object, who keeps it, and the possible answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.access.principal import Principal
from monitor.base.localtime import form_minute, local_minute, parse_form_minute
from monitor.cleanup.model import PodWrite
from monitor.cleanup.owner_answers import OwnerQuestion
from monitor.cleanup.plan.keeps import AnswerKind
from monitor.facts.actions import KillProcess
from monitor.i18n import Value, say
from monitor.i18n.figures import duration
from monitor.i18n.notes import sentence

MINUTE_SECONDS, HOUR_SECONDS, DAY_SECONDS = 60.0, 3600.0, 86400.0
CHOICES_SECONDS = (4 * HOUR_SECONDS, DAY_SECONDS, 3 * DAY_SECONDS)
UNTIL = "until"  # the choice of a time


@dataclass(frozen=True)
class TimeChoice:
    """The field for a time: the earliest, latest and suggested one, in a time zone."""

    earliest: str
    latest: str
    suggested: str
    timezone: str


@dataclass(frozen=True)
class KeepLimits:
    """What an owner may choose: from `now`, for at most `max_seconds`, in a time zone."""

    now: float
    max_seconds: float
    timezone: str

    @property
    def choices(self) -> tuple[float, ...]:
        return (*(seconds for seconds in CHOICES_SECONDS if seconds < self.max_seconds), self.max_seconds)

    @property
    def time_choice(self) -> TimeChoice:
        offsets = (MINUTE_SECONDS, self.max_seconds, min(DAY_SECONDS, self.max_seconds))
        earliest, latest, suggested = (form_minute(self.now + seconds, self.timezone) for seconds in offsets)
        return TimeChoice(earliest, latest, suggested, self.timezone)

    def seconds(self, choice: str, until: str) -> float:
        """How long a form asks to keep something. Raise ValueError if that is not one of the choices."""
        if choice == UNTIL:
            seconds = parse_form_minute(until, self.timezone) - self.now
            if not 0 < seconds <= self.max_seconds:
                raise ValueError("not within the limits")
            return seconds
        if not choice.isascii() or not choice.isdecimal() or float(choice) not in self.choices:
            raise ValueError("not one of the choices")
        return float(choice)


@dataclass(frozen=True)
class OwnerView:
    """The page. Without `choices` nothing can be kept, and without `release` nothing be released."""

    title: str
    facts: list[str]
    about: str = ""
    problem: str = ""
    choices: list[tuple[str, str]] = field(default_factory=list)
    until: TimeChoice | None = None
    release: str = ""
    login: str = ""  # what a login is good for


def answer_view(
    question: OwnerQuestion, principal: Principal, limits: KeepLimits, lang: str, problem: str = ""
) -> OwnerView:
    """The page about an item."""
    about = say(lang, "keep.owner", {"name": question.link.owner})
    facts = _facts(question, limits.timezone, lang)
    if not question.open:
        nothing = question.answer is None
        title = say(lang, "keep.nothing", {}) if nothing else question.name
        return OwnerView(title, facts, about, problem)
    release, login = "", ""
    if question.may_release(principal):
        release = _release_text(question, lang)
    elif not principal.authenticated:
        login = say(lang, "keep.sign-in", {})
    choices = [(f"{seconds:.0f}", duration(seconds, lang)) for seconds in limits.choices]
    return OwnerView(
        title=say(lang, "keep.question" if not release else "keep.question-any", {"name": question.name}),
        facts=facts,
        about=about,
        problem=problem,
        choices=[*choices, (UNTIL, say(lang, "keep.until-time", {}))],
        until=limits.time_choice,
        release=release,
        login=login,
    )


def login_view(lang: str) -> OwnerView:
    """The page for those who have to sign in first, which says nothing about the object."""
    return OwnerView(
        say(lang, "keep.title", {}), [say(lang, "keep.needs-login", {})], login=say(lang, "keep.log-in", {})
    )


def refused_view(lang: str, *, expired: bool) -> OwnerView:
    """The page of a link that is not valid, or no longer."""
    title, ask = (say(lang, f"keep.{key}", {}) for key in ("expired" if expired else "invalid", "ask"))
    return OwnerView(title, [ask])


def _facts(question: OwnerQuestion, timezone: str, lang: str) -> list[str]:
    item, keep, answer = question.item, question.keep, question.answer
    released = answer is not None and answer.kind is AnswerKind.RELEASE
    planned = item or (question.release.items[0] if question.release is not None else None)
    facts = [] if planned is None or released else [sentence(planned.why, lang)]

    def t(key: str, **values: Value) -> str:
        return say(lang, f"keep.{key}", values)

    if answer is not None and released:
        facts.append(t("released", moment=local_minute(answer.at or 0.0, timezone)))
    elif keep is not None:
        values: dict[str, Value] = {"until": local_minute(keep.until, timezone), "name": keep.owner}
        facts.append(t("kept-because", reason=keep.reason, **values) if keep.reason else t("kept", **values))
    elif item is not None and item.not_before is not None:
        facts.append(t("due", moment=local_minute(item.not_before, timezone)))
    elif planned is None:
        facts.append(t("not-due", name=question.name))
    if answer is not None and not released:
        facts.append(t("answered"))
    return facts


def _release_text(question: OwnerQuestion, lang: str) -> str:
    """What a release does."""
    act = question.release.items[0].act if question.release is not None else None
    what = "pod" if isinstance(act, PodWrite) else "process" if isinstance(act, KillProcess) else "dataset"
    return say(lang, f"keep.release.{what}", {})
