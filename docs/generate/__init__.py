"""Generates files that are derived from the code: `python -m docs.generate`, or `make generate` for all of them.

These are the reference pages of docs/ (settings, rules, metrics, commands) and the Prometheus alerts for findings.
The text of rules is in monitor/i18n; what the code does not say about settings and metrics is in the tables of this
directory (*.tsv), in two languages. Tests report stale files, missing texts and texts without a subject.
"""
