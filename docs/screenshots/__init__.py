"""Takes the pictures of README and tutorial from the demo: `make screenshots`, or `python -m docs.screenshots`.

Each language has its directory. A picture is taken when the demo shows what it is about, not after some time.
"""
