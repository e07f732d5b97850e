"""CPU of an update of the open overview and of a scrape in a busy cluster: `python -m bench.updates NODES`.

Between two updates of the page 15 % of the agents have answered with other GPU figures, as within its 1.5 s; between
two scrapes all have. Milliseconds are CPU time of one thread: of the page without compression and HTTP, of the scrape
the metrics of the cluster. Medians; the first of each, in which everything is new, is left out.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from starlette.requests import Request

from bench.cluster_data import write
from bench.detect import NOW, RULES_OF_PLATFORMS, read
from bench.page import Cluster
from monitor.base.metrics import texts_of
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ViewChanges, ViewInputs
from monitor.daemon.metrics.cluster import ClusterFamilies
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.web.context import PageData, PageDeps
from monitor.web.pages.overview import OverviewPage
from monitor.web.pages.render import PageRequest

UPDATES, SCRAPES = 30, 8
ANSWERED = 0.15  # share of the agents between two updates
VISIT_SECONDS, SCRAPE_SECONDS = 1.5, 15.0


class Following(Cluster):
    """A cluster whose agents answer again with other utilizations."""

    def __init__(self, inputs: ViewInputs) -> None:
        super().__init__([], ())
        self.agents = {agent.target: msgspec.structs.replace(agent, received_at=NOW) for agent in inputs.agents}
        self._now, self._chance = NOW, random.Random(3)
        self._builder = ViewBuilder(lambda pod: identify(pod, no_owners, RULES_OF_PLATFORMS, {}))
        self._builder.build(replace(inputs, agents=tuple(self.agents.values())), NOW)

    def view(self) -> ClusterView:
        return self._builder.view()

    def overview(self) -> ClusterView:
        return self._builder.overview()

    def advance(self, share: float, seconds: float) -> None:
        """Let this share of the agents answer again."""
        self._now += seconds
        chosen = self._chance.sample(list(self.agents.values()), round(share * len(self.agents)))
        answers = tuple(self._later(agent) for agent in chosen if agent.snapshot is not None)
        self.agents |= {agent.target: agent for agent in answers}
        self._builder.update(ViewChanges(agents=answers), self._now)

    def _later(self, agent: AgentFact) -> AgentFact:
        change, snapshot = msgspec.structs.replace, agent.snapshot
        assert snapshot is not None
        if snapshot.gpu is not None:
            gpus = tuple(
                change(gpu, utilization_ratio=self._chance.uniform(0.05, 0.99)) if gpu.utilization_ratio else gpu
                for gpu in snapshot.gpu.gpus
            )
            snapshot = change(snapshot, gpu=change(snapshot.gpu, gpus=gpus))
        return change(agent, snapshot=change(snapshot, at=self._now), received_at=self._now)


def visits(cluster: Following) -> Callable[[], None]:
    """Function that requests an update with the sections that are known."""
    deps = PageDeps(cluster, PageData(agents=lambda: tuple(cluster.agents.values())))
    page, shown = OverviewPage(), dict[str, str]()

    def visit() -> None:
        known = ",".join(f"{own}.{version}" for own, version in shown.items())
        query = f"v={known}".encode() if known else b""
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": query, "headers": [], "state": {}}
        body = bytes(page.show(PageRequest(Request(scope), deps)).body)
        shown.update((own.decode(), version.decode()) for own, version in _sections(body))

    visit()
    return visit


def _sections(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    for part in body.split(b'<section id="')[1:]:
        yield part.partition(b'"')[0], part.partition(b'data-v="')[2].partition(b'"')[0]


def measured(work: Callable[[], object], advance: Callable[[], None], count: int) -> float:
    """Median milliseconds of CPU."""
    took = []
    for _ in range(count):
        advance()
        began = time.thread_time()
        work()
        took.append(1000 * (time.thread_time() - began))
    return statistics.median(took)


def main(nodes: int) -> None:
    """Print the figures."""
    with TemporaryDirectory() as name:
        data = Path(name) / "data"
        write(data, nodes)
        cluster = Following(read(data).inputs)
    gc.disable()  # as in the daemon: see monitor.base.garbage
    families = ClusterFamilies()
    tuple(texts_of(families(cluster.view())))
    page = measured(visits(cluster), lambda: cluster.advance(ANSWERED, VISIT_SECONDS), UPDATES)
    scrape = measured(
        lambda: tuple(texts_of(families(cluster.view()))), lambda: cluster.advance(1.0, SCRAPE_SECONDS), SCRAPES
    )
    print(json.dumps({"page_ms": page, "scrape_ms": scrape}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
