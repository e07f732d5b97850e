"""English: the summary of a configuration, and the questions of `gpuwarden init`."""

from __future__ import annotations

_SUMMARY = {
    "zone": "Time zone: {zone}, where it is {now}.",
    "agent": (
        "Agent: node {node}, on {listen} with a token, {running} of {collectors:collector|collectors}, "
        "{mounts:mount|mounts}, {registries:registry|registries}."
    ),
    "agent-without-token": (
        "Agent: node {node}, on {listen} without a token, {running} of {collectors:collector|collectors}, "
        "{mounts:mount|mounts}, {registries:registry|registries}."
    ),
    "page": "Page: on {listen}; log level {level}.",
    "receivers": "Alerts: to {names}.",
    "no-receivers": "Alerts: not sent, because no receiver is configured.",
    "cleanup": "Cleanup: {policy} ({kind}, {mode}), next run {next}.",
    "cleanup-high": "Cleanup: {policy} ({kind}, {mode}), runs when a disk is fuller than {high:percent}.",
    "cleanup-both": (
        "Cleanup: {policy} ({kind}, {mode}), next run {next}, and when a disk is fuller than {high:percent}."
    ),
    "no-cleanup": "Cleanup: no policy is configured.",
    "report": "Report: to {names}, next one {next}.",
    "report-to-no-receiver": "Report: not sent, because no receiver is configured.",
    "no-report": "Report: not scheduled.",
    "digest": "Digest of alerts: next one {next}.",
    "maintenance": "Maintenance: next window {next}, for {length:duration}.",
}

_CONNECT = {
    "title": "No cluster or GPU is connected yet. What to connect:",
    "cluster": (
        "A Kubernetes cluster: put its kubeconfig into ~/.kube/config, or answer the questions of gpuwarden init. "
        "None was found: {why}"
    ),
    "gpu": "GPUs of this machine: install the NVIDIA driver; nvidia-smi has to list them.",
    "agents": "Other machines: run gpuwarden agent there, and list their addresses in daemon.agents.static.",
    "demo": "To see everything without a cluster: gpuwarden demo.",
}

_INIT = {
    "question.language": "Language of questions and messages (en, zh)",
    "question.timezone": "Time zone of schedules and messages",
    "question.receiver": (
        "Webhook address of the group's robot: WeCom, DingTalk, Feishu or another webhook ({none}: no messages)"
    ),
    "question.secret": "Signing secret of the robot ({none}: not signed)",
    "question.kubernetes": "Kubernetes: {auto} (found when started), a kubeconfig file, or {none}",
    "question.dataset-roots": "Directories with datasets to clean, separated by commas ({none}: no datasets)",
    "question.node": "Node whose agent sees these directories",
    "question.cleanup": "Plan a cleanup every night at 03:00? It only reports what it would remove (yes, no)",
    "question.report-day": "Day of the weekly report: mon to sun, at 09:00 ({none}: no report)",
    "question.sample": "Send a sample message now? (yes, no)",
    "invalid.language": "Write en or zh.",
    "invalid.timezone": "{given} is not a time zone; write for example Asia/Shanghai, Europe/Berlin or UTC.",
    "invalid.receiver": (
        "This is not the address of a webhook. Copy it whole from the robot's page: it begins with https://, "
        "and that of a WeCom robot ends with ?key= and the key."
    ),
    "invalid.root": (
        "{given} cannot be a directory of datasets; write absolute paths such as /mnt/share/datasets, "
        "not a system directory and nothing as wide as /home."
    ),
    "invalid.roots": "These are too many directories; write at most {most}, or the directory above them.",
    "invalid.node": "Write the name of one node, without spaces.",
    "invalid.yes": "Write yes or no.",
    "invalid.day": "Write mon, tue, wed, thu, fri, sat or sun.",
    "invalid.kubernetes": "The kubeconfig cannot be used: {reason}",
    "exists": "{path} exists and is kept; choose another file with --config, or replace it with --force.",
    "cannot-write": "Cannot write {path}: {reason}. Choose another file with --config, or use sudo.",
    "no-terminal": "Standard input is not a terminal, so the answers have to be options. Missing: {options}.",
    "aborted": "Stopped; nothing was written.",
    "enter": "Press ENTER to accept the answer in brackets.",
    "written": "Written: {path}",
    "accepted": "The sample message was accepted by {receiver}. Look into the group.",
    "rejected": (
        "{receiver} did not accept the sample message: {answer}. Correct the address in {path}, then run: "
        "gpuwarden alerts test --config {path}"
    ),
    "start": "Start: gpuwarden up --config {path}",
    "file.head": (
        "Configuration of gpuwarden, made by gpuwarden init. | Check it after changes: gpuwarden check-config {path}"
    ),
    "file.timezone": "Time zone of schedules, messages, pages and commands.",
    "file.kubernetes": "Cluster to watch: auto looks for a kubeconfig or the service account of the pod.",
    "file.language": "Language of messages: en or zh.",
    "file.receivers": (
        "Where alerts are sent. The address contains a key: keep this file private. | To test it: gpuwarden alerts test"
    ),
    "file.no-receiver": (
        'Where alerts are sent, for example ["https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY"].'
    ),
    "file.report": "Weekly report of GPU hours used and wasted: minute, hour, day, month, day of the week.",
    "file.cleanup": (
        "Cleanup every night at 03:00. These policies only report what they would remove; to see it now: "
        "gpuwarden cleanup plan"
        " | When the plan is right, add mode: enforce to a policy. docs/cleanup.md says what else is needed."
    ),
    "file.allow": "Datasets are only cleaned below these directories.",
    "file.keys": (
        "Scanning datasets needs keys: run gpuwarden keys --directory {directory} once, | "
        "then remove the # in front of the next line and of the lines at the end of this file."
    ),
    "file.pods": "Pods that finished more than seven days ago, and pods stuck in deletion.",
    "file.images": "Container images that no container or template uses.",
    "file.datasets": "Datasets not read or written for 60 days.",
    "file.agents": "For the agent of the node with the datasets:",
}

WORDS: dict[str, str] = {
    **{f"config.{key}": text for key, text in _SUMMARY.items()},
    **{f"connect.{key}": text for key, text in _CONNECT.items()},
    **{f"init.{key}": text for key, text in _INIT.items()},
}
