"""Names of images: the many ways in which one is written, made comparable. Pure.

busybox, docker.io/library/busybox and index.docker.io/library/busybox:latest are one image; a name may end in a digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

_HEX = frozenset("0123456789abcdef")
_ID_CHARS = 64
_HUB, _OFFICIAL = "docker.io/", "docker.io/library/"
LABEL_PREFIX = "label:"  # how a pin by label begins: label:keep, label:team=nlp


def reference_keys(name: str) -> frozenset[str]:
    """Given a name, a name with a digest, or an id, return what it is known by. Equal images share one of these."""
    if _is_id(name):
        return frozenset({f"sha256:{name.removeprefix('sha256:')}"})
    repository, tag, digest = split_reference(name)
    found = {digest, f"{repository}@{digest}"} if digest else set()
    if tag or not digest:
        found.add(f"{repository}:{tag or 'latest'}")
    return frozenset(found)


def all_reference_keys(names: Iterable[str]) -> frozenset[str]:
    """Given names, return what they are known by."""
    return frozenset(key for name in names for key in reference_keys(name))


def split_reference(name: str) -> tuple[str, str | None, str | None]:
    """Given a name, return its repository in full, its tag and its digest, where it has them."""
    plain, _, digest = name.partition("@")
    path, colon, tag = plain.rpartition(":")
    if not colon or "/" in tag:  # the colon of a registry's port
        path, tag = plain, ""
    return _in_full(path), tag or None, digest or None


def matching_pin(names: Iterable[str], pins: Iterable[str]) -> str | None:
    """Given all names of an image and patterns, return the first pattern that one of its names matches, or None.

    A pattern is held against a name as it is, in full, as short as it may be written, and without its tag.
    """
    written = {form for name in names for form in _forms(name)}
    patterns = (pin for pin in pins if not pin.startswith(LABEL_PREFIX))
    return next((pin for pin in patterns if any(fnmatchcase(form, pin) for form in written)), None)


def matching_label_pin(labels: dict[str, str], pins: Iterable[str]) -> str | None:
    """Given the labels of an image and pins, return the first pin by label that holds, or None."""
    for pin in pins:
        if not pin.startswith(LABEL_PREFIX):
            continue
        key, equals, value = pin.removeprefix(LABEL_PREFIX).partition("=")
        if key in labels and (not equals or fnmatchcase(labels[key], value)):
            return pin
    return None


def is_sandbox_image(name: str) -> bool:
    """Return whether a name looks like that of the image pods are held together by: without it none starts."""
    last = split_reference(name)[0].rpartition("/")[2]
    return "pause" in last or last == "pod-infrastructure"


def _is_id(name: str) -> bool:
    digits = name.removeprefix("sha256:")
    return len(digits) == _ID_CHARS and _HEX.issuperset(digits)


def _in_full(path: str) -> str:
    first, slash, rest = path.partition("/")
    if not slash:
        return _OFFICIAL + path
    if first in ("docker.io", "index.docker.io"):
        return _HUB + rest if "/" in rest else _OFFICIAL + rest
    is_host = "." in first or ":" in first or first == "localhost"
    return path if is_host else _HUB + path


def _forms(name: str) -> Iterable[str]:
    yield name
    if _is_id(name):
        yield name.removeprefix("sha256:")
        return
    for key in (*reference_keys(name), split_reference(name)[0]):
        for prefix in (_OFFICIAL, _HUB, ""):
            if key.startswith(prefix):
                yield key.removeprefix(prefix)
