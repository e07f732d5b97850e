"""Attacks, line by line of docs/threat-model.md."""
