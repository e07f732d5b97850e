"""Job platforms and schedulers of users, as processes of the modern lab.

`go.mod` in a directory below names the version of a platform. Its definitions come from the source of that version.
"""
