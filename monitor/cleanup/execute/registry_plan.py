"""What a Harbor would remove, by dry runs of its own: the items of a registry policy."""

from __future__ import annotations

from monitor.cleanup.execute.harbor import GcResult, Harbor
from monitor.cleanup.model import Item, RegistryWrite, Risk
from monitor.cleanup.policy import RegistryPolicy
from monitor.facts.text import Text, Value

DRY_RUN_TIMEOUT_SECONDS = 3600.0  # seconds for one dry run


def dry_run_items(policy: RegistryPolicy, harbor: Harbor, now: float) -> tuple[Item, ...]:
    """Given a policy, have its Harbor try everything without changing anything; return what it would do, in order.

    Raise HarborError.
    """
    items = []
    for project, rule in harbor.rules() if policy.retention else ():
        kept = harbor.retention(project, rule, dry_run=True, limit=DRY_RUN_TIMEOUT_SECONDS)
        if kept.removed > 0:
            values: dict[str, Value] = {"project": project, "count": kept.removed, "total": kept.total}
            write = RegistryWrite(registry=policy.url, what="retention", dry_run=False, retention=rule)
            items.append(_item(f"retention/{policy.url}/{project}", project, "retention", values, write, None, now))
    if policy.gc:
        collected = harbor.collection(dry_run=True, limit=DRY_RUN_TIMEOUT_SECONDS)
        # Tags that go leave garbage behind that is not counted yet.
        if items or collected.blobs is None or collected.blobs > 0 or collected.freed_bytes:
            items.append(_collection(policy, collected, now))
    return tuple(items)


def _collection(policy: RegistryPolicy, collected: GcResult, now: float) -> Item:
    values: dict[str, Value] = {"registry": policy.url, "blobs": "?" if collected.blobs is None else collected.blobs}
    known = collected.freed_bytes is not None
    values |= {"bytes": collected.freed_bytes or 0} if known else {}
    write = RegistryWrite(registry=policy.url, what="gc", dry_run=False)
    why = "gc-bytes" if known else "gc"
    return _item(f"gc/{policy.url}", policy.url, why, values, write, collected.freed_bytes, now)


def _item(
    own: str, name: str, why: str, values: dict[str, Value], write: RegistryWrite, frees: int | None, now: float
) -> Item:
    return Item(
        id=own,
        name=name,
        why=Text(key=f"cleanup.why.{why}", values=values),
        risk=Risk.HIGH,
        frees_bytes=frees,
        not_before=now,
        act=write,
    )
