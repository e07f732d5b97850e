"""The answers in words: headline, evidence and advice of each verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.explain.fit import NodeFit, amount_in_words
from monitor.explain.fits.model import Estimate, FitsRequest, FitsResult, FitsVerdict, HeldBy, Layout, Workers
from monitor.explain.fits.pods import MILLI_FACTOR, per_gpu
from monitor.explain.fits.room import Rooms, claim_class
from monitor.explain.keys import Key
from monitor.explain.model import compact_number
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.text import Text, Value

MAX_NAMED_NODES = 8
MAX_TOLD_JOBS = 6
_Texts = Iterable[Text]


def names(items: Iterable[str]) -> str:
    """A list of names, cut if it is long."""
    listed = list(items)
    return ", ".join(listed[:MAX_NAMED_NODES]) + (" …" if len(listed) > MAX_NAMED_NODES else "")


def where(layout: Layout) -> dict[str, Value]:
    """Nodes of a layout, each with its GPUs."""
    return {"nodes": names(f"{each.node} ({each.gpus})" for each in layout.nodes)}


def unknown(*reasons: Text, layout: Layout | None = None) -> FitsResult:
    """What is known does not suffice for an answer."""
    return FitsResult(verdict=FitsVerdict.UNKNOWN, headline=Text(Key.FITS_UNKNOWN), evidence=reasons, layout=layout)


def unseen(source: str, why: str | None) -> FitsResult:
    """A source of facts cannot be read."""
    error = f"{source}: {why}" if why else source
    return FitsResult(verdict=FitsVerdict.UNSEEN, headline=Text(Key.FITS_UNSEEN, {"error": error.rstrip(".")}))


def never(reasons: Sequence[Text], advice: Sequence[Text] = ()) -> FitsResult:
    """It does not fit, however many jobs finish."""
    headline, evidence = Text(Key.FITS_NEVER), tuple(reasons)
    return FitsResult(verdict=FitsVerdict.NEVER, headline=headline, evidence=evidence, advice=tuple(advice))


def now(request: FitsRequest, layout: Layout, remarks: _Texts, rooms: Rooms, facts: ClusterFacts) -> FitsResult:
    """It fits as requested."""
    return FitsResult(
        verdict=FitsVerdict.NOW,
        headline=Text(Key.FITS_NOW, _shape(layout.workers[0], rooms, facts)),
        evidence=(Text(Key.FITS_WHERE, where(layout)), *remarks),
        advice=tuple(_advice(request, rooms, facts)),
        layout=layout,
    )


def split(
    request: FitsRequest, found: tuple[Layout, ...], remarks: _Texts, rooms: Rooms, facts: ClusterFacts
) -> FitsResult:
    """It fits if it is split differently."""
    shape: dict[str, Value] = {"pods": request.pods}
    shape |= _each(request.gpus_per_pod, rooms, facts)
    ways = tuple(Text(Key.FITS_SPLIT_WAY, {"workers": _sizes(each), **where(each)}) for each in found)
    return FitsResult(
        verdict=FitsVerdict.SPLIT,
        headline=Text(Key.FITS_SPLIT, shape),
        evidence=(*ways, *_per_gpu(request), *_most(rooms, facts), *remarks),
        advice=tuple(_advice(request, rooms, facts)),
        splits=found,
    )


def after(
    request: FitsRequest,
    layout: Layout,
    held: Sequence[HeldBy],
    estimate: Estimate | None,
    reasons: _Texts,
    rooms: Rooms,
    now: float,
    facts: ClusterFacts,
) -> FitsResult:
    """It fits once jobs have finished."""
    as_asked = layout.workers[0].gpus == request.gpus_per_pod
    values: dict[str, Value] = {"workers": _sizes(layout), "count": len(held)}
    values |= _each(request.gpus_per_pod, rooms, facts)
    key = Key.FITS_AFTER if as_asked else Key.FITS_AFTER_SPLIT
    shares = () if as_asked else _per_gpu(request)
    return FitsResult(
        verdict=FitsVerdict.AFTER,
        headline=Text(key, values),
        evidence=(*_jobs(held, now, rooms, facts), *_when(held, estimate), *shares, *reasons),
        layout=layout,
        waits_for=tuple(held),
        estimate=estimate,
    )


def too_few(workers: Workers, most: int, rooms: Rooms, facts: ClusterFacts) -> Text:
    """The nodes together are too small."""
    return Text(Key.FITS_TOO_FEW, {"most": most, "pods": workers.pods} | _each(workers.gpus, rooms, facts))


def unusable(layout: Layout, facts: ClusterFacts) -> _Texts:
    """Nodes whose free GPUs the scheduler would assign although some of them cannot be used."""
    short = [
        f"{each.node} ({each.gpus - free})"
        for each in layout.nodes
        if (free := facts.free_gpus(facts.node_by_name[each.node], facts.resource)) < each.gpus
    ]
    if short:
        yield Text(Key.FITS_UNUSABLE, {"nodes": names(short)})


def _shape(workers: Workers, rooms: Rooms, facts: ClusterFacts) -> dict[str, Value]:
    values: dict[str, Value] = {"pods": workers.pods}
    return values | _each(workers.gpus, rooms, facts)


def _each(gpus: int, rooms: Rooms, facts: ClusterFacts) -> dict[str, Value]:
    """The GPUs of one pod, in the unit of the request."""
    return {"each": amount_in_words(rooms.pod, gpus, facts)}


def _sizes(layout: Layout) -> str:
    return " + ".join(f"{each.pods} x {each.gpus}" for each in layout.workers)


def _per_gpu(request: FitsRequest) -> _Texts:
    """CPU and memory of pods of another size."""
    if request.cpu_millicores is not None:
        cpu = compact_number(per_gpu(request.cpu_millicores, request) / MILLI_FACTOR)
        yield Text(Key.FITS_CPU_PER_GPU, {"cpu": cpu})
    if request.memory_bytes is not None:
        yield Text(Key.FITS_MEMORY_PER_GPU, {"memory": per_gpu(request.memory_bytes, request)})


def _most(rooms: Rooms, facts: ClusterFacts) -> _Texts:
    """The node with the most free GPUs, which are too few for one pod."""
    most = max(rooms.rooms, key=lambda room: room.gpus, default=None)
    if most is not None and not any(room.pods for room in rooms.rooms):
        values: dict[str, Value] = {"node": most.node, "most": amount_in_words(rooms.pod, most.gpus, facts)}
        yield Text(Key.FITS_MOST, values)


def _jobs(held: Sequence[HeldBy], now: float, rooms: Rooms, facts: ClusterFacts) -> _Texts:
    """The jobs to wait for, the largest first."""
    for each in held[:MAX_TOLD_JOBS]:
        values: dict[str, Value] = {"job": f"{each.namespace}/{each.job}", "user": each.user, "pods": each.pods}
        values |= {"gpus": amount_in_words(rooms.pod, each.gpus, facts), "nodes": names(each.nodes)}
        if each.since is None:
            yield Text(Key.FITS_HELD, values)
        else:
            yield Text(Key.FITS_HELD_SINCE, values | {"seconds": max(0.0, now - each.since)})
        if each.terminating:
            yield Text(Key.FITS_TERMINATING, {"job": each.job})
        elif each.lasting:
            yield Text(Key.FITS_LASTING, {"job": each.job})
    if len(held) > MAX_TOLD_JOBS:
        yield Text(Key.FITS_MORE_JOBS, {"count": len(held) - MAX_TOLD_JOBS})


def _when(held: Sequence[HeldBy], estimate: Estimate | None) -> _Texts:
    """When the last of the jobs ends."""
    if estimate is not None:
        values: dict[str, Value] = {"seconds": estimate.seconds, "runs": estimate.runs}
        values |= {"earliest": estimate.earliest, "latest": estimate.latest}
        yield Text(Key.FITS_ESTIMATE, values)
    elif held:
        yield Text(Key.FITS_NO_ESTIMATE)


def _advice(request: FitsRequest, rooms: Rooms, facts: ClusterFacts) -> _Texts:
    """What the job has to say so that it gets these nodes."""
    for term in rooms.pod.node_affinity:
        for requirement in term if request.model else ():
            values: dict[str, Value] = {"label": requirement.key, "values": names(requirement.values)}
            yield Text(Key.FITS_SELECT_MODEL, values)
    device_class = claim_class(facts)
    if rooms.pod.claimed_gpus and device_class is not None:
        yield Text(Key.FITS_CLAIM, {"name": device_class.name})


def claim_only_nodes(fits: Iterable[NodeFit]) -> _Texts:
    """Nodes whose GPUs a job without a ResourceClaim cannot get."""
    nodes = [fit.node.name for fit in fits if fit.usable and fit.node.claimable_gpus and fit.node.plugin_gpus == 0]
    if nodes:
        yield Text(Key.FITS_ONLY_CLAIMS, {"nodes": names(nodes)})
