"""Decoding of the API server's JSON into facts."""
