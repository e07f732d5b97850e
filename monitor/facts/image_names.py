"""Normalization of image references: busybox, docker.io/library/busybox and busybox:latest are the same image."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.base.globs import matches_glob

_HEX = frozenset("0123456789abcdef")
_ID_CHARS = 64
_HUB, _OFFICIAL = "docker.io/", "docker.io/library/"
LABEL_PREFIX = "label:"  # of pins by label: label:keep, label:team=nlp


def reference_keys(*names: str) -> frozenset[str]:
    """Normalized keys of references and image ids. References to the same image share at least one key.

    `nginx` is `docker.io/library/nginx:latest`. A digest identifies the image under any name.
    """
    return frozenset(key for name in names for key in _keys(name))


def split_reference(name: str) -> tuple[str, str | None, str | None]:
    """Fully qualified repository, tag and digest of a reference."""
    plain, _, digest = name.partition("@")
    path, colon, tag = plain.rpartition(":")
    if not colon or "/" in tag:  # the colon belongs to the registry's port
        path, tag = plain, ""
    return _qualified(path), tag or None, digest or None


def matching_pin(names: Iterable[str], pins: Iterable[str]) -> str | None:
    """The first pin that matches one of an image's names, or None.

    A pin is matched against the name as given, fully qualified, in its shortest form, and without its tag.
    """
    spellings = {spelling for name in names for spelling in _spellings(name)}
    patterns = (pin for pin in pins if not pin.startswith(LABEL_PREFIX))
    return next((pin for pin in patterns if any(matches_glob(spelling, pin) for spelling in spellings)), None)


def matching_label_pin(labels: dict[str, str], pins: Iterable[str]) -> str | None:
    """The first pin by label that matches an image's labels, or None."""
    for pin in pins:
        if not pin.startswith(LABEL_PREFIX):
            continue
        key, equals, value = pin.removeprefix(LABEL_PREFIX).partition("=")
        if key in labels and (not equals or matches_glob(labels[key], value)):
            return pin
    return None


def is_sandbox_image(name: str) -> bool:
    """Whether a name looks like the pause image, without which no pod starts."""
    last = split_reference(name)[0].rpartition("/")[2]
    return "pause" in last or last == "pod-infrastructure"


def _keys(name: str) -> set[str]:
    plain = name.strip().rpartition("://")[2]  # kubelets on Docker write docker-pullable://harbor.lab/x@sha256:...
    if not plain:
        return set()
    if _is_id(plain):
        return {f"sha256:{plain.removeprefix('sha256:').lower()}"}
    repository, tag, digest = split_reference(plain)
    keys = {digest, f"{repository}@{digest}"} if digest else set()
    if tag or not digest:
        keys.add(f"{repository}:{tag or 'latest'}")
    return keys


def _is_id(name: str) -> bool:
    digits = name.removeprefix("sha256:").lower()
    return len(digits) == _ID_CHARS and _HEX.issuperset(digits)


def _qualified(path: str) -> str:
    first, slash, rest = path.partition("/")
    if not slash:
        return _OFFICIAL + path
    if first in ("docker.io", "index.docker.io"):
        return _HUB + rest if "/" in rest else _OFFICIAL + rest
    is_host = "." in first or ":" in first or first == "localhost"
    return path if is_host else _HUB + path


def _spellings(name: str) -> Iterable[str]:
    yield name
    if _is_id(name):
        yield name.removeprefix("sha256:")
        return
    for key in (*_keys(name), split_reference(name)[0]):
        for prefix in (_OFFICIAL, _HUB, ""):
            if key.startswith(prefix):
                yield key.removeprefix(prefix)
