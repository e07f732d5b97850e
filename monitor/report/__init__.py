"""Usage over time: GPU-seconds by user, queue and node, and disk space by owner.

`buckets` and `disk_use` aggregate; `store` persists, `recorder` samples the cluster once a cycle, which is
also the resolution of the data; `reports`, `render` and `mail` make, format and send reports.
"""
