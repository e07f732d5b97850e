/* XID events: a set receives the events of the control file that are newer than the set. */
#include "fake.h"

#include <stdlib.h>
#include <unistd.h>

enum { XID_CRITICAL = 8 };

struct event_set { uint64_t heard; unsigned char listens[MAX_GPUS]; };
struct event { struct device *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; };

EXPORT int nvmlEventSetCreate(struct event_set **out) {
    SYSTEM_CALL;
    struct event_set *set = calloc(1, sizeof *set);
    for (int i = 0; i < state.xids; i++)
        if (state.xid[i].sequence > set->heard) set->heard = state.xid[i].sequence;
    *out = set;
    return SUCCESS;
}

EXPORT int nvmlEventSetFree(struct event_set *set) {
    SYSTEM_CALL;
    free(set);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetSupportedEventTypes(struct device *device, unsigned long long *out) {
    CALL(device);
    *out = XID_CRITICAL;
    return SUCCESS;
}

EXPORT int nvmlDeviceRegisterEvents(struct device *device, unsigned long long types, struct event_set *set) {
    CALL(device);
    if (types != XID_CRITICAL) return NOT_SUPPORTED;
    set->listens[device->gpu] = 1;
    return SUCCESS;
}

/* One poll. Like in the real driver, one lost GPU makes the whole set fail. */
static int hear(struct event_set *set, struct event *out) {
    SYSTEM_CALL;
    for (int i = 0; i < fake_card_count(); i++)
        if (set->listens[fake_card(i)->gpu] && number(fake_card(i), N_lost)) return GPU_IS_LOST;
    for (int i = 0; i < state.xids; i++) {
        const struct xid *xid = &state.xid[i];
        if (xid->sequence <= set->heard) continue;
        set->heard = xid->sequence;
        for (int card = 0; card < fake_card_count() && set->listens[xid->gpu]; card++) {
            if (fake_card(card)->gpu != xid->gpu) continue;
            *out = (struct event){fake_card(card), XID_CRITICAL, xid->code, ~0u, ~0u};
            return SUCCESS;
        }
    }
    return TIMEOUT;
}

EXPORT int nvmlEventSetWait_v2(struct event_set *set, struct event *out, unsigned timeout_ms) {
    {
        SYSTEM_CALL;
    }
    for (unsigned waited = 0;; waited += 5) {
        int code = hear(set, out);
        if (code != TIMEOUT || waited >= timeout_ms) return code;
        usleep(5000);
    }
}
