"""Leader election among daemon replicas through a Kubernetes Lease."""
