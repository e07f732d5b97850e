"""Shared PromQL expressions.

Series of agents carry no node label; it is joined from `gpuwarden_agent_info`. Several replicas of the daemon may
export the same series: only one of each is taken, because duplicates would double sums and break joins.
"""

from __future__ import annotations

import re

_SIMPLE = re.compile(r"^\w+(\{[^{}]*\})?$|^\w+( by \([^()]*\))? ?\((?:[^()]|\([^()]*\))*\)$")

NODE = 'node=~"$node"'
IN_POD = 'namespace=~"$namespace",user=~"$user"'
HELD_BY = 'user=~"$user",queue=~"$queue",namespace=~"$namespace"'
GPUS = f'{NODE},gpu=~"$gpu",{HELD_BY}'
AGENTS = f"gpuwarden_agent_info{{{NODE}}}"
GPU_STATE = f"topk by (uuid) (1, gpuwarden_gpu_state{{{GPUS}}})"


def _enclosed(expr: str) -> str:
    return expr if _SIMPLE.match(expr) else f"({expr})"


def on_node(expr: str) -> str:
    """Expression on an agent's series with the node label, restricted to the selected nodes."""
    return f"{_enclosed(expr)} * on(instance) group_left(node) {AGENTS}"


def by_node(expr: str, *labels: str, how: str = "max") -> str:
    """Expression on an agent's series, aggregated by node and these labels."""
    return f"{how} by ({', '.join(('node', *labels))}) ({on_node(expr)})"


def of_gpus(expr: str, *labels: str, how: str = "max") -> str:
    """Expression on GPUs, restricted to the selected ones, with the labels of their holder.

    The holder's labels come from the daemon, which names one holder per GPU: the join is always unique.
    """
    wanted = ("node", "gpu", *labels)
    joined = ", ".join(label for label in ("node", *labels) if label in ("node", "user", "queue", "namespace", "pod"))
    return f"{how} by ({', '.join(wanted)}) ({_enclosed(expr)} * on(uuid) group_left({joined}) {GPU_STATE})"


def by_gpu_uuid(expr: str) -> str:
    """Expression on GPUs, restricted to the selected ones and aggregated by uuid."""
    return f"max by (uuid) ({_enclosed(expr)} * on(uuid) group_left() {GPU_STATE})"


def one(metric: str, *labels: str) -> str:
    """Series of the daemon, once for all replicas."""
    return f"max by ({', '.join(labels)}) ({metric})" if labels else f"max({metric})"


def count(expr: str, witness: str) -> str:
    """Number of series; 0 instead of no data while `witness` has series."""
    return f"count({expr}) or 0 * count({witness})"


def total(expr: str, witness: str) -> str:
    """Sum of the series; 0 instead of no data while `witness` has series."""
    return f"sum({expr}) or 0 * count({witness})"


def top(expr: str, limit: int = 20) -> str:
    """Highest series: a chart of everything is unreadable in a large cluster."""
    return f"topk({limit}, {expr})"


def bottom(expr: str, limit: int = 20) -> str:
    """Lowest series, where low values are the problem."""
    return f"bottomk({limit}, {expr})"


def rate(counter: str) -> str:
    """Increase of a counter per second."""
    return f"rate({counter}[$__rate_interval])"


def grown(counter: str) -> str:
    """Increase of a counter between two points of a chart."""
    return f"increase({counter}[$__rate_interval])"


def numbered(metric: str, selector: str, label: str, values: tuple[str, ...], *by: str) -> str:
    """Series whose value is the position, from 1, of its label among `values`."""
    parts = (
        f'{number} * {metric}{{{label}="{value}"{"," if selector else ""}{selector}}}'
        for number, value in enumerate(values, 1)
    )
    return f"max by ({', '.join(by)}) ({' or '.join(parts)})"
