"""History for charts: seven days of figures per GPU, node, disk, pod, job, user and queue, within a bounded store.

Values of the current hour are in memory and in a journal; a finished hour becomes one compressed block per group.
"""
