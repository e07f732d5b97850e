"""English: the dashboard of GPUs and jobs."""

from __future__ import annotations

DASHBOARD = (
    "gpuwarden / GPU & jobs",
    "Cards, jobs, users and containers, for the nodes, cards, users, queues and namespaces chosen above.",
)
ROWS = {
    "gpus.now": "Now",
    "gpus.gpus": "Cards",
    "gpus.faults": "Faults",
    "gpus.processes": "Processes on the cards",
    "gpus.jobs": "Jobs",
    "gpus.users": "Users",
    "gpus.containers": "Containers",
}
PANELS = {
    "gpus.count": ("Cards", "The cards that match what is chosen above."),
    "gpus.utilization": (
        "Mean utilisation",
        "Below 20 % over hours: ask whether the jobs wait for data, or need fewer cards.",
    ),
    "gpus.idle": ("Idle", "A live pod has them and has not used them for a while. Ask the user to stop it."),
    "gpus.zombie": (
        "Zombie, wedged, phantom",
        "Taken by what is over or cannot be ended. See the stuck processes below; a wedged one may need a reboot.",
    ),
    "gpus.orphan": (
        "Orphan, ghost",
        "Used by a process of no pod, or memory without a process. Its origin is unknown: treat it as an intrusion.",
    ),
    "gpus.faulty": ("Faulty", "Lost, or with errors. Cordon the node, save the job, then reset or replace the card."),
    "gpus.power": ("Power in all", "What the chosen cards draw together."),
    "gpus.waiting": ("GPUs waited for", "What pending pods of the chosen users, queues and namespaces ask for."),
    "gpus.gpu-table": ("Card by card", "Each card with its state, since when, and who holds it."),
    "gpus.timeline": (
        "States over time",
        "When a card became idle, was left behind, or broke. At most 100, the worst first: choose a node to see all.",
    ),
    "gpus.heat-map": (
        "Utilisation heat map",
        "One lane per GPU, the bluer the busier; the 100 lowest. A lane that stays pale is free or wasted.",
    ),
    "gpus.utilization-line": (
        "Utilisation",
        "The 60 lowest. Flat at 0 with memory in use: the job hangs or waits. A saw-tooth: slow data loading.",
    ),
    "gpus.memory-line": (
        "GPU memory in use",
        "The 60 highest. Close to 100 % the next larger batch ends the job with an out-of-memory error.",
    ),
    "gpus.power-line": (
        "Power",
        "The 60 highest. Power tells real work from a kernel that only spins at 100 % utilisation.",
    ),
    "gpus.temperature-line": (
        "Temperature",
        "The 60 hottest. Above about 83 °C cards slow down: check fans, airflow and inlet temperature.",
    ),
    "gpus.clock-line": ("SM clock", "The 60 lowest. A clock that falls under load: see why in the panel beside."),
    "gpus.throttled": (
        "Slowed down",
        "Why clocks are held down. Thermal reasons and power brake are trouble; a power cap under load is normal.",
    ),
    "gpus.xids": (
        "XIDs",
        (
            "Codes that the driver reported since the agent started. 48, 95, 109, 119 and such: drain the node and "
            "reset the card; 79: reboot. 13 and 31 are most often the program's own fault, 43 and 63 need no action."
        ),
    ),
    "gpus.xids-line": ("Cards with a fresh XID", "Cards that reported a code within the last five minutes."),
    "gpus.kernel": (
        "Kernel log",
        "Kinds of errors in the kernel logs since the agents started. The alert kernel-fault says what to do.",
    ),
    "gpus.kernel-skipped": (
        "Kernel lines skipped",
        "Lines that came too fast to be classified. Something floods the kernel log: dmesg -T on the node shows what.",
    ),
    "gpus.ecc": (
        "ECC errors",
        "One uncorrected error is enough to take the card out. Corrected ones that keep coming announce it.",
    ),
    "gpus.repairs": (
        "Repairs that are due",
        "What waits for a reset needs one at the next chance. A failed remap: have the card replaced.",
    ),
    "gpus.recovery": ("The driver asks for", "Do what it says, after the node is drained. Empty: it asks for nothing."),
    "gpus.links": (
        "Link errors per second",
        "PCIe replays and NVLink errors that do not stop: reseat the card, check riser, cable or bridge.",
    ),
    "gpus.processes": (
        "Processes",
        "Who holds the memory of the cards. A line without a pod does not come from Kubernetes.",
    ),
    "gpus.stuck": (
        "Stuck processes",
        "In D or Z, or gone and still holding a card. D often means a dead NAS: see the mounts in Storage & cleanup.",
    ),
    "gpus.explained": (
        "Pods that are not well, and why",
        "`gpuwarden why POD` gives the figures and what to do for each cause.",
    ),
    "gpus.causes": ("Causes", "What stops the most pods. Not filtered by the choices above."),
    "gpus.requested": (
        "GPUs requested by phase",
        "Pending that does not fall while cards are free: see the causes above.",
    ),
    "gpus.statuses": ("Pods that are not well", "By what they are doing. Not filtered by the choices above."),
    "gpus.users": ("Use by user", "Many cards and little utilisation: talk to these users first."),
    "gpus.user-gpus": ("GPUs by user", "How many cards each user's pods have; the 30 largest."),
    "gpus.user-utilization": ("Utilisation by user", "Mean over each user's cards; the 30 lowest."),
    "gpus.container-cpu": ("CPU cores in use", "The 20 largest. A data loader at its limit starves the GPU."),
    "gpus.container-throttled": (
        "Held back by the CPU limit",
        "Seconds per second that threads were not allowed to run. Raise the limit, or use fewer workers.",
    ),
    "gpus.container-memory": ("Memory in use", "The 20 largest, without cache that can be dropped."),
    "gpus.container-memory-share": (
        "Memory of the limit",
        "At 100 % the kernel ends the container. Raise the limit in time.",
    ),
    "gpus.container-shm": (
        "Shared memory in use",
        "What is in /dev/shm, which data loaders with workers need. A line without a pod is the host's.",
    ),
    "gpus.container-shm-share": (
        "Shared memory of its size",
        "Full: the job dies with a bus error. Mount an emptyDir with medium Memory on /dev/shm.",
    ),
}
