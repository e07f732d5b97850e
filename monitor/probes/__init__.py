"""Probes of platform services: HTTP, TCP and PostgreSQL."""
