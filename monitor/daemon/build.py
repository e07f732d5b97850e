"""Builds the cluster connection from the configuration."""

from __future__ import annotations

from dataclasses import replace

from monitor.cluster.live import ClusterSettings, LiveCluster
from monitor.config.root import Config
from monitor.kube.client import KubeCredentialsError, connect


def make_cluster(config: Config, own_agent: str | None = None, state: str | None = None) -> LiveCluster:
    """Cluster of the configuration, not started. `own_agent` is the address of the agent in this process.

    `state` is the state directory; only the daemon has one. Raise KubeCredentialsError if the configuration requires
    Kubernetes and it is not available.
    """
    daemon = config.daemon
    api, why_none = None, "switched off by daemon.kubernetes.enabled"
    if daemon.kubernetes.enabled != "no":
        try:
            api = connect(daemon.kubernetes.kubeconfig, daemon.kubernetes.context)
        except KubeCredentialsError as error:
            if daemon.kubernetes.enabled == "yes":
                raise
            why_none = str(error)
    agents = tuple(str(address) for address in daemon.agents.static)
    if own_agent is not None:
        agents = (*agents, own_agent)
    elif not agents and api is None:
        agents = (str(config.agent.listen),)  # without Kubernetes, the only node is this one
    poll = daemon.agents.settings()
    settings = ClusterSettings(
        poll=replace(poll, token=poll.token or config.agent.read_token()),
        agents=agents,
        agent_label=daemon.agents.label,
        agent_namespace=daemon.agents.namespace,
        agent_port=daemon.agents.port,
        resource=daemon.gpu_resource,
        limits=daemon.gpu.limits(),
        rules=daemon.platform_rules(),
        cycle=daemon.cycle,
        state=state,
        job_ends=daemon.alerts.job_results is not None,
        annotations=daemon.alerts.annotations(),
    )
    return LiveCluster(settings, api, why_none)
