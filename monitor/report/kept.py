"""What owners keep, in a report: who keeps what, until when and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.base.localtime import local_minute
from monitor.cleanup.plan.keeps import Keep
from monitor.facts.base import Fact
from monitor.facts.text import Text, Value

MAX_NAMED_KEEPS = 5


class KeptObject(Fact, frozen=True, kw_only=True):
    """Something that no policy touches before `until`, because its owner asked for that at `since`."""

    name: str
    owner: str
    since: float
    until: float
    reason: str = ""


def kept_objects(keeps: Iterable[Keep], now: float) -> tuple[KeptObject, ...]:
    """What is kept now, the longest first."""
    present = sorted((keep for keep in keeps if now < keep.until), key=lambda keep: (-keep.until, keep.name))
    return tuple(
        KeptObject(name=keep.name, owner=keep.owner, since=keep.at, until=keep.until, reason=keep.reason)
        for keep in present
    )


def kept_texts(kept: Sequence[KeptObject], timezone: str) -> tuple[Text, ...]:
    """Sentences about the first few, and the number of the others."""
    texts = [_text(one, timezone) for one in kept[:MAX_NAMED_KEEPS]]
    if len(kept) > MAX_NAMED_KEEPS:
        texts.append(Text(key="report.kept.rest", values={"count": len(kept) - MAX_NAMED_KEEPS}))
    return tuple(texts)


def _text(one: KeptObject, timezone: str) -> Text:
    values: dict[str, Value] = {
        "owner": one.owner, "name": one.name, "until": local_minute(one.until, timezone), "reason": one.reason,
    }  # fmt: skip
    return Text(key="report.kept-because" if one.reason else "report.kept", values=values)
