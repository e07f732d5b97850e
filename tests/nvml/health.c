/* Health: ECC, row remaps, retired pages, NVLinks; and fields, which return many of them in one call. */
#include "fake.h"

#include <string.h>

enum { UINT = 1, ULONGLONG = 3 };
enum { DRAM = 2, SRAM = 7 };

struct field {
    uint32_t id, scope;
    int64_t timestamp, latency_us;
    unsigned value_type, code;
    union { double real; unsigned small; unsigned long long large; } value;
};

/* The eight ECC counters are in the table as [lifetime][kind][location]. */
static enum number ecc_key(unsigned kind, unsigned life, unsigned location) {
    return N_volatile_corrected_sram + life * 4 + kind * 2 + (location == DRAM);
}

EXPORT int nvmlDeviceGetEccMode(struct device *device, unsigned *current, unsigned *pending) {
    CALL(device);
    *current = *pending = number(device, N_ecc_enabled);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryErrorCounter(struct device *device, unsigned kind, unsigned life, unsigned location,
                                           unsigned long long *out) {
    CALL(device);
    if (kind > 1 || life > 1) return INVALID_ARGUMENT;
    if (!number(device, N_ecc_enabled) || !(location == DRAM || (location == SRAM && number(device, N_ecc_sram_known))))
        return NOT_SUPPORTED;
    *out = number(device, ecc_key(kind, life, location));
    return SUCCESS;
}

EXPORT int nvmlDeviceGetTotalEccErrors(struct device *device, unsigned kind, unsigned life, unsigned long long *out) {
    CALL(device);
    if (kind > 1 || life > 1) return INVALID_ARGUMENT;
    if (!number(device, N_ecc_enabled)) return NOT_SUPPORTED;
    *out = number(device, ecc_key(kind, life, SRAM)) + number(device, ecc_key(kind, life, DRAM));
    return SUCCESS;
}

EXPORT int nvmlDeviceGetRemappedRows(struct device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                     unsigned *failed) {
    CALL(device);
    if (!number(device, N_remaps_known)) return NOT_SUPPORTED;
    *corrected = number(device, N_remap_corrected);
    *uncorrected = number(device, N_remap_uncorrected);
    *pending = number(device, N_remap_pending);
    *failed = number(device, N_remap_failed);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetRetiredPages(struct device *device, unsigned cause, unsigned *count, unsigned long long *pages) {
    CALL(device);
    if (!number(device, N_retired_known)) return NOT_SUPPORTED;
    unsigned have = number(device, cause ? N_retired_double : N_retired_single);
    if (*count < have || !pages) return *count = have, have ? INSUFFICIENT_SIZE : SUCCESS;
    *count = have;
    for (unsigned i = 0; i < have; i++) pages[i] = 0x1000 * (i + 1);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(struct device *device, unsigned *out) {
    CALL(device);
    if (!number(device, N_retired_known)) return NOT_SUPPORTED;
    *out = number(device, N_retired_pending);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, unsigned *out) {
    CALL(device);
    if (!number(device, N_links)) return NOT_SUPPORTED;
    if (link >= number(device, N_links)) return INVALID_ARGUMENT;
    *out = state.gpu[device->gpu].link[link].active;
    return SUCCESS;
}

static uint64_t link_errors(const struct link *link, unsigned counter) {
    const uint64_t errors[] = {link->replay, link->recovery, link->flit, link->data};
    return errors[counter];
}

EXPORT int nvmlDeviceGetNvLinkErrorCounter(struct device *device, unsigned link, unsigned counter, unsigned long long *out) {
    CALL(device);
    if (!number(device, N_links) || counter > 3) return NOT_SUPPORTED;
    if (link >= number(device, N_links)) return INVALID_ARGUMENT;
    *out = link_errors(&state.gpu[device->gpu].link[link], counter);
    return SUCCESS;
}

static int put(struct field *field, int known, unsigned type, uint64_t value) {
    if (!known) return NOT_SUPPORTED;
    field->value_type = type;
    if (type == UINT) field->value.small = value;
    else field->value.large = value;
    return SUCCESS;
}

static int put_link_total(const struct device *device, struct field *field, unsigned counter) {
    uint64_t sum = 0, links = number(device, N_links);
    for (unsigned i = 0; i < links; i++) sum += link_errors(&state.gpu[device->gpu].link[i], counter);
    return put(field, links && number(device, N_link_totals_known), ULONGLONG, sum);
}

static int put_link(const struct device *device, struct field *field, unsigned counter) {
    if (!number(device, N_links) || !number(device, N_link_crc_known)) return NOT_SUPPORTED;
    if (field->scope >= number(device, N_links)) return INVALID_ARGUMENT;
    return put(field, 1, ULONGLONG, link_errors(&state.gpu[device->gpu].link[field->scope], counter));
}

static int answer_field(const struct device *device, struct field *field) {
    uint64_t links = number(device, N_links);
    switch (field->id) {
    case 1: return put(field, 1, UINT, number(device, N_ecc_enabled));
    case 29: return put(field, number(device, N_retired_known), UINT, number(device, N_retired_single));
    case 30: return put(field, number(device, N_retired_known), UINT, number(device, N_retired_double));
    case 31: return put(field, number(device, N_retired_known), UINT, number(device, N_retired_pending));
    case 38: return put_link_total(device, field, 2);
    case 45: return put_link_total(device, field, 3);
    case 52: return put_link_total(device, field, 0);
    case 59: return put_link_total(device, field, 1);
    case 91: return put(field, links > 0, UINT, links);
    case 94: return put(field, 1, UINT, number(device, N_pcie_replays));
    case 138: /* throughput in KiB since start: sent, received */
    case 139: return put(field, field->scope < links, ULONGLONG, fake_now_us() / 1000 * (field->id == 138 ? 3 : 2));
    case 142: return put(field, number(device, N_remaps_known), UINT, number(device, N_remap_corrected));
    case 143: return put(field, number(device, N_remaps_known), UINT, number(device, N_remap_uncorrected));
    case 144: return put(field, number(device, N_remaps_known), UINT, number(device, N_remap_pending));
    case 145: return put(field, number(device, N_remaps_known), UINT, number(device, N_remap_failed));
    case 161: return put_link(device, field, 0);
    case 162: return put_link(device, field, 1);
    case 163: return put_link(device, field, 2);
    case 186: return put(field, 1, UINT, number(device, N_power_instant_mw));
    case 215: /* newer links count recoveries here, and have no replays */
        return put(field, field->scope < links && !number(device, N_link_crc_known), ULONGLONG,
                   field->scope < MAX_LINKS ? state.gpu[device->gpu].link[field->scope].recovery : 0);
    case 230: return put(field, 1, UINT, number(device, N_recovery_action));
    default: return NOT_SUPPORTED;
    }
}

EXPORT int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields) {
    CALL(device);
    for (int i = 0; i < count; i++) {
        memset(&fields[i].value, 0, sizeof fields[i].value);
        fields[i].timestamp = fake_now_us();
        fields[i].latency_us = 1;
        fields[i].code = answer_field(device, &fields[i]);
    }
    return SUCCESS;
}
