"""Manifests of a platform, changed for controllers that run as processes: the API server calls them by URL."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from tests.lab.platforms.platform import Paths, Platform

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = {
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
}


def read(directory: Path, patterns: Paths) -> Iterator[Object]:
    """Objects in the files that match."""
    for pattern in patterns:
        for path in sorted(directory.glob(pattern)):
            yield from (document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document)


def definitions(objects: Iterable[Object], platform: Platform, address: str, authority: bytes | None) -> list[Object]:
    """Definitions of resources, those that the platform converts with its webhook."""
    found = [deepcopy(each) for each in objects if each.get("kind") == "CustomResourceDefinition"]
    for each in found:
        if authority is not None and each["metadata"]["name"] in platform.converted:
            client = {"url": f"https://{address}/convert", "caBundle": _encoded(authority)}
            hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            each["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    return found


def webhook_configurations(
    objects: Iterable[Object], platform: Platform, address: str, authority: bytes | None
) -> list[Object]:
    """Configurations with the webhooks that the platform names. Without a certificate they keep their Service."""
    found = []
    for each in objects:
        hooks = [deepcopy(hook) for hook in each.get("webhooks", ()) if hook["name"] in platform.webhooks]
        if each.get("kind") not in WEBHOOKS or not hooks:
            continue
        for hook in hooks:
            if authority is not None:
                path = hook["clientConfig"]["service"]["path"]
                hook["clientConfig"] = {"url": f"https://{address}{path}", "caBundle": _encoded(authority)}
            if platform.pod_label and any("pods" in rule["resources"] for rule in hook["rules"]):
                matches = {"key": platform.pod_label, "operator": "Exists"}
                hook["objectSelector"] = {"matchExpressions": [matches]}
        name = platform.webhook_configuration or f"{platform.name}-webhooks"
        found.append({**each, "metadata": {"name": name}, "webhooks": hooks})
    return found


def served_versions(definition: Object) -> list[str]:
    """Paths of the served versions, which list their resources."""
    spec = definition["spec"]
    return [f"/apis/{spec['group']}/{each['name']}" for each in spec["versions"] if each["served"]]


def _encoded(certificate: bytes) -> str:
    return base64.b64encode(certificate).decode()
