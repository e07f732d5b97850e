"""The targets by name. Each takes bytes and returns; any exception is a parser bug."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.fuzz import targets_cluster, targets_node

Target = Callable[[bytes], None]
CORPUS = Path(__file__).with_name("corpus")
ALL: tuple[Target, ...] = (
    targets_cluster.snapshot, targets_cluster.update,
    targets_cluster.kube_list, targets_cluster.kube_watch, targets_cluster.kube_values,
    targets_cluster.callback, targets_cluster.silences, targets_cluster.active_alerts,
    targets_cluster.matcher, targets_cluster.form, targets_cluster.template, targets_cluster.configuration,
    targets_cluster.harbor, targets_cluster.explain_message,
    targets_node.cgroup, targets_node.cgroup_files, targets_node.proc_stat, targets_node.mount_table,
    targets_node.kernel_log, targets_node.checkpoint, targets_node.kubelet_allocations, targets_node.kubelet_config,
    targets_node.grpc_response, targets_node.docker, targets_node.cri, targets_node.action, targets_node.signature,
    targets_node.request_head, targets_node.log_tail,
)  # fmt: skip
BY_NAME: dict[str, Target] = {each.__name__: each for each in ALL}


def seeds(name: str) -> list[Path]:
    """Corpus of a target: recorded inputs, and every input that once broke it (found-*)."""
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())
