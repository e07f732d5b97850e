"""English: findings about cards."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "card-memory": "{bytes:bytes} of the card's memory is in use.",
    "card-owner": "It belongs to {user} (job {job}).",
    "gpu-zombie.pod-finished": (
        "GPU {gpu} on {node} is still held by pod {pod}, which has finished; this lasts {seconds:duration}."
    ),
    "gpu-zombie.pod-deleted": (
        "GPU {gpu} on {node} is still held by pod {pod}, which was deleted; this lasts {seconds:duration}."
    ),
    "gpu-zombie.pod-terminating": (
        "GPU {gpu} on {node} is still held by pod {pod}, which should have ended {seconds:duration} ago."
    ),
    "gpu-zombie.process": "Its process {pid} is still on the card.",
    "gpu-zombie.allocation": "No process of {pod} is left on GPU {gpu}, but {node} keeps the card for it.",
    "gpu-zombie.advice": (
        "On {node}: see why process {pid} does not end (ps -o pid,stat,wchan:32,cmd -p {pid}); if nobody needs it: "
        "kill -9 {pid}"
    ),
    "gpu-zombie.allocation.advice": "See what keeps the pod: kubectl describe pod {pod} -n {namespace}",
    "gpu-idle.idle-notebook": (
        "The notebook {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}."
    ),
    "gpu-idle.idle-notebook.advice": (
        "Ask its owner to stop it, or stop it: kubectl delete pod {pod} -n {namespace}. Files on its volume stay."
    ),
    "gpu-idle.idle-job": "Pod {namespace}/{pod} has not used GPU {gpu} on {node} for {seconds:duration}.",
    "gpu-idle.idle-job.advice": (
        "See what it does: kubectl logs {pod} -n {namespace} --tail=50. If it is through: kubectl delete pod {pod} "
        "-n {namespace}"
    ),
    "gpu-idle.hung-job": (
        "Pod {namespace}/{pod} seems to hang: GPU {gpu} on {node} has done nothing for {seconds:duration}, and its "
        "log has stopped too."
    ),
    "gpu-idle.hung-job.advice": (
        "Look where it hangs: kubectl exec {pod} -n {namespace} -- py-spy dump --pid 1 (often a collective that "
        "waits for a lost worker). Then restart the job from its last checkpoint."
    ),
    "gpu-idle.waiting-for-data": (
        "Pod {namespace}/{pod} waits for data: GPU {gpu} on {node} has done nothing for {seconds:duration}."
    ),
    "gpu-idle.waiting-for-data.advice": (
        "Check the storage that it reads from: on {node} run iostat -x 5 and nfsiostat 5; see if {namespace}/{pod} "
        "can read its dataset."
    ),
    "gpu-idle.partially-idle": (
        "Job {job} ({namespace}) uses only some of its GPUs: {idle} of {gpus} have done nothing for {seconds:duration}."
    ),
    "gpu-idle.partially-idle.advice": (
        "Ask its owner to request fewer than {gpus:GPU|GPUs}, or to use them all (torchrun --nproc_per_node; check "
        "CUDA_VISIBLE_DEVICES in {namespace}/{pod})."
    ),
    "gpu-idle.cards": "Idle (node:GPU): {cards}.",
    "gpu-idle.log-stopped": "It last logged {seconds:duration} ago, and its process is still on the card.",
    "gpu-idle.process-waits": "Its process {pid} ({process}) is waiting for I/O (state D).",
    "gpu-idle.node-waits": "On this node {cores:core|cores} on average are waiting for I/O.",
    "gpu-orphan.host-process": (
        "Process {pid} ({process}) uses GPU {gpu} on {node} and belongs to no pod ({seconds:duration})."
    ),
    "gpu-orphan.other-container": (
        "Container {container} uses GPU {gpu} on {node} past Kubernetes: process {pid} ({process}), for "
        "{seconds:duration}."
    ),
    "gpu-orphan.unknown-owner": (
        "Process {pid} uses GPU {gpu} on {node}, and nothing says whose it is ({seconds:duration})."
    ),
    "gpu-orphan.uid": "It runs as user id {uid}.",
    "gpu-orphan.others": "{count:other process|other processes} outside any pod on the same card: {pids}.",
    "gpu-orphan.host-process.advice": (
        "On {node}: ps -o pid,user,lstart,cmd -p {pid}. If nobody knows it, treat it as an intruder: keep "
        "/proc/{pid}/exe, then kill -9 {pid}"
    ),
    "gpu-orphan.other-container.advice": (
        "On {node}: docker inspect {container} (or crictl inspect {container}) shows who started it. Work has to go "
        "through Kubernetes: docker stop {container}"
    ),
    "gpu-orphan.unknown-owner.advice": (
        "On {node}: cat /proc/{pid}/cgroup; ls -l /proc/{pid}/exe. The agent needs hostPID to see it."
    ),
    "gpu-ghost.memory-leak": (
        "{bytes:bytes} of GPU {gpu} on {node} is taken and no process is on it, for {seconds:duration}."
    ),
    "gpu-ghost.latched-utilisation": (
        "GPU {gpu} on {node} claims to be {ratio:percent} busy and no process is on it, for {seconds:duration}."
    ),
    "gpu-ghost.memory-leak.advice": (
        "On {node}: fuser -v /dev/nvidia{gpu} shows who has it open. If nobody: drain the card and nvidia-smi "
        "--gpu-reset -i {gpu}"
    ),
    "gpu-ghost.latched-utilisation.advice": (
        "The counter is stuck. On {node}: nvidia-smi -pm 1; if that does not help: nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-wedged.d-state": (
        "Process {pid} ({process}) on GPU {gpu} of {node} is stuck in the kernel (state D) for {seconds:duration}."
    ),
    "gpu-wedged.zombie-process": (
        "Process {pid} ({process}) on GPU {gpu} of {node} is dead and not gone (state Z) for {seconds:duration}."
    ),
    "gpu-wedged.vanished": (
        "GPU {gpu} on {node} is held by process {pid} ({process}), which does not exist any more, for "
        "{seconds:duration}."
    ),
    "gpu-wedged.d-state.advice": (
        "On {node}: cat /proc/{pid}/stack. If it waits for a mount, repair that; if for the driver: drain and reboot "
        "{node}."
    ),
    "gpu-wedged.zombie-process.advice": (
        "On {node}: its parent has to collect it (ps -o ppid= -p {pid}): restart the container. Threads in state D: "
        "reboot {node}."
    ),
    "gpu-wedged.vanished.advice": (
        "On {node}: fuser -v /dev/nvidia{gpu}; if it shows nobody, drain the card and nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-phantom.stale-allocation": (
        "{node} counts GPU {gpu} as used by pod {pod}, which does not exist any more, for {seconds:duration}."
    ),
    "gpu-phantom.terminal-pod": (
        "{node} counts GPU {gpu} as used by pod {pod}, which has finished, and refuses new pods ({seconds:duration})."
    ),
    "gpu-phantom.refused": "It refused pod {pod} for want of GPUs.",
    "gpu-phantom.advice": (
        "Restart the kubelet on {node}: systemctl restart kubelet. If it still lists the card: remove "
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint first, with no GPU pod running."
    ),
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
}
