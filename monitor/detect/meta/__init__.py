"""Self-monitoring rules: findings about the monitor itself."""
