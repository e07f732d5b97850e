"""A reflector on a scripted API server, and conditions to wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.facts.kube import SourceFact
from monitor.kube import resources
from monitor.kube.client import KubeApi, connect
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.reflector import Reflector, WatchTiming
from monitor.kube.resources import Resource
from monitor.kube.store import ObjectChange, ObjectStore
from tests.support import wait_until
from tests.support.scripted_api import (
    ScriptedApi,
    event,
    names,
    page,
    pod,
)

PODS = resources.pods(PodFieldFilter())
FAST = WatchTiming(
    page_size=2,
    list_timeout=1.0,
    watch_duration=1.0,
    watch_margin=5.0,
    min_watch=0.05,
    initial_backoff=0.01,
    max_backoff=0.05,
    forbidden_retry=0.05,
    absent_retry=0.05,
)


@dataclass
class Followed:
    reflector: Reflector
    store: ObjectStore[Any]
    changes: list[tuple[str, ObjectChange[Any]]] = field(default_factory=list)

    @property
    def held(self) -> dict[str, str]:
        return names(self.store.snapshot().items)

    def until_held(self, expect: dict[str, str]) -> None:
        wait_until(lambda: self.held == expect, 30, f"the store holds {expect}, it has {self.held}")

    def until_source(self, **expect: object) -> SourceFact:
        def reached() -> bool:
            fact = self.reflector.fact()
            return all(getattr(fact, name) == value for name, value in expect.items())

        wait_until(reached, 30, f"{expect}, it is {self.reflector.fact()}")
        return self.reflector.fact()


def end(reflector: Reflector) -> None:
    reflector.stop()
    reflector.join(60)
    name = f"watch-{reflector.fact().resource}"
    assert name not in [thread.name for thread in threading.enumerate()], "the thread ends"


@contextmanager
def following(
    api: ScriptedApi | KubeApi, folder: Path, resource: Resource = PODS, timing: WatchTiming = FAST
) -> Iterator[Followed]:
    store: ObjectStore[Any] = ObjectStore()
    seen: list[tuple[str, ObjectChange[Any]]] = []
    client = connect(api.kubeconfig(folder)) if isinstance(api, ScriptedApi) else api
    reflector = Reflector(
        client,
        resource,
        store,
        timing=timing,
        on_change=lambda name, all_: seen.extend((name, change) for change in all_),
    )
    reflector.start()
    try:
        yield Followed(reflector, store, seen)
    finally:
        end(reflector)


FIRST = page(pod("a", 1), rv="1")
ADD_B, ADD_C = event("ADDED", pod("b", 2)), event("ADDED", pod("c", 3))
ODD = {**pod("odd", 4), "spec": {"containers": "none"}}
