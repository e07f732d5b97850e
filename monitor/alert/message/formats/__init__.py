"""Markup of messages, one file per receiver format."""
