"""Golden files of all externally observable formats; `python -m tests.golden --update` writes them."""
