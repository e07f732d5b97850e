"""Grafana dashboards as committed JSON, and what makes them. `dashboards/README.md` says how to use them."""
