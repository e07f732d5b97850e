"""Why a program failed, by the end of its log. The agent classifies logs with it, the daemon termination messages."""

from monitor.facts.program_logs.classify import LogClass, classify_log

__all__ = ["LogClass", "classify_log"]
