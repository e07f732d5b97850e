"""Datasets on one node: reads what is there, moves units into a trash, brings them back, deletes them for good.

Everything below an allow-listed root is reached by directory file descriptors, one name at a time: no symbolic link is
followed, no mount is crossed, and no `..` is ever opened. Which unit goes is decided elsewhere; what is refused here is
refused because the disk no longer is what the plan says.
May import: monitor.facts, monitor.agent.{act,guard,mountinfo,clock}, msgspec.
"""
