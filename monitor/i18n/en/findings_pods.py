"""English: text of the rules about pods, images and queues."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # image-pull
    "rule.image-pull": "Image pull failed",
    "doc.image-pull": "A pod's image could not be pulled; names the cause. Reported after the first failure.",
    "doc.image-pull.severity": "warning",
    "doc.image-pull.incident": "ImagePullBackOff for no visible reason.",
    "doc.image-pull.limit.failures": "How many pulls must fail.",
    "image-pull.disk-full": "Pod {pod} of {user} cannot pull {image}: the disk of {node} is full.",
    "image-pull.wrong-architecture": (
        "Pod {pod} of {user} cannot pull {image}: it is not built for the CPU architecture of {node}."
    ),
    "image-pull.rate-limited": "Pod {pod} of {user} cannot pull {image}: {host} rate-limits {node}.",
    "image-pull.tls": "Pod {pod} of {user} cannot pull {image}: {node} does not trust the certificate of {host}.",
    "image-pull.plain-http": (
        "Pod {pod} of {user} cannot pull {image}: {host} serves plain HTTP, but {node} requires HTTPS."
    ),
    "image-pull.dns": "Pod {pod} of {user} cannot pull {image}: {node} cannot resolve {host}.",
    "image-pull.connection-refused": "Pod {pod} of {user} cannot pull {image}: {host} refuses connections from {node}.",
    "image-pull.timeout": "Pod {pod} of {user} cannot pull {image}: {host} does not respond to {node}.",
    "image-pull.connection-broken": (
        "Pod {pod} of {user} cannot pull {image}: the connection from {node} to {host} breaks off."
    ),
    "image-pull.too-slow": (
        "Pod {pod} of {user} cannot pull {image}: the pull on {node} was too slow and was cancelled."
    ),
    "image-pull.registry-error": "Pod {pod} of {user} cannot pull {image}: {host} returns an error to {node}.",
    "image-pull.unauthorized": (
        "Pod {pod} of {user} cannot pull {image}: {host} denies access to {node}, or the repository does not exist."
    ),
    "image-pull.not-found": "Pod {pod} of {user} cannot pull {image}: it does not exist in {registry}.",
    "image-pull.damaged-layer": "Pod {pod} of {user} cannot pull {image}: {node} cannot store it, a layer is corrupt.",
    "image-pull.bad-name": "Pod {pod} of {user} cannot pull {image}: the image name is invalid.",
    "image-pull.never-pull": (
        "Pod {pod} of {user} has no image: {image} is not on {node}, and the pod forbids pulling it."
    ),
    "image-pull.unknown": "Pod {pod} of {user} cannot pull {image} on {node}.",
    # image-pull-slow
    "rule.image-pull-slow": "Image pull slow",
    "doc.image-pull-slow": "An image pull takes long because of the image's size, the registry or the node's disk.",
    "doc.image-pull-slow.severity": "warning",
    "doc.image-pull-slow.incident": "Starting from a 50 GB image took 14 minutes.",
    "doc.image-pull-slow.limit.pulling": "How long a pull may take.",
    "doc.image-pull-slow.limit.rate": "Minimum bytes per second for images of at least `large`.",
    "doc.image-pull-slow.limit.large": "Size above which `rate` applies.",
    "doc.image-pull-slow.limit.spoken_of": "How long a completed slow pull is reported.",
    "image-pull-slow.large-image": (
        "{node} has been pulling {image} for {seconds:duration} (pod {pod} of {user}): the image is large."
    ),
    "image-pull-slow.large-image.advice": (
        "Make the image smaller, keep data out of it, or pull it ahead of time: on {node} crictl pull {image}"
    ),
    "image-pull-slow.slow-registry": (
        "The pull of {image} from {registry} to {node} is slow: {took:duration} (pod {pod} of {user})."
    ),
    "image-pull-slow.slow-registry.advice": (
        "Compare with another node. If all are slow, check the disk and network of {registry}; if only {node} is, "
        "check its link (ethtool, iperf3)."
    ),
    "image-pull-slow.slow-disk": (
        "Storing {image} on {node} is slow: {took:duration} (pod {pod} of {user}); its disk is busy."
    ),
    "image-pull-slow.slow-disk.advice": (
        "On {node}, iostat -x 5 shows the load. Keep images on a separate disk, an SSD if possible."
    ),
    "image-pull-slow.done": "The pull has completed.",
    "image-pull-slow.rate": "{rate:bytes} per second on average; at least {limit:bytes} per second is expected.",
    # registry-unreachable
    "rule.registry-unreachable": "Registry unreachable",
    "doc.registry-unreachable": (
        "A node cannot reach a registry, or the registry is down: one finding instead of one per pod."
    ),
    "doc.registry-unreachable.severity": "warning",
    "doc.registry-unreachable.incident": "A node lost the registry's entry in its hosts file.",
    "doc.registry-unreachable.limit.images": (
        "How many different images must fail; a failed agent probe is sufficient by itself."
    ),
    "registry-unreachable.node-cannot-resolve": "{nodes} cannot resolve {registries}.",
    "registry-unreachable.node-cannot-resolve.advice": (
        "On {node}: getent hosts {registry}. If it fails, restore the entry in /etc/hosts or the DNS server in "
        "/etc/resolv.conf; compare with a node that works."
    ),
    "registry-unreachable.node-cannot-connect": "{nodes} cannot connect to {registries}.",
    "registry-unreachable.node-cannot-connect.advice": (
        "On {node}: curl -v https://{registry}/v2/ (401 is fine). Check the address in /etc/hosts, the firewall, the "
        "proxy and the route."
    ),
    "registry-unreachable.node-does-not-trust": "{nodes} does not accept the certificate or protocol of {registries}.",
    "registry-unreachable.node-does-not-trust.advice": (
        "On {node}, install the registry's CA as /etc/docker/certs.d/{registry}/ca.crt or in /etc/containerd/certs.d/"
        "{registry}/hosts.toml, and check the clock and the certificate's validity."
    ),
    "registry-unreachable.registry-down": (
        "Registry {registries} is down: unreachable from {count:node|nodes} ({nodes})."
    ),
    "registry-unreachable.registry-down.advice": (
        "Check the registry itself: curl -v https://{registry}/v2/. For Harbor: docker-compose ps, its disk, its "
        "database, the core log."
    ),
    "registry-unreachable.probes": "The agent's probe fails on {count:node|nodes}: {error}",
    "registry-unreachable.others": "{count:other node can|other nodes can} reach it.",
    "registry-unreachable.pulls": "{pods:pod is|pods are} waiting for {images:image|images} because of it.",
    # pod-pending
    "rule.pod-pending": "Pod waiting for a node",
    "doc.pod-pending": "A job's pods have been waiting for a node for too long; names the reason.",
    "doc.pod-pending.severity": "warning",
    "doc.pod-pending.incident": "Why is my job not scheduled? Are there not enough GPUs?",
    "doc.pod-pending.limit.waiting": "How long a pod may wait for a node.",
    "pod-pending.no-single-node-fits": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no single node has "
        "{gpus:free GPU|free GPUs}."
    ),
    "pod-pending.not-enough-gpus": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: not enough free GPUs ({gpus} needed)."
    ),
    "pod-pending.quota": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: the quota of queue {queue} is used up."
    ),
    "pod-pending.queue-closed": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: queue {queue} is closed or missing."
    ),
    "pod-pending.gang-incomplete": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: the gang must start together but is "
        "incomplete or does not fit."
    ),
    "pod-pending.taint": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: taints keep it off the suitable nodes."
    ),
    "pod-pending.selector": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no node has the requested labels."
    ),
    "pod-pending.volume": "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: its volume is not ready.",
    "pod-pending.priority": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: other jobs have higher priority."
    ),
    "pod-pending.overtaken": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: a later job got the GPUs first."
    ),
    "pod-pending.unschedulable-other": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no node accepts it."
    ),
    "pod-pending.advice": "Full and current explanation: gpuwarden why -n {namespace} {pod}",
    # pod-stuck-creating
    "rule.pod-stuck-creating": "Pod stuck in creation",
    "doc.pod-stuck-creating": (
        "A pod is bound to a node but its containers are not created, for a reason other than its image."
    ),
    "doc.pod-stuck-creating.severity": "warning",
    "doc.pod-stuck-creating.incident": "Mounts failed, and jobs hung in creation.",
    "doc.pod-stuck-creating.limit.creating": "How long a pod may take from one step to the next.",
    "pod-stuck-creating.mount-failed": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: mounting a volume "
        "failed."
    ),
    "pod-stuck-creating.mount-hung": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a volume does not "
        "respond."
    ),
    "pod-stuck-creating.sandbox": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: the node does not "
        "create its sandbox, or reports no reason."
    ),
    "pod-stuck-creating.config-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a ConfigMap, Secret "
        "or PVC that it references is missing."
    ),
    "pod-stuck-creating.device-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a device that it "
        "needs is missing."
    ),
    "pod-stuck-creating.hung-path": "{path} on {node} does not respond.",
    "pod-stuck-creating.advice": (
        "Details: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-start-failed
    "rule.pod-start-failed": "Pod cannot start",
    "doc.pod-start-failed": "A container cannot be created or started, or keeps crashing.",
    "doc.pod-start-failed.severity": "warning",
    "doc.pod-start-failed.incident": "The start file was not found, or was not executable.",
    "doc.pod-start-failed.limit.steady": "How long a container must run after a crash to count as healthy.",
    "doc.pod-start-failed.limit.failed_for": "How long a failed pod is reported.",
    "pod-start-failed.file-not-found": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: a command, file or module is missing ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.not-executable": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: its program is not executable ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.permission": (
        "Container {container} of pod {pod} ({user}) on {node} keeps failing: permission to a file is denied ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.out-of-memory": (
        "Container {container} of pod {pod} ({user}) on {node} ran out of memory ({restarts:restart|restarts})."
    ),
    "pod-start-failed.bus-error": (
        "Container {container} of pod {pod} ({user}) on {node} crashes with a memory access error ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.config": (
        "Container {container} of pod {pod} ({user}) on {node} does not start or keeps failing with its current "
        "configuration ({restarts:restart|restarts})."
    ),
    # pod-stuck-terminating
    "rule.pod-stuck-terminating": "Pod stuck in deletion",
    "doc.pod-stuck-terminating": "A deleted pod still exists after its grace period.",
    "doc.pod-stuck-terminating.severity": "warning",
    "doc.pod-stuck-terminating.incident": "Deleted jobs hung and had to be removed by hand.",
    "doc.pod-stuck-terminating.limit.overdue": "How long beyond its grace period a pod may take.",
    "pod-stuck-terminating.finalizer": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: a finalizer "
        "keeps it."
    ),
    "pod-stuck-terminating.node-down": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: its node does "
        "not respond."
    ),
    "pod-stuck-terminating.volume-busy": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: one of its "
        "volumes cannot be unmounted."
    ),
    "pod-stuck-terminating.d-state": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: one of its "
        "processes cannot be killed."
    ),
    "pod-stuck-terminating.runtime-hung": (
        "Pod {pod} of {user} on {node} was deleted and should have terminated {seconds:duration} ago: the container "
        "runtime does not stop it."
    ),
    "pod-stuck-terminating.advice": (
        "Details: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-silent
    "rule.pod-silent": "Job without log output",
    "doc.pod-silent": "A running container holds GPUs, but its log is empty or no longer grows.",
    "doc.pod-silent.severity": "warning",
    "doc.pod-silent.incident": "Training jobs that printed nothing.",
    "doc.pod-silent.limit.empty": "How long a log may stay empty after the start.",
    "doc.pod-silent.limit.stopped": "How long a log may stay unchanged.",
    "pod-silent.never-logged": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:GPU|GPUs} and has not logged a line in "
        "the {seconds:duration} since its start."
    ),
    "pod-silent.never-logged.advice": (
        "Ask {user} whether it works. Python buffers its output: set PYTHONUNBUFFERED=1. Does it log to a file? "
        "kubectl logs {pod} -n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.stopped-logging": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:GPU|GPUs} and has logged nothing for "
        "{seconds:duration}."
    ),
    "pod-silent.stopped-logging.advice": (
        "Ask {user} whether it hangs (NCCL, a data loader, a full disk): kubectl logs {pod} -n {namespace} -c "
        "{container} --tail 20"
    ),
    "pod-silent.log-unreadable": (
        "Container {container} of pod {pod} ({user}) on {node} holds {gpus:GPU|GPUs}, and its log is unreadable "
        "{seconds:duration} after its start."
    ),
    "pod-silent.log-unreadable.advice": (
        "On {node}, check that the log file exists and that its disk works: ls -l /var/log/pods; kubectl logs {pod} "
        "-n {namespace} -c {container} --tail 20"
    ),
    # quota-exhausted
    "rule.quota-exhausted": "Quota used up",
    "doc.quota-exhausted": "A namespace or queue uses its full GPU quota while more jobs wait in it.",
    "doc.quota-exhausted.severity": "warning",
    "doc.quota-exhausted.incident": "New jobs queued because the group's quota was used up.",
    "doc.quota-exhausted.limit.refused": "How long a refused job counts as waiting.",
    "quota-exhausted.namespace": (
        "Namespace {name} uses {used} of the {limit:GPU|GPUs} that quota {quota} allows, and more jobs are waiting."
    ),
    "quota-exhausted.namespace.advice": (
        "Free GPUs in {name}, or raise the quota: kubectl edit resourcequota {quota} -n {name}"
    ),
    "quota-exhausted.queue": "Queue {name} uses {used} of its limit of {limit:GPU|GPUs}, and more jobs are waiting.",
    "quota-exhausted.queue.advice": (
        "Free GPUs of queue {name}, or raise its limit (Volcano: spec.capability; Kueue: nominalQuota)."
    ),
    "quota-exhausted.waiting": "{count:job is|jobs are} waiting for {needs:GPU|GPUs}: {jobs}.",
    "quota-exhausted.holders": "Largest holders: {holders}.",
}
