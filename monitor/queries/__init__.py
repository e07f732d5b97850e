"""Read port: queries of the page, the API and the CLI."""
