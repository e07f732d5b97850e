"""The pages and the JSON API: HTTP, templates and sections; what they show comes from queries and present."""
