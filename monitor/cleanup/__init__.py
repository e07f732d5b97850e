"""Cleanup and release: policy -> plan -> shown -> executed under guard -> journaled -> reported.

`plan_*` are pure: facts, a policy and `now` in, a plan out that says what, why, how much and how risky. `execute` has
each item done where it lives: the agent re-checks everything at the moment of the act. `journal` is written before and
after. Dry run is the default.
"""
