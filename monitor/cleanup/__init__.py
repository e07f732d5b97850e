"""Cleanup: policy -> plan -> notices -> guarded execution -> journal -> report.

`plan` decides from facts, a policy and `now`. `execute` carries out each item where it lives; the agent re-checks
everything immediately before the side effect. The journal is written before and after. Dry run is the default.
"""
