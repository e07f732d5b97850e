"""English: text of the rules about GPU health and utilisation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # gpu-fault
    "rule.gpu-fault": "GPU fault",
    "doc.gpu-fault": (
        "A card, or the driver of a node, is broken: by XID, ECC errors, remapped rows, or because it does not answer."
    ),
    "doc.gpu-fault.severity": "by cause, critical to info",
    "doc.gpu-fault.incident": "A node was unusable again and again.",
    "doc.gpu-fault.limit.hung_after": "How long the driver may not answer.",
    "doc.gpu-fault.limit.missing_after": "How long cards may be missing.",
    "doc.gpu-fault.limit.xid_hold": "How long an XID is spoken of.",
    "doc.gpu-fault.limit.xid_application_hold": "The same for XIDs of programs.",
    "doc.gpu-fault.limit.xid_application": "XIDs that are a program's mistake: restart the job.",
    "doc.gpu-fault.limit.xid_memory_contained": "XIDs of memory that was contained: reset when convenient.",
    "doc.gpu-fault.limit.xid_memory": "XIDs of memory that cannot be trusted: reset.",
    "doc.gpu-fault.limit.xid_nvlink": "XIDs of NVLink.",
    "doc.gpu-fault.limit.xid_off_bus": "XIDs of a card that fell off the bus: reboot.",
    "doc.gpu-fault.limit.xid_driver": "XIDs of driver or firmware: reset, else reboot.",
    "doc.gpu-fault.limit.xid_ignored": "XIDs that mean nothing.",
    "gpu-fault.driver-hung": (
        "The GPU driver on {node} has not answered for {seconds:duration}: nothing is known of its cards."
    ),
    "gpu-fault.driver-hung.advice": (
        "On {node}: dmesg -T | grep -i nvrm | tail. A driver that hangs does not come back: kubectl drain {node} "
        "--ignore-daemonsets, then reboot."
    ),
    "gpu-fault.card-lost": "GPU {gpu} on {node} is lost: {error}.",
    "gpu-fault.card-lost.advice": (
        "Drain {node} and power it off and on (a warm reboot is often not enough). If GPU {gpu} gets lost again, "
        "have it replaced."
    ),
    "gpu-fault.xid-off-bus": "GPU {gpu} on {node} has fallen off the bus (XID {code}).",
    "gpu-fault.xid-off-bus.advice": (
        "Drain {node} and reboot it. If GPU {gpu} does it again, check its power and seat, then have it replaced."
    ),
    "gpu-fault.cards-missing": (
        "{node} has {cards:GPU|GPUs}, but Kubernetes counts {capacity}, for {seconds:duration}."
    ),
    "gpu-fault.cards-missing.advice": (
        "On {node}: lspci | grep -i nvidia and nvidia-smi -L show which is missing. Drain and reboot {node}."
    ),
    "gpu-fault.remap-failed": "GPU {gpu} on {node} has broken memory that it cannot replace any more.",
    "gpu-fault.remap-failed.advice": (
        "Take it out of use and have it replaced: kubectl cordon {node}; nvidia-smi -q -i {gpu} -d ROW_REMAPPER is "
        "the proof."
    ),
    "gpu-fault.xid-memory": "The memory of GPU {gpu} on {node} cannot be trusted (XID {code}): results may be wrong.",
    "gpu-fault.xid-memory.advice": (
        "Stop the job, then on {node}: nvidia-smi --gpu-reset -i {gpu}. If it comes back, have the card replaced."
    ),
    "gpu-fault.ecc-uncorrectable": (
        "GPU {gpu} on {node} had {errors:memory error|memory errors} that could not be corrected."
    ),
    "gpu-fault.ecc-uncorrectable.advice": (
        "Restart the job from a checkpoint; then on {node}: nvidia-smi --gpu-reset -i {gpu}. More errors after that: "
        "have it replaced."
    ),
    "gpu-fault.xid-driver": "The driver or the firmware of GPU {gpu} on {node} failed (XID {code}).",
    "gpu-fault.xid-driver.advice": (
        "On {node}: nvidia-smi --gpu-reset -i {gpu}; if that fails, drain and reboot {node}."
    ),
    "gpu-fault.recovery-due": "The driver asks for a recovery of GPU {gpu} on {node}: {action}.",
    "gpu-fault.recovery-due.advice": (
        "Drain {node}, then do what it asks for: nvidia-smi --gpu-reset -i {gpu}, or a reboot if it says node_reboot."
    ),
    "gpu-fault.xid-nvlink": (
        "NVLink of GPU {gpu} on {node} failed (XID {code}): jobs over several GPUs may hang or slow down."
    ),
    "gpu-fault.xid-nvlink.advice": (
        "On {node}: nvidia-smi nvlink -e -i {gpu}; then reset all GPUs of the node together, or reboot {node}."
    ),
    "gpu-fault.remap-pending": "GPU {gpu} on {node} has to be reset to replace broken memory.",
    "gpu-fault.remap-pending.advice": "When its job has ended, on {node}: nvidia-smi --gpu-reset -i {gpu}",
    "gpu-fault.xid-memory-contained": (
        "A memory error on GPU {gpu} of {node} was contained (XID {code}); only the program that had it is hit."
    ),
    "gpu-fault.xid-memory-contained.advice": (
        "Restart the job that failed. When GPU {gpu} on {node} is free: nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-fault.xid-unknown": "GPU {gpu} on {node} reports XID {code}, of which nothing is known here.",
    "gpu-fault.xid-unknown.advice": (
        "Look up XID {code} in NVIDIA's list and on {node}: dmesg -T | grep Xid. Then put it into its class in the "
        "settings of gpu-fault."
    ),
    "gpu-fault.xid-application": "A program made a mistake on GPU {gpu} of {node}, or was killed (XID {code}).",
    "gpu-fault.xid-application.advice": (
        "The card is well. Look at the job's log on {node} and restart it; if many different jobs do this on GPU "
        "{gpu}, test the card."
    ),
    "gpu-fault.xid": "XID {code} at {place}: {message}",
    "gpu-fault.ecc": "{errors:uncorrectable ECC error|uncorrectable ECC errors} since the driver was loaded.",
    "gpu-fault.remap-failed-seen": "Replacing rows of its memory has failed.",
    "gpu-fault.remap-pending-seen": "Memory waits for a reset to be replaced.",
    "gpu-fault.recovery": "The driver asks for: {action}.",
    "gpu-fault.hit": "Pod {pod} is on it.",
    # gpu-hot
    "rule.gpu-hot": "GPU slowed down by heat or power",
    "doc.gpu-hot": (
        "A card has been slowed down for a long time because it is too hot, or because the power supply asks for it."
    ),
    "doc.gpu-hot.severity": "warning",
    "doc.gpu-hot.incident": "Training got slower and nobody knew why.",
    "gpu-hot.thermal": "GPU {gpu} on {node} is too hot and has been slowed down for {seconds:duration}.",
    "gpu-hot.thermal.advice": (
        "Check fans, air flow and room of {node}: ipmitool sdr type fan; nvidia-smi -q -i {gpu} -d "
        "TEMPERATURE,PERFORMANCE"
    ),
    "gpu-hot.power-brake": "The power supply of {node} has been slowing down GPU {gpu} for {seconds:duration}.",
    "gpu-hot.power-brake.advice": (
        "Check the power supplies and the power cap of {node}: ipmitool sdr type 'Power Supply'; until then lower "
        "the limit of GPU {gpu}: nvidia-smi -pl"
    ),
    "gpu-hot.temperature": "It has {celsius} degrees Celsius.",
    "gpu-hot.power": "It draws {watts} W of {limit} W.",
    "gpu-hot.clock": "Its clock is at {megahertz} MHz.",
    # gpu-underused
    "rule.gpu-underused": "GPU hardly used",
    "doc.gpu-underused": "A job works with its GPUs, but hardly, over hours; with what it seems to wait for.",
    "doc.gpu-underused.severity": "warning",
    "doc.gpu-underused.incident": "GPUs wait for CPUs, data or shared memory.",
    "doc.gpu-underused.limit.below": "Which mean utilisation is too little.",
    "doc.gpu-underused.limit.window": "Over which time.",
    "gpu-underused.cpu-limit": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration}: "
        "its CPU limit holds it back."
    ),
    "gpu-underused.cpu-limit.advice": (
        "Raise resources.limits.cpu of {namespace}/{pod}: 8 to 16 cores a GPU are usual."
    ),
    "gpu-underused.shm-small": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration}: "
        "its /dev/shm is too small."
    ),
    "gpu-underused.shm-small.advice": (
        "Give {namespace}/{pod} an emptyDir with medium: Memory at /dev/shm, and more num_workers in its data loader."
    ),
    "gpu-underused.io-wait": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration}: "
        "the node waits for its disks."
    ),
    "gpu-underused.io-wait.advice": (
        "Copy the dataset of {namespace}/{pod} to a local SSD of {node}, or pack small files together. On the node: "
        "iostat -x 5"
    ),
    "gpu-underused.data-loading": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration}, "
        "in bursts: it waits for its data."
    ),
    "gpu-underused.data-loading.advice": (
        "In {namespace}/{pod}: raise num_workers and prefetch_factor of the data loader, and do less work a sample "
        "on the CPU."
    ),
    "gpu-underused.low-batch": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration} "
        "and little of their memory."
    ),
    "gpu-underused.low-batch.advice": (
        "Raise the batch size of {namespace}/{pod}, or use fewer GPUs, or a slice of one (MIG)."
    ),
    "gpu-underused.unknown": (
        "Pod {namespace}/{pod} on {node} uses {gpus:GPU|GPUs} at {ratio:percent} on average over {seconds:duration}; "
        "no reason is visible."
    ),
    "gpu-underused.unknown.advice": "Profile it: kubectl exec {pod} -n {namespace} -- py-spy top --pid 1",
    "gpu-underused.cpu": "It uses {cores} of the {limit:core|cores} that it may use.",
    "gpu-underused.shm": "{used:bytes} of {size:bytes} of its /dev/shm are used.",
    "gpu-underused.bursts": "In between its cards reach {ratio:percent}.",
    "gpu-underused.memory": "It uses {used:bytes} of {size:bytes} of the cards' memory.",
    # gpu-fragmented
    "rule.gpu-fragmented": "Free GPUs scattered",
    "doc.gpu-fragmented": (
        "A job waits although enough GPUs are free, only not on one node. Says which moves would make room."
    ),
    "doc.gpu-fragmented.severity": "warning",
    "doc.gpu-fragmented.incident": "Free GPUs were scattered over nodes, so that no large job fitted.",
    "gpu-fragmented": (
        "Job {job} ({user}, {namespace}) has been waiting {seconds:duration} for {asked:GPU|GPUs} on one node: "
        "{free} are free on {nodes:node|nodes}, at most {most} on one ({node})."
    ),
    "gpu-fragmented.moves": "{count:move|moves} would make room: {moves}.",
    "gpu-fragmented.moves.advice": (
        "With their owners: kubectl cordon {node}, restart {pods} from a checkpoint, kubectl uncordon {node}. To "
        "avoid it: let the scheduler fill nodes up (NodeResourcesFit MostAllocated; Volcano binpack)."
    ),
    "gpu-fragmented.advice": (
        "Moving up to 3 pods does not help. Let {job} run with fewer than {asked:GPU|GPUs} a worker, or let the "
        "scheduler fill nodes up (NodeResourcesFit MostAllocated; Volcano binpack)."
    ),
    # capacity-mismatch
    "rule.capacity-mismatch": "GPUs missing in Kubernetes",
    "doc.capacity-mismatch": "The driver, the device plugin and the kubelet count a node's cards differently.",
    "doc.capacity-mismatch.severity": "warning",
    "doc.capacity-mismatch.incident": "The number of free GPUs did not agree between views.",
    "capacity-mismatch.device-plugin": (
        "Kubernetes can use only {capacity} of the {cards:GPU|GPUs} of {node}, for {seconds:duration}."
    ),
    "capacity-mismatch.device-plugin.advice": (
        "See the device plugin: kubectl get pods -A -o wide --field-selector spec.nodeName={node} | grep "
        "device-plugin; delete its pod to restart it."
    ),
    "capacity-mismatch.unhealthy-device": (
        "On {node} only {allocatable} of {capacity:GPU|GPUs} can be given to pods, for {seconds:duration}."
    ),
    "capacity-mismatch.unhealthy-device.advice": (
        "On {node}: nvidia-smi and dmesg -T | grep Xid show which card is ill. After repair, restart the device "
        "plugin's pod there."
    ),
    "capacity-mismatch.counts": "The driver counts {cards}, capacity is {capacity}, allocatable {allocatable}.",
}
