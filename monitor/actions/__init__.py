"""Write port: actions that users take through the page, the API and the CLI."""
