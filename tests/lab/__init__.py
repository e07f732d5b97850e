"""A real cluster on this machine, for end-to-end tests.

etcd, the Kubernetes API server, scheduler, controller manager and kubelet, the Docker engine and a registry: all real,
all on loopback, all in one state directory. The only stand-ins are the GPUs: a device plugin of our own offers them.

    python -m tests.lab build     install what is needed and build Kubernetes, once
    python -m tests.lab up        start everything and print how to reach it
    python -m tests.lab down      stop and remove everything that `up` started
    python -m tests.lab status    say what runs

Tests use `tests.lab.lab.Lab`, which the fixture `lab` of `tests/e2e` gives them.
"""
