"""English: claims for devices (Dynamic Resource Allocation) that keep a pod from a node or from starting."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "dra_not_created": "Its ResourceClaim {claim} has not been created from the template {template}.",
    "dra_not_created_advice": (
        "Kubernetes creates it: look at the events of the pod (kubectl describe pod {pod} -n {namespace}) and at the "
        "log of kube-controller-manager."
    ),
    "dra_template_missing": "The ResourceClaimTemplate {template} does not exist in {namespace}.",
    "dra_template_missing_advice": (
        "Create it, or correct its name in the pod: kubectl get resourceclaimtemplates -n {namespace}"
    ),
    "dra_controller_says": "The resource claim controller says: {message}",
    "dra_claim_missing": "The ResourceClaim {claim} does not exist in {namespace}.",
    "dra_claim_missing_advice": "Create it, or correct its name in the pod: kubectl get resourceclaims -n {namespace}",
    "dra_claim_leaving": "The ResourceClaim {claim} is being deleted.",
    "dra_claim_leaving_advice": (
        "Wait until its last user has ended, then create it again: kubectl get resourceclaim {claim} -n {namespace} "
        "-o yaml"
    ),
    "dra_claim_full": "The ResourceClaim {claim} is reserved for {count} other pods, the most that Kubernetes allows.",
    "dra_claim_full_advice": "Wait until one of them ends, or use a second claim: {pods}",
    "dra_claim_elsewhere": (
        "The ResourceClaim {claim} is in use by {pods} on {node}, so it can only run there, and {node} does not admit "
        "it."
    ),
    "dra_claim_bound": "The devices of its ResourceClaim {claim} are on {node}, and {node} does not admit it.",
    "dra_claim_elsewhere_advice": (
        "Make room on {node} or uncordon it (kubectl describe node {node}), or give the pod a claim of its own."
    ),
    "dra_class_missing": "The DeviceClass {device_class}, which its ResourceClaim {claim} asks for, does not exist.",
    "dra_class_missing_advice": "Install the DRA driver or correct the name: kubectl get deviceclasses",
    "dra_no_devices": "No node offers a device of class {device_class}: the driver {driver} has published none.",
    "dra_no_devices_advice": (
        "Look at the driver's pods on the nodes, and at their logs: kubectl get pods -A -o wide | grep -i dra; "
        "kubectl get resourceslices"
    ),
    "dra_too_many": (
        "Its ResourceClaim {claim} asks for {count} devices of class {device_class}, and no node has more than "
        "{largest}."
    ),
    "dra_too_many_advice": "Ask for at most {largest} per pod, and distribute the work over several pods.",
    "dra_all_taken": (
        "Its ResourceClaim {claim} needs {count} of the {total} devices of class {device_class}, on one node; too few "
        "are free there (in the cluster: {free})."
    ),
    "dra_all_taken_advice": "Wait, or ask a holder to release devices: kubectl get resourceclaims -A",
    "dra_holders": "Devices are held by {holders}.",
    "dra_selector": (
        "Devices of class {device_class} are free ({free} of {total}), but no node's satisfy the selectors of its "
        "ResourceClaim {claim}: {selectors}"
    ),
    "dra_selector_advice": (
        "Compare the selectors with the attributes of the devices (kubectl get resourceslices -o yaml), and relax them."
    ),
    "start_dra_unregistered": "The DRA driver {driver} is not registered with the kubelet of {node}.",
    "start_dra_unregistered_advice": (
        "Start the driver's plugin on {node}: kubectl get pods -A -o wide | grep -i dra; its log says why it does not "
        "run."
    ),
    "start_dra_claim": (
        "The DRA driver {driver} on {node} cannot prepare {devices}, which ResourceClaim {claim} holds: the pod cannot "
        "start."
    ),
    "start_dra_claim_advice": (
        "Look at the log of the driver's plugin on {node} (kubectl get pods -A -o wide | grep -i dra) and at the "
        "device; kubectl get resourceclaim {claim} -n {namespace} -o yaml"
    ),
}
