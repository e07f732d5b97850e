"""Siege: agent and daemon under the chart's limits, while every known denial of service runs at once.

Run with `make siege`, or `python -m tests.siege --minutes N`. `cluster` (a process of its own) is a Kubernetes API with
oversized pods and an agent that lies (`liar`); `attackers` (another one) floods both ports; `silences` posts hostile
patterns. `limits` limits memory, `run` starts everything and measures, `verdict` evaluates, and `report` writes
bench/SIEGE.md.
"""
