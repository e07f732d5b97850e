"""Datasets on one node: scans units, moves them to a trash, restores them, and purges them.

Everything below an allow-listed root is opened through directory file descriptors, one path component at a time: no
symbolic link is followed, no mount is crossed, and `..` is never opened. Which units are removed is decided elsewhere;
a refusal here means that the disk differs from the plan.
"""
