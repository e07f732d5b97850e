"""The end of a container's log: reading it on the node, and deciding from it why the program failed."""

from monitor.agent.log_tail.classify import LogClass, classify_log

__all__ = ["LogClass", "classify_log"]
