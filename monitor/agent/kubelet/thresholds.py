"""When the kubelet begins to remove images and to evict pods: what its configuration file and its command line say.

The file is YAML or JSON. The agent has no YAML library, and needs three keys of one map: exactly these are read, in the
forms in which people and kubeadm write them. What is written otherwise stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

SIGNALS = ("nodefs.available", "imagefs.available")
_HIGH, _LOW, _EVICTION = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "evictionHard"
_FLAGS = ("config", "root-dir", "image-gc-high-threshold", "image-gc-low-threshold", "eviction-hard")
_PAIR = re.compile(r"""\s*(["']?)([A-Za-z0-9._-]+)\1\s*:(.*)""")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NULLS = ("", "~", "null", "Null", "NULL")
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?)(|[kMGTPE]|[KMGTPE]i|e[0-9]{1,2})")
_UNITS = {"": 1} | {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_UNITS |= {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}


class Told(NamedTuple):
    """What is written, as it is written; None where nothing is. An empty `eviction_hard` switches that off."""

    high: str | None = None
    low: str | None = None
    eviction_hard: dict[str, str] | None = None

    def over(self, other: Told) -> Told:
        """Return the two together. Where both say something, this one wins."""
        return Told(
            other.high if self.high is None else self.high,
            other.low if self.low is None else self.low,
            other.eviction_hard if self.eviction_hard is None else self.eviction_hard,
        )


class Arguments(NamedTuple):
    """What a kubelet was started with."""

    told: Told = Told()
    config: str | None = None
    root_dir: str | None = None


class _Json(
    msgspec.Struct,
    rename={"high": _HIGH, "low": _LOW, "eviction": _EVICTION},
):
    high: float | None = None
    low: float | None = None
    eviction: dict[str, str | float] | None = None


def parse_config(text: str) -> Told:
    """Given a KubeletConfiguration, return what it says of thresholds. Raise ValueError if it is broken JSON."""
    text = text.removeprefix("\ufeff")
    return _parse_json(text) if text.lstrip().startswith("{") else _parse_yaml(text)


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Given a command line, return what of it is about thresholds, and nothing else: the rest may be secret."""
    given: dict[str, list[str]] = {name: [] for name in _FLAGS}
    for place, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        name = flag.removeprefix("--").replace("_", "-")  # the kubelet takes both
        if not flag.startswith("--") or name not in given:
            continue
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        given[name].append(value if equals else following)
    config, root, high, low = (values[-1] if (values := given[name]) else None for name in _FLAGS[:4])
    pairs = [pair.partition("<") for written in given["eviction-hard"] for pair in written.split(",")]
    eviction = {signal.strip(): value.strip() for signal, less, value in pairs if less}
    return Arguments(Told(high, low, eviction if given["eviction-hard"] else None), config or None, root or None)


def parse_percent(text: str | None) -> float | None:
    """Given a threshold of image garbage collection, return it as a share; None if it is not from 0 to 100."""
    if text is None or re.fullmatch(r"[0-9]{1,3}(\.0*)?", text) is None:
        return None
    percent = float(text)
    return percent / 100 if percent <= 100 else None


def parse_threshold(text: str) -> tuple[float | None, int | None]:
    """Given how much has to be available, return it as a share, or as bytes; both None if it says nothing.

    To the kubelet 0% and 100% mean that it does not look.
    """
    if text.endswith("%"):
        share = re.fullmatch(r"[0-9]{1,3}(\.[0-9]*)?", text[:-1])
        percent = float(share[0]) if share is not None else 0.0
        return (percent / 100, None) if 0 < percent < 100 else (None, None)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None, None
    unit = _UNITS[match[2]] if match[2] in _UNITS else 10 ** int(match[2][1:])
    return None, int(float(match[1]) * unit)


def _parse_json(text: str) -> Told:
    try:
        found = msgspec.json.decode(text, type=_Json)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"the kubelet's configuration is no JSON: {error}") from None
    high, low = (None if mark is None else f"{mark:g}" for mark in (found.high, found.low))
    if found.eviction is None:
        return Told(high, low)
    return Told(high, low, {key: _plain(value) for key, value in found.eviction.items()})


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.0f}"


def _parse_yaml(text: str) -> Told:
    keys = _top_level(text)
    high, low = (_scalar(keys.get(name, [""])[0]) for name in (_HIGH, _LOW))
    return Told(high, low, _mapping(keys.get(_EVICTION, [""])))


def _top_level(text: str) -> dict[str, list[str]]:
    """Given YAML, return what stands behind each key of the outermost map, and the lines below it."""
    keys: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        bare = _COMMENT.sub("", line).rstrip()
        if not bare:
            continue
        if bare[0] in " \t}":  # of a map in braces, the last may stand in front
            lines.append(bare)
            continue
        match = _PAIR.match(bare)
        lines = [match[3]] if match is not None else []
        if match is not None:
            keys[match[2]] = lines
    return keys


def _mapping(lines: list[str]) -> dict[str, str] | None:
    """Given what stands behind a key, return the map, in lines or in braces; None if there is none."""
    first, rest = lines[0].strip(), lines[1:]
    if first.startswith("{"):
        inside = " ".join([first, *rest])[1:].partition("}")[0]
        return _pairs(inside.split(","))
    return _pairs(rest) if rest and not first else None


def _pairs(parts: Iterable[str]) -> dict[str, str]:
    found = ((match[2], _scalar(match[3])) for part in parts if (match := _PAIR.match(part)) is not None)
    return {key: value for key, value in found if value is not None}


def _scalar(text: str) -> str | None:
    plain = text.strip()
    if plain[:1] in ('"', "'"):
        return plain[1:].partition(plain[0])[0]
    return None if plain in _NULLS else plain
