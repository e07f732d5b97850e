"""Polls the node agents over HTTP."""
