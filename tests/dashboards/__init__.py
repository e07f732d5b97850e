"""The dashboards, against Grafana's model, the metrics that there are, and Prometheus' own parser."""
