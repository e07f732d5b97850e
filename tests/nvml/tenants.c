/* Use of a GPU: processes, MIG instances, and utilization samples. */
#include "fake.h"

#include <string.h>

struct process_info { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };
struct process_detail { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; unsigned long long protected_memory; };
struct process_detail_list { unsigned version, mode, count; struct process_detail *processes; };
struct process_sample { unsigned pid; unsigned long long timestamp; unsigned sm, memory, encoder, decoder; };
struct sample_out { unsigned long long timestamp; union { unsigned small; unsigned long long large; } value; };

enum { SAMPLE_PERIOD_US = 166667, SAMPLE_BUFFER = 100, UTILIZATION = 1, UINT = 1 };

static int holds(const struct process *process, const struct device *device, const struct mig *mig) {
    if (process->gpu != device->gpu) return 0;
    return !mig || (process->gpu_instance == mig->gpu_instance && process->compute_instance == mig->compute_instance);
}

static int list_processes(struct device *device, char kind, unsigned *count, struct process_info *out) {
    struct mig *mig = fake_mig_of(device);
    unsigned have = 0, room = out ? *count : 0;
    for (int i = 0; i < state.processes; i++) {
        const struct process *p = &state.process[i];
        if (p->kind != kind || !holds(p, device, mig)) continue;
        if (have < room) out[have] = (struct process_info){p->pid, p->memory, p->gpu_instance, p->compute_instance};
        have++;
    }
    *count = have;
    return have > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#define PROCESS_CALL(call, kind) \
    EXPORT int call(struct device *device, unsigned *count, struct process_info *out) { \
        CALL(device); \
        return list_processes(device, kind, count, out); \
    }
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, 'c')
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, 'c')
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g')
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g')
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm')
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm')

EXPORT int nvmlDeviceGetRunningProcessDetailList(struct device *device, struct process_detail_list *list) {
    CALL(device);
    if (list->version != 0x1000018 || list->mode > 2) return ARGUMENT_VERSION_MISMATCH;
    struct process_info found[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES, room = list->processes ? list->count : 0;
    list_processes(device, "cgm"[list->mode], &count, found);
    list->count = count;
    if (count > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < count; i++)
        list->processes[i] = (struct process_detail){found[i].pid, found[i].memory, found[i].gpu_instance, found[i].compute_instance, 0};
    return SUCCESS;
}

EXPORT int nvmlDeviceGetProcessUtilization(struct device *device, struct process_sample *out, unsigned *count,
                                           unsigned long long last_seen) {
    CALL(device);
    (void)last_seen;
    unsigned have = 0, room = out ? *count : 0;
    for (int i = 0; i < state.processes; i++) {
        const struct process *p = &state.process[i];
        if (!holds(p, device, NULL)) continue;
        if (have < room)
            out[have] = (struct process_sample){p->pid, fake_now_us(), number(device, N_util), number(device, N_memory_util), 0, 0};
        have++;
    }
    *count = have;
    return !have ? NOT_FOUND : have > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* Samples from the file, else one every sixth of a second with the GPU's current utilization. */
static unsigned collect_samples(struct device *device, unsigned long long last_seen, unsigned room, struct sample_out *out) {
    unsigned have = 0;
    int named = 0;
    for (int i = 0; i < state.samples; i++) {
        const struct sample *s = &state.sample[i];
        if (s->gpu != device->gpu) continue;
        named = 1;
        if (s->timestamp > last_seen && have < room) out[have++] = (struct sample_out){s->timestamp, {s->value}};
    }
    if (named) return have;
    uint64_t end = fake_now_us() / SAMPLE_PERIOD_US, begin = last_seen / SAMPLE_PERIOD_US + 1;
    if (end >= room && begin < end - room + 1) begin = end - room + 1;
    for (uint64_t i = begin; i <= end; i++) out[have++] = (struct sample_out){i * SAMPLE_PERIOD_US, {number(device, N_util)}};
    return have;
}

EXPORT int nvmlDeviceGetSamples(struct device *device, unsigned type, unsigned long long last_seen, unsigned *value_type,
                                unsigned *count, struct sample_out *out) {
    CALL(device);
    if (type != UTILIZATION || number(device, N_mig_mode)) return NOT_SUPPORTED;
    *value_type = UINT;
    if (!out) return *count = SAMPLE_BUFFER, SUCCESS;
    memset(out, 0, *count * sizeof *out);
    *count = collect_samples(device, last_seen, *count, out);
    return *count ? SUCCESS : NOT_FOUND;
}

EXPORT int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending) {
    CALL(device);
    if (!number(device, N_mig_known)) return NOT_SUPPORTED;
    *current = *pending = number(device, N_mig_mode);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned *out) {
    CALL(device);
    *out = number(device, N_mig_known) ? 7 : 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **out) {
    CALL(device);
    if (!number(device, N_mig_mode)) return NOT_SUPPORTED;
    for (int i = 0; i < state.migs; i++)
        if (state.mig[i].gpu == device->gpu && index-- == 0) return *out = fake_mig_device(&state.mig[i]), SUCCESS;
    return NOT_FOUND;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(struct device *device, unsigned *out) {
    CALL(device);
    *out = device->mig[0] != 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct device *device, struct device **out) {
    CALL(device);
    for (int i = 0; i < fake_card_count(); i++)
        if ((*out = fake_card(i))->gpu == device->gpu) return SUCCESS;
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct device *device, unsigned *out) {
    CALL(device);
    struct mig *mig = fake_mig_of(device);
    if (!mig) return INVALID_ARGUMENT;
    *out = mig->gpu_instance;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetComputeInstanceId(struct device *device, unsigned *out) {
    CALL(device);
    struct mig *mig = fake_mig_of(device);
    if (!mig) return INVALID_ARGUMENT;
    *out = mig->compute_instance;
    return SUCCESS;
}
