"""An agent with actions enabled removes an image of a real Docker on request over HTTP."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import requests

from monitor.agent.journal import ActionJournal
from monitor.agent.main import start
from monitor.config.root import Config
from monitor.facts.actions import ActionFact, ActionState, KillProcess, RemoveImage
from tests.agent.actions.requests_sent import KEYS, NODE, request, signed
from tests.support import wait_until
from tests.support.engines import DockerEngine
from tests.support.image_archive import Image, archive, busybox_layer, layer

NAME = "local/unneeded:1"


def test_an_agent_is_asked_to_act(docker_engine: DockerEngine, tmp_path: Path) -> None:
    docker_engine.client.images.load(archive((Image(NAME, (busybox_layer(), layer({"x": b"1" * 9999}))),)))
    paths = {"state": str(tmp_path / "state"), "docker_socket": docker_engine.socket, "cri_sockets": []}
    (tmp_path / "public-key").write_text(KEYS.public)
    actions = {"enabled": True, "public_key_file": str(tmp_path / "public-key")}
    config = {"node_name": NODE, "listen": "127.0.0.1:0", "paths": paths, "actions": actions}
    agent = start(Config.model_validate({"agent": config}).agent_settings())
    try:
        wait_until(lambda: agent.snapshot().images, 60, "the images are collected")
        (cache,) = agent.snapshot().images or ()
        image = next(image for image in cache.images if NAME in image.names)
        known: dict[str, Any] = {"runtime": "docker", "image_id": image.id, "names": image.names}
        local = RemoveImage(**known, min_age_seconds=0.0)
        removable = RemoveImage(**known, min_age_seconds=0.0, protect_local=False)
        young = RemoveImage(**known, min_age_seconds=3600.0, protect_local=False)
        outcomes = [perform(agent.address, action).outcome for action in (local, young, removable, removable)]
        assert outcomes == ["local-only", "too-young", "removed", "gone"]
        gone = perform(agent.address, KillProcess(pid=2**22 - 1, started_at=0.0, gpu="GPU-1"))
        assert gone.outcome == "gone"
        counts = agent.snapshot().actions
        assert counts is not None
        assert counts.done == {
            "remove-image/local-only": 1, "remove-image/too-young": 1, "remove-image/removed": 1,
            "remove-image/gone": 1, "kill-process/gone": 1,
        }  # fmt: skip
        assert ActionJournal(str(tmp_path / "state" / "actions.journal")).open_intents() == ()
    finally:
        agent.stop()


def perform(address: tuple[str, int], action: RemoveImage | KillProcess) -> ActionFact:
    url = "http://{}:{}/v1/actions".format(*address)
    sent = request(action)
    body = msgspec.json.encode(sent)
    assert requests.post(url, body, headers=signed(body=body), timeout=60).status_code == 202
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        reply = requests.get(f"{url}/{sent.id}", headers=signed("GET", f"/v1/actions/{sent.id}"), timeout=60)
        fact = msgspec.json.decode(reply.content, type=ActionFact)
        if fact.state is not ActionState.RUNNING:
            return fact
        time.sleep(0.02)
    raise AssertionError(f"{action} has not finished")
