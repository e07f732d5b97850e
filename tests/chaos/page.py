"""The daemon as seen through its web API: findings, pending messages, cleanup actions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPException

import msgspec

from monitor.alert.model import alertname
from monitor.cleanup.journal_records import ItemState
from monitor.facts.cluster import ClusterView
from monitor.present.cleanup import ShownRun
from tests.chaos.ledger import Ours, Told, Trouble
from tests.support.command import get

WAITING = re.compile(r'^gpuwarden_outbox_messages\{receiver="([^"]+)",state="waiting"\} (\S+)$', re.MULTILINE)
HOOK = "hook"  # notified immediately; a group bot accepts 20 messages a minute
ACTED = (ItemState.DONE, ItemState.INTENDED)


class Found(msgspec.Struct, frozen=True):
    """Fields of a finding."""

    key: str
    rule: str
    labels: dict[str, str]
    held: bool


@dataclass(frozen=True)
class Page:
    """A daemon's page, restricted to findings about `ours`."""

    url: str
    ours: Ours

    def _get(self, path: str) -> str:
        status, _, body = get(f"{self.url}{path}")
        if status != 200:
            raise OSError(f"{path} answers {status}")
        return body

    def unwell(self, nodes: tuple[str, ...], troubles: list[Trouble]) -> str | None:
        """What has not recovered yet, given all nodes and current incidents; None after full recovery."""
        try:
            return self._unwell(nodes, troubles)
        except (OSError, HTTPException, ValueError, msgspec.MsgspecError) as error:
            return f"the page: {error!r}"

    def _unwell(self, nodes: tuple[str, ...], troubles: list[Trouble]) -> str | None:
        view = msgspec.json.decode(self._get("/v1/view"), type=ClusterView)
        unseen = [f"{source.name}: {source.why}" for source in view.sources if not source.ok]
        silent = [node.name for node in view.nodes if node.name in nodes and node.silent_since is not None]
        missing = set(nodes) - {node.name for node in view.nodes if node.has_agent}
        if unseen or silent or missing:
            return f"unseen {unseen}, silent {silent}, missing {sorted(missing)}"
        for found in msgspec.json.decode(self._get("/v1/findings"), type=tuple[Found, ...]):
            if self.ours(found.labels) and (found.held or not _is_so(found, troubles)):
                return f"found {found.key}, held: {found.held}"
        waiting = self._waiting()
        return None if waiting.get(HOOK) == 0 else f"waiting: {waiting}"

    def unsent(self) -> float:
        """Number of pending messages, for all receivers."""
        return sum(self._waiting().values())

    def _waiting(self) -> dict[str, float]:
        return {name: float(count) for name, count in WAITING.findall(self._get("/metrics"))}

    def acted(self, policy: str) -> set[str]:
        """Names of all objects on which a policy's runs acted or were about to act."""
        runs = msgspec.json.decode(self._get(f"/v1/cleanup/history?policy={policy}"), type=tuple[ShownRun, ...])
        return {entry.item.name for run in runs for entry in run.items if entry.state in ACTED}


def _is_so(finding: Found, troubles: list[Trouble]) -> bool:
    """Whether one of these incidents matches the finding."""
    told = Told(0.0, "", "", True, alertname(finding.rule), finding.labels)
    return any(trouble.fits(told) for trouble in troubles)
