"""Every parser that reads from outside, fed with what it should not be: see targets.py."""
