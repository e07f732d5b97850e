"""Expressions that are needed more than once.

Series of agents carry no node: it is joined to them. Series of the daemon may come from several replicas that all say
the same: one of each is taken, or sums would be doubled and joins refused.
"""

from __future__ import annotations

import re

_SIMPLE = re.compile(r"^\w+(\{[^{}]*\})?$|^\w+( by \([^()]*\))? ?\((?:[^()]|\([^()]*\))*\)$")

NODE = 'node=~"$node"'
HELD_BY = 'user=~"$user",queue=~"$queue",namespace=~"$namespace"'
CARDS = f'{NODE},gpu=~"$gpu",{HELD_BY}'
AGENTS = f"gpuwarden_agent_info{{{NODE}}}"
CARD_STATE = f"topk by (uuid) (1, gpuwarden_gpu_state{{{CARDS}}})"


def _whole(expr: str) -> str:
    return expr if _SIMPLE.match(expr) else f"({expr})"


def on_node(expr: str) -> str:
    """Given an expression on an agent's series, return it with the node, for the nodes that are chosen."""
    return f"{_whole(expr)} * on(instance) group_left(node) {AGENTS}"


def by_node(expr: str, *labels: str, how: str = "max") -> str:
    """The same, with only the node and these labels left."""
    return f"{how} by ({', '.join(('node', *labels))}) ({on_node(expr)})"


def of_cards(expr: str, *labels: str, how: str = "max") -> str:
    """Given an expression on cards, return it for the cards that are chosen, with who holds them.

    The holder's labels come from the daemon. There is one holder a card, so that the join is always possible.
    """
    wanted = ("node", "gpu", *labels)
    joined = ", ".join(label for label in ("node", *labels) if label in ("node", "user", "queue", "namespace", "pod"))
    return f"{how} by ({', '.join(wanted)}) ({_whole(expr)} * on(uuid) group_left({joined}) {CARD_STATE})"


def by_card_id(expr: str) -> str:
    """Given an expression on cards, return one value for each card that is chosen, by its uuid only."""
    return f"max by (uuid) ({_whole(expr)} * on(uuid) group_left() {CARD_STATE})"


def one(metric: str, *labels: str) -> str:
    """Given a series of the daemon, return it once, however many replicas report it."""
    return f"max by ({', '.join(labels)}) ({metric})" if labels else f"max({metric})"


def count(expr: str, witness: str) -> str:
    """Return how many series an expression has: 0 when it has none although there is something to count."""
    return f"count({expr}) or 0 * count({witness})"


def total(expr: str, witness: str) -> str:
    """Return the sum of an expression: 0 when it has no series although there is something to add up."""
    return f"sum({expr}) or 0 * count({witness})"


def top(expr: str, most: int = 20) -> str:
    """Return the highest of an expression: of everything in a big cluster only these can be read off a chart."""
    return f"topk({most}, {expr})"


def bottom(expr: str, most: int = 20) -> str:
    """Return the lowest of an expression, where it is the low values that are trouble."""
    return f"bottomk({most}, {expr})"


def rate(counter: str) -> str:
    """Return how fast a counter grows per second."""
    return f"rate({counter}[$__rate_interval])"


def grown(counter: str) -> str:
    """Return by how much a counter grew between two points of a chart."""
    return f"increase({counter}[$__rate_interval])"


def numbered(metric: str, selector: str, label: str, values: tuple[str, ...], *by: str) -> str:
    """Given a series that has its word in a label, return one series with the number of the word."""
    parts = (
        f'{number} * {metric}{{{label}="{value}"{"," if selector else ""}{selector}}}'
        for number, value in enumerate(values, 1)
    )
    return f"max by ({', '.join(by)}) ({' or '.join(parts)})"
