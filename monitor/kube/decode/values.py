"""Common values in Kubernetes JSON: times, quantities, conditions, owner references."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, wraps
from math import isfinite
from sys import intern
from typing import Any, TypeVar, cast

import msgspec

from monitor.base.text import shorten
from monitor.facts.base import BoundedText, Identifier
from monitor.facts.kube import Amounts, ConditionFact, OwnerRef

MAX_MESSAGE_CHARS = 2048
MAX_CACHED_BYTES = 16 << 10  # of a key of a cache: a larger part of an object is rare, and decoded each time
_SUFFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SUFFIXES |= {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)}
_DIGITS = "0123456789."
_STATUS = {"True": True, "False": False}
_ZERO_TIME = "0001-01-01T00:00:00Z"  # zero value of Go's time.Time

C = TypeVar("C", bound=Callable[..., Any])
RawAmounts = dict[BoundedText, BoundedText | int | float | None] | None


class Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the structs that mirror Kubernetes JSON. Any field may be missing or null."""


class WireOwner(Wire):
    """One of `metadata.ownerReferences`."""

    kind: BoundedText = ""
    name: Identifier = ""
    uid: Identifier | None = None
    api_version: BoundedText | None = None
    controller: bool | None = None


class WireMeta(Wire):
    """`metadata`. Every object has a name and a uid."""

    name: Identifier
    uid: Identifier
    namespace: Identifier | None = None
    resource_version: Identifier | None = None
    creation_timestamp: BoundedText | None = None
    deletion_timestamp: BoundedText | None = None
    deletion_grace_period_seconds: float | None = None
    finalizers: list[BoundedText] | None = None
    labels: dict[BoundedText, BoundedText] | None = None
    annotations: dict[str, str] | None = None  # only a few are kept, and cut then
    owner_references: list[WireOwner] | None = None


class WireCondition(Wire):
    """One of `status.conditions`."""

    type: BoundedText = ""
    status: BoundedText | None = None
    reason: BoundedText | None = None
    message: str | None = None  # see `truncated`
    last_transition_time: BoundedText | None = None


@lru_cache(maxsize=2048)  # times repeat within objects; a hit is 4 times cheaper than parsing
def parse_time(text: str | None) -> float | None:
    """RFC 3339 time as seconds since the epoch; None if malformed."""
    if not text or text == _ZERO_TIME:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


@lru_cache(maxsize=8192)
def parse_quantity(text: str | float | None) -> float | None:
    """`2`, `500m`, `16Gi` or `1e3` as a number; None if malformed."""
    if text is None or isinstance(text, (int, float)):
        return text
    number = text.strip()
    scale = _SUFFIXES.get(number.lstrip(_DIGITS + "+-"))
    try:
        amount = float(number) if scale is None else float(number.rstrip("numkMGTPEKi")) * scale
    except ValueError:
        return None
    return amount if isfinite(amount) else None


def amounts(raw: RawAmounts) -> Amounts:
    """A map of quantities as numbers, without malformed ones."""
    if not raw:
        return {}
    return {intern(name): value for name, text in raw.items() if (value := parse_quantity(text)) is not None}


def cached_if_small(maxsize: int) -> Callable[[C], C]:
    """Cache a function by its first argument, raw JSON, and the others, unless the JSON is long: tenants write it."""

    def decorate(work: C) -> C:
        cached = lru_cache(maxsize)(work)

        @wraps(work)
        def choose(raw: bytes, *args: Any) -> Any:
            return cached(raw, *args) if len(raw) <= MAX_CACHED_BYTES else work(raw, *args)

        return cast("C", choose)

    return decorate


def truncated(text: str | None) -> str | None:
    """The message, limited to MAX_MESSAGE_CHARS by dropping its middle: its start names what failed, its end why."""
    if not text or len(text) <= MAX_MESSAGE_CHARS:
        return text or None
    head = shorten(text, MAX_MESSAGE_CHARS // 2)
    return head + text[len(head) - MAX_MESSAGE_CHARS :]


def interned(text: str | None) -> str | None:
    """The shared copy of a string that many objects contain."""
    return intern(text) if text else None


def shared_strings(labels: dict[str, str] | None) -> dict[str, str]:
    """Labels with the shared copies of their names and values: other objects have most of them too."""
    return {intern(name): intern(value) for name, value in labels.items()} if labels else {}


def owner_of(references: list[WireOwner] | None) -> OwnerRef | None:
    """The controller among owner references, else the first one."""
    if not references:
        return None
    for chosen in references:
        if chosen.controller:
            break
    else:
        chosen = references[0]
    return OwnerRef(
        kind=intern(chosen.kind), name=chosen.name, uid=chosen.uid, api_version=interned(chosen.api_version)
    )


def condition(raw: WireCondition) -> ConditionFact:
    """Condition as a fact, shared between objects if it has no message or reason."""
    if raw.message is None and raw.reason is None:
        return _plain_condition(raw.type, raw.status, raw.last_transition_time)
    return ConditionFact(
        type=intern(raw.type),
        status=_STATUS.get(raw.status or ""),
        reason=interned(raw.reason),
        message=truncated(raw.message),
        since=parse_time(raw.last_transition_time),
    )


@lru_cache(maxsize=16384)  # four of five pod conditions, and most share their timestamp
def _plain_condition(kind: str, status: str | None, since: str | None) -> ConditionFact:
    return ConditionFact(type=intern(kind), status=_STATUS.get(status or ""), since=parse_time(since))


def conditions(raw: list[WireCondition] | None) -> tuple[ConditionFact, ...]:
    """`status.conditions` as facts."""
    return tuple([condition(entry) for entry in raw]) if raw else ()
