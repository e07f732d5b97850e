"""Would a job fit: the question from words that users type, and the answer in one language."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil

from monitor.base.units import parse_size, quoted
from monitor.explain.fits.model import Estimate, FitsRequest, FitsResult, FitsVerdict, HeldBy, Layout
from monitor.explain.fits.pods import MILLI_FACTOR
from monitor.facts.base import Fact
from monitor.kube.decode.values import parse_quantity
from monitor.present.explanation import lines_of

MAX_GPUS = 10_000
MAX_CPU_CORES = 10_000
MAX_MEMORY_BYTES = 2**50
MAX_NAME_CHARS = 253
MAX_TOLERATIONS = 16
FIELDS = ("gpus", "per_node", "model", "queue", "namespace", "cpu", "memory", "resource")
TOLERATE = "tolerate"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_RESOURCE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/()-]{0,62}")
_TAINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,252}(?:=[A-Za-z0-9._-]{0,63})?(?::(?:NoSchedule|NoExecute))?")
_NUMBER = re.compile(r"[0-9]{1,5}")


class FitsAnswer(Fact, frozen=True, kw_only=True):
    """Whether a job would fit: a verdict (now, split, after, never, unknown), its figures, and lines for people.

    `layout` is how it would run as requested, or for `after`, as it will fit; `splits` fit now.
    """

    verdict: str
    lines: tuple[str, ...]
    layout: Layout | None = None
    splits: tuple[Layout, ...] = ()
    waits_for: tuple[HeldBy, ...] = ()
    estimate: Estimate | None = None

    @property
    def fits(self) -> bool:
        """Whether it fits now as requested."""
        return self.verdict == FitsVerdict.NOW


def parse_request(fields: Mapping[str, str], tolerations: Sequence[str] = ()) -> FitsRequest:
    """The request from words by field; empty ones count as missing. Raise ValueError that says what to write."""
    given = {name: text.strip() for name, text in fields.items() if text.strip()}
    gpus = _number("gpus", given["gpus"]) if "gpus" in given else None
    if gpus is None:
        raise ValueError("gpus is missing; write the number of GPUs of the job, for example 16")
    per_node = _number("per_node", given["per_node"]) if "per_node" in given else None
    if per_node is not None and gpus % per_node:
        raise ValueError(f"gpus ({gpus}) is not a multiple of per_node ({per_node})")
    return FitsRequest(
        gpus=gpus,
        per_node=per_node,
        resource=_matching("resource", given, _RESOURCE, "a resource such as nvidia.com/mig-1g.10gb"),
        model=_matching("model", given, _MODEL, "a GPU model such as A100"),
        queue=_matching("queue", given, _NAME, "the name of a queue"),
        namespace=_matching("namespace", given, _NAME, "the name of a namespace"),
        cpu_millicores=_cpu(given["cpu"]) if "cpu" in given else None,
        memory_bytes=_memory(given["memory"]) if "memory" in given else None,
        tolerations=_tolerations(tolerations),
    )


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text) or not 0 < int(text) <= MAX_GPUS:
        raise ValueError(f"{name} is a number from 1 to {MAX_GPUS}, not {quoted(text)}")
    return int(text)


def _matching(name: str, given: Mapping[str, str], pattern: re.Pattern[str], what: str) -> str | None:
    text = given.get(name)
    if text is not None and not pattern.fullmatch(text):
        raise ValueError(f"{name} is {what}, not {quoted(text)}")
    return text


def _cpu(text: str) -> int:
    cores = parse_quantity(text) if len(text) <= MAX_NAME_CHARS else None
    if cores is None or not 0 < cores <= MAX_CPU_CORES:
        raise ValueError(f"cpu is the cores of each pod, such as 8 or 500m, up to {MAX_CPU_CORES}, not {quoted(text)}")
    return ceil(round(cores * MILLI_FACTOR, 6))


def _memory(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if not 0 < size <= MAX_MEMORY_BYTES:
        raise ValueError(f"memory is that of each pod, such as 64Gi, up to 1024 TiB, not {quoted(text)}")
    return size


def _tolerations(texts: Sequence[str]) -> tuple[str, ...]:
    given = tuple(text.strip() for text in texts if text.strip())
    if len(given) > MAX_TOLERATIONS:
        raise ValueError(f"{TOLERATE} can be given at most {MAX_TOLERATIONS} times")
    for text in given:
        if not _TAINT.fullmatch(text):
            raise ValueError(
                f"{TOLERATE} is a taint such as dedicated=nlp:NoSchedule or nvidia.com/gpu, not {quoted(text)}"
            )
    return given


def localize_fits(result: FitsResult, lang: str) -> FitsAnswer:
    """The answer in one language."""
    return FitsAnswer(
        verdict=result.verdict.value,
        lines=tuple(lines_of(result.headline, result.evidence, result.advice, lang)),
        layout=result.layout,
        splits=result.splits,
        waits_for=result.waits_for,
        estimate=result.estimate,
    )
