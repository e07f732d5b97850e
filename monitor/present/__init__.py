"""View models shared by the page, the CLI and the API."""
