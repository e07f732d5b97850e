"""Configuration files of the components of every variant."""

from __future__ import annotations

import json
import secrets
import subprocess

from tests.lab.layout import DEVICE_PLUGINS, LOOPBACK, PRODUCT_USER, Layout
from tests.lab.ports import Ports
from tests.lab.programs import Programs

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: lab, cluster: {{server: "https://{address}", certificate-authority: "{ca}"}}}}]
users: [{{name: "{user}", user: {{token: "{token}"}}}}]
contexts: [{{name: lab, context: {{cluster: lab, user: "{user}"}}}}]
current-context: lab
"""
REGISTRY = """\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: "{root}"}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""


# All requests of the product, and all writes of others.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": [PRODUCT_USER]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "Metadata"},
    ],
}


def write_files(layout: Layout, ports: Ports, token: str, programs: Programs) -> None:
    """Write these configuration files; CalledProcessError if key generation fails."""
    registry = REGISTRY.format(root=layout.root / "registry", address=f"{LOOPBACK}:{ports.registry}")
    layout.registry_config.write_text(registry)
    _write_credentials(layout, f"{LOOPBACK}:{ports.apiserver}", {"admin": token, PRODUCT_USER: secrets.token_hex(16)})
    layout.audit_policy.write_text(json.dumps(AUDIT_POLICY))
    key = [programs["openssl"], "genrsa", "-out", str(layout.service_account_key), "2048"]
    subprocess.run(key, check=True, capture_output=True, timeout=60)
    # Device plugins have a fixed path; this link makes them visible below the kubelet's root directory too.
    layout.kubelet_root.mkdir()
    (layout.kubelet_root / DEVICE_PLUGINS.name).symlink_to(DEVICE_PLUGINS)


def _write_credentials(layout: Layout, address: str, tokens: dict[str, str]) -> None:
    """Write the tokens of the users, all of them administrators, and their kubeconfigs."""
    layout.tokens.write_text("".join(f'{token},{user},{user},"system:masters"\n' for user, token in tokens.items()))
    layout.tokens.chmod(0o600)
    for user, path in (("admin", layout.kubeconfig), (PRODUCT_USER, layout.product_kubeconfig)):
        path.write_text(KUBECONFIG.format(address=address, ca=layout.ca, user=user, token=tokens[user]))
        path.chmod(0o600)
