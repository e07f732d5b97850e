"""Repeated evaluation of all rules in the lab, like the daemon's, and incidents to detect."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.detect.base import Limits, RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.kept_facts import KeptFacts
from monitor.facts.storage import DiskFact
from monitor.probes.runner import ServiceProbes, ServiceTarget
from monitor.queries.cluster import current_moment
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.lab.registry import push_layer
from tests.nvml import FakeNvml
from tests.support import free_port, need, wait_until
from tests.support.action_keys import write_keys
from tests.support.command import command, get, quiet_environment, running

RESOURCE = "nvidia.com/gpu"
BEAT = 0.25
HOSTS = Path("/etc/hosts")
# A registry with this file rejects anonymous requests; the password is never used.
HTPASSWD = "nobody:$2b$05$aaaaaaaaaaaaaaaaaaaaaOEqz3KoKH6bru/RRpFuAJrwlceiJnvGu\n"
REGISTRY = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: "{root}/data"}}}}
http: {{addr: "{address}"}}
"""


class Looker:
    """Follows a cluster and evaluates every rule. `limits` overrides some; history is kept between evaluations."""

    def __init__(self, cluster: LiveCluster, limits: Mapping[str, Limits[Any]]) -> None:
        self._cluster = cluster
        self._limits = limits
        self._history = DetectionHistory()
        self.probes = ServiceProbes(())

    def world(self) -> ClusterFacts:
        return KeptFacts(RESOURCE).at(current_moment(self._cluster))

    def look(self) -> tuple[Finding, ...]:
        """Evaluate once and return the findings; no rule may fail."""
        found = detect(RULES, self._limits, RuleContext(self.world(), time.time(), self.probes.facts()), self._history)
        self._history = found.history
        broken = [finding for finding in found.findings if finding.cause == "rule-broken"]
        assert not broken, broken
        return found.findings

    def finds(self, rule: str, **labels: str) -> list[Finding]:
        """Evaluate once and return a rule's findings for the subject with these labels."""
        return [each for each in self.look() if each.rule == rule and labels.items() <= each.labels.items()]

    def expect(
        self, rule: str, cause: str, within: float, severity: Severity | None = None, /, **labels: str
    ) -> Finding:
        """Evaluate until a rule has exactly one finding for the subject, with this cause, and return it.

        With a severity, continue until it is reached: a filling disk passes lower ones on its way.
        """
        deadline, found = time.monotonic() + within, self.finds(rule, **labels)
        while [(each.cause, severity and each.severity) for each in found] != [(cause, severity)]:
            if time.monotonic() > deadline:
                pytest.fail(f"not within {within} s: {rule} {cause} {labels}, but {found or self.look()}")
            time.sleep(BEAT)
            found = self.finds(rule, **labels)
        return found[0]

    def expect_over(self, rule: str, within: float, **labels: str) -> None:
        """Evaluate until a rule has no finding for the subject."""
        wait_until(lambda: not self.finds(rule, **labels), within, f"no {rule} {labels}")

    def disk(self, mount: Path) -> DiskFact | None:
        """The agent's last fact about the disk at this mount point."""
        facts = (fact for snapshot in self.world().snapshots.values() for fact in snapshot.disk or ())
        return next((fact for fact in facts if fact.mount == str(mount)), None)


@contextmanager
def looking(
    kubeconfig: Path | None, agents: Sequence[str] = (), limits: Mapping[str, Limits[Any]] | None = None
) -> Iterator[Looker]:
    """Follow a cluster, if a kubeconfig is given, and agents."""
    kubernetes = {"enabled": "yes", "kubeconfig": str(kubeconfig)} if kubeconfig else {"enabled": "no"}
    asked = {"static": list(agents), "interval": "500ms"}
    config = Config.model_validate({"daemon": {"cycle": "1s", "kubernetes": kubernetes, "agents": asked}})
    cluster = make_cluster(config)
    cluster.start()
    try:
        cluster.wait_settled(60)
        yield Looker(cluster, limits or {})
    finally:
        cluster.stop()


@contextmanager
def probing(looker: Looker, target: ServiceTarget) -> Iterator[None]:
    """Add a service probe whose first round has completed."""
    before, looker.probes = looker.probes, ServiceProbes((target,))
    looker.probes.start()
    try:
        looker.probes.wait_first_round(60)
        yield
    finally:
        looker.probes.stop()
        looker.probes = before


def acting_node(lab: Lab, directory: Path) -> tuple[Path, FakeNvml, dict[str, str]]:
    """The daemon's private key, and driver and settings of an agent that acts on the lab's node."""
    keys = write_keys(directory)
    nvml = FakeNvml(directory / "nvml", gpus=len(lab.gpu_ids))
    for index, uuid in enumerate(lab.gpu_ids):
        nvml.gpu(index, uuid=uuid)
    settings = {
        "AGENT__NODE_NAME": NODE,
        **lab.agent_settings(),
        "AGENT__ACTIONS": keys.agent_actions(),
    }
    return keys.private_file, nvml, settings


@contextmanager
def agent_of(state: Path, collectors: Sequence[str], driver: Mapping[str, str], **settings: str) -> Iterator[str]:
    """Run a real agent with short intervals of the named collectors; yields its address once it responds."""
    port = free_port("127.0.0.1")
    quick = {f"AGENT__COLLECTORS__{name.upper()}": "{interval: 500ms, limit: 2s}" for name in collectors}
    environ = quiet_environment(state, AGENT__LISTEN=f"127.0.0.1:{port}", **quick, **settings)
    with running(command("agent"), {**environ, **driver}, stdout=subprocess.DEVNULL):
        wait_until(lambda: _is_answering(port), 20, "the agent answers")
        yield f"127.0.0.1:{port}"


def _is_answering(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/healthz")[0] == 200
    except OSError:
        return False


@contextmanager
def second_registry(directory: Path, host: str, *, login: bool = False) -> Iterator[int]:
    """Run a registry without TLS on a loopback address; yields its port. With `login` it rejects anonymous requests."""
    need(shutil.which("docker-registry") is not None, "docker-registry")
    port = free_port(host)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    config, passwords = directory / "registry.yml", directory / "htpasswd"
    passwords.write_text(HTPASSWD)
    auth = f'auth: {{htpasswd: {{realm: lab, path: "{passwords}"}}}}\n' if login else ""
    config.write_text(REGISTRY.format(root=directory, address=address) + auth)
    line = ["docker-registry", "serve", str(config)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _accepts(host, port), 10, "the registry listens")
            yield port
        finally:
            process.kill()


def _accepts(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as connection:
        return connection.connect_ex((host, port)) == 0


@contextmanager
def host_alias(name: str, address: str) -> Iterator[None]:
    """Add a host name for an address and remove it again, preserving other changes of the file."""
    need(os.geteuid() == 0 and os.access(HOSTS, os.W_OK), f"root, to write {HOSTS}")
    line = f"{address} {name}\n"
    with HOSTS.open("a") as hosts:
        hosts.write(line)
    try:
        yield
    finally:
        HOSTS.write_text(HOSTS.read_text().replace(line, ""))


def push_new_image(lab: Lab, name: str, megabytes: int = 1) -> str:
    """Push an image without any layer on the node, so that a pod must pull all of it; return its full name."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("data")
        member.size = megabytes << 20
        tar.addfile(member, io.BytesIO(secrets.token_bytes(member.size)))  # incompressible and unique
    return push_layer(lab.registry, name, content.getvalue())
