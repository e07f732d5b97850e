"""The page and the JSON API.

May import: monitor.facts, monitor.present.node, starlette, uvicorn, jinja2.
May not import: the agent's collectors, the command line. It is given what it shows.
"""
