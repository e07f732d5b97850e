"""Values for chart tests."""

from __future__ import annotations

from typing import Any

# Every option enabled.
EVERYTHING: dict[str, Any] = {
    "timezone": "Asia/Shanghai",
    "wecom": {"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=SECRET-KEY"},
    "secrets": {"extra": {"db-password": "SECRET-PASSWORD"}},
    "rbac": {"release": True, "cleanup": True},
    "actions": {"enabled": True, "keys": "gpuwarden-keys", "datasetRoots": ["/mnt/share"]},
    "agent": {
        "hostNetwork": False,
        "driver": {"from": "host", "runtimeClassName": "nvidia"},
        "priorityClassName": "system-node-critical",
        "seLinuxOptions": {"type": "spc_t"},
        "podAnnotations": {"example.com/a": "b"},
        "podLabels": {"team": "platform"},
        "extraEnv": [{"name": "TZ", "value": "Asia/Shanghai"}],
    },
    "daemon": {
        "replicas": 2,
        "persistence": {"enabled": False},
        "extraEnv": [{"name": "TZ", "value": "Asia/Shanghai"}],
    },
    "networkPolicy": {
        "enabled": True,
        "pageFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        "agentFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    },
    "monitors": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True, "languages": ["en", "zh"]},
    "config": {
        "log_level": "warning",
        "agent": {"mounts": ["/mnt/share"], "registries": ["harbor.example.com"]},
        "daemon": {
            "alerts": {
                "language": "zh",
                "receivers": [{"name": "am", "kind": "alertmanager", "url": "http://alertmanager:9093"}],
                "routes": [{"receivers": ["am"]}],
            },
            "cleanup": {
                "allow": ["/mnt/share"],
                "policies": [{"name": "images", "kind": "images", "high": "80%", "low": "70%"}],
            },
        },
    },
}
# Only required values.
MINIMAL: dict[str, Any] = {
    "rbac": {"create": False},
    "secrets": {"existing": "own"},
    "daemon": {"persistence": {"enabled": False}},
    "agent": {"appArmor": "", "driver": {"from": "runtime"}},
}
# One daemon with a WeCom receiver, and an agent with full node access.
PRIVILEGED: dict[str, Any] = {
    "wecom": {"url": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=SECRET-KEY"},
    "agent": {"privileged": True, "driver": {"from": "host", "library": "/usr/lib64/libnvidia-ml.so.1"}},
    "daemon": {"persistence": {"existingClaim": "own"}},
}
VALUES: dict[str, dict[str, Any]] = {
    "default": {},
    "everything": EVERYTHING,
    "minimal": MINIMAL,
    "privileged": PRIVILEGED,
}
