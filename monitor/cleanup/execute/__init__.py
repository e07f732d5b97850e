"""Execution of cleanup plans: every item is re-checked immediately before its side effect."""
