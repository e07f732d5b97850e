"""A simulated cluster that speaks the real protocols: the demo, and the load of the benchmarks.

The Kubernetes API (lists, watches, deletions, evictions) and the agents (snapshots, actions) are served over HTTP on
loopback addresses, so that the real daemon runs against them unchanged. Everything lives on one asyncio loop: nothing
here needs a lock. Nothing of the product imports this package but the `demo` command.
"""
