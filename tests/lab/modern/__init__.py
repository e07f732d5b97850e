"""A current Kubernetes with containerd 2, from Go modules."""
