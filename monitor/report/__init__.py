"""Usage over time: GPU-seconds by user, queue and node, disk space by owner, and short histories for charts.

`buckets`, `disk_use` and `history` aggregate; `store` persists, `recorder` samples the cluster once a cycle, which is
also the resolution of the data; `reports`, `render` and `mail` make, format and send reports.
"""
