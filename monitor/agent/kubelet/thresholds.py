"""Image garbage collection and eviction thresholds in the kubelet's configuration files and command line.

The files are YAML or JSON. The agent has no YAML library and needs three keys of one map: only these are parsed, in the
forms that people and kubeadm write. A value in any other form stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

SIGNALS = ("nodefs.available", "imagefs.available")
_HIGH, _LOW, _EVICTION = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "evictionHard"
_FLAGS = ("config", "root-dir", "config-dir", "image-gc-high-threshold", "image-gc-low-threshold", "eviction-hard")
_PAIR = re.compile(r"""\s*(["']?)([A-Za-z0-9._-]+)\1\s*:(.*)""")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NULLS = ("", "~", "null", "Null", "NULL")
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?)(|[kMGTPE]|[KMGTPE]i|e[0-9]{1,2})")
_UNITS = {"": 1} | {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_UNITS |= {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}


class KubeletThresholds(NamedTuple):
    """Thresholds as written; None where unset. An empty `eviction_hard` turns eviction off."""

    high: str | None = None
    low: str | None = None
    eviction_hard: dict[str, str] | None = None

    def with_defaults(self, defaults: KubeletThresholds) -> KubeletThresholds:
        """These thresholds, with `defaults` for those that are unset."""
        return KubeletThresholds(
            defaults.high if self.high is None else self.high,
            defaults.low if self.low is None else self.low,
            defaults.eviction_hard if self.eviction_hard is None else self.eviction_hard,
        )

    def merged_into(self, base: KubeletThresholds) -> KubeletThresholds:
        """The thresholds of `base` with these, of a drop-in file, over them: maps are merged key by key."""
        eviction = self.eviction_hard
        if eviction is not None and base.eviction_hard is not None:
            eviction = base.eviction_hard | eviction
        return KubeletThresholds(self.high, self.low, eviction).with_defaults(base)


class KubeletArguments(NamedTuple):
    """Command line of a kubelet."""

    thresholds: KubeletThresholds = KubeletThresholds()
    config: str | None = None
    root_dir: str | None = None
    config_dir: str | None = None


class _KubeletJson(
    msgspec.Struct,
    rename={"high": _HIGH, "low": _LOW, "eviction": _EVICTION},
):
    high: float | None = None
    low: float | None = None
    eviction: dict[str, str | float] | None = None


def parse_config(text: str) -> KubeletThresholds:
    """Thresholds of a KubeletConfiguration. Raise ValueError if it is malformed JSON."""
    text = text.removeprefix("\ufeff")
    return _parse_json(text) if text.lstrip().startswith("{") else _parse_yaml(text)


def parse_arguments(arguments: Sequence[str]) -> KubeletArguments:
    """Thresholds on a command line, and nothing else: the rest may be secret."""
    given: dict[str, list[str]] = {name: [] for name in _FLAGS}
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        name = flag.removeprefix("--").replace("_", "-")  # the kubelet accepts both
        if not flag.startswith("--") or name not in given:
            continue
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        given[name].append(value if equals else following)
    config, root, drop_ins, high, low = (values[-1] if (values := given[name]) else None for name in _FLAGS[:5])
    pairs = [pair.partition("<") for value in given["eviction-hard"] for pair in value.split(",")]
    eviction = {signal.strip(): value.strip() for signal, less, value in pairs if less}
    return KubeletArguments(
        KubeletThresholds(high, low, eviction if given["eviction-hard"] else None),
        config or None,
        root or None,
        drop_ins or None,
    )


def parse_percent(text: str | None) -> float | None:
    """Image garbage collection threshold as a ratio; None if it is not from 0 to 100."""
    if text is None or re.fullmatch(r"[0-9]{1,3}(\.0*)?", text) is None:
        return None
    percent = float(text)
    return percent / 100 if percent <= 100 else None


def parse_threshold(text: str) -> tuple[float | None, int | None]:
    """Eviction threshold as a ratio or in bytes; both None if it has no effect.

    0% and 100% turn the kubelet's check off.
    """
    if text.endswith("%"):
        number = re.fullmatch(r"[0-9]{1,3}(\.[0-9]*)?", text[:-1])
        percent = float(number[0]) if number is not None else 0.0
        return (percent / 100, None) if 0 < percent < 100 else (None, None)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None, None
    unit = _UNITS[match[2]] if match[2] in _UNITS else 10 ** int(match[2][1:])
    return None, int(float(match[1]) * unit)


def _parse_json(text: str) -> KubeletThresholds:
    try:
        config = msgspec.json.decode(text, type=_KubeletJson)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"the kubelet's configuration is not valid JSON: {error}") from None
    high, low = (None if percent is None else f"{percent:g}" for percent in (config.high, config.low))
    if config.eviction is None:
        return KubeletThresholds(high, low)
    return KubeletThresholds(high, low, {key: _as_text(value) for key, value in config.eviction.items()})


def _as_text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.0f}"


def _parse_yaml(text: str) -> KubeletThresholds:
    keys = _top_level(text)
    high, low = (_scalar(keys.get(name, [""])[0]) for name in (_HIGH, _LOW))
    return KubeletThresholds(high, low, _mapping(keys.get(_EVICTION, [""])))


def _top_level(text: str) -> dict[str, list[str]]:
    """Lines of YAML by key of the outermost map: the rest of the key's line, and the lines below it."""
    keys: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        bare = _COMMENT.sub("", line).rstrip()
        if not bare:
            continue
        if bare[0] in " \t}":  # the closing brace of a flow map may be at the margin
            lines.append(bare)
            continue
        match = _PAIR.match(bare)
        lines = [match[3]] if match is not None else []
        if match is not None:
            keys[match[2]] = lines
    return keys


def _mapping(lines: list[str]) -> dict[str, str] | None:
    """Map in block or flow style that is the value of a key; None if it is not a map."""
    first, rest = lines[0].strip(), lines[1:]
    if first.startswith("{"):
        inside = " ".join([first, *rest])[1:].partition("}")[0]
        return _pairs(inside.split(","))
    return _pairs(rest) if rest and not first else None


def _pairs(parts: Iterable[str]) -> dict[str, str]:
    pairs = ((match[2], _scalar(match[3])) for part in parts if (match := _PAIR.match(part)) is not None)
    return {key: value for key, value in pairs if value is not None}


def _scalar(text: str) -> str | None:
    plain = text.strip()
    if plain[:1] in ('"', "'"):
        return plain[1:].partition(plain[0])[0]
    return None if plain in _NULLS else plain
