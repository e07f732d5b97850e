"""How to reach users according to labels and annotations of their pods, where the configuration does not say it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict

from monitor.alert.receivers.base import OwnerContact
from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact

REFRESH_SECONDS = 60.0
MAX_REMEMBERED_USERS = 10_000
# Tenants write labels: nothing that is several recipients, markup or the whole group.
_SAFE = re.compile(r"[A-Za-z0-9+][A-Za-z0-9._@+-]{0,127}")
_WHOLE_GROUP = "all"

FindContact = Callable[[str], OwnerContact | None]


def contact_of(pod: PodFact, keys: OwnerContact) -> OwnerContact | None:
    """Contact in the labels or annotations of a pod, whose names `keys` has; None if there is none."""
    found = {}
    for way, key in asdict(keys).items():
        value = (pod.labels.get(key) or pod.annotations.get(key) or "").strip() if key else ""
        if _SAFE.fullmatch(value) and value.lower() != _WHOLE_GROUP and (way != "mail" or "@" in value):
            found[way] = value
    return OwnerContact(**found) if found else None


def newest_contact(
    user: str, pods: Iterable[PodFact], identities: Mapping[str, Identity], keys: OwnerContact
) -> OwnerContact | None:
    """Contact of a user in the newest of their pods that has one."""
    own = (pod for pod in pods if (who := identities.get(pod.uid)) is not None and who.user == user)
    known = [(pod.created_at or 0.0, pod.uid, contact) for pod in own if (contact := contact_of(pod, keys))]
    return max(known, key=lambda entry: entry[:2])[2] if known else None


class OwnerDirectory(Mapping[str, OwnerContact]):
    """Contacts of the configuration, and those that `find` knows, also after the last pod of a user is gone."""

    def __init__(
        self, known: Mapping[str, OwnerContact], find: FindContact, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._known = known
        self._find = find
        self._monotonic = monotonic
        self._found: dict[str, tuple[float, OwnerContact | None]] = {}

    def __getitem__(self, user: str) -> OwnerContact:
        contact = self._known.get(user) or self._of_pods(user)
        if contact is None:
            raise KeyError(user)
        return contact

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def _of_pods(self, user: str) -> OwnerContact | None:
        now = self._monotonic()
        looked_at, before = self._found.get(user, (-REFRESH_SECONDS, None))
        if now - looked_at < REFRESH_SECONDS:
            return before
        contact = self._find(user) or before
        if len(self._found) >= MAX_REMEMBERED_USERS:
            self._found.clear()
        self._found[user] = now, contact
        return contact
