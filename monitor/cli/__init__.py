"""The `gpuwarden` command, one module per command group."""
