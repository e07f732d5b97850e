"""Output in Chinese: no English is left over in what the tables, headings and headlines of commands say themselves."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from monitor.alert.lifecycle import Alert
from monitor.alert.model import Phase
from monitor.alert.mute import AlertView
from monitor.alert.store import Delivery
from monitor.cleanup.journal_records import CleanupRun, RunState
from monitor.cli.tables import print_snapshot, print_tables, print_view
from monitor.facts.cluster import ClusterView, NodeView, SourceView
from monitor.facts.findings import Severity
from monitor.facts.text import Text
from monitor.present.alerts import alerts_table, deliveries_table, localize_alerts, silences_table
from monitor.present.cleanup import ShownPlan, ShownRun, history_table, plan_tables
from monitor.present.findings import LocalizedFinding, findings_table
