"""Kubernetes API access: client, list and watch, decoding, and the few writes."""
