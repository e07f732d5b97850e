"""Alert receivers on loopback that accept messages and fail like the real services."""
