"""Carries out cleanup plans: every item is re-checked immediately before its side effect."""
