"""What happened over time: GPU-seconds by user, queue and node, disk by owner, and short histories for charts.

`buckets`, `disk` and `history` are pure: facts and times in, values out. `store` is the file, `recorder` the thread
that feeds it, `reports` who is asked. What the record knows is as fine as the cycle in which the cluster is looked at.
"""
