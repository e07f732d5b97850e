"""Rebuilds the snapshot of a node from the series that its agent exposes.

`thing` defines the form of the tables, the tables map series to fields, and `rebuild` applies them. The agent writes
the series (`monitor.agent.metrics`); a test renders and rebuilds snapshots, so that both stay consistent.
"""
