"""Job platforms in the lab: the same scenario for each, in the real software."""
