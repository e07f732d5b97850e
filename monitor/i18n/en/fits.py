"""English: whether a job that does not exist yet would fit."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "fits_now": "Fits now: {pods} x {each:gpus}.",
    "fits_where": "Room on: {nodes}.",
    "fits_split": "Does not fit as {pods} x {each:gpus}, but it fits now if it is split differently.",
    "fits_split_way": "As {workers}: {nodes}.",
    "fits_cpu_per_gpu": "CPU of each pod: {cpu} per GPU.",
    "fits_memory_per_gpu": "Memory of each pod: {memory:bytes} per GPU.",
    "fits_most": "The most that one node has room for is {most:gpus} ({node}).",
    "fits_after": "Does not fit now. It fits as {workers} once {count:job has|jobs have} finished.",
    "fits_after_split": (
        "Never fits with {each:gpus} per pod. It fits as {workers} once {count:job has|jobs have} finished."
    ),
    "fits_held": "{job} ({user}) holds {gpus:gpus} on {nodes}.",
    "fits_held_since": "{job} ({user}) holds {gpus:gpus} on {nodes} and has been running for {seconds:duration}.",
    "fits_terminating": "{job} is terminating.",
    "fits_lasting": "{job} is a service or a set of replicas: it does not finish by itself.",
    "fits_more_jobs": "{count:more job|more jobs}.",
    "fits_estimate": (
        "Estimate: in {seconds:duration} (between {earliest:duration} and {latest:duration}), by at least "
        "{runs:earlier run|earlier runs} of each job."
    ),
    "fits_no_estimate": "No estimate of when: too few earlier runs of these jobs are known.",
    "fits_never": "Does not fit, and waiting for other jobs does not help.",
    "fits_too_few": "All nodes that it may use have room for at most {most} x {each:gpus}; it needs {pods}.",
    "fits_no_model": "No node has GPUs of the model {model}. Models of the cluster: {models}.",
    "fits_no_queue": "There is no queue {queue}. Queues of the cluster: {queues}.",
    "fits_unknown": "Cannot be determined.",
    "fits_per_card": (
        "{resource} is assigned card by card by a scheduler of its own: what is free on a node does not tell whether a "
        "card has room."
    ),
    "fits_models_unknown": "The GPU model of these nodes is not known: {nodes}.",
    "fits_no_class": "GPUs are available only through resource claims, and no DeviceClass for whole GPUs is known.",
    "fits_nodes_unclear": (
        "There is no room elsewhere, and how much these nodes have is not clear, because their GPUs are assigned card "
        "by card or both by device plugin and by resource claims: {nodes}."
    ),
    "fits_room_only": "Nodes have room: {nodes}.",
    "fits_queue_unread": "The limits of the queue {queue} cannot be read.",
    "fits_queue_ambiguous": "Several namespaces have a queue {queue}; name the namespace.",
    "fits_uncovered": "ClusterQueue {queue} has no quota for {resource}.",
    "fits_flavors": (
        "Kueue limits the job to the nodes of a flavor of ClusterQueue {queue}; which nodes these are is not known."
    ),
    "fits_borrows": (
        "ClusterQueue {queue} has {limit} of {resource}, {used} are reserved, and the job needs {needs}: it depends on "
        "what other queues of the cohort lend."
    ),
    "fits_weights": "Jobs are also waiting in the queues {queues}, and Volcano may start those first.",
    "fits_unusable": (
        "The scheduler counts GPUs as free that are faulty, or in use by leftovers of earlier pods: {nodes}."
    ),
    "fits_select_model": "Select the model in the job's node affinity: {label} in ({values})",
    "fits_claim": "Request the GPUs with a ResourceClaim of the DeviceClass {name}.",
    "fits_only_claims": "These nodes have GPUs only for jobs with resource claims: {nodes}.",
    "fits_unseen": "The cluster cannot be read: {error}.",
}
