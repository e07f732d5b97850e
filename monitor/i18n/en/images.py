"""English: images that are not there."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "pull_disk_full": "The disk of {node} is full: there is no space for image {image}.",
    "pull_disk_full_advice": (
        "Free space where {node} stores its images (docker system df, or crictl images). gpuwarden cleanup plan "
        "shows what can be removed safely."
    ),
    "pull_wrong_architecture": "Image {image} is not available for the CPU architecture of {node}.",
    "pull_wrong_architecture_advice": (
        "Build {image} for this architecture too (docker buildx build --platform linux/amd64,linux/arm64), "
        "or select other nodes by kubernetes.io/arch."
    ),
    "pull_rate_limited": "{host} rate-limits pulls.",
    "pull_rate_limited_advice": "Wait, log in (imagePullSecrets), or pull through your own registry.",
    "pull_tls": "{node} does not trust the certificate of {host}.",
    "pull_tls_advice": (
        "Install the registry's CA on {node} (Docker: /etc/docker/certs.d/{host}/ca.crt; containerd: "
        "/etc/containerd/certs.d/{host}/hosts.toml), and check that the certificate is valid and the clock is right."
    ),
    "pull_plain_http": "{host} serves plain HTTP, but {node} requires HTTPS.",
    "pull_plain_http_advice": (
        "Allow it on {node} (Docker: insecure-registries in /etc/docker/daemon.json; containerd: server = "
        '"http://{host}" in /etc/containerd/certs.d/{host}/hosts.toml), or give the registry a certificate.'
    ),
    "pull_dns": "{node} cannot resolve {host}.",
    "pull_dns_advice": (
        "On {node}: getent hosts {host}. If it fails, restore the entry in /etc/hosts or the DNS server in "
        "/etc/resolv.conf. If only this node fails, compare with a working one."
    ),
    "pull_connection_refused": (
        "{host} refuses connections from {node}: nothing listens there, or a firewall blocks it."
    ),
    "pull_connection_refused_advice": (
        "Is the registry up? On {node}: curl -v https://{host}/v2/ (401 is fine). If only this node fails, check its "
        "hosts file and firewall."
    ),
    "pull_timeout": "{host} does not respond to {node}.",
    "pull_timeout_advice": (
        "On {node}: curl -v https://{host}/v2/. If there is no response: wrong address in /etc/hosts, firewall, "
        "proxy or route; or the registry is down."
    ),
    "pull_connection_broken": "The connection from {node} to {host} breaks off during the pull.",
    "pull_connection_broken_advice": (
        "Check the network between {node} and {host}, any proxy in between, and the registry's own log."
    ),
    "pull_too_slow": "The pull of {image} on {node} was too slow and was cancelled.",
    "pull_too_slow_advice": (
        "Large image or slow link. Pull it once by hand on {node} (crictl pull {image}), make the image smaller, or "
        "raise the limit (containerd: image_pull_progress_timeout)."
    ),
    "pull_registry_error": "The registry {host} returns an error.",
    "pull_registry_error_advice": (
        "Check the registry {host}: is its disk full, is its database up? For Harbor: docker-compose ps, and the "
        "core log."
    ),
    "pull_unauthorized": "{host} denies {node} access to {image}, or the repository does not exist.",
    "pull_unauthorized_advice": (
        "Check the spelling of {image} first. Then the credentials: imagePullSecrets of the pod or its service "
        "account, and that this account may read the project."
    ),
    "pull_not_found": "The image {image} does not exist in {registry}.",
    "pull_not_found_advice": (
        "Check name and tag of {image}. It may have been deleted from the registry: push it again."
    ),
    "pull_damaged_layer": "What {node} downloaded of {image} does not match its digest or size.",
    "pull_damaged_layer_advice": (
        "On {node}: remove the partial download and pull again (crictl rmi {image}; crictl pull {image}). If it "
        "repeats, push the image again and check proxies and caches in between; the node need not be emptied."
    ),
    "pull_bad_name": "{image} is not a valid image name.",
    "pull_bad_name_advice": "Correct it: lower case only, registry/project/name:tag, no spaces, no https:// prefix.",
    "pull_never_pull": "The image {image} is not on {node}, and the pod forbids pulling it (imagePullPolicy: Never).",
    "pull_never_pull_advice": "Use imagePullPolicy: IfNotPresent, or load {image} on {node} beforehand.",
    "pull_unknown": "The image {image} cannot be pulled on {node}.",
    "pull_unknown_advice": (
        "Try it by hand on {node}: crictl pull {image}. The runtime's log: journalctl -u containerd -u docker"
    ),
    "pull_runtime_down": "The container runtime of {node} does not respond, so {image} was not even requested.",
    "pull_runtime_down_advice": (
        "On {node}: systemctl status containerd docker; restart what is down (the pull of {image} then resumes)."
    ),
    "pull_kubelet_limit": "The kubelet of {node} limits its own pulls (registryPullQPS): {image} has to wait.",
    "pull_kubelet_limit_advice": (
        "Wait; the pull of {image} is retried. If it lasts, raise registryPullQPS and registryBurst in the "
        "kubelet's configuration of {node}."
    ),
    "pull_proxy": (
        "The HTTP proxy {host} that the container runtime of {node} uses fails; the registry is not at fault."
    ),
    "pull_proxy_advice": (
        "On {node}: is {host} running, and are its address and scheme right? The setting is HTTPS_PROXY of "
        "the runtime's service (systemctl show -p Environment containerd docker). Add internal "
        "registries to NO_PROXY, then restart the runtime."
    ),
    "pull_mirror": (
        "The registry mirror {host} that {node} is configured to use fails, and {node} did not get {image} from "
        "{registry} either."
    ),
    "pull_mirror_advice": (
        "Start or repair the mirror {host} (such as Dragonfly, Spegel or Nexus), or remove it from the "
        "runtime's configuration on {node} (containerd: /etc/containerd/certs.d/*/hosts.toml; Docker: "
        "registry-mirrors; CRI-O: registries.conf). Then the runtime asks {registry}: {node} must reach it."
    ),
    "pull_token_expired": "The credentials for {host} have expired: {image} is denied.",
    "pull_token_expired_advice": (
        "Renew the pull secret or token of {image} (ECR tokens last 12 hours), and check the clock of {node}."
    ),
    "pull_credential_helper": "{node} cannot get credentials for {image}: its credential helper does not work.",
    "pull_credential_helper_advice": (
        "On {node}: install the helper that the message names, or correct credHelpers in the runtime's or "
        "kubelet's configuration. Or give the pod imagePullSecrets for {image}."
    ),
    "pull_policy": "A rule forbids {image}: vulnerabilities, or a signature that is missing or not accepted.",
    "pull_policy_advice": (
        "Fix the vulnerabilities or sign {image} and push it again, or ask the owner of the rule for an "
        "exemption (Harbor: the project's CVE allowlist and deployment security; CRI-O: "
        "/etc/containers/policy.json on {node})."
    ),
    "pull_bad_image": "The image {image} is malformed: {node} cannot unpack or use it.",
    "pull_bad_image_advice": (
        "Build {image} again and push it; the node is fine. If other nodes use it, compare their runtime "
        "versions with that of {node}."
    ),
    "pull_old_format": "The image {image} has a format that the container runtime of {node} no longer supports.",
    "pull_old_format_advice": (
        "Build {image} again with a current tool, or copy it in a current format: skopeo copy --format v2s2 "
        "docker://{image} docker://{image}; {node} needs no change."
    ),
    "pull_corrupt_layer": "A layer of {image} arrived corrupt on {node}: its compressed data cannot be read.",
    "pull_corrupt_layer_advice": (
        "Pull it again on {node} (crictl pull {image}). If it repeats, push {image} again and check the "
        "registry's storage; the node need not be drained."
    ),
    "pull_node_store": "The image store of {node} is inconsistent: content of {image} that it has recorded is gone.",
    "pull_node_store_advice": (
        "On {node}: remove the image with its content and pull it again (crictl rmi {image}; ctr -n k8s.io "
        "content prune references). The image in the registry is fine."
    ),
    "pull_node_disk": "The disk of {node} fails or is read-only: {image} cannot be written.",
    "pull_node_disk_advice": (
        "On {node}: dmesg | grep -iE 'i/o error|remount|ext4|xfs'. Cordon and drain the node, check or "
        "replace the disk; {image} is fine."
    ),
    "pull_snapshotter": "The snapshotter of {node} that loads {image} on demand does not work.",
    "pull_snapshotter_advice": (
        "On {node}: start or configure the snapshotter that the message names (nydus-snapshotter, "
        "stargz-snapshotter, soci-snapshotter) and read its log, or set containerd back to overlayfs. Then "
        "{image} is pulled again."
    ),
    "pull_says": "The runtime says: {message}",
    "pull_attempts": "The pull was tried {count:time|times}.",
    "pull_secret_missing": "The image pull credentials of the pod do not exist in {namespace}: {message}",
    "pull_node_suspect": "{count} different images fail on {node}: check the node first.",
    "pull_registry_suspect": "Pulls from {registry} fail on {count:node|nodes}: check the registry first.",
    "pull_image_suspect": "This image fails on {count:node|nodes}: its name is wrong, or access is denied.",
    "pull_credential_suspect": (
        "{count} different images of {registry} are denied: check the (robot) account of the pull secret first."
    ),
    "pull_host_suspect": "Pulls through {host} fail on {count:node|nodes}: check {host} first.",
    "probe_ok": "At the moment {node} can reach {registry}.",
    "probe_fails": "The agent's probe from {node} to {registry} fails too: {cause:code}.",
    "probe_only_here": (
        "Only {node} cannot reach {registry} ({cause:code}); {others:other node|other nodes} can: the fault is on this "
        "node."
    ),
    "image_elsewhere": "{count:node already has|nodes already have} this image: {nodes}.",
    "pull_in_progress": "{node} has been pulling image {image} for {seconds:duration}.",
    "pull_slow_advice": (
        "The pull is slow. Use a smaller image, or pull it ahead of time on {node} next time (crictl pull {image})."
    ),
    "image_size": "{image} is {size:bytes}.",
    "probe_others": "Of {others:other node|other nodes}, {reach} can reach {registry}.",
}
