"""The checks, one file per group: facts, judges (pure, facts in, verdicts out), readers and `CHECKS`."""
