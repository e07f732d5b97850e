"""From findings to messages.

    findings -> lifecycle -> routing and muting -> notifications -> outbox -> receivers

`lifecycle`, `mute` and `notify` decide: alerts, findings and `now` in, values out. `store` keeps alerts, notification
log and outbox in one SQLite file and changes them in one transaction. `dispatcher` runs the loop, `delivery` sends, and
`receivers` has one file per kind of receiver.
"""
