"""A node's snapshot out of the series that its agent exposes, as a metrics store gives them back. Pure.

`thing` says how a table of series is written, the tables say which series carries which field, `rebuild` follows them.
The agent writes the series (`monitor.agent.metrics`); a test renders and rebuilds snapshots, so that both stay in step.
"""
