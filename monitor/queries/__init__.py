"""Read port: questions that the page, the API and the CLI ask."""
