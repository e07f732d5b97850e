"""The soak: the real daemon follows a large cluster in which things happen all the time, and nothing of it may grow.

`make soak`, or `python -m tests.soak --minutes N --nodes N`. A process of its own is the API server and the agents
(`cluster`: `api`, `agents`, `pods` and what happens to them, `life`); `run` starts all, watches and measures;
`verdict` judges, purely; `retention` winds the clock of its SQLite files forward; `report` writes bench/SOAK.md.
"""
