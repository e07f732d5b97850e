"""How the pods of a job are distributed over free room: as requested, or split differently.

Pods of one size fit together if the nodes hold enough of them, in whatever order the scheduler places them. Pods of
several sizes do so too, placed largest first, if each size is a multiple of the next one: a larger pod then takes the
same number of places for smaller ones wherever it is placed. Only such splits are proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class NodeRoom(NamedTuple):
    """Free room of a node.

    `pods` is the number of pods as requested, `gpus` the number of GPUs together with their part of CPU and memory, and
    `slots` the number of further pods of any kind (None: not limited).
    """

    node: str
    pods: int
    gpus: int
    slots: int | None = None
    model: str | None = None
    clean: bool = True  # whether all free GPUs are usable according to the driver


class Sized(NamedTuple):
    """Pods of one size."""

    pods: int
    gpus: int


class Placed(NamedTuple):
    """Pods of one size on a node."""

    node: str
    pods: int
    gpus: int  # of each pod


class Split(NamedTuple):
    """A way to run a job as pods of other sizes, the largest first, and nodes for them."""

    ways: list[Sized]
    placed: list[Placed]


def as_requested(rooms: Iterable[NodeRoom], wanted: Sized) -> list[Placed] | None:
    """Nodes for the pods as requested, as few as possible, or None. One GPU model is preferred."""
    rooms = [room for room in rooms if room.pods > 0]
    chosen = next((group for group in _groups(rooms) if sum(room.pods for room in group) >= wanted.pods), None)
    if chosen is None:
        return None
    placed, left = list[Placed](), wanted.pods
    for room in sorted(chosen, key=lambda room: (not room.clean, -min(room.pods, wanted.pods), room.pods, room.node)):
        count = min(left, room.pods)
        placed.append(Placed(room.node, count, wanted.gpus))
        left -= count
        if not left:
            break
    return placed


def splits(rooms: Iterable[NodeRoom], total: int, asked: int) -> list[Split]:
    """Other ways to run `total` GPUs now: equal pods, and pods of several sizes if that takes fewer of them.

    One GPU model is preferred.
    """
    rooms = [room for room in rooms if room.gpus > 0 and room.slots != 0]
    for group in _groups(rooms):
        ways = _ways(group, total, asked) if sum(room.gpus for room in group) >= total else []
        if ways:
            return [Split(way, _place(group, way)) for way in ways]
    return []


def equal_sizes(total: int, asked: int) -> list[Sized]:
    """Equal pods of other sizes than requested, the largest first."""
    return [Sized(total // size, size) for size in _divisors(total) if size != asked]


def _ways(rooms: Sequence[NodeRoom], total: int, asked: int) -> list[list[Sized]]:
    equal = next((each for each in equal_sizes(total, asked) if pods_of_size(rooms, each.gpus) >= each.pods), None)
    mixed = [way for base in _divisors(total) if (way := _mixed(rooms, total, base)) is not None]
    fewest = min(mixed, key=_pods, default=None)
    ways = [[equal]] if equal is not None else []
    if fewest is not None and (equal is None or _pods(fewest) < equal.pods):
        ways.append(fewest)
    return ways


def _place(rooms: Iterable[NodeRoom], way: Sequence[Sized]) -> list[Placed]:
    """Nodes for a split that fits: each pod on the fullest node that still has room for it."""
    left = {room.node: _capped(room, way[-1].gpus) for room in rooms}
    placed: list[Placed] = []
    for wanted, gpus in way:
        missing = wanted
        for node in sorted(left, key=lambda name: (left[name], name)):
            count = min(missing, left[node] // gpus)
            if count:
                placed.append(Placed(node, count, gpus))
                left[node] -= count * gpus
                missing -= count
    return placed


def _mixed(rooms: Sequence[NodeRoom], total: int, base: int) -> list[Sized] | None:
    """A split into pods of `base` GPUs, twice as many, four times as many and so on; None if there is none."""
    room = [_capped(each, base) for each in rooms]
    if sum(gpus // base for gpus in room) < total // base:
        return None
    size, way, left = base, list[Sized](), total
    while 2 * size <= max(room):
        size *= 2
    while left:
        # What larger pods take is a multiple of this size, wherever they are placed.
        pods = min(left // size, sum(gpus // size for gpus in room) - (total - left) // size)
        if pods:
            way.append(Sized(pods, size))
            left -= pods * size
        size //= 2
    return way if len(way) > 1 else None


def pods_of_size(rooms: Iterable[NodeRoom], size: int) -> int:
    """How many pods of one size fit."""
    return sum(_capped(room, size) // size for room in rooms)


def _capped(room: NodeRoom, base: int) -> int:
    """GPUs of a node that pods of at least `base` GPUs can take."""
    return room.gpus if room.slots is None else min(room.gpus, room.slots * base)


def _pods(way: Iterable[Sized]) -> int:
    return sum(each.pods for each in way)


def _divisors(number: int) -> list[int]:
    """Divisors, the largest first."""
    return [size for size in range(number, 0, -1) if number % size == 0]


def _groups(rooms: list[NodeRoom]) -> Iterable[list[NodeRoom]]:
    """The rooms of each GPU model, then all."""
    for model in sorted({room.model or "" for room in rooms}):
        yield [room for room in rooms if (room.model or "") == model]
    yield rooms
