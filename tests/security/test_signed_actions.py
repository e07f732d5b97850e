"""One compromised node controls only itself: requests of others, replays, tampering, and limits no request can lower.

The agents are real, with real datasets and processes; the attacker has everything that a node has.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests

from monitor.agent.actions import build
from monitor.agent.actions.limits import HourlyBudget, PurgeLimits
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, done, refused
from monitor.agent.actions.processes import ProcessActions
from monitor.agent.main import RunningAgent, start
from monitor.agent.procfs import read_process
from monitor.agent.runtime import Runtimes
from monitor.agent.server import AgentServer
from monitor.agent.settings import TlsSettings
from monitor.base.peer_http import PeerTls
from monitor.base.signing import SCHEME, RequestSignature, RequestSigner, RequestVerifier, generate_keys
from monitor.cluster.agents.client import AgentError, SnapshotClient
from monitor.config.file import ConfigError, load
from monitor.config.root import Config
from monitor.facts import GpuProcessFact
from monitor.facts.actions import (
    ActionFact,
    ActionState,
    AnyAction,
    KillProcess,
    PurgeTrash,
    ScanDatasets,
    TrashUnit,
)
from monitor.facts.datasets import ScanFact
from tests.agent.actions.requests_sent import NO_LIMITS, request
from tests.cleanup.running import Readable
from tests.support import wait_until
from tests.support.action_keys import ActionKeys, write_keys
from tests.support.certificates import authority
from tests.support.clock import FakeClock
from tests.support.snapshots import full_snapshot

ROUTE = "/v1/actions"
OLD_TOKEN = "the-shared-action-token"


@dataclass
class Victim:
    """A real agent with one dataset, and its daemon's keys."""

    agent: RunningAgent
    node: str
    root: Path
    keys: ActionKeys
    seen: list[tuple[str, bytes]] = field(default_factory=list)  # Authorization and body of each signed request

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.agent.address)

    @property
    def dataset(self) -> Path:
        return self.root / "zhang" / "data"

    @property
    def survives(self) -> bool:
        """Whether the dataset is in its place or in the trash."""
        return self.dataset.exists() or any(self.root.glob(".gpuwarden-trash/*/unit/data"))

    def send(self, body: bytes, authorization: str, path: str = ROUTE, method: str = "POST") -> requests.Response:
        return requests.request(
            method, self.url + path, data=body, headers={"Authorization": authorization}, timeout=30
        )

    def sign(self, body: bytes, method: str = "POST", path: str = ROUTE) -> str:
        return self.keys.signer().sign(self.node, method, path, body, time.time())

    def perform(self, action: AnyAction) -> ActionFact:
        """Have the daemon request an action, and wait for its end."""
        sent = request(action)
        body = msgspec.json.encode(sent)
        authorization = self.sign(body)
        self.seen.append((authorization, body))
        reply = self.send(body, authorization)
        assert reply.status_code == 202, reply.text
        path = f"{ROUTE}/{sent.id}"

        def fact() -> ActionFact:
            reply = self.send(b"", self.sign(b"", "GET", path), path, "GET")
            return msgspec.json.decode(reply.content, type=ActionFact)

        wait_until(lambda: fact().state is not ActionState.RUNNING, 15, "the action has ended")
        return fact()

    def trash(self) -> ActionFact:
        scanned = self.perform(ScanDatasets(root=str(self.root), pattern="*"))
        (unit,) = msgspec.json.decode(scanned.result["scan"], type=ScanFact).units
        return self.perform(
            TrashUnit(
                root=unit.root, path=unit.path, device=unit.device, inode=unit.inode, newest=time.time(), policy="p"
            )
        )  # fmt: skip


@contextmanager
def victim(folder: Path, node: str, keys: ActionKeys, **limits: Any) -> Iterator[Victim]:
    root = folder / node / "share"
    (root / "zhang").mkdir(parents=True)
    (root / "zhang" / "data").write_bytes(b"x" * 10_000)
    paths = {"state": str(folder / node / "state"), "docker_socket": str(folder / "none"), "cri_sockets": []}
    actions = {"enabled": True, "public_key_file": str(keys.public_file), "dataset_roots": [str(root)]}
    config = {"node_name": node, "listen": "127.0.0.1:0", "paths": paths, "actions": actions | {"limits": limits}}
    agent = start(Config.model_validate({"agent": config}).agent_settings())
    try:
        yield Victim(agent, node, root, keys)
    finally:
        agent.stop()


@pytest.fixture
def keys(tmp_path: Path) -> ActionKeys:
    return write_keys(tmp_path / "keys")


@pytest.fixture
def node(tmp_path: Path, keys: ActionKeys, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
    monkeypatch.setattr(build, "InUse", Readable)
    with victim(tmp_path, "gpu-01", keys) as made:
        yield made


def purge_now(victim: Victim) -> bytes:
    return msgspec.json.encode(request(PurgeTrash(root=str(victim.root), older_than_seconds=0.0)))


def refusals(victim: Victim) -> dict[str, int]:
    fact = victim.agent.snapshot().actions
    assert fact is not None
    return fact.refused


def test_a_node_cannot_act_on_another_node(node: Victim, tmp_path: Path) -> None:
    """The attacker has the configuration of another node: its public keys, and a key pair of its own making."""
    public = node.keys.public_file.read_text()
    body = purge_now(node)
    own = RequestSigner(generate_keys().private)
    forged = own.sign("gpu-01", "POST", ROUTE, body, time.time())
    real_key_id = RequestSigner(node.keys.private_file.read_text()).key_id
    attempts = [
        forged,
        forged.replace(own.key_id, real_key_id),
        f"{SCHEME} key={real_key_id}, node=gpu-01, at={int(time.time())}, signature={'A' * 86}==",
        public.strip(),
        f"Bearer {public.strip()}",
    ]
    assert [node.send(body, attempt).status_code for attempt in attempts] == [401] * len(attempts)
    assert refusals(node) == {"signature": 4, "token": 1}
    assert node.survives


def test_a_public_key_signs_nothing(keys: ActionKeys) -> None:
    public = keys.public_file.read_text()
    with pytest.raises(ValueError, match="holds the public key where the private key belongs"):
        RequestSigner(public)
    # The bytes of the public key, used as a private key, make another key pair.
    misused = RequestSigner(public.replace("public", "private"))
    signature = RequestSignature.parse(misused.sign("gpu-01", "GET", "/", b"", 1.0))
    assert signature is not None
    assert not RequestVerifier("gpu-01", public).verify(signature, "GET", "/", b"")


def test_a_request_for_one_node_is_worthless_at_another(node: Victim, tmp_path: Path, keys: ActionKeys) -> None:
    body = msgspec.json.encode(request(ScanDatasets(root=str(node.root), pattern="*")))
    recorded = keys.signer().sign("gpu-02", "POST", ROUTE, body, time.time())
    reply = node.send(body, recorded)
    assert (reply.status_code, reply.json()["error"]) == (421, "signed for node 'gpu-02'; this is 'gpu-01'")
    renamed = node.send(body, recorded.replace("node=gpu-02", "node=gpu-01"))
    assert renamed.status_code == 401
    assert refusals(node) == {"node": 1, "signature": 1}


def test_a_recorded_request_is_good_once(node: Victim) -> None:
    assert node.trash().outcome == "trashed"
    for authorization, body in node.seen:
        reply = node.send(body, authorization)
        assert (reply.status_code, "already used" in reply.text) == (409, True)
    # The header of one request does not fit the body or path of another.
    (first, _), (_, second) = node.seen
    assert node.send(second, first).status_code == 401
    assert node.send(b"", first, f"{ROUTE}/a1/stop").status_code == 401


Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("another root", lambda plain: plain["action"].update(root="/mnt/other")),
        ("another action", lambda plain: plain.update(action={"kind": "restore-unit", "root": "/", "trash_id": "a"})),
        ("a new id", lambda plain: plain.update(id="fresh")),
        ("a longer validity", lambda plain: plain.update(expires_at=plain["expires_at"] + 100)),
        ("one more blank", lambda plain: None),
    ],
)  # fmt: skip
def test_a_changed_body_is_refused(node: Victim, name: str, change: Change) -> None:
    body = msgspec.json.encode(request(ScanDatasets(root=str(node.root), pattern="*")))
    authorization = node.sign(body)
    plain = msgspec.json.decode(body)
    change(plain)
    changed = msgspec.json.encode(plain) if name != "one more blank" else body + b" "
    assert node.send(changed, authorization).status_code == 401
    assert refusals(node) == {"signature": 1}


def test_status_needs_a_signature_too(node: Victim) -> None:
    scanned = node.perform(ScanDatasets(root=str(node.root), pattern="*"))
    path = f"{ROUTE}/{scanned.id}"
    assert requests.get(node.url + path, timeout=30).status_code == 401
    assert node.send(b"", node.sign(b"", "GET", f"{ROUTE}/other"), path, "GET").status_code == 401
    old = node.keys.signer().sign(node.node, "GET", path, b"", time.time() - 1000)
    assert node.send(b"", old, path, "GET").status_code == 410


def test_the_shared_token_of_older_versions_is_refused_with_instructions(node: Victim, tmp_path: Path) -> None:
    reply = node.send(purge_now(node), f"Bearer {OLD_TOKEN}")
    assert reply.status_code == 401
    for word in ("gpuwarden keys", "daemon.cleanup.agents.private_key_file", "agent.actions.public_key_file"):
        assert word in reply.json()["error"]
    assert OLD_TOKEN not in reply.text
    assert node.survives
    file = tmp_path / "old.yml"
    file.write_text(
        "agent:\n  actions:\n    enabled: true\n    token_file: /etc/gpuwarden/action-token\n"
        f"daemon:\n  cleanup:\n    agents: {{token: {OLD_TOKEN}}}\n"
    )
    with pytest.raises(ConfigError) as invalid:
        load(str(file), {})
    text = str(invalid.value)
    assert (
        ":4: agent.actions.token_file: agents no longer accept a shared token; create keys with gpuwarden keys" in text
    )
    assert "public_key_file: /etc/gpuwarden/action-public-key" in text
    assert ":7: daemon.cleanup.agents.token: agents no longer accept a shared token" in text
    assert "private_key_file: /etc/gpuwarden/action-private-key" in text
    assert OLD_TOKEN not in text


def test_keys_are_rotated_without_a_gap(tmp_path: Path, keys: ActionKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "InUse", Readable)
    new = write_keys(tmp_path / "new")
    keys.public_file.write_text(f"{keys.public_file.read_text()}\n# the next one\n{new.public_file.read_text()}\n")
    with victim(tmp_path, "gpu-01", keys) as node:
        scan = ScanDatasets(root=str(node.root), pattern="*")
        assert node.perform(scan).state is ActionState.DONE
        node.keys = new
        assert node.perform(scan).state is ActionState.DONE


def test_a_wrong_signature_is_counted_and_slowed_down(node: Victim) -> None:
    body = purge_now(node)
    guess = RequestSigner(generate_keys().private).sign("gpu-01", "POST", ROUTE, body, time.time())
    replies = [node.send(body, guess).status_code for _ in range(62)]
    assert (replies.count(401), replies.count(429)) == (60, 2)
    assert node.send(body, node.sign(body)).status_code == 429, "not even with a valid signature"


def test_the_certificate_of_an_agent_is_not_one_of_a_client(tmp_path: Path) -> None:
    ours = authority(tmp_path / "ca")
    certificate, key = ours.sign("agent", "DNS:gpuwarden-agent", "serverAuth")
    tls = TlsSettings(cert_file=certificate, key_file=key, client_ca_file=ours.ca_file)
    server = AgentServer("127.0.0.1", 0, None, full_snapshot, tls=tls)
    server.start()
    target = "{}:{}".format(*server.address)

    def fetch(client: tuple[str, str]) -> bytes:
        return SnapshotClient(10.0, None, PeerTls(ours.ca_file, *client, "gpuwarden-agent"))(target)

    try:
        assert b"gpu-01" in fetch(ours.sign("daemon", "DNS:daemon", "clientAuth"))
        with pytest.raises(AgentError):
            fetch((certificate, key))
    finally:
        server.stop()
    client_certificate, client_key = ours.sign("daemon", "DNS:daemon", "clientAuth")
    swapped = TlsSettings(cert_file=client_certificate, key_file=client_key, client_ca_file=None)
    impostor = AgentServer("127.0.0.1", 0, None, full_snapshot, tls=swapped)
    impostor.start()
    try:
        with pytest.raises(AgentError, match="certificate verify failed"):
            SnapshotClient(10.0, None, PeerTls(ours.ca_file, server_name="daemon"))("{}:{}".format(*impostor.address))
    finally:
        impostor.stop()


# Limits that no request can lower: the requests below are signed by the daemon's own key.


def test_nothing_is_purged_before_its_minimum_time_in_the_trash(node: Victim) -> None:
    assert node.trash().outcome == "trashed"
    purged = node.perform(PurgeTrash(root=str(node.root), older_than_seconds=0.0))
    assert purged.freed_bytes == 0
    assert node.survives


def test_a_process_has_its_grace_period_whatever_the_request_says(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, time\n"
        "def end(*_):\n    time.sleep(0.5)\n    os.write(1, b'saved')\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nos.write(1, b'x')\nwhile True: signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"x"
            stat = read_process("/proc", process.pid)
            assert stat is not None
            on_gpu = GpuProcessFact(gpu_uuid="GPU-1", pid=process.pid, kind="compute")
            actions = ProcessActions("/proc", Runtimes(str(tmp_path / "none"), ()), lambda: (on_gpu,), min_grace=15.0)
            action = KillProcess(pid=process.pid, started_at=stat.started_at, gpu="GPU-1", grace_seconds=0.0)
            assert actions.kill(action).message == "by SIGTERM"
            assert process.stdout.read() == b"saved"
        finally:
            process.kill()


def test_the_minimum_grace_period_is_set_by_default() -> None:
    limits = Config().agent_settings().actions.limits
    assert (limits.min_grace, limits.min_trash) == (10.0, 86400.0)


def test_an_hour_has_a_budget_that_no_request_exceeds() -> None:
    clock = FakeClock()
    performed: list[object] = []
    budget = HourlyBudget("images_per_hour", 2, clock)

    def handler(action: str, _context: ActionContext) -> ActionOutcome:
        if action == "in-use":
            return refused("in-use", "it is in use")
        performed.append(action)
        return done("removed")

    limited = budget.limited(handler)
    codes = [limited(action, ActionContext()).code for action in ("a", "in-use", "b", "c")]
    assert codes == ["removed", "in-use", "removed", "over-limit"]
    assert performed == ["a", "b"]
    clock.advance(3600)
    assert limited("d", ActionContext()).code == "removed"


def test_a_purge_over_the_bytes_of_an_hour_keeps_the_rest(
    tmp_path: Path, keys: ActionKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "InUse", Readable)
    with victim(tmp_path, "gpu-01", keys, min_trash="0s", purge_bytes_per_hour=4096) as node:
        assert node.trash().outcome == "trashed"
        purged = node.perform(PurgeTrash(root=str(node.root), older_than_seconds=0.0))
        assert (purged.state, purged.outcome) == (ActionState.FAILED, "partly")
        assert "agent.actions.limits.purge_bytes_per_hour" in (purged.message or "")
        assert node.survives
    limits = PurgeLimits(msgspec.structs.replace(NO_LIMITS, purges_per_hour=1), FakeClock())
    assert limits.refusal(1) is None
    limits.spend(1)
    assert "purges_per_hour" in (limits.refusal(1) or "")
