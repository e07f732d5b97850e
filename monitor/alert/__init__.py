"""From findings to messages: what is told to whom, once, in time, and kept until it has arrived.

    findings -> lifecycle -> groups, silences, routes -> notifications -> outbox -> receivers

`lifecycle`, `decide` and what they use are pure: alerts, findings and `now` in, values out. `store` keeps alerts, what
was told and what still has to be sent in one SQLite file and changes them in one transaction. `post` sends. Receivers
are one file each. This package knows nothing of Kubernetes, of agents, or of the page.
"""
