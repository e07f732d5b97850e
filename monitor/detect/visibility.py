"""What can be seen at this moment: Kubernetes, each node's agent. What cannot be seen proves nothing. Pure."""

from __future__ import annotations

from monitor.detect.base import RuleContext

MAX_LABEL_CHARS = 253  # what Kubernetes allows a name to be; nothing that we were sent may be longer as a label


def label_value(text: str) -> str:
    """Given any text, return it as the value of a label: never longer than a name may be, and never nothing."""
    return text[:MAX_LABEL_CHARS] or "?"


def kubernetes_unavailable(context: RuleContext) -> bool:
    """Return whether there is no Kubernetes to be asked, or nothing is known at all."""
    view = context.facts.view
    return view is None or any(source.name == "kubernetes" and not source.ok for source in view.sources)


def resources_unavailable(context: RuleContext, *resources: str) -> bool:
    """Return whether Kubernetes cannot be asked about one of these resources now."""
    view = context.facts.view
    if view is None or kubernetes_unavailable(context):
        return True
    return any(source.name in resources and not source.ok for source in view.sources)


def prometheus_unavailable(context: RuleContext) -> bool:
    """Return whether agents are known from a metrics store, and that cannot be asked: none of them is silent itself."""
    view = context.facts.view
    return view is not None and any(source.name == "prometheus" and not source.ok for source in view.sources)
