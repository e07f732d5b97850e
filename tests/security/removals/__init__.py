"""Removals of the protections in docs/threat-model.md: each must make the test fail that the threat model names."""
