"""Configuration file and environment variables, one module per section."""
