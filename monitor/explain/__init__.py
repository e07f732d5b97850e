"""Why a pod is as it is, in plain sentences with evidence. Pure: facts and `now` in, reasons out; no clock, no I/O.

Imports nothing but `monitor.facts` and the standard library; only `render` knows `monitor.i18n`. One file a
situation; `explain.explain_pod` picks it, and `not_created.explain_name` finds what a name means.
"""
