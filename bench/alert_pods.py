"""Pods with images that cannot be pulled, and a witness of each first failure."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from monitor.kube.client import ApiConnectionError, KubeApi, ResponseStream, connect
from tests.lab.errors import LabError
from tests.lab.lab import Lab

NAMESPACE = "default"
WAITING = ("ErrImagePull", "ImagePullBackOff")
LONGEST = 900.0  # of a run: the longest silence of a watch


@dataclass
class Failure:
    """Monotonic times of a pod's first failed pull: in its status and by an event.

    `stamp` is the kubelet's wall-clock timestamp in the event, in whole seconds.
    """

    status: float | None = None
    event: float | None = None
    stamp: float | None = None

    @property
    def at(self) -> float | None:
        """The earlier of the two."""
        return min((each for each in (self.status, self.event) if each is not None), default=None)


class Witness:
    """Watches pods and events independently, one thread each."""

    def __init__(self, kubeconfig: str) -> None:
        self._failures: dict[str, Failure] = {}
        self._streams: list[ResponseStream] = []
        self._lock = threading.Lock()
        api = connect(kubeconfig)
        for kind, note in (("pods", self._note_pod), ("events", self._note_event)):
            stream = _watch(api, kind)
            self._streams.append(stream)
            threading.Thread(target=self._follow, args=(stream, note), name=f"witness {kind}", daemon=True).start()

    def failure(self, pod: str) -> Failure:
        with self._lock:
            return self._failures.setdefault(pod, Failure())

    def stop(self) -> None:
        for stream in self._streams:
            stream.abort()

    def _follow(self, stream: ResponseStream, note: Any) -> None:
        rest = b""
        try:
            for chunk in stream.chunks():
                now = time.monotonic()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    note(json.loads(line)["object"], now)
        except ApiConnectionError:  # stopped, or the cluster is down
            return

    def _note_pod(self, pod: dict[str, Any], now: float) -> None:
        for status in pod["status"].get("containerStatuses", ()):
            if status["state"].get("waiting", {}).get("reason") in WAITING:
                failure = self.failure(pod["metadata"]["name"])
                failure.status = failure.status or now

    def _note_event(self, event: dict[str, Any], now: float) -> None:
        if event.get("reason") == "Failed" and event["involvedObject"].get("kind") == "Pod":
            failure = self.failure(event["involvedObject"]["name"])
            failure.event = failure.event or now
            failure.stamp = failure.stamp or datetime.fromisoformat(event["firstTimestamp"]).timestamp()


def _watch(api: KubeApi, kind: str) -> ResponseStream:
    """Watch from now on."""
    path, accept = f"/api/v1/namespaces/{NAMESPACE}/{kind}", "application/json"
    version = json.loads(api.get(path, {"limit": "1"}, accept, 10.0))["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(int(LONGEST))}
    return api.open(path, query, accept, LONGEST)


@contextmanager
def witness(kubeconfig: str) -> Iterator[Witness]:
    """Watch until the context exits."""
    watching = Witness(kubeconfig)
    try:
        yield watching
    finally:
        watching.stop()


class Pods:
    """Pods with images that the registry does not have, deleted at the end."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._made: dict[str, Any] = {}

    def make(self, name: str) -> None:
        """Create a pod with a unique image."""
        self._made[name] = self._lab.run_pod(name, phase=None, image=f"{self._lab.registry}/bench/{name}:1")

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that still exist."""
        self._lab.delete_pods(*[self._made.pop(name) for name in names if name in self._made])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete(tuple(self._made))


@contextmanager
def some_lab() -> Iterator[Lab]:
    """The running lab that LAB_DIR names, otherwise a temporary one; may raise LabError."""
    if os.environ.get("LAB_DIR"):
        try:
            found = Lab.attach()
        except LabError:
            pass
        else:
            try:
                yield found
            finally:
                found.close()
            return
    own = Lab.start(owned=True)
    try:
        yield own
    finally:
        own.stop()
