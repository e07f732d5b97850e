"""Two replicas around the lab: behind one address, with two Alertmanagers, beside an embedded daemon."""

from __future__ import annotations

import json
import secrets
import selectors
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT, blocks
from tests.e2e.cleaning import QUICK, Cleaner
from tests.e2e.detecting import acting_node, agent_of
from tests.e2e.scenes import Scene
from tests.e2e.test_lease import POLICY, Replica, account
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import free_port, need, wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import Asked, LocalServer
from tests.support.receivers.real_alertmanager import BINARY, RealAlertmanager

Incident = tuple[str, str, str]  # rule, cause, severity
Found = tuple[str, str, str, str]  # and labels
DOCUMENTED = ROOT / "docs" / "scaling.md"
REPLICAS = ("replica-1", "replica-2")
RULES = {"gpu_orphan": {"after": "1s"}, "service_down": {"after": "1s"}}
WATCHED = ("image-pull", "gpu-orphan", "disk-full", "service-down")
DISK = "replicadisk"  # other tests have disks on this machine too, some of them full
# In a message, one line per change: the alert, and whether it fires or is resolved.
TEMPLATE = (
    "{% for told in notifications %}{% for each in told.subjects if each.fresh %}"
    "{{ each.phase }} {{ each.rule }} {{ each.cause }} {{ each.severity }} {{ each.labels.get('mount', '') }}\n"
    "{% endfor %}{% endfor %}nothing else"
)
# Gossip intervals of two Alertmanagers, shortened from seconds.
HASTY = (
    "--cluster.peer-timeout=2s", "--cluster.gossip-interval=50ms", "--cluster.probe-interval=300ms",
    "--cluster.probe-timeout=200ms", "--cluster.pushpull-interval=2s",
)  # fmt: skip


class Portal(LocalServer):
    """A platform service that responds with an error unless `well`."""

    well = True

    def answer(self, asked: Asked) -> tuple[int, Any]:
        return (200, b"welcome") if self.well else (503, b"no database")


class Balancer:
    """The replicas' Service: connections go round-robin, even to a dead replica."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._next = cycle(ports)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Balancer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(60)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=_relay, args=(caller, next(self._next)), daemon=True).start()


def _relay(caller: socket.socket, port: int) -> None:
    """Relay data between a client and a port until either closes."""
    with caller, suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as called:
        other = {caller: called, called: caller}
        with selectors.DefaultSelector() as ready:
            for end in other:
                ready.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    end = caller if key.fileobj is caller else called
                    said = end.recv(65536)
                    if not said:
                        return
                    other[end].sendall(said)


# Alertmanagers


def alertmanager_config(hook: str, token: Path) -> str:
    """The documented receiver with our address and token, without waiting times."""
    documented = [yaml.safe_load(block.text) for block in blocks(DOCUMENTED) if block.kind == "yaml-alertmanager"]
    (config,) = [each for each in documented if "route" not in each]
    (receiver,) = config["receivers"]
    (webhook,) = receiver["webhook_configs"]
    assert webhook["url"].endswith("/v1/alertmanager")
    webhook["url"] = hook
    webhook["http_config"]["authorization"]["credentials_file"] = str(token)
    example = yaml.safe_load((ROOT / "alerts" / "alertmanager.daemon.example.yml").read_text(encoding="utf-8"))
    grouped = {"receiver": receiver["name"], "group_by": example["route"]["group_by"], "repeat_interval": "4h"}
    return yaml.safe_dump({**config, "route": grouped | {"group_wait": "1s", "group_interval": "1s"}})


@dataclass(frozen=True)
class Member:
    """One Alertmanager of a cluster."""

    running: RealAlertmanager
    process: subprocess.Popen[str]

    def peers(self) -> int:
        """Number of known members including itself."""
        return len(self.running.get("/api/v2/status")["cluster"].get("peers", ()))


@contextmanager
def alertmanagers(folder: Path, hook: str, token: Path) -> Iterator[tuple[Member, Member]]:
    """Run two Alertmanagers that deduplicate notifications: the first notifies, the second waits for it."""
    need(shutil.which(BINARY) is not None, f"{BINARY} (Debian package)")
    folder.mkdir()
    config = folder / "alertmanager.yml"
    config.write_text(alertmanager_config(hook, token))
    gossip = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:

        def start(own: str, other: str) -> Member:
            made = RealAlertmanager(f"http://127.0.0.1:{free_port()}")
            line = [
                BINARY, f"--config.file={config}", f"--storage.path={folder / own}", f"--cluster.listen-address={own}",
                f"--cluster.advertise-address={own}", f"--cluster.peer={other}", *HASTY, "--log.level=error",
                f"--web.listen-address={made.url.removeprefix('http://')}",
            ]  # fmt: skip
            process = stack.enter_context(running(line, {}, folder, subprocess.DEVNULL))
            wait_until(lambda: _answers(made), 15, "Alertmanager answers")
            return Member(made, process)

        first, second = start(*gossip), start(*reversed(gossip))
        wait_until(lambda: first.peers() == second.peers() == 2, 15, "they know each other")
        yield first, second


def _answers(alertmanager: RealAlertmanager) -> bool:
    try:
        return bool(alertmanager.get("/api/v2/status"))
    except OSError:
        return False


# Daemons


def wecom(bot: WeComBot) -> dict[str, str]:
    return {"name": "ops", "kind": "wecom", "url": bot.url, "template": TEMPLATE}


def patience(*receivers: str) -> dict[str, Any]:
    """Alert timing for these receivers: notify immediately, resolve within a second."""
    route = {"receivers": list(receivers), "group_wait": "0s", "group_interval": "0s"}
    return {
        "cluster": "lab",
        "routes": [route],
        "rules": {rule.replace("-", "_"): {"resolve_after": "1s"} for rule in WATCHED},
    }


def told(bot: WeComBot) -> Counter[str]:
    """Notifications to a group about the tested incidents, with counts."""
    lines = [line.split() for message in bot.taken for line in message["markdown"]["content"].splitlines()]
    news = [(words[:4], words[4:]) for words in lines if len(words) > 3 and words[1] in WATCHED]
    return Counter(" ".join(what) for what, mount in news if not mount or mount[0].endswith(DISK))


def firing(*incidents: Incident) -> Counter[str]:
    """Notifications expected once for each when it starts or its severity rises."""
    return Counter(" ".join(("firing", *each)) for each in incidents)


def over(*incidents: Incident) -> Counter[str]:
    """Notifications expected once for each when it ends."""
    return Counter(" ".join(("resolved", *each)) for each in incidents)


def found(page: str) -> set[Found]:
    """Findings of a daemon without figures and without other tests' disks."""
    body = json.loads(get(f"{page}/v1/findings")[2])
    return {
        (each["rule"], each["cause"], each["severity"], json.dumps(each["labels"], sort_keys=True))
        for each in body
        if each["labels"].get("mount", DISK).endswith(DISK)
    }


@dataclass(frozen=True)
class Stage:
    """All components, their notifications, and what can fail."""

    nvml: FakeNvml
    portal: Portal
    embedded: Replica
    replicas: tuple[Replica, Replica]
    alertmanagers: tuple[Member, Member]
    group: WeComBot
    embedded_group: WeComBot

    def expect_all_find(self, *wanted: Incident) -> None:
        """Wait until all live daemons have the same findings, and exactly these of the tested incidents."""
        living = [each for each in (self.embedded, *self.replicas) if each.process.poll() is None]
        each_found: list[set[Found]] = []

        def is_so() -> bool:
            each_found[:] = [found(each.asked.page) for each in living]
            watched = sorted(each[:3] for each in each_found[0] if each[0] in WATCHED)
            return watched == sorted(wanted) and all(each == each_found[0] for each in each_found)

        try:
            wait_until(is_so, 30, f"all find {wanted}")
        except pytest.fail.Exception as failure:
            raise AssertionError(each_found) from failure


@contextmanager
def replicated(lab: Lab, scene: Scene, directory: Path) -> Iterator[Stage]:
    """Run a real agent, an embedded daemon, and two replicas that share a lease and two Alertmanagers."""
    calling = directory / "callback-token"
    calling.write_text(secrets.token_hex(16))
    acting, nvml, on_node = acting_node(lab, directory)
    ports = [free_port() for _ in range(3)]
    with ExitStack() as stack:
        enter = stack.enter_context
        portal, group, embedded_group = enter(Portal()), enter(WeComBot()), enter(WeComBot())
        balancer = enter(Balancer(ports[1:]))
        hook = f"http://127.0.0.1:{balancer.port}/v1/alertmanager"
        members = enter(alertmanagers(directory / "alertmanagers", hook, calling))
        agent = enter(agent_of(directory / "agent", QUICK, nvml.environment(), **on_node))
        common = {
            "cycle": "500ms",
            "agents": {"interval": "500ms", "static": [agent]},
            "kubernetes": {"enabled": "yes", "kubeconfig": str(account(scene).kubeconfig(lab.kubeconfig, directory))},
            "gpu": {"settle": "2s"},
            "rules": RULES,
            "services": [{"name": "portal", "url": portal.base, "interval": "500ms"}],
        }
        receivers = [
            {"name": f"am{number}", "kind": "alertmanager", "url": member.running.url}
            for number, member in enumerate(members, 1)
        ]
        shared = {
            "lease": {"namespace": scene.name},
            "alerts": {
                "receivers": [*receivers, wecom(group)],
                **patience("am1", "am2"),
                "alertmanager": {"url": members[1].running.url},
                "callback": {"receivers": ["ops"], "token_file": str(calling)},
            },
            "cleanup": {"agents": {"private_key_file": str(acting)}, "policies": [POLICY]},
        }
        alone = {"alerts": {"receivers": [wecom(embedded_group)], **patience("ops")}}

        def start(name: str, port: int, more: Mapping[str, Any]) -> Replica:
            config = directory / f"{name}.yml"
            config.write_text(yaml.safe_dump({"log_level": "warning", "daemon": common | dict(more)}))
            settings = {"DAEMON__LISTEN": f"127.0.0.1:{port}", "DAEMON__KUBERNETES__ENABLED": "yes"}
            environ = quiet_environment(directory / name, CONFIG=str(config), **settings)
            process = enter(running(command("daemon"), environ, stdout=subprocess.DEVNULL))
            return Replica(process, Cleaner(nvml, agent, f"http://127.0.0.1:{port}", environ), directory / name)

        embedded, *both = map(start, ("embedded", *REPLICAS), ports, (alone, shared, shared))
        wait_until(lambda: all(each.answers() for each in (embedded, *both)), 40, "all daemons look")
        wait_until(lambda: both[0].lease().holder == both[1].lease().holder is not None, 10, "they agree who acts")
        yield Stage(nvml, portal, embedded, (both[0], both[1]), members, group, embedded_group)
