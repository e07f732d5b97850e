"""Node facts rebuilt from a metrics store that scrapes the agents."""
