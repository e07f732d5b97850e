"""English: text of the rules about GPU health and utilisation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # gpu-fault
    "rule.gpu-fault": "GPU fault",
    "doc.gpu-fault": "A GPU or a node's driver is broken: XIDs, ECC errors, failed row remapping, or no response.",
    "doc.gpu-fault.severity": "depends on the cause, critical to info",
    "doc.gpu-fault.incident": "A node kept becoming unusable.",
    "doc.gpu-fault.limit.hung_after": "How long the driver may be unresponsive.",
    "doc.gpu-fault.limit.missing_after": "How long GPUs may be missing.",
    "doc.gpu-fault.limit.xid_hold": "How long an XID is reported.",
    "doc.gpu-fault.limit.xid_application_hold": "How long an application XID is reported.",
    "doc.gpu-fault.limit.xid_application": "XIDs to treat as application errors, whatever NVIDIA's catalogue says.",
    "doc.gpu-fault.limit.xid_memory_contained": "Likewise, as contained memory errors: reset when convenient.",
    "doc.gpu-fault.limit.xid_memory": "Likewise, as unreliable memory: reset the GPU.",
    "doc.gpu-fault.limit.xid_nvlink": "Likewise, as NVLink errors.",
    "doc.gpu-fault.limit.xid_off_bus": "Likewise, as a GPU that fell off the bus: reboot.",
    "doc.gpu-fault.limit.xid_driver": "Likewise, as driver or firmware errors: reset, else reboot.",
    "doc.gpu-fault.limit.xid_reset": "Likewise: reset the GPU.",
    "doc.gpu-fault.limit.xid_reboot": "Likewise: reboot the node.",
    "doc.gpu-fault.limit.xid_vendor": "Likewise: contact the vendor.",
    "doc.gpu-fault.limit.xid_ignored": "XIDs to ignore.",
    "doc.gpu-fault.limit.xid_thresholds": "XIDs that are reported only if they repeat, such as `31: 5 in 1h`.",
    "gpu-fault.driver-hung": (
        "The GPU driver on {node} has not responded for {seconds:duration}: its GPUs are not visible."
    ),
    "gpu-fault.driver-hung.advice": (
        "On {node}: dmesg -T | grep -i nvrm | tail. A hung driver does not recover: kubectl drain {node} "
        "--ignore-daemonsets, then reboot."
    ),
    "gpu-fault.card-lost": "GPU {gpu} on {node} is lost: {error}.",
    "gpu-fault.card-lost.advice": (
        "Drain {node} and power-cycle it (a warm reboot is often not enough). If GPU {gpu} gets lost again, replace it."
    ),
    "gpu-fault.xid-off-bus": "GPU {gpu} on {node} has fallen off the bus (XID {code}).",
    "gpu-fault.xid-off-bus.advice": (
        "Drain and reboot {node}. If GPU {gpu} fails again, check its power and seating, then replace it."
    ),
    "gpu-fault.cards-missing": (
        "For {seconds:duration}, {node} has had {cards:GPU|GPUs} while Kubernetes counts {capacity}."
    ),
    "gpu-fault.cards-missing.advice": (
        "On {node}: lspci | grep -i nvidia and nvidia-smi -L show which one is missing. Drain and reboot {node}."
    ),
    "gpu-fault.remap-failed": "GPU {gpu} on {node} has defective memory that can no longer be remapped.",
    "gpu-fault.remap-failed.advice": (
        "Take it out of service and replace it: kubectl cordon {node}; nvidia-smi -q -i {gpu} -d ROW_REMAPPER is the "
        "proof."
    ),
    "gpu-fault.xid-memory": "The memory of GPU {gpu} on {node} is unreliable (XID {code}): results may be wrong.",
    "gpu-fault.xid-memory.advice": (
        "Stop the job, then on {node}: nvidia-smi --gpu-reset -i {gpu}. If the error returns, replace the GPU."
    ),
    "gpu-fault.ecc-uncorrectable": (
        "GPU {gpu} on {node} had {errors:uncorrectable memory error|uncorrectable memory errors}."
    ),
    "gpu-fault.ecc-uncorrectable.advice": (
        "Restart the job from a checkpoint, then on {node}: nvidia-smi --gpu-reset -i {gpu}. If errors return, "
        "replace the GPU."
    ),
    "gpu-fault.xid-driver": "The driver or firmware of GPU {gpu} on {node} failed (XID {code}).",
    "gpu-fault.xid-driver.advice": (
        "On {node}: nvidia-smi --gpu-reset -i {gpu}; if that fails, drain and reboot {node}."
    ),
    "gpu-fault.recovery-due": "The driver requests a recovery action for GPU {gpu} on {node}: {action}.",
    "gpu-fault.recovery-due.advice": (
        "Drain {node}, then do as requested: nvidia-smi --gpu-reset -i {gpu}, or a reboot for node_reboot."
    ),
    "gpu-fault.xid-nvlink": "NVLink of GPU {gpu} on {node} failed (XID {code}): multi-GPU jobs may hang or slow down.",
    "gpu-fault.xid-nvlink.advice": (
        "On {node}: nvidia-smi nvlink -e -i {gpu}; then stop the jobs and reset all GPUs of the node together "
        "(nvidia-smi --gpu-reset), or reboot {node}."
    ),
    "gpu-fault.remap-pending": "GPU {gpu} on {node} needs a reset to remap defective memory.",
    "gpu-fault.remap-pending.advice": "Once its job has ended, on {node}: nvidia-smi --gpu-reset -i {gpu}",
    "gpu-fault.xid-memory-contained": (
        "A memory error on GPU {gpu} of {node} was contained (XID {code}); it affects only the program that hit it."
    ),
    "gpu-fault.xid-memory-contained.advice": (
        "Restart the failed job. When GPU {gpu} on {node} is free: nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-fault.xid-unknown": "GPU {gpu} on {node} reports the unclassified XID {code}.",
    "gpu-fault.xid-unknown.advice": (
        "NVIDIA's catalogue does not say what to do. Check dmesg -T | grep Xid on {node} and look up XID {code} in a "
        "newer catalogue; then add it to its class in the settings of gpu-fault."
    ),
    "gpu-fault.xid-application": "A program on GPU {gpu} of {node} failed or was killed (XID {code}).",
    "gpu-fault.xid-application.advice": (
        "Read the job's log on {node} and restart the job; the GPU itself needs no action. If many different jobs fail "
        "on GPU {gpu}, test the GPU: dcgmi diag -r 3 -i {gpu}"
    ),
    "gpu-fault.xid-reset": "GPU {gpu} on {node} does not work correctly until it is reset (XID {code}).",
    "gpu-fault.xid-reset.advice": (
        "Stop the job, then on {node}: nvidia-smi --gpu-reset -i {gpu}. If the reset fails, drain and reboot {node}."
    ),
    "gpu-fault.xid-reboot": "GPU {gpu} on {node} does not recover without a reboot (XID {code}).",
    "gpu-fault.xid-reboot.advice": (
        "Let no new jobs start there: kubectl cordon {node}. When its other jobs have ended, drain and reboot {node}: "
        "kubectl drain {node} --ignore-daemonsets"
    ),
    "gpu-fault.xid-vendor": "GPU {gpu} on {node} reports XID {code}, which only the vendor can judge.",
    "gpu-fault.xid-vendor.advice": "Contact the vendor of {node} with the output of nvidia-bug-report.sh.",
    "gpu-fault.xid-software": "GPU {gpu} on {node} needs other software (XID {code}).",
    "gpu-fault.xid-software.advice": (
        "Update the driver and firmware of {node}, and the driver in its virtual machines if it has any."
    ),
    "gpu-fault.xid-power": "GPU {gpu} on {node} receives too little power (XID {code}).",
    "gpu-fault.xid-power.advice": (
        "Check the power cables and the seating of GPU {gpu}, and the power supplies of {node}: ipmitool sdr type "
        "'Power Supply'"
    ),
    "gpu-fault.init-failed": "The driver cannot initialise GPU {gpu} on {node}.",
    "gpu-fault.init-failed.advice": (
        "Drain and reboot {node}. If GPU {gpu} still fails, power-cycle the node, then contact the vendor with the "
        "output of nvidia-bug-report.sh."
    ),
    "gpu-fault.then.contact-vendor": (
        "If XID {code} returns on GPU {gpu}, contact the vendor with the output of nvidia-bug-report.sh."
    ),
    "gpu-fault.then.check-program": (
        "If XID {code} returns with the same program, debug it with compute-sanitizer; if with others, test GPU {gpu}: "
        "dcgmi diag -r 3 -i {gpu}"
    ),
    "gpu-fault.then.check-software": (
        "If XID {code} returns on GPU {gpu}, update the driver of {node}, then report it to NVIDIA."
    ),
    "gpu-fault.then.check-link": (
        "If XID {code} returns, check the NVLinks of GPU {gpu} and their cables: nvidia-smi nvlink -s -i {gpu}"
    ),
    "gpu-fault.then.restart-fabric-manager": (
        "If XID {code} returns without another XID and {node} has NVSwitches: systemctl restart nvidia-fabricmanager"
    ),
    "gpu-fault.xid": "XID {code} ({name}) at {place}: {message}",
    "gpu-fault.line": "Kernel log, {place}: {error}",
    "gpu-fault.ecc": "{errors:uncorrectable ECC error|uncorrectable ECC errors} since the driver was loaded.",
    "gpu-fault.remap-failed-seen": "Row remapping of its memory has failed.",
    "gpu-fault.remap-pending-seen": "Row remapping of its memory is pending a reset.",
    "gpu-fault.recovery": "The driver requests: {action}.",
    "gpu-fault.hit": "Pod {pod} is using it.",
    # gpu-hot
    "rule.gpu-hot": "GPU throttled by heat or power",
    "doc.gpu-hot": "A GPU has been throttled for a long time because it is too hot or the power supply demands it.",
    "doc.gpu-hot.severity": "warning",
    "doc.gpu-hot.incident": "Training slowed down for no visible reason.",
    "gpu-hot.thermal": "GPU {gpu} on {node} is too hot and has been throttled for {seconds:duration}.",
    "gpu-hot.thermal.advice": (
        "Check the fans, airflow and room temperature of {node}: ipmitool sdr type fan; nvidia-smi -q -i {gpu} -d "
        "TEMPERATURE,PERFORMANCE"
    ),
    "gpu-hot.power-brake": "The power supply of {node} has been throttling GPU {gpu} for {seconds:duration}.",
    "gpu-hot.power-brake.advice": (
        "Check the power supplies and the power cap of {node}: ipmitool sdr type 'Power Supply'. Until then, lower "
        "the limit of GPU {gpu}: nvidia-smi -i {gpu} -pl WATTS"
    ),
    "gpu-hot.temperature": "Its temperature is {celsius} degrees Celsius.",
    "gpu-hot.power": "It draws {watts} W of {limit} W.",
    "gpu-hot.clock": "Its clock is {megahertz} MHz.",
    # gpu-underused
    "rule.gpu-underused": "GPU underused",
    "doc.gpu-underused": "A job uses its GPUs only lightly over hours; names the likely bottleneck.",
    "doc.gpu-underused.severity": "warning",
    "doc.gpu-underused.incident": "GPUs waited for CPUs, data or shared memory.",
    "doc.gpu-underused.limit.below": "Mean utilisation below which a GPU is underused.",
    "doc.gpu-underused.limit.window": "Time over which the mean is taken.",
    "gpu-underused.cpu-limit": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration}: its CPU limit holds it back."
    ),
    "gpu-underused.cpu-limit.advice": (
        "Raise resources.limits.cpu of {namespace}/{pod}: 8 to 16 cores per GPU are usual."
    ),
    "gpu-underused.shm-small": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration}: its /dev/shm is too small."
    ),
    "gpu-underused.shm-small.advice": (
        "Mount an emptyDir with medium: Memory at /dev/shm in {namespace}/{pod}, and raise num_workers of its data "
        "loader."
    ),
    "gpu-underused.io-wait": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration}: the node is waiting for its disks."
    ),
    "gpu-underused.io-wait.advice": (
        "Copy the dataset of {namespace}/{pod} to a local SSD of {node}, or pack small files together. On the node: "
        "iostat -x 5"
    ),
    "gpu-underused.data-loading": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration}, in bursts: it is waiting for data."
    ),
    "gpu-underused.data-loading.advice": (
        "In {namespace}/{pod}, raise num_workers and prefetch_factor of the data loader, and do less CPU work per "
        "sample."
    ),
    "gpu-underused.low-batch": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration} and little of their memory."
    ),
    "gpu-underused.low-batch.advice": "Raise the batch size of {namespace}/{pod}, or use fewer GPUs or a MIG slice.",
    "gpu-underused.unknown": (
        "Pod {namespace}/{pod} on {node} has used {gpus:GPU|GPUs} at {ratio:percent} on average over "
        "{window:duration}, without a visible reason."
    ),
    "gpu-underused.unknown.advice": "Profile it: kubectl exec {pod} -n {namespace} -- py-spy top --pid 1",
    "gpu-underused.cpu": "It uses {cores} of its limit of {limit:core|cores}.",
    "gpu-underused.shm": "{used:bytes} of {size:bytes} of its /dev/shm are used.",
    "gpu-underused.bursts": "In bursts, its GPUs reach {ratio:percent}.",
    "gpu-underused.memory": "It uses {used:bytes} of {size:bytes} of GPU memory.",
    # gpu-fragmented
    "rule.gpu-fragmented": "Free GPUs scattered",
    "doc.gpu-fragmented": (
        "A job waits although enough GPUs are free, because they are not on one node. Lists the moves that would "
        "make room."
    ),
    "doc.gpu-fragmented.severity": "warning",
    "doc.gpu-fragmented.incident": "Free GPUs were scattered across nodes, so large jobs did not fit.",
    "gpu-fragmented": (
        "Job {job} ({user}, {namespace}) has been waiting {seconds:duration} for {asked:gpus} on one node: "
        "{free} are free on {nodes:node|nodes}, at most {most} on one ({node})."
    ),
    "gpu-fragmented.moves": "{count:move|moves} would make room: {moves}.",
    "gpu-fragmented.moves.advice": (
        "With the owners' consent: kubectl cordon {node}, restart {pods} from a checkpoint, kubectl uncordon {node}. "
        "To avoid it, let the scheduler fill nodes (NodeResourcesFit MostAllocated; Volcano binpack)."
    ),
    "gpu-fragmented.advice": (
        "Moving up to 3 pods does not help. Run {job} with fewer than {asked:gpus} per worker, or let the "
        "scheduler fill nodes (NodeResourcesFit MostAllocated; Volcano binpack)."
    ),
    # capacity-mismatch
    "rule.capacity-mismatch": "GPUs missing in Kubernetes",
    "doc.capacity-mismatch": (
        "The driver, the device plugin or DRA driver, and the kubelet disagree on a node's number of GPUs."
    ),
    "doc.capacity-mismatch.severity": "warning",
    "doc.capacity-mismatch.incident": "The number of free GPUs differed between views.",
    "capacity-mismatch.device-plugin": (
        "For {seconds:duration}, Kubernetes has been able to use only {capacity} of the {cards:GPU|GPUs} of {node}."
    ),
    "capacity-mismatch.device-plugin.advice": (
        "Check the device plugin or the DRA driver: kubectl get pods -A -o wide --field-selector spec.nodeName={node} "
        "| grep -E 'device-plugin|dra'; delete its pod to restart it."
    ),
    "capacity-mismatch.unhealthy-device": (
        "For {seconds:duration}, only {allocatable} of {capacity:gpus} of {node} have been allocatable."
    ),
    "capacity-mismatch.unhealthy-device.advice": (
        "On {node}, nvidia-smi and dmesg -T | grep Xid show which GPU is unhealthy. After the repair, restart the "
        "pod of the device plugin or DRA driver there."
    ),
    "capacity-mismatch.counts": "The driver counts {cards}, capacity is {capacity:gpus}, allocatable {allocatable}.",
}
