"""Write port: actions that a person requests through the page, the API or the CLI."""
