"""English: text of the rules about pods, images and queues."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # image-pull
    "rule.image-pull": "Image pull failed",
    "doc.image-pull": "A pod's image could not be pulled, with the cause. Said after the first failure.",
    "doc.image-pull.severity": "warning",
    "doc.image-pull.incident": "ImagePullBackOff, and nobody knew why.",
    "doc.image-pull.limit.failures": "How often a pull has to fail.",
    "image-pull.disk-full": "Pod {pod} of {user} gets no image: the disk of {node} has no room for {image}.",
    "image-pull.wrong-architecture": (
        "Pod {pod} of {user} gets no image: {image} is not made for the processor of {node}."
    ),
    "image-pull.rate-limited": "Pod {pod} of {user} gets no image: {host} limits the pulls of {image} by {node}.",
    "image-pull.tls": "Pod {pod} of {user} gets no image {image}: {node} does not trust the certificate of {host}.",
    "image-pull.plain-http": (
        "Pod {pod} of {user} gets no image {image}: {host} speaks plain HTTP, and {node} insists on HTTPS."
    ),
    "image-pull.dns": "Pod {pod} of {user} gets no image {image}: {node} finds no address for {host}.",
    "image-pull.connection-refused": "Pod {pod} of {user} gets no image {image}: {host} refuses connections of {node}.",
    "image-pull.timeout": "Pod {pod} of {user} gets no image {image}: {host} does not answer {node}.",
    "image-pull.connection-broken": (
        "Pod {pod} of {user} gets no image {image}: the connection from {node} to {host} breaks off."
    ),
    "image-pull.too-slow": "Pod {pod} of {user} gets no image: {node} gave up on {image}, it took too long.",
    "image-pull.registry-error": "Pod {pod} of {user} gets no image {image}: {host} answers {node} with an error.",
    "image-pull.unauthorized": (
        "Pod {pod} of {user} gets no image: {host} does not give {image} to {node}, or has no such repository."
    ),
    "image-pull.not-found": "Pod {pod} of {user} gets no image: {registry} does not have {image}.",
    "image-pull.damaged-layer": "Pod {pod} of {user} gets no image: {node} cannot store {image}, a layer is damaged.",
    "image-pull.bad-name": "Pod {pod} of {user} gets no image: {image} is no valid name.",
    "image-pull.never-pull": (
        "Pod {pod} of {user} gets no image: {image} is not on {node}, and the pod forbids pulling it."
    ),
    "image-pull.unknown": "Pod {pod} of {user} gets no image: {node} cannot pull {image}.",
    # image-pull-slow
    "rule.image-pull-slow": "Image pull slow",
    "doc.image-pull-slow": (
        "An image takes long to come: for its size, for the registry, or for the disk that it goes to."
    ),
    "doc.image-pull-slow.severity": "warning",
    "doc.image-pull-slow.incident": "Starting from a 50 GB image took 14 minutes.",
    "doc.image-pull-slow.limit.pulling": "How long a pull may take.",
    "doc.image-pull-slow.limit.rate": "How much a second is expected at least, of images of at least `large`.",
    "doc.image-pull-slow.limit.large": "From which size on the rate counts.",
    "doc.image-pull-slow.limit.spoken_of": "How long a slow pull that is over is spoken of.",
    "image-pull-slow.large-image": (
        "{node} has been pulling {image} for {seconds:duration} (pod {pod} of {user}): the image is large."
    ),
    "image-pull-slow.large-image.advice": (
        "Make the image smaller, keep data out of it, or pull it ahead: on {node} crictl pull {image}"
    ),
    "image-pull-slow.slow-registry": (
        "{image} comes slowly from {registry} to {node}: {seconds:duration} (pod {pod} of {user})."
    ),
    "image-pull-slow.slow-registry.advice": (
        "Compare with another node. If all are slow, look at the disk and the network of {registry}; if only {node} "
        "is, at its link (ethtool, iperf3)."
    ),
    "image-pull-slow.slow-disk": (
        "{image} is stored slowly on {node}: {seconds:duration} (pod {pod} of {user}); its disk is busy."
    ),
    "image-pull-slow.slow-disk.advice": (
        "On {node}: iostat -x 5 shows who writes. Keep images on a disk of their own, an SSD if possible."
    ),
    "image-pull-slow.done": "The pull is over now.",
    "image-pull-slow.rate": "{rate:bytes} a second on average; {limit:bytes} a second is the least that is expected.",
    # registry-unreachable
    "rule.registry-unreachable": "Registry unreachable",
    "doc.registry-unreachable": (
        "A node cannot reach a registry, or the registry is down: one finding in place of one for each pod."
    ),
    "doc.registry-unreachable.severity": "warning",
    "doc.registry-unreachable.incident": "A node lost the registry's entry in its hosts file.",
    "doc.registry-unreachable.limit.images": (
        "How many different images have to fail; a failed probe of the agent is enough by itself."
    ),
    "registry-unreachable.node-cannot-resolve": "{nodes} cannot find {registries}: the name has no address there.",
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
        "On {node}: put the registry's CA into /etc/docker/certs.d/{registry}/ca.crt or "
        "/etc/containerd/certs.d/{registry}/hosts.toml, and check the clock and the certificate's dates."
    ),
    "registry-unreachable.registry-down": "The registry {registries} is down: seen from {count:node|nodes} ({nodes}).",
    "registry-unreachable.registry-down.advice": (
        "Look at the registry itself: curl -v https://{registry}/v2/. For Harbor: docker-compose ps, its disk, its "
        "database, the core log."
    ),
    "registry-unreachable.probes": "Our probe fails on {count:node|nodes}: {error}",
    "registry-unreachable.others": "{count:other node reaches|other nodes reach} it.",
    "registry-unreachable.pulls": "{pods:pod waits|pods wait} for {images:image|images} because of it.",
    # pod-pending
    "rule.pod-pending": "Pod waits for a node",
    "doc.pod-pending": "A job's pods wait for a node for too long, with the reason.",
    "doc.pod-pending.severity": "warning",
    "doc.pod-pending.incident": "Why is my job not scheduled? Is there not enough?",
    "doc.pod-pending.limit.waiting": "How long a pod may wait for a node.",
    "pod-pending.no-single-node-fits": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no single node has "
        "{gpus:free GPU|free GPUs}."
    ),
    "pod-pending.not-enough-gpus": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: there are not {gpus:free GPU|free GPUs} "
        "for it."
    ),
    "pod-pending.quota": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: queue {queue} has used up its share."
    ),
    "pod-pending.queue-closed": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: queue {queue} is closed or missing."
    ),
    "pod-pending.gang-incomplete": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: the group can only start together, and is "
        "not complete or does not fit."
    ),
    "pod-pending.taint": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: taints keep it off the nodes that it "
        "could use."
    ),
    "pod-pending.selector": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no node has the labels that it asks for."
    ),
    "pod-pending.volume": "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: its volume is not ready.",
    "pod-pending.priority": "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: others have priority.",
    "pod-pending.overtaken": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: a later job got the GPUs first."
    ),
    "pod-pending.unschedulable-other": (
        "{count:pod|pods} of {job} ({user}) waiting for {seconds:duration}: no node takes it."
    ),
    "pod-pending.advice": "The whole story, kept up to date: gpuwarden why -n {namespace} {pod}",
    # pod-stuck-creating
    "rule.pod-stuck-creating": "Pod stuck while being created",
    "doc.pod-stuck-creating": "A pod has its node and does not get its containers, and not for want of an image.",
    "doc.pod-stuck-creating.severity": "warning",
    "doc.pod-stuck-creating.incident": "Mounts failed, and jobs hung while being created.",
    "doc.pod-stuck-creating.limit.creating": "How long a pod may take from one step to the next.",
    "pod-stuck-creating.mount-failed": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a volume cannot be "
        "mounted."
    ),
    "pod-stuck-creating.mount-hung": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a volume does not "
        "answer."
    ),
    "pod-stuck-creating.sandbox": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: the node does not "
        "make its sandbox, or says nothing."
    ),
    "pod-stuck-creating.config-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a ConfigMap, Secret "
        "or claim that it names is missing."
    ),
    "pod-stuck-creating.device-missing": (
        "Pod {pod} of {user} on {node} has been creating its containers for {seconds:duration}: a device that it "
        "needs is not there."
    ),
    "pod-stuck-creating.hung-path": "{path} on {node} does not answer.",
    "pod-stuck-creating.advice": (
        "More of it: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-start-failed
    "rule.pod-start-failed": "Pod cannot start",
    "doc.pod-start-failed": "A container cannot be created or started, or ends again and again.",
    "doc.pod-start-failed.severity": "warning",
    "doc.pod-start-failed.incident": "The start file was not found, or could not be executed.",
    "doc.pod-start-failed.limit.steady": "How long a container has to run after a crash to count as well.",
    "doc.pod-start-failed.limit.failed_for": "How long a pod that failed is spoken of.",
    "pod-start-failed.file-not-found": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: a command, a file or a module is not "
        "there ({restarts:restart|restarts})."
    ),
    "pod-start-failed.not-executable": (
        "Container {container} of pod {pod} ({user}) on {node} does not start: its program cannot be executed "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.permission": (
        "Container {container} of pod {pod} ({user}) on {node} does not stay up: it may not use a file "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.out-of-memory": (
        "Container {container} of pod {pod} ({user}) on {node} was killed or gave up for want of memory "
        "({restarts:restart|restarts})."
    ),
    "pod-start-failed.bus-error": (
        "Container {container} of pod {pod} ({user}) on {node} crashes on a memory fault ({restarts:restart|restarts})."
    ),
    "pod-start-failed.config": (
        "Container {container} of pod {pod} ({user}) on {node} does not start or does not stay up as it is set up "
        "({restarts:restart|restarts})."
    ),
    # pod-stuck-terminating
    "rule.pod-stuck-terminating": "Pod stuck while being deleted",
    "doc.pod-stuck-terminating": "A pod was deleted, its grace time is over, and it does not go.",
    "doc.pod-stuck-terminating.severity": "warning",
    "doc.pod-stuck-terminating.incident": "Deleted jobs hung and had to be removed by hand.",
    "doc.pod-stuck-terminating.limit.overdue": "How long beyond its grace time a pod may take.",
    "pod-stuck-terminating.finalizer": (
        "Pod {pod} of {user} on {node} was deleted and should have gone {seconds:duration} ago: a finalizer keeps it."
    ),
    "pod-stuck-terminating.node-down": (
        "Pod {pod} of {user} on {node} was deleted and should have gone {seconds:duration} ago: its node does not "
        "answer, so nobody ends it."
    ),
    "pod-stuck-terminating.volume-busy": (
        "Pod {pod} of {user} on {node} was deleted and should have gone {seconds:duration} ago: a volume of it cannot "
        "be unmounted."
    ),
    "pod-stuck-terminating.d-state": (
        "Pod {pod} of {user} on {node} was deleted and should have gone {seconds:duration} ago: one of its processes "
        "cannot be killed."
    ),
    "pod-stuck-terminating.runtime-hung": (
        "Pod {pod} of {user} on {node} was deleted and should have gone {seconds:duration} ago: the container runtime "
        "does not end it."
    ),
    "pod-stuck-terminating.advice": (
        "More of it: kubectl describe pod {pod} -n {namespace}; on {node}: journalctl -u kubelet | grep {pod}"
    ),
    # pod-silent
    "rule.pod-silent": "Job without any log",
    "doc.pod-silent": "A container that has GPUs runs, and its log says nothing, or nothing any more.",
    "doc.pod-silent.severity": "warning",
    "doc.pod-silent.incident": "Training jobs that printed nothing.",
    "doc.pod-silent.limit.empty": "How long a log may be empty after the start.",
    "doc.pod-silent.limit.stopped": "How long nothing may be added to a log.",
    "pod-silent.never-logged": (
        "Container {container} of pod {pod} ({user}) on {node} has {gpus:GPU|GPUs} and has not written a line in the "
        "{seconds:duration} since its start."
    ),
    "pod-silent.never-logged.advice": (
        "Ask {user} whether it works. Python holds lines back: set PYTHONUNBUFFERED=1. Is the output in a file? "
        "kubectl logs {pod} -n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.stopped-logging": (
        "Container {container} of pod {pod} ({user}) on {node} has {gpus:GPU|GPUs} and has written nothing to its log "
        "for {seconds:duration}."
    ),
    "pod-silent.stopped-logging.advice": (
        "Ask {user} whether it hangs (NCCL, a data loader, a full disk): kubectl logs {pod} -n {namespace} -c "
        "{container} --tail 20"
    ),
    "pod-silent.log-unreadable": (
        "Container {container} of pod {pod} ({user}) on {node} has {gpus:GPU|GPUs} and its log cannot be read, "
        "{seconds:duration} after its start."
    ),
    "pod-silent.log-unreadable.advice": (
        "On {node}: does the log file exist, and does its disk work? ls -l /var/log/pods; kubectl logs {pod} -n "
        "{namespace} -c {container} --tail 20"
    ),
    # quota-exhausted
    "rule.quota-exhausted": "Quota used up",
    "doc.quota-exhausted": "A namespace or queue has all the GPUs that it may have, and more work waits in it.",
    "doc.quota-exhausted.severity": "warning",
    "doc.quota-exhausted.incident": "New jobs queued because the group's quota was used up.",
    "doc.quota-exhausted.limit.refused": "How long a refusal counts as work that waits.",
    "quota-exhausted.namespace": (
        "Namespace {name} uses {used} of the {limit:GPU|GPUs} that quota {quota} allows, and more work waits."
    ),
    "quota-exhausted.namespace.advice": (
        "Free GPUs in {name}, or raise the quota: kubectl edit resourcequota {quota} -n {name}"
    ),
    "quota-exhausted.queue": "Queue {name} uses {used} of the {limit:GPU|GPUs} that it may have, and more work waits.",
    "quota-exhausted.queue.advice": (
        "Free GPUs of queue {name}, or raise its limit (Volcano: spec.capability; Kueue: nominalQuota)."
    ),
    "quota-exhausted.waiting": "{count:job waits|jobs wait} for {needs:GPU|GPUs}: {jobs}.",
    "quota-exhausted.holders": "Who has most of it: {holders}.",
}
