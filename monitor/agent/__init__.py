"""The per-node agent: reads one node and serves what it read, and acts on request where actions are enabled."""
