"""Dashboards: Grafana's model, existing metrics, and answers of a real Prometheus."""
