"""What a new installation can have wrong, and what to do about it.

`gather` reads facts at the edge: files, sockets, the API server. `checks` judge them: pure, facts in, verdicts out.
`run` has all checks made side by side, each within its time limit. `shown` puts verdicts into words.
"""
