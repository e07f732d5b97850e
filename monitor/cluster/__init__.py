"""The whole cluster as facts: what Kubernetes says, what agents say, and the join of both.

May import: monitor.facts, and of monitor.agent only its clock and settings. May not import: detect, alert, cleanup,
web, cli. `kubernetes` and `urllib3` are imported by `kube.py` alone; all others see bytes, facts and plain values.
Reads with `get`, `list` and `watch`; the few writes are in `kube.py` too, and nothing here decides to use them.
Decoding, identity and the view are pure: no clock, no network, no file.
"""
