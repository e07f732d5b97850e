"""Who is who: persons and their roles, passwords, sessions, and the gate that every request goes through.

May import: monitor.facts, monitor.units, monitor.words, starlette, jinja2.
May not import: the cluster, alerts, cleanup. It knows nothing of what is behind the gate.
"""
