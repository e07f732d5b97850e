"""Benchmarks: one run, one table. `python -m bench` (or `make bench`) runs all, `python -m bench agent` one.

Each module here measures one thing and returns a `Report`. Claims are ratios between things measured in the same run on
the same machine, because machines differ and are noisy.
"""
