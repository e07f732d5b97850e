/* The control file: read again whenever it is replaced, so that GPUs can change while a program runs.
 *
 *   driver version 535.104.05 | driver cuda 12020 | driver missing 1 | driver generation 2 | driver reload_code 999
 *   gpus 8                                 number of GPUs, all alike by default
 *   gpu 0 util 55                          a key of NUMBERS, or uuid, name, pci, serial
 *   link 0 17 <active> <flit> <data> <replay> <recovery>
 *   mig 0 <gpu instance> <compute instance> <total> <used> <uuid> <profile>
 *   process 0 <pid> <memory> c|g|m <gpu instance> <compute instance>
 *   sample 0 <timestamp in microseconds> <percent>
 *   xid <sequence> <gpu> <code>            an event for earlier subscribers
 *   answer <call or *> <code> <gpu or -1>  the call returns this error, or hangs if the code is -1
 */
#define _GNU_SOURCE
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct state state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char control[4096];
static struct stat seen;
static int references, generation;
static int enumerated[MAX_GPUS], cards;
static struct device card_device[MAX_GPUS], mig_device[MAX_MIGS];
static int mig_devices;

enum { MAX_CALLS = 256 };
static struct { const char *name; unsigned long count; } calls[MAX_CALLS];
static int call_count;

static const char *const keys[] = {
#define X(key, standard) #key,
    NUMBERS(X)
#undef X
};

static void set_gpu_defaults(int index) {
    static const uint64_t standard[] = {
#define X(key, value) value,
        NUMBERS(X)
#undef X
    };
    struct gpu *gpu = &state.gpu[index];
    memcpy(gpu->number, standard, sizeof standard);
    snprintf(gpu->uuid, TEXT, "GPU-%08x-0000-4000-8000-00000000%04x", 0xa1000000u + index, index);
    snprintf(gpu->name, TEXT, "NVIDIA A100-SXM4-80GB");
    snprintf(gpu->pci, TEXT, "00000000:%02X:00.0", 0x10 + index);
    snprintf(gpu->serial, TEXT, "15602%08d", index);
    for (int link = 0; link < MAX_LINKS; link++) gpu->link[link] = (struct link){.active = 1};
}

static void set_gpu(int index, const char *key, const char *value) {
    if (index < 0 || index >= MAX_GPUS) return;
    struct gpu *gpu = &state.gpu[index];
    char *text = !strcmp(key, "uuid") ? gpu->uuid : !strcmp(key, "name") ? gpu->name
               : !strcmp(key, "pci") ? gpu->pci : !strcmp(key, "serial") ? gpu->serial : NULL;
    if (text) {
        snprintf(text, TEXT, "%s", value);
        return;
    }
    for (int i = 0; i < NUMBER_COUNT; i++)
        if (!strcmp(key, keys[i])) gpu->number[i] = strtoull(value, NULL, 0);
}

static void set_driver(const char *key, const char *value) {
    if (!strcmp(key, "version")) snprintf(state.driver_version, TEXT, "%s", value);
    if (!strcmp(key, "cuda")) state.cuda_version = atoi(value);
    if (!strcmp(key, "missing")) state.driver_missing = atoi(value);
    if (!strcmp(key, "generation")) state.generation = atoi(value);
    if (!strcmp(key, "reload_code")) state.reload_code = atoi(value);
}

static void parse_line(char *line) {
    char key[TEXT], value[TEXT];
    int gpu, at;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "gpus %d", &gpu) == 1) {
        state.gpus = gpu < MAX_GPUS ? gpu : MAX_GPUS;
    } else if (sscanf(line, "gpu %d %95s %95[^\n]", &gpu, key, value) == 3) {
        set_gpu(gpu, key, value);
    } else if (sscanf(line, "driver %95s %95s", key, value) == 2) {
        set_driver(key, value);
    } else if (sscanf(line, "link %d %d", &gpu, &at) == 2 && gpu < MAX_GPUS && at < MAX_LINKS) {
        struct link *l = &state.gpu[gpu].link[at];
        sscanf(line, "link %*d %*d %lu %lu %lu %lu %lu", &l->active, &l->flit, &l->data, &l->replay, &l->recovery);
    } else if (!strncmp(line, "mig ", 4) && state.migs < MAX_MIGS) {
        struct mig *m = &state.mig[state.migs++];
        sscanf(line, "mig %d %u %u %lu %lu %95s %95s", &m->gpu, &m->gpu_instance, &m->compute_instance, &m->total, &m->used,
               m->uuid, m->profile);
    } else if (!strncmp(line, "process ", 8) && state.processes < MAX_PROCESSES) {
        struct process *p = &state.process[state.processes++];
        sscanf(line, "process %d %u %lu %c %u %u", &p->gpu, &p->pid, &p->memory, &p->kind, &p->gpu_instance,
               &p->compute_instance);
    } else if (!strncmp(line, "sample ", 7) && state.samples < MAX_SAMPLES) {
        struct sample *s = &state.sample[state.samples++];
        sscanf(line, "sample %d %lu %u", &s->gpu, &s->timestamp, &s->value);
    } else if (!strncmp(line, "xid ", 4) && state.xids < MAX_XIDS) {
        struct xid *x = &state.xid[state.xids++];
        sscanf(line, "xid %lu %d %lu", &x->sequence, &x->gpu, &x->code);
    } else if (!strncmp(line, "answer ", 7) && state.rules < MAX_RULES) {
        struct rule *r = &state.rule[state.rules++];
        sscanf(line, "answer %95s %d %d", r->call, &r->code, &r->gpu);
    }
}

static void parse_control(void) {
    memset(&state, 0, sizeof state);
    snprintf(state.driver_version, TEXT, "535.104.05");
    state.cuda_version = 12020;
    state.reload_code = UNINITIALIZED;
    for (int i = 0; i < MAX_GPUS; i++) set_gpu_defaults(i);
    FILE *file = fopen(control, "re");
    char line[512];
    while (file && fgets(line, sizeof line, file)) parse_line(line);
    if (file) fclose(file);
}

static void refresh(void) {
    if (!control[0]) snprintf(control, sizeof control, "%s", getenv("FAKE_NVML_CONTROL") ? getenv("FAKE_NVML_CONTROL") : "");
    struct stat now;
    if (stat(control, &now) != 0) memset(&now, 0, sizeof now);
    if (now.st_ino == seen.st_ino && now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec && state.driver_version[0])
        return;
    seen = now;
    parse_control();
}

static const struct rule *rule_for(const char *call, int gpu) {
    for (int i = 0; i < state.rules; i++) {
        const struct rule *rule = &state.rule[i];
        if ((!strcmp(rule->call, "*") || !strcmp(rule->call, call)) && (rule->gpu == NO_CARD || rule->gpu == gpu)) return rule;
    }
    return NULL;
}

/* Return with the lock held and the table current, after blocking for as long as the file makes this call hang. */
static int enter(int *slot, const char *call, int gpu) {
    for (int first = 1;; first = 0) {
        pthread_mutex_lock(&lock);
        refresh();
        if (*slot < 0) {
            *slot = call_count < MAX_CALLS ? call_count++ : MAX_CALLS - 1;
            calls[*slot].name = call;
        }
        if (first) calls[*slot].count++;
        const struct rule *rule = state.rules ? rule_for(call, gpu) : NULL;
        if (!rule || rule->code != HANG) return rule ? rule->code : SUCCESS;
        pthread_mutex_unlock(&lock);
        usleep(2000);
    }
}

static int verdict(const struct device *device, int card_needed) {
    if (!references) return UNINITIALIZED;
    if (state.driver_missing) return DRIVER_NOT_LOADED;
    if (generation != state.generation) return state.reload_code;
    if (!card_needed) return SUCCESS;
    if (!device || device->gpu < 0 || device->gpu >= MAX_GPUS) return INVALID_ARGUMENT;
    return number(device, N_lost) || number(device, N_absent) ? GPU_IS_LOST : SUCCESS;
}

int fake_begin(int *slot, const char *call, const struct device *device, int card_needed) {
    int code = enter(slot, call, device ? device->gpu : NO_CARD);
    int trouble = verdict(device, card_needed);
    if (trouble) code = trouble;
    if (code) pthread_mutex_unlock(&lock);
    return code;
}

void fake_end(int *held) {
    (void)held;
    pthread_mutex_unlock(&lock);
}

/* Like the real driver: only the first of several initialisations looks for the driver and counts its GPUs. */
int fake_initialise(int *slot, const char *call) {
    int code = enter(slot, call, NO_CARD);
    if (!code && state.driver_missing) code = DRIVER_NOT_LOADED;
    if (!code && references++ == 0) {
        generation = state.generation;
        cards = 0;
        for (int i = 0; i < state.gpus; i++)
            if (!state.gpu[i].number[N_absent]) enumerated[cards++] = i;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int fake_shut_down(int *slot, const char *call) {
    int code = enter(slot, call, NO_CARD);
    if (!code && !references) code = UNINITIALIZED;
    if (!code) references--;
    pthread_mutex_unlock(&lock);
    return code;
}

int fake_card_count(void) { return cards; }

struct device *fake_card(int index) {
    struct device *device = &card_device[enumerated[index]];
    device->gpu = enumerated[index];
    return device;
}

struct device *fake_mig_device(const struct mig *mig) {
    for (int i = 0; i < mig_devices; i++)
        if (mig_device[i].gpu == mig->gpu && !strcmp(mig_device[i].mig, mig->uuid)) return &mig_device[i];
    if (mig_devices == MAX_MIGS) return NULL;
    mig_device[mig_devices].gpu = mig->gpu;
    snprintf(mig_device[mig_devices].mig, TEXT, "%s", mig->uuid);
    return &mig_device[mig_devices++];
}

struct mig *fake_mig_of(const struct device *device) {
    for (int i = 0; i < state.migs && device->mig[0]; i++)
        if (state.mig[i].gpu == device->gpu && !strcmp(state.mig[i].uuid, device->mig)) return &state.mig[i];
    return NULL;
}

uint64_t fake_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* For tests in one process: reset, with another control file. */
EXPORT void fakeNvmlReset(const char *path) {
    pthread_mutex_lock(&lock);
    snprintf(control, sizeof control, "%s", path);
    memset(&seen, 0, sizeof seen);
    memset(&state, 0, sizeof state);
    references = cards = mig_devices = 0;
    for (int i = 0; i < call_count; i++) calls[i].count = 0;
    pthread_mutex_unlock(&lock);
}

EXPORT unsigned long fakeNvmlCalls(const char *name) {
    unsigned long count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < call_count; i++)
        if (!strcmp(calls[i].name, name)) count += calls[i].count;
    pthread_mutex_unlock(&lock);
    return count;
}
