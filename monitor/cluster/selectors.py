"""Selectors: how a rule of a platform names the value of a pod that it reads.

A selector reads one value, or nothing:

    label:KEY              the label's value
    annotation:KEY         the annotation's value
    annotation:KEY#FIELD   a field of the JSON object that the annotation holds
    env:NAME               the value of the environment variable NAME of a container
    namespace              the pod's namespace
    namespace-owner        the user that the namespace belongs to
    owner                  the name of the pod's top-level owner
    owner-queue            the queue of Kueue that a label of the pod's Job names
    name                   the pod's name
    kind:NAME              the kind of the pod's top-level owner, if it is NAME
    serves                 "true" if a container has a port, and a readiness probe over HTTP or gRPC
    text:VALUE             VALUE itself

Of several selectors, the first with a value counts. In `when` a selector may end in `=VALUE`, and several may be
joined by ` & `; a rule applies to every pod that matches one entry of `when`, or to all pods if there is none.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

READ_BY_KEY = ("label", "annotation", "env")
_WITH_KEY = (*READ_BY_KEY, "kind")
_TEXT = "text"
_WITHOUT_KEY = ("namespace", "namespace-owner", "owner", "owner-queue", "name", "serves")


class Selector(msgspec.Struct, frozen=True):
    """One parsed selector."""

    source: str
    key: str = ""
    field: str = ""
    value: str = ""  # required value, in `when`; the text of `text`


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """Parse a selector. Raise ValueError that says what to write."""
    source, colon, key = text.strip().partition(":")
    if not colon and source in _WITHOUT_KEY:
        return Selector(source)
    if source == _TEXT and key:
        return Selector(source, value=key)
    key, _, value = key.partition("=")
    key, _, field = key.partition("#")
    if source not in _WITH_KEY or not key or (field and source != "annotation"):
        raise ValueError(
            f"{text!r} is not a selector; write label:KEY, annotation:KEY, annotation:KEY#FIELD, env:NAME, "
            "namespace, namespace-owner, owner, owner-queue, name, kind:NAME, serves or text:VALUE"
        )
    return Selector(source, key, field, value)


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> tuple[Selector, ...]:
    """Parse an entry of `when` into selectors that all have to match. Raise ValueError."""
    return tuple(parse_selector(selector) for selector in text.split(" & "))
