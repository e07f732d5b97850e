"""English: findings about images, pulls and registries."""

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
    "image-pull.damaged-layer": (
        "Pod {pod} of {user} cannot pull {image}: what {node} downloads does not match its digest."
    ),
    "image-pull.bad-name": "Pod {pod} of {user} cannot pull {image}: the image name is invalid.",
    "image-pull.never-pull": (
        "Pod {pod} of {user} has no image: {image} is not on {node}, and the pod forbids pulling it."
    ),
    "image-pull.kubelet-limit": "Pod {pod} of {user} cannot pull {image}: the kubelet of {node} limits its own pulls.",
    "image-pull.proxy": "Pod {pod} of {user} cannot pull {image}: the HTTP proxy {host} of {node} fails.",
    "image-pull.mirror": "Pod {pod} of {user} cannot pull {image}: the registry mirror {host} of {node} fails.",
    "image-pull.token-expired": "Pod {pod} of {user} cannot pull {image}: the credentials for {host} have expired.",
    "image-pull.credential-helper": (
        "Pod {pod} of {user} cannot pull {image}: the credential helper of {node} does not work."
    ),
    "image-pull.policy": "Pod {pod} of {user} cannot pull {image}: a rule of the registry or of {node} forbids it.",
    "image-pull.bad-image": "Pod {pod} of {user} cannot pull {image}: the image is malformed, {node} cannot unpack it.",
    "image-pull.old-format": (
        "Pod {pod} of {user} cannot pull {image}: the runtime of {node} no longer supports its format."
    ),
    "image-pull.corrupt-layer": "Pod {pod} of {user} cannot pull {image}: a layer arrives corrupt on {node}.",
    "image-pull.node-store": "Pod {pod} of {user} cannot pull {image}: the image store of {node} is inconsistent.",
    "image-pull.node-disk": "Pod {pod} of {user} cannot pull {image}: the disk of {node} fails or is read-only.",
    "image-pull.snapshotter": "Pod {pod} of {user} cannot pull {image}: the snapshotter of {node} does not work.",
    "image-pull.runtime-down": (
        "Pod {pod} of {user} cannot pull {image}: the container runtime of {node} does not respond."
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
    "registry-unreachable.node-does-not-trust": (
        "The certificate or protocol of {registries} is not accepted by {nodes}."
    ),
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
}
