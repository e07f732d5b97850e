"""The subject of a finding: which of its labels identify it. Rule and subject identify a finding, and so an alert.

The other labels are attributes, such as the owner and the queue of a pod: they may appear, change and vanish while it
stays the same alert.
"""

from __future__ import annotations

from collections.abc import Mapping

_GPU = ("node", "gpu")
_POD = ("namespace", "pod")
_JOB = ("namespace", "job")
_HOLD = (*_GPU, *_POD)  # of a GPU by one of several pods
# The first whose labels are all present is the subject.
_SUBJECTS = (_GPU, _POD, _JOB)
_SUBJECTS_OF_RULE = {
    "gpu-fragmented": (_JOB, _POD),
    "gpu-idle": (_GPU, _JOB, _POD),
    "gpu-zombie": (_HOLD, _GPU),
    "pod-pending": (_JOB,),
}
_CLUSTER = ("cluster",)  # of an alert from another cluster
_PARTS_OF_POD = ("container", "image")  # one rule may report several of a pod
_OWNER = frozenset({"user", "job", "queue"})
_SPACE = frozenset({"cluster", "namespace"})


def identifying_labels(rule: str, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that identify the subject of a finding."""
    for subject in _SUBJECTS_OF_RULE.get(rule, _SUBJECTS):
        if all(name in labels for name in subject):
            parts = _PARTS_OF_POD if subject == _POD else ()
            return {name: labels[name] for name in (*_CLUSTER, *subject, *parts) if name in labels}
    others = {name: value for name, value in labels.items() if name not in _OWNER}
    return others if others.keys() - _SPACE else dict(labels)
