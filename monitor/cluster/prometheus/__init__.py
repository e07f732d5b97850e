"""Node facts from a metrics store that scrapes the agents."""
