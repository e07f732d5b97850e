/* A driver library for tests: libnvidia-ml.so.1 as the vendor's Python binding and other programs call it, with GPUs
 * from a text file. __init__.py writes that file, control.c describes its format. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum { MAX_GPUS = 80, MAX_LINKS = 36, MAX_MIGS = 128, MAX_PROCESSES = 1024, MAX_SAMPLES = 2048, MAX_XIDS = 256, MAX_RULES = 64 };
enum { TEXT = 96 };

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999,
};

/* Keys of `gpu <index> <key> <number>`, with their defaults. */
#define NUMBERS(X) \
    X(util, 0) X(memory_util, 0) X(memory_total, 85899345920) X(memory_used, 0) X(memory_reserved, 0) \
    X(temperature, 34) X(power_mw, 62000) X(power_limit_mw, 400000) X(power_instant_mw, 61000) \
    X(graphics_clock_mhz, 210) X(sm_clock_mhz, 210) X(memory_clock_mhz, 1593) X(video_clock_mhz, 585) X(max_clock_mhz, 1980) \
    X(throttle, 1) X(pstate, 0) X(persistence, 1) X(compute_mode, 0) X(fan, 30) X(encoder, 0) X(decoder, 0) \
    X(pcie_tx_kib, 0) X(pcie_rx_kib, 0) X(pcie_replays, 0) X(recovery_action, 0) X(lost, 0) X(absent, 0) \
    X(ecc_enabled, 1) X(ecc_sram_known, 1) \
    X(volatile_corrected_sram, 0) X(volatile_corrected_dram, 0) X(volatile_uncorrected_sram, 0) X(volatile_uncorrected_dram, 0) \
    X(aggregate_corrected_sram, 0) X(aggregate_corrected_dram, 0) X(aggregate_uncorrected_sram, 0) X(aggregate_uncorrected_dram, 0) \
    X(remaps_known, 1) X(remap_corrected, 0) X(remap_uncorrected, 0) X(remap_pending, 0) X(remap_failed, 0) \
    X(retired_known, 0) X(retired_single, 0) X(retired_double, 0) X(retired_pending, 0) \
    X(links, 0) X(link_totals_known, 1) X(link_crc_known, 1) X(mig_known, 1) X(mig_mode, 0)

enum number {
#define X(key, standard) N_##key,
    NUMBERS(X)
#undef X
    NUMBER_COUNT
};

struct link { uint64_t active, flit, data, replay, recovery; };

struct gpu {
    char uuid[TEXT], name[TEXT], pci[TEXT], serial[TEXT];
    uint64_t number[NUMBER_COUNT];
    struct link link[MAX_LINKS];
};

struct process { int gpu; unsigned pid, gpu_instance, compute_instance; uint64_t memory; char kind; };
struct mig { int gpu; unsigned gpu_instance, compute_instance; char uuid[TEXT], profile[TEXT]; uint64_t total, used; };
struct sample { int gpu; uint64_t timestamp; unsigned value; };
struct xid { uint64_t sequence; int gpu; uint64_t code; };
struct rule { char call[TEXT]; int code, gpu; };

struct state {
    struct gpu gpu[MAX_GPUS];
    struct process process[MAX_PROCESSES];
    struct mig mig[MAX_MIGS];
    struct sample sample[MAX_SAMPLES];
    struct xid xid[MAX_XIDS];
    struct rule rule[MAX_RULES]; /* code HANG blocks, any other is returned */
    int gpus, processes, migs, samples, xids, rules;
    char driver_version[TEXT];
    int cuda_version, driver_missing, generation, reload_code;
};

/* A handle. That of a MIG instance has its uuid, that of a GPU an empty one. */
struct device { int gpu; char mig[TEXT]; };

enum { HANG = -1, NO_CARD = -1 };

extern struct state state;

int fake_begin(int *slot, const char *call, const struct device *device, int card_needed);
void fake_end(int *held);
int fake_initialise(int *slot, const char *call);
int fake_shut_down(int *slot, const char *call);
int fake_card_count(void);
struct device *fake_card(int index);
struct device *fake_mig_device(const struct mig *mig);
struct mig *fake_mig_of(const struct device *device);
uint64_t fake_now_us(void);

static inline uint64_t number(const struct device *device, enum number key) { return state.gpu[device->gpu].number[key]; }

/* Opens every call: blocks or returns an error if the file says so, else locks the table. */
#define CALL_WITH(device, needed) \
    static int slot = -1; \
    int refused = fake_begin(&slot, __func__, device, needed); \
    if (refused) return refused; \
    __attribute__((cleanup(fake_end), unused)) int held = 1
#define CALL(device) CALL_WITH(device, 1)
#define SYSTEM_CALL CALL_WITH(NULL, 0)

#endif
