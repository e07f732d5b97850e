"""A user of `gpuwarden why` and the daemon that answers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running


@dataclass(frozen=True)
class Asker:
    """A command-line user; `page` is the daemon's address."""

    page: str
    environ: dict[str, str]

    def wait(self, scene: Scene, name: str, cause: str) -> None:
        """Wait until the daemon reports this cause."""
        began = time.monotonic()
        query = urlencode({"name": name, "namespace": scene.name, "lang": "en"})
        while (answer := json.loads(get(f"{self.page}/v1/why?{query}")[2]))["cause"] != cause:
            assert time.monotonic() < began + 60, f"not {cause}: {answer}"
            time.sleep(0.02)

    def hears(self, scene: Scene, name: str, cause: str, en: Sequence[str], zh: Sequence[str]) -> None:
        """Wait until the daemon reports this cause, then expect these words from the command in both languages."""
        self.wait(scene, name, cause)
        for lang, words in (("en", en), ("zh", zh)):
            answer = run("why", "-n", scene.name, name, "--lang", lang, environ=self.environ)
            assert (answer.returncode, answer.stderr) == (1, "")
            missing = [word for word in words if word not in answer.stdout]
            assert not missing, f"{missing} not in\n{answer.stdout}"


def settings(lab: Lab, state: Path, port: int) -> dict[str, str]:
    return quiet_environment(
        state,
        DAEMON__LISTEN=f"127.0.0.1:{port}",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(lab.kubeconfig),
        DAEMON__CYCLE="500ms",
    )


@contextmanager
def daemon_of(lab: Lab, state: Path, *more_sources: str) -> Iterator[Asker]:
    """Run a daemon that follows the lab, with these sources in addition to the default ones."""
    port = free_port()
    environ = settings(lab, state, port)
    asker = Asker(f"http://127.0.0.1:{port}", environ)
    needed = {"pods", "nodes", "events", "resourcequotas", "jobs.batch", "replicasets.apps", *more_sources}
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as daemon:
        wait_until(lambda: needed <= _sources(asker.page), 20, "the daemon follows the cluster")
        yield asker
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(STOP_LIMIT) == 0


def _sources(page: str) -> set[str]:
    """Sources the daemon follows; empty before it has started."""
    try:
        view = json.loads(get(f"{page}/v1/view")[2])
    except OSError:
        return set()
    return {source["name"] for source in view["sources"] if source["ok"]}
