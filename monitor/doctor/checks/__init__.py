"""The verdicts, one file a check. Pure: facts in, verdicts out; no files, no network, no clock."""
