"""Benchmarks: `python -m bench` (or `make bench`) runs all, `python -m bench agent` runs one.

Each module measures one thing and returns a `Report`. Claims are ratios between measurements of the same run on the
same machine, because machines differ and are noisy.
"""
