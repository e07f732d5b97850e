/* Initialisation, and calls that return one number or one text of a GPU. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };
struct utilization { unsigned gpu, memory; };
struct temperature { unsigned version, sensor; int degrees; };
enum { NVIDIA_BRAND = 14 };

EXPORT int nvmlInitWithFlags(unsigned flags) {
    static int slot = -1;
    (void)flags;
    return fake_initialise(&slot, __func__);
}

EXPORT int nvmlInit_v2(void) {
    static int slot = -1;
    return fake_initialise(&slot, __func__);
}

EXPORT int nvmlShutdown(void) {
    static int slot = -1;
    return fake_shut_down(&slot, __func__);
}

EXPORT const char *nvmlErrorString(int code) {
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "error %d", code);
    return text;
}

static int copy_text(char *out, unsigned size, const char *text) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    SYSTEM_CALL;
    return copy_text(out, size, state.driver_version);
}

EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    SYSTEM_CALL;
    char text[TEXT + 8];
    snprintf(text, sizeof text, "12.%s", state.driver_version);
    return copy_text(out, size, text);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *out) {
    SYSTEM_CALL;
    *out = state.cuda_version;
    return SUCCESS;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    SYSTEM_CALL;
    *out = state.cuda_version;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *out) {
    SYSTEM_CALL;
    *out = fake_card_count();
    return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **out) {
    SYSTEM_CALL;
    if (index >= (unsigned)fake_card_count()) return INVALID_ARGUMENT;
    *out = fake_card(index);
    return number(*out, N_lost) || number(*out, N_absent) ? GPU_IS_LOST : SUCCESS;
}

static int find_card(struct device **out, const char *text, const char *(*field)(const struct gpu *)) {
    for (int i = 0; i < fake_card_count(); i++) {
        *out = fake_card(i);
        if (!strcmp(field(&state.gpu[(*out)->gpu]), text)) return SUCCESS;
    }
    return NOT_FOUND;
}

static const char *uuid_of(const struct gpu *gpu) { return gpu->uuid; }
static const char *pci_of(const struct gpu *gpu) { return gpu->pci; }
static const char *serial_of(const struct gpu *gpu) { return gpu->serial; }

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **out) {
    SYSTEM_CALL;
    for (int i = 0; i < state.migs; i++)
        if (!strcmp(state.mig[i].uuid, uuid)) return *out = fake_mig_device(&state.mig[i]), SUCCESS;
    return find_card(out, uuid, uuid_of);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **out) {
    SYSTEM_CALL;
    return find_card(out, pci, pci_of);
}

EXPORT int nvmlDeviceGetHandleBySerial(const char *serial, struct device **out) {
    SYSTEM_CALL;
    return find_card(out, serial, serial_of);
}

EXPORT int nvmlDeviceGetIndex(struct device *device, unsigned *out) {
    CALL(device);
    for (*out = 0; *out < (unsigned)fake_card_count(); ++*out)
        if (fake_card(*out)->gpu == device->gpu) return SUCCESS;
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetUUID(struct device *device, char *out, unsigned size) {
    CALL(device);
    return copy_text(out, size, device->mig[0] ? device->mig : state.gpu[device->gpu].uuid);
}

EXPORT int nvmlDeviceGetName(struct device *device, char *out, unsigned size) {
    CALL(device);
    char text[2 * TEXT + 8];
    struct mig *mig = fake_mig_of(device);
    snprintf(text, sizeof text, mig ? "%s MIG %s" : "%s", state.gpu[device->gpu].name, mig ? mig->profile : "");
    return copy_text(out, size, text);
}

EXPORT int nvmlDeviceGetBrand(struct device *device, unsigned *out) {
    CALL(device);
    *out = NVIDIA_BRAND;
    return 0;
}

EXPORT int nvmlDeviceGetSerial(struct device *device, char *out, unsigned size) {
    CALL(device);
    return copy_text(out, size, state.gpu[device->gpu].serial);
}

EXPORT int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci *out) {
    CALL(device);
    const char *id = state.gpu[device->gpu].pci;
    memset(out, 0, sizeof *out);
    sscanf(id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain, out->bus & 0xff, out->device & 0xff);
    snprintf(out->bus_id, sizeof out->bus_id, "%.31s", id);
    return SUCCESS;
}

/* Calls that return one number of the table. */
#define NUMBER_CALL(call, key) \
    EXPORT int call(struct device *device, unsigned *out) { \
        CALL(device); \
        *out = number(device, key); \
        return SUCCESS; \
    }
NUMBER_CALL(nvmlDeviceGetPowerUsage, N_power_mw)
NUMBER_CALL(nvmlDeviceGetPowerManagementLimit, N_power_limit_mw)
NUMBER_CALL(nvmlDeviceGetEnforcedPowerLimit, N_power_limit_mw)
NUMBER_CALL(nvmlDeviceGetPerformanceState, N_pstate)
NUMBER_CALL(nvmlDeviceGetPersistenceMode, N_persistence)
NUMBER_CALL(nvmlDeviceGetComputeMode, N_compute_mode)
NUMBER_CALL(nvmlDeviceGetFanSpeed, N_fan)
NUMBER_CALL(nvmlDeviceGetPcieReplayCounter, N_pcie_replays)

static int event_reasons(struct device *device, unsigned long long *out) {
    *out = number(device, N_throttle);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *out) {
    CALL(device);
    return event_reasons(device, out);
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *out) {
    CALL(device);
    return event_reasons(device, out);
}

EXPORT int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *out) {
    CALL(device);
    if (number(device, N_mig_mode)) return NOT_SUPPORTED;
    *out = (struct utilization){number(device, N_util), number(device, N_memory_util)};
    return SUCCESS;
}

static int engine(struct device *device, enum number key, unsigned *out, unsigned *period_us) {
    *out = number(device, key);
    *period_us = 166667;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetEncoderUtilization(struct device *device, unsigned *out, unsigned *period_us) {
    CALL(device);
    return engine(device, N_encoder, out, period_us);
}

EXPORT int nvmlDeviceGetDecoderUtilization(struct device *device, unsigned *out, unsigned *period_us) {
    CALL(device);
    return engine(device, N_decoder, out, period_us);
}

EXPORT int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *out) {
    CALL(device);
    struct mig *mig = fake_mig_of(device);
    if (device->mig[0] && !mig) return INVALID_ARGUMENT;
    out->total = mig ? mig->total : number(device, N_memory_total);
    out->used = (mig ? mig->used : number(device, N_memory_used)) + number(device, N_memory_reserved);
    out->free = out->total - out->used;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_v2 *out) {
    CALL(device);
    if (out->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
    struct mig *mig = fake_mig_of(device);
    if (device->mig[0] && !mig) return INVALID_ARGUMENT;
    out->total = mig ? mig->total : number(device, N_memory_total);
    out->used = mig ? mig->used : number(device, N_memory_used);
    out->reserved = number(device, N_memory_reserved);
    out->free = out->total - out->used - out->reserved;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetBAR1MemoryInfo(struct device *device, struct memory *out) {
    CALL(device);
    *out = (struct memory){137438953472, 137436856320, 2097152};
    return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperature(struct device *device, unsigned sensor, unsigned *out) {
    CALL(device);
    if (sensor != 0) return INVALID_ARGUMENT;
    *out = number(device, N_temperature);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *out) {
    CALL(device);
    if (out->version != 0x100000C) return ARGUMENT_VERSION_MISMATCH;
    if (out->sensor != 0) return INVALID_ARGUMENT;
    out->degrees = (int)number(device, N_temperature);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetClockInfo(struct device *device, unsigned type, unsigned *out) {
    CALL(device);
    if (type > 3) return INVALID_ARGUMENT;
    *out = number(device, N_graphics_clock_mhz + type);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxClockInfo(struct device *device, unsigned type, unsigned *out) {
    CALL(device);
    if (type > 3) return INVALID_ARGUMENT;
    *out = number(device, N_max_clock_mhz);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetPcieThroughput(struct device *device, unsigned counter, unsigned *out) {
    CALL(device);
    *out = number(device, counter ? N_pcie_rx_kib : N_pcie_tx_kib);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major, int *minor) {
    CALL(device);
    *major = 8;
    *minor = 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetDisplayMode(struct device *device, unsigned *out) {
    CALL(device);
    *out = 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetDisplayActive(struct device *device, unsigned *out) {
    CALL(device);
    *out = 0;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetDriverModel_v2(struct device *device, unsigned *current, unsigned *pending) {
    CALL(device);
    (void)current, (void)pending;
    return NOT_SUPPORTED; /* as on every Linux */
}

EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(struct device *device, void *out) {
    CALL(device);
    (void)out;
    return NOT_SUPPORTED;
}
