"""View of the whole cluster: what Kubernetes and the agents report, joined into one set of facts."""
