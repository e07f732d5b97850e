"""Rules turn facts, limits and `now` into findings: one file per rule, registered in `monitor.detect.rules`.

A finding holds catalogue keys and values; `monitor.i18n` holds the texts.
"""
