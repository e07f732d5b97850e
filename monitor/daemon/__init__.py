"""The central process: composition root and its long-running services."""
