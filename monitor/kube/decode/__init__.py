"""Decodes the API server's JSON into facts."""
