"""Shared building blocks without any knowledge of the domain."""
