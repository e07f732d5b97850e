"""Whether a job that does not exist yet would fit: now, split differently, after other jobs, or never. Pure.

`monitor.explain.fits.answer` is the entry; a job is judged as the pods that it would consist of, by the same facts and
in the same units as pods that exist.
"""
