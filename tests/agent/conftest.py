"""Fixtures that several folders of tests share: started once a session, wherever they are first used."""

from tests.support.engines import containerd_engine, docker_engine

__all__ = ["containerd_engine", "docker_engine"]
