"""Soak test: the real daemon follows a large, constantly changing cluster without growing.

Run with `make soak`, or `python -m tests.soak --minutes N --nodes N`. A separate process is the API server and the
agents (`cluster`, with `api`, `agents`, `pods` and their changes in `life`); `run` starts everything, observes and
measures; `verdict` evaluates; `retention` fast-forwards the SQLite files; `report` writes bench/SOAK.md.
"""
