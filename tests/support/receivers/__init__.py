"""Servers on loopback that take alerts as the real ones do, and misbehave as the real ones do."""
