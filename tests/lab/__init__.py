"""A real cluster on this machine, for end-to-end tests.

etcd, the Kubernetes API server, scheduler, controller manager and kubelet, the container engine and a registry are all
real, on loopback and in one state directory. Only the GPUs are fake: a device plugin of the lab advertises them, or a
driver for dynamic resource allocation. The variable LAB chooses the versions: 1.35 with containerd 2 (the default) or
1.20 with Docker.

    python -m tests.lab build     install the packages and build the programs, once
    python -m tests.lab up        start everything and print the endpoints
    python -m tests.lab down      stop and remove everything that `up` started
    python -m tests.lab status    list the running components

Tests use `tests.lab.lab.Lab` through the fixture `lab` of `tests/e2e`.
"""
