"""The answer to whether a job would fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.explain.fits import texts
from monitor.explain.fits.jobs import EarlierRuns, Job, held_by, together
from monitor.explain.fits.layout import Placed, Sized, as_requested, equal_sizes, pods_of_size, splits
from monitor.explain.fits.model import FitsRequest, FitsResult, HeldBy, Layout, NodePlacement, Workers
from monitor.explain.fits.pods import asked_workers, known_models, nodes_of_model, split_workers, without_model
from monitor.explain.fits.quota import Admission, QuotaAnswer, admit
from monitor.explain.fits.release import jobs_to_wait_for
from monitor.explain.fits.room import Rooms, claim_class, emptied, only_claims, rooms_for, with_nominated
from monitor.explain.gpu_shortage import excluded_nodes_with_room
from monitor.explain.keys import Key
from monitor.explain.pending import nothing_fits
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.text import Text

MAX_NAMED_JOBS = 20


def would_fit(request: FitsRequest, facts: ClusterFacts, now: float) -> FitsResult:
    """Whether and how the job would fit, by the facts of one moment."""
    if refusal := _not_answerable(request, facts):
        return refusal
    return _Question(request, with_nominated(facts), now).answer()


def _not_answerable(request: FitsRequest, facts: ClusterFacts) -> FitsResult | None:
    blind = next((source for source in facts.sources if not source.ok and _needs(request, source.name)), None)
    if blind is not None:
        return texts.unseen(blind.name, blind.why)
    resource = request.resource or facts.resource
    kind = resource_kind(resource)
    if kind is not None and (kind.per_card or not kind.countable):
        return texts.unknown(Text(Key.FITS_PER_CARD, {"resource": resource}))
    if request.model and not nodes_of_model(request.model, facts):
        if nameless := without_model(facts):
            return texts.unknown(Text(Key.FITS_MODELS_UNKNOWN, {"nodes": texts.names(nameless)}))
        models = texts.names(known_models(facts))
        return texts.never((Text(Key.FITS_NO_MODEL, {"model": request.model, "models": models or "-"}),))
    if only_claims(facts) and resource == facts.resource and claim_class(facts) is None:
        return texts.unknown(Text(Key.FITS_NO_CLASS))
    return None


def _needs(request: FitsRequest, source: str) -> bool:
    """Whether the answer depends on a source."""
    if source in ("kubernetes", "pods", "nodes"):
        return True
    if source == "resourcequotas":
        return request.namespace is not None
    return request.queue is not None and source.partition(".")[0] in ("queues", "clusterqueues", "localqueues")


class _Question:
    """One request, judged by the facts of one moment."""

    def __init__(self, request: FitsRequest, facts: ClusterFacts, now: float) -> None:
        self._request, self._facts, self._now = request, facts, now
        self._asked = asked_workers(request)
        self._rooms = rooms_for(request, self._asked, facts)
        self._quotas = admit(request, (self._asked,), facts)
        found = {answer.admission for answer in self._quotas}
        self._worst = next((each for each in reversed(Admission) if each in found), Admission.ADMITTED)

    def answer(self) -> FitsResult:
        """The answer: what quotas refuse for good comes first, then each way to run it now, then waiting."""
        if self._worst is Admission.NEVER:
            return texts.never(_reasons(self._quotas, Admission.NEVER), _advice(self._quotas))
        placed = as_requested(self._rooms.rooms, Sized(self._asked.pods, self._asked.gpus))
        if placed is not None:
            return self._with_room(self._layout((self._asked,), placed))
        found = self._splits()
        if found and self._worst is Admission.ADMITTED:
            remarks = (*self._remarks(found[0]), *self._elsewhere())
            return texts.split(self._request, found, remarks, self._rooms, self._facts)
        return self._later(found)

    def _with_room(self, layout: Layout) -> FitsResult:
        """Nodes have room as requested: quotas decide."""
        if self._worst is Admission.FULL:
            return self._after((self._asked,), ())
        if self._worst is Admission.UNKNOWN:
            reasons = _reasons(self._quotas, Admission.UNKNOWN)
            return texts.unknown(Text(Key.FITS_ROOM_ONLY, texts.where(layout)), *reasons, layout=layout)
        return texts.now(self._request, layout, self._remarks(layout), self._rooms, self._facts)

    def _splits(self) -> tuple[Layout, ...]:
        request = self._request
        return tuple(
            self._layout(tuple(split_workers(request, *size) for size in each.ways), each.placed)
            for each in splits(self._rooms.rooms, request.gpus, self._asked.gpus)
        )

    def _later(self, found: tuple[Layout, ...]) -> FitsResult:
        """Nodes have no room as requested, or only for a split that quotas do not admit."""
        if self._rooms.unclear:
            return texts.unknown(Text(Key.FITS_NODES_UNCLEAR, {"nodes": texts.names(self._rooms.unclear)}))
        if self._request.model and (nameless := without_model(self._facts)):
            return texts.unknown(Text(Key.FITS_MODELS_UNKNOWN, {"nodes": texts.names(nameless)}))
        if self._worst is Admission.UNKNOWN:
            return texts.unknown(*_reasons(self._quotas, Admission.UNKNOWN), layout=found[0] if found else None)
        empty = emptied(self._facts)
        rooms = rooms_for(self._request, self._asked, empty)
        if sum(room.pods for room in rooms.rooms) >= self._asked.pods:
            return self._after((self._asked,), self._jobs(self._asked, self._rooms))
        if found:  # as requested it never fits, and the quota is full
            return self._after(found[0].workers, ())
        for size in equal_sizes(self._request.gpus, self._asked.gpus):
            if pods_of_size(rooms.rooms, size.gpus) >= size.pods:
                workers = split_workers(self._request, *size)
                return self._after((workers,), self._jobs(workers, rooms_for(self._request, workers, self._facts)))
        return self._never(rooms, empty)

    def _jobs(self, workers: Workers, rooms: Rooms) -> Sequence[Job]:
        nodes = [fit.node for fit in rooms.fits if fit.usable]
        resource = self._request.resource or self._facts.resource
        return jobs_to_wait_for(rooms.pod, workers.pods, nodes, resource, self._facts)

    def _after(self, workers: tuple[Workers, ...], jobs: Sequence[Job]) -> FitsResult:
        facts, runs = self._facts, EarlierRuns(self._facts)
        quotas = [job for answer in self._quotas for job in answer.jobs]
        distinct = {job.key: job for job in (*jobs, *quotas)}.values()
        resource = self._request.resource or facts.resource
        held = [held_by(job, resource, facts, runs.estimate(job, self._now)) for job in distinct]
        estimate = together([each.estimate for each in held])
        return texts.after(
            self._request,
            Layout(workers=workers),
            _largest_first(held),
            estimate,
            (
                *_reasons(self._quotas, Admission.FULL),
                *_reasons(self._quotas, Admission.UNKNOWN),
                *self._elsewhere(),
            ),
            self._rooms,
            self._now,
            facts,
        )

    def _elsewhere(self) -> Iterable[Text]:
        """Nodes with room that the job may not use."""
        yield from excluded_nodes_with_room(self._rooms.pod, self._rooms.fits, self._facts)
        if not self._rooms.pod.claimed_gpus:
            yield from texts.claim_only_nodes(self._rooms.fits)

    def _never(self, rooms: Rooms, empty: ClusterFacts) -> FitsResult:
        """Not even the empty cluster has room."""
        most = sum(room.pods for room in rooms.rooms)
        if most:
            few = texts.too_few(self._asked, most, self._rooms, self._facts)
            return texts.never((few, *self._elsewhere()))
        diagnosis = nothing_fits(rooms.pod, tuple(rooms.fits), empty)
        return texts.never((diagnosis.headline, *diagnosis.evidence), diagnosis.advice)

    def _remarks(self, layout: Layout) -> Iterable[Text]:
        """What the user should know about an answer that is yes."""
        yield from texts.unusable(layout, self._facts)
        for answer in self._quotas:
            yield from answer.evidence

    def _layout(self, workers: tuple[Workers, ...], placed: Iterable[Placed]) -> Layout:
        nodes: dict[str, NodePlacement] = {}
        for each in placed:
            before = nodes.get(each.node)
            nodes[each.node] = NodePlacement(
                node=each.node,
                pods=each.pods + (before.pods if before else 0),
                gpus=each.pods * each.gpus + (before.gpus if before else 0),
            )
        return Layout(workers=workers, nodes=tuple(nodes.values()))


def _reasons(answers: Iterable[QuotaAnswer], admission: Admission) -> tuple[Text, ...]:
    """Reasons of the answers of one kind, each with its evidence."""
    return tuple(
        text
        for answer in answers
        if answer.admission is admission
        for text in (answer.reason, *answer.evidence)
        if text is not None
    )


def _advice(answers: Iterable[QuotaAnswer]) -> tuple[Text, ...]:
    return tuple(text for answer in answers if answer.admission is Admission.NEVER for text in answer.advice)


def _largest_first(held: Iterable[HeldBy]) -> tuple[HeldBy, ...]:
    return tuple(sorted(held, key=lambda each: (-each.gpus, each.namespace, each.job))[:MAX_NAMED_JOBS])
