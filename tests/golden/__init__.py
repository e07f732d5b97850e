"""Golden files of everything that is observable from outside: `python -m tests.golden --update` writes them."""
