"""Items of a registry policy, determined by dry runs of Harbor itself."""

from __future__ import annotations

from monitor.cleanup.execute.harbor import GcResult, Harbor
from monitor.cleanup.model import Item, RegistryWrite, Risk
from monitor.cleanup.policy import RegistryPolicy
from monitor.facts.text import Text, Value

DRY_RUN_TIMEOUT_SECONDS = 3600.0


def dry_run_items(policy: RegistryPolicy, harbor: Harbor, now: float) -> tuple[Item, ...]:
    """Dry-run retention and garbage collection, and return what they would remove, in order. Raise HarborError."""
    items = []
    for project, rule in harbor.retention_rules() if policy.retention else ():
        result = harbor.run_retention(project, rule, dry_run=True, timeout=DRY_RUN_TIMEOUT_SECONDS)
        if result.removed > 0:
            values: dict[str, Value] = {"project": project, "count": result.removed, "total": result.total}
            write = RegistryWrite(registry=policy.url, what="retention", dry_run=False, retention=rule)
            items.append(_item(f"retention/{policy.url}/{project}", project, "retention", values, write, None, now))
    if policy.gc:
        gc = harbor.run_gc(dry_run=True, timeout=DRY_RUN_TIMEOUT_SECONDS)
        # Removed tags leave garbage that this dry run does not count.
        if items or gc.blobs is None or gc.blobs > 0 or gc.freed_bytes:
            items.append(_gc_item(policy, gc, now))
    return tuple(items)


def _gc_item(policy: RegistryPolicy, gc: GcResult, now: float) -> Item:
    values: dict[str, Value] = {"registry": policy.url, "blobs": "?" if gc.blobs is None else gc.blobs}
    known = gc.freed_bytes is not None
    values |= {"bytes": gc.freed_bytes or 0} if known else {}
    write = RegistryWrite(registry=policy.url, what="gc", dry_run=False)
    why = "gc-bytes" if known else "gc"
    return _item(f"gc/{policy.url}", policy.url, why, values, write, gc.freed_bytes, now)


def _item(
    item_id: str, name: str, why: str, values: dict[str, Value], write: RegistryWrite, frees: int | None, now: float
) -> Item:
    return Item(
        id=item_id,
        name=name,
        why=Text(key=f"cleanup.why.{why}", values=values),
        risk=Risk.HIGH,
        frees_bytes=frees,
        not_before=now,
        act=write,
    )
