"""A real cluster on this machine, for end-to-end tests.

etcd, the Kubernetes API server, scheduler, controller manager and kubelet, the Docker engine and a registry are all
real, on loopback and in one state directory. Only the GPUs are fake: a device plugin of the lab advertises them.

    python -m tests.lab build     install the packages and build Kubernetes, once
    python -m tests.lab up        start everything and print the endpoints
    python -m tests.lab down      stop and remove everything that `up` started
    python -m tests.lab status    list the running components

Tests use `tests.lab.lab.Lab` through the fixture `lab` of `tests/e2e`.
"""
