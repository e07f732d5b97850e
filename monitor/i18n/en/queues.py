"""English: queues, groups, quotas, and pods that are not created."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "gated": "The scheduler ignores it until its scheduling gate {gates} is removed.",
    "gated_advice": "The controller that set {gates} must remove it. Ask the team that runs that controller.",
    "queue_closed": "Its queue {queue} is {state}: no new job starts there.",
    "queue_closed_why": "Its queue {queue} accepts no new jobs: {why}.",
    "queue_closed_volcano_advice": (
        "Open the queue: vcctl queue operate -n {queue} -a open. Or submit the job to another queue."
    ),
    "queue_closed_kueue_advice": (
        "Check why: kubectl describe {object}. If it was stopped on purpose, set its stopPolicy back to None. Or "
        "submit the job to another queue."
    ),
    "queue_missing": "It requests queue {queue}, but {namespace} has no LocalQueue of that name.",
    "queue_missing_advice": (
        "Correct the label kueue.x-k8s.io/queue-name of the job. Existing queues: kubectl get localqueue -n {namespace}"
    ),
    "queue_full": (
        "Its queue {queue} is full: the limit is {limit} of {resource}, {used} are in use, and it needs {needs} more."
    ),
    "queue_full_advice": (
        "Wait until jobs in {queue} end, request less, use another queue, or have an admin raise the queue's limit."
    ),
    "queue_never": "It requests {needs} of {resource}, but its queue {queue} can never have more than {limit}.",
    "queue_never_advice": "Request at most {limit} of {resource}, use another queue, or have an admin raise the limit.",
    "queue_holders": "Largest holders in {queue}: {holders}.",
    "gang_missing": (
        "Its group {group} starts all together or not at all: {needed:pod is|pods are} required, "
        "{present:exists|exist}, {missing:is|are} missing."
    ),
    "gang_missing_advice": (
        "Find out why the missing pods are not created: kubectl describe podgroup {group} -n {namespace}. Or lower "
        "minAvailable of the job."
    ),
    "gang_too_large": (
        "Its group {group} starts all together or not at all: of {waiting:waiting pod|waiting pods} ({gpus:gpus} "
        "in total) only {fit} would fit at once, {needed} are required."
    ),
    "gang_too_large_advice": "Wait, or submit the job with fewer workers ({fit} would fit now).",
    "gang_kueue": "Its group {group} is incomplete: {present:pod exists|pods exist}, Kueue waits for the rest.",
    "gang_kueue_advice": (
        "Create the missing pods, or correct the annotation kueue.x-k8s.io/pod-group-total-count of {group}."
    ),
    "workload_inactive": "Its workload {workload} was switched off (spec.active is false).",
    "workload_inactive_advice": (
        "Switch it on: kubectl patch workload {workload} -n {namespace} --type=merge -p "
        '\'{{"spec":{{"active":true}}}}\''
    ),
    "workload_preempted": "A job with a higher priority preempted it: {message}",
    "workload_checks": "Its quota is reserved; admission checks of workload {workload} are still pending.",
    "workload_checks_advice": "Find the pending check: kubectl describe workload {workload} -n {namespace}",
    "workload_none": "Kueue has not registered it yet (queue {queue}).",
    "workload_none_advice": (
        "If this persists, check that Kueue's controller is running: kubectl get pods -n kueue-system"
    ),
    "kueue_waits": "It waits in queue {queue}: {cluster_queue} has no quota for it yet.",
    "kueue_waits_advice": (
        "Wait until jobs in {queue} end, request less, or have an admin raise the quota of ClusterQueue "
        "{cluster_queue}."
    ),
    "kueue_unclear": "It waits in queue {queue}: Kueue has not admitted it yet.",
    "kueue_unclear_advice": (
        "Follow Kueue's message above: it concerns queue {queue} or ClusterQueue {cluster_queue}. More: kubectl "
        "describe workload"
    ),
    "kueue_short": (
        "It waits in queue {queue}: the quota of {cluster_queue} for {resource} (flavor {flavor}) is used up, {more} "
        "more needed."
    ),
    "kueue_never": (
        "It requests more {resource} than its queue {queue} can ever have in {cluster_queue} (flavor {flavor})."
    ),
    "kueue_never_advice": (
        "Request less, or have an admin raise the quota of ClusterQueue {cluster_queue} (queue {queue})."
    ),
    "kueue_books": "{cluster_queue} has {limit} of {resource}, {used} are reserved; this job needs {needs}.",
    "priority_advice": (
        "Wait, or submit it with a higher priorityClassName if you are allowed to: kubectl get priorityclass"
    ),
    "kept_for_others": (
        "The free capacity on {node} is reserved for {pod} of {user}, which comes first (priority {priority}, this "
        "pod {own})."
    ),
    "waits_for_victims": "It gets its place on {node} once the lower-priority pods there have ended.",
    "waits_for_victims_advice": "Nothing to do. If it takes long, check which pod on {node} does not terminate.",
    "quota_exceeded": (
        "The namespace's quota {quota} is used up: {resource} is limited to {limit}, {used} are in use, the job "
        "needs {needs} more."
    ),
    "quota_exceeded_advice": (
        "Stop other jobs in the namespace, request less {resource}, or have an admin raise quota {quota}."
    ),
    "quota_unspecified": "The namespace's quota {quota} requires every pod to specify {fields}; this one does not.",
    "quota_unspecified_advice": "Set {fields} in the job's resources (quota {quota}).",
    "quota_scope": "No quota of the namespace admits pods of this kind: {message}",
    "quota_scope_advice": (
        "Add a ResourceQuota with that scope to the namespace, or drop what the scope names from the job, mostly its "
        "priority class."
    ),
    "quota_books": "Quota {quota} right now: {used} of {limit} {resource} in use.",
    "quota_holders": "Largest holders in {namespace}: {holders}.",
    "limit_range": "The namespace's LimitRange forbids it: {rule}.",
    "limit_range_advice": "Change the job's resources accordingly. The rules: kubectl describe limitrange",
    "webhook_denied": "The admission webhook {webhook} rejects its pods: {message}",
    "webhook_denied_advice": "Change the job as the message says, or ask the team that runs {webhook}.",
    "webhook_down": "Pod creation fails because the admission webhook {webhook} does not respond ({message}).",
    "webhook_down_advice": (
        "This affects every job, not only this one. Restore the service behind {webhook}: kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    ),
    "pod_security": "The namespace's pod security rules forbid it: {message}",
    "pod_security_advice": (
        "Remove what is forbidden (privileged, hostPath, root ...) or use a namespace that allows it."
    ),
    "object_missing": "The {kind} {name} that it references does not exist.",
    "object_missing_advice": "Create the {kind} {name}, or correct its name in the job.",
    "namespace_ending": "Its namespace is being deleted: nothing new can be created there.",
    "namespace_ending_advice": "Use another namespace.",
    "denied_other": "The API server rejects its pods: {message}",
    "denied_other_advice": "Change the job as the message says.",
    "refused_times": "Its controller ({kind}) tried {count:time|times}.",
    "unknown_name": "No pod, job or user named {name} is known (namespace {namespace}).",
    "unknown_name_anywhere": "No pod, job or user named {name} is known.",
    "unknown_name_advice": "Check the name and namespace: kubectl get pods -A | grep {name}. Events expire after 1 h.",
    "pods_unseen": "The pods of the cluster cannot be read: {error}.",
    "pods_unseen_advice": "Check the API server and the access to it: gpuwarden doctor",
    "found_pods": "{name} stands for {count:pod|pods}:",
    "found_more": "... and {count:more pod|more pods}",
    "job_pods": "The job has {count:pod|pods}: {states}. This is about {pod}.",
}
