"""Every check, in the order in which they are shown. A new one: its facts and verdicts, its reader, a line here."""

from __future__ import annotations

import monitor.doctor.checks.agents as agents_of
import monitor.doctor.checks.clock as clock_of
import monitor.doctor.checks.config as config_of
import monitor.doctor.checks.kubernetes as kubernetes_of
import monitor.doctor.checks.language as language_of
import monitor.doctor.checks.node as node_of
import monitor.doctor.checks.nvml as nvml_of
import monitor.doctor.checks.packages as packages_of
import monitor.doctor.checks.ports as ports_of
import monitor.doctor.checks.receivers as receivers_of
import monitor.doctor.checks.rights as rights_of
import monitor.doctor.checks.sockets as sockets_of
import monitor.doctor.checks.state as state_of
from monitor.doctor.checks.agents import AgentsFacts
from monitor.doctor.checks.kubernetes import KubeFacts
from monitor.doctor.context import Visit
from monitor.doctor.inputs import clock, config, kubernetes, language, node, packages, ports, receivers, state
from monitor.doctor.run import LIMIT, Check

CONNECTING = 6.0  # an API server that takes no connection is given up after 5
AFTER_KUBERNETES = 8.0  # for those that need what the API server says, and then ask others
SENDING = 60.0


def _kubernetes(visit: Visit) -> KubeFacts:
    return visit.cluster.get().facts


def _agents(visit: Visit) -> AgentsFacts:
    return visit.agents.get()


def checks(*, sending: bool) -> tuple[Check, ...]:
    """Return all checks. Where messages are sent, their receivers are waited for."""
    return (
        Check("config.file", config.config, config_of.judge),
        Check("config.files", config.files, config_of.judge_files),
        Check("packages.versions", packages.packages, packages_of.judge),
        Check("kubernetes.api", _kubernetes, kubernetes_of.judge, CONNECTING),
        Check("kubernetes.rights", kubernetes.rights, rights_of.judge, AFTER_KUBERNETES),
        Check("agents.found", _agents, agents_of.judge_found, AFTER_KUBERNETES),
        Check("agents.readings", _agents, agents_of.judge_readings, AFTER_KUBERNETES),
        Check("agents.versions", _agents, agents_of.judge_versions, AFTER_KUBERNETES),
        Check("node.driver", node.nvml, nvml_of.judge, of_node=True),
        Check("node.runtimes", node.runtimes, sockets_of.judge_runtimes, of_node=True),
        Check("node.kubelet", node.kubelet, sockets_of.judge_kubelet, of_node=True),
        Check("node.processes", node.processes, node_of.judge_processes, of_node=True),
        Check("node.kernel-log", node.kernel_log, node_of.judge_kernel_log, of_node=True),
        Check("node.capabilities", node.capabilities, node_of.judge_capabilities, of_node=True),
        Check("node.cgroups", node.cgroup, node_of.judge_cgroup, of_node=True),
        Check("receivers.reached", receivers.receivers, receivers_of.judge, SENDING if sending else LIMIT),
        Check("receivers.services", receivers.services, receivers_of.judge_services),
        Check("state.directories", state.state, state_of.judge),
        Check("ports.listen", ports.ports, ports_of.judge),
        Check("clock.offsets", clock.clock, clock_of.judge, AFTER_KUBERNETES),
        Check("language.zone", language.zone, language_of.judge_zone),
        Check("language.locale", language.locale, language_of.judge_locale),
    )
