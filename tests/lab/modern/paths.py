"""Paths of containerd and the DRA driver below a state directory."""

from __future__ import annotations

from pathlib import Path

from tests.lab.layout import Layout


def containerd_root(layout: Layout) -> Path:
    """Directory of images and containers."""
    return layout.root / "containerd"


def containerd_state(layout: Layout) -> Path:
    return layout.root / "containerd-run"


def containerd_socket(layout: Layout) -> Path:
    return containerd_state(layout) / "containerd.sock"


def containerd_config(layout: Layout) -> Path:
    return layout.root / "containerd.toml"


def registry_hosts(layout: Layout) -> Path:
    """Directory of registry settings, as `/etc/containerd/certs.d`: read at every pull."""
    return layout.root / "certs.d"


def network_config(layout: Layout) -> Path:
    return layout.root / "cni"


def device_specs(layout: Layout) -> Path:
    """Directory of Container Device Interface files."""
    return layout.root / "cdi"


def devices_published(layout: Layout) -> Path:
    """Exists while the DRA driver has published its devices."""
    return layout.root / "dra-devices-published"


def kubelet_config(layout: Layout) -> Path:
    return layout.kubelet_root / "config.yaml"


def kubelet_drop_ins(layout: Layout) -> Path:
    """Directory of files that the kubelet merges into its configuration."""
    return layout.root / "kubelet.d"


def plugin_registry(layout: Layout) -> Path:
    """Directory in which the kubelet looks for sockets of DRA drivers."""
    return layout.kubelet_root / "plugins_registry"
