"""English: queues, groups, quotas, and pods that are not created."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "gated": "The scheduler may not look at it yet: it has the scheduling gate {gates}.",
    "gated_advice": "Whoever set {gates} has to remove it. Ask the team that runs that controller.",
    "queue_closed": "Its queue {queue} is {state}: no new job starts there.",
    "queue_closed_why": "Its queue {queue} takes no new jobs: {why}.",
    "queue_closed_volcano_advice": (
        "Open the queue: vcctl queue operate -n {queue} -a open. Or submit the job to another queue."
    ),
    "queue_closed_kueue_advice": (
        "See why: kubectl describe {object}. If somebody stopped it on purpose, set its stopPolicy back to None. Or "
        "submit the job to another queue."
    ),
    "queue_missing": "It asks for the queue {queue}, and there is no LocalQueue of that name in {namespace}.",
    "queue_missing_advice": (
        "Correct the label kueue.x-k8s.io/queue-name of the job. Queues there: kubectl get localqueue -n {namespace}"
    ),
    "queue_full": (
        "Its queue {queue} is full: the limit is {limit} of {resource}, {used} are in use, and it needs {needs} more."
    ),
    "queue_full_advice": (
        "Wait until jobs in {queue} end, ask for less, use another queue, or let an admin raise the queue's limit."
    ),
    "queue_never": "It asks for {needs} of {resource}; its queue {queue} may never have more than {limit}.",
    "queue_never_advice": "Ask for at most {limit} of {resource}, use another queue, or let an admin raise the limit.",
    "queue_holders": "Most of {queue} is held by: {holders}.",
    "gang_missing": (
        "Its group {group} starts all together or not at all: {needed:pod has|pods have} to exist, "
        "{present:exists|exist}, {missing:is|are} missing."
    ),
    "gang_missing_advice": (
        "Find out why the missing pods are not created: kubectl describe podgroup {group} -n {namespace}. Or lower "
        "minAvailable of the job."
    ),
    "gang_too_large": (
        "Its group {group} starts all together or not at all: of {waiting:waiting pod|waiting pods} ({gpus:GPU|GPUs} "
        "in all) only {fit} would fit at the same time, {needed} have to."
    ),
    "gang_too_large_advice": "Wait for GPUs, or submit the job with fewer workers ({fit} would fit now).",
    "gang_kueue": "Its group {group} is not complete: {present:pod has|pods have} come, Kueue waits for the rest.",
    "gang_kueue_advice": (
        "Create the missing pods, or correct the annotation kueue.x-k8s.io/pod-group-total-count of {group}."
    ),
    "workload_inactive": "Somebody has switched its workload {workload} off (spec.active is false).",
    "workload_inactive_advice": (
        "Switch it on: kubectl patch workload {workload} -n {namespace} --type=merge -p "
        '\'{{"spec":{{"active":true}}}}\''
    ),
    "workload_preempted": "A job with a higher priority has taken its place: {message}",
    "workload_checks": "Its quota is reserved; admission checks of the workload {workload} are not done yet.",
    "workload_checks_advice": "See which check is missing: kubectl describe workload {workload} -n {namespace}",
    "workload_none": "Kueue has not registered it yet (queue {queue}).",
    "workload_none_advice": "If it stays so, see whether Kueue's controller runs: kubectl get pods -n kueue-system",
    "kueue_waits": "It waits in queue {queue}: Kueue has no quota for it in {cluster_queue} yet.",
    "kueue_waits_advice": (
        "Wait until jobs in {queue} end, ask for less, or let an admin raise the quota of ClusterQueue {cluster_queue}."
    ),
    "kueue_short": (
        "It waits in queue {queue}: the quota of {cluster_queue} for {resource} (flavor {flavor}) is used up, {more} "
        "more needed."
    ),
    "kueue_never": (
        "It asks for more {resource} than its queue {queue} may ever have in {cluster_queue} (flavor {flavor})."
    ),
    "kueue_never_advice": (
        "Ask for less, or let an admin raise the quota of ClusterQueue {cluster_queue} (queue {queue})."
    ),
    "kueue_books": "{cluster_queue} has {limit} of {resource}, {used} are reserved; this job needs {needs}.",
    "priority_advice": "Wait, or submit it with a higher priorityClassName if you may: kubectl get priorityclass",
    "kept_for_others": (
        "The free room on {node} is kept for {pod} of {user}, which comes first (priority {priority}, this pod {own})."
    ),
    "waits_for_victims": "It gets its place on {node} as soon as the pods of lower priority there have ended.",
    "waits_for_victims_advice": "Nothing to do. If it takes long, see which pod on {node} does not end.",
    "quota_exceeded": (
        "The namespace's quota {quota} is used up: {resource} is limited to {limit}, {used} are in use, the job "
        "needs {needs} more."
    ),
    "quota_exceeded_advice": (
        "End other jobs in the namespace, ask for less {resource}, or let an admin raise the quota {quota}."
    ),
    "quota_unspecified": "The namespace's quota {quota} demands that every pod states: {fields}. This one does not.",
    "quota_unspecified_advice": "Set {fields} in the job's resources (quota {quota}).",
    "quota_books": "Quota {quota} right now: {used} of {limit} {resource} in use.",
    "quota_holders": "Most GPUs in {namespace} are held by: {holders}.",
    "limit_range": "The namespace's LimitRange forbids it: {rule}.",
    "limit_range_advice": "Change the job's resources accordingly. The rules: kubectl describe limitrange",
    "webhook_denied": "The admission webhook {webhook} refuses its pods: {message}",
    "webhook_denied_advice": "Change the job as the message says, or ask the team that runs {webhook}.",
    "webhook_down": (
        "No pod can be checked, so none is created: the admission webhook {webhook} does not answer ({message})."
    ),
    "webhook_down_advice": (
        "This hits every job, not only this one. Bring the service behind {webhook} back: kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    ),
    "pod_security": "The namespace's pod security rules forbid it: {message}",
    "pod_security_advice": (
        "Remove what is forbidden (privileged, hostPath, root ...) or use a namespace that allows it."
    ),
    "object_missing": "The {kind} {name} that it asks for does not exist.",
    "object_missing_advice": "Create the {kind} {name}, or correct its name in the job.",
    "namespace_ending": "Its namespace is being deleted: nothing new can be created there.",
    "namespace_ending_advice": "Use another namespace.",
    "denied_other": "The API server refuses to create its pods: {message}",
    "denied_other_advice": "Change the job as the message says.",
    "refused_times": "Tried {count:time|times} by its controller ({kind}).",
    "unknown_name": "No pod and no job called {name} is known (namespace {namespace}).",
    "unknown_name_advice": (
        "Check name and namespace: kubectl get pods -A | grep {name}. Events are forgotten after 1 h."
    ),
    "job_pods": "The job has {count:pod|pods}: {states}. This is about {pod}.",
}
