"""The checks, one file per group: facts, judges of facts, readers and `CHECKS`."""
