"""Kubernetes 1.20 with the Docker engine, from Debian's packages: clusters as they were before containerd."""
