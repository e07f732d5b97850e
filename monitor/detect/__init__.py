"""Detectors: facts, limits and `now` in, findings out. Pure, one file a rule; `monitor.detect.rules` lists them.

May import: monitor.facts, monitor.explain, the standard library without its clocks, files and sockets.
May not import: monitor.agent, monitor.cluster, monitor.config.root, the words (a finding has keys, not sentences).
"""
