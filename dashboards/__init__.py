"""Grafana dashboards as committed JSON, and their generator. See `dashboards/README.md`."""
