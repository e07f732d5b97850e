"""Simulated cluster for the demo, the tests and the benchmarks.

It serves the Kubernetes API (lists, watches, deletions, evictions) and the agents (snapshots, actions) over HTTP on
loopback addresses; the real daemon runs against them unchanged. Everything runs on one asyncio loop, without locks.
"""
