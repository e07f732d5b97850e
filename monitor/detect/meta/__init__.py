"""Self-monitoring rules: they evaluate the state of the monitor instead of the cluster."""

from __future__ import annotations

from monitor.detect.base import RuleMetadata
from monitor.detect.meta import monitor, receivers

META_RULES: tuple[RuleMetadata, ...] = (monitor.RULE, receivers.RULE)
META_RULE_NAMES = tuple(rule.rule for rule in META_RULES)
