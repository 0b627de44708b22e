#define _POSIX_C_SOURCE 200809L

#include "inject/inject.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"

Inject *inject; // CUPTI's buffer callbacks take no user argument

// ---- the file ----

static void flush(Inject *in) {
  SolError err = {0};
  bool bad = sol_channel_write(&in->channel, in->out.text, in->out.length, &err) != SOL_OK;
  if (bad && !in->failed) fprintf(stderr, "sol: SOL_PROFILE_OUT: %s\n", err.message); // the program continues
  in->failed = in->failed || bad;
  in->out.length = 0;
}

void inject_flush(Inject *in) {
  sol_lock_acquire(in->lock);
  flush(in);
  sol_lock_release(in->lock);
}

void inject_trouble(Inject *in, ProfileTrouble what, const SolError *err) {
  sol_lock_acquire(in->lock);
  profile_write_trouble(what, err->message, err->hint, 1, &in->out);
  flush(in);
  sol_lock_release(in->lock);
}

// ---- what is reported once ----

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ..."
static void read_driver_version(char *out, size_t cap) {
  char line[256] = "";
  FILE *f = fopen("/proc/driver/nvidia/version", "re");
  if (f && !fgets(line, sizeof line, f)) line[0] = 0;
  if (f) fclose(f);
  for (char *save, *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
    size_t whole = strspn(word, "0123456789");
    if (!whole || word[whole] != '.' || strspn(word, "0123456789.") != strlen(word)) continue;
    sol_format(out, cap, "%s", word);
    return;
  }
}

void inject_gpu(Inject *in, int device) {
  enum { SMS = 16, CC_MAJOR = 75, CC_MINOR = 76 };
  if (device < 0 || device >= MAX_GPUS || in->gpu_sent[device] || !in->device_get) return;
  in->gpu_sent[device] = true;
  ProfileGpu gpu = {0};
  unsigned char id[16];
  int handle, major = 0, minor = 0;
  if (in->device_get(&handle, device)) return;
  if (in->device_name) in->device_name(gpu.name, sizeof gpu.name, handle);
  if (in->device_attribute) {
    in->device_attribute(&gpu.sms, SMS, handle);
    in->device_attribute(&major, CC_MAJOR, handle);
    in->device_attribute(&minor, CC_MINOR, handle);
  }
  gpu.cc = major * 10 + minor;
  if (in->device_uuid && !in->device_uuid(id, handle)) {
    size_t at = sol_format(gpu.uuid, sizeof gpu.uuid, "GPU-");
    for (int i = 0; i < 16; i++)
      at += sol_format(gpu.uuid + at, sizeof gpu.uuid - at, "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
  }
  read_driver_version(gpu.driver, sizeof gpu.driver);
  sol_lock_acquire(in->lock);
  profile_write_gpu(device, &gpu, &in->out);
  sol_lock_release(in->lock);
}

static uint64_t hash_of(const ProfileLaunch *l) {
  uint64_t h = 14695981039346656037u;
  for (const char *p = l->name; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
  double figures[] = {l->registers, l->static_shared, l->local_bytes};
  for (size_t i = 0; i < SOL_COUNT(figures); i++)
    h = (h ^ (uint64_t)(profile_known(figures[i]) ? figures[i] + 1 : 0)) * 1099511628211u;
  return h;
}

static bool grow(Inject *in) {
  if (in->kernel_count == in->kernel_cap) {
    uint32_t cap = in->kernel_cap ? in->kernel_cap * 2 : 64;
    InjectKernel *room = realloc(in->kernels, sizeof *room * cap);
    if (!room) return false;
    in->kernels = room;
    in->kernel_cap = cap;
  }
  if (in->kernel_count * 2 < in->slot_count) return true;
  uint32_t count = in->slot_count ? in->slot_count * 2 : 256;
  uint32_t *slots = calloc(count, sizeof *slots);
  if (!slots) return false;
  for (uint32_t id = 0; id < in->kernel_count; id++) {
    uint32_t at = (uint32_t)in->kernels[id].hash & (count - 1);
    while (slots[at]) at = (at + 1) & (count - 1);
    slots[at] = id + 1;
  }
  free(in->slots);
  in->slots = slots;
  in->slot_count = count;
  return true;
}

static bool same(double a, double b) {
  return a == b || (!profile_known(a) && !profile_known(b));
}

// Its number, after a line that describes it if it is new; false: no memory.
static bool kernel_id(Inject *in, const ProfileLaunch *l, uint32_t *id) {
  if (!grow(in)) return false;
  uint64_t hash = hash_of(l);
  uint32_t at = (uint32_t)hash & (in->slot_count - 1);
  for (; in->slots[at]; at = (at + 1) & (in->slot_count - 1)) {
    const InjectKernel *k = &in->kernels[in->slots[at] - 1];
    *id = in->slots[at] - 1;
    if (k->hash == hash && same(k->registers, l->registers) && same(k->static_shared, l->static_shared) &&
        same(k->local_bytes, l->local_bytes) && strcmp(k->name, l->name) == 0)
      return true;
  }
  char *name = strdup(l->name);
  if (!name) return false;
  *id = in->kernel_count++;
  in->kernels[*id] = (InjectKernel){hash, name, l->registers, l->static_shared, l->local_bytes};
  in->slots[at] = *id + 1;
  profile_write_kernel(*id, l, &in->out);
  return true;
}

// ---- launches ----

bool inject_wants(Inject *in, const char *name) {
  sol_lock_acquire(in->lock);
  in->seen++;
  bool wanted = profile_takes(&in->filter, name);
  sol_lock_release(in->lock);
  return wanted;
}

void inject_tell(Inject *in, int device, ProfileLaunch *l, bool counted) {
  uint32_t id;
  if (l->cluster[0] <= 1 && l->cluster[1] <= 1 && l->cluster[2] <= 1) // blocks by themselves
    memset(l->cluster, 0, sizeof l->cluster);
  inject_gpu(in, device);
  sol_lock_acquire(in->lock);
  if (l->name && kernel_id(in, l, &id)) {
    profile_write_launch(id, device, l, in->metrics, counted ? in->metric_count : 0, &in->out);
    in->reported++;
  } else {
    in->lost++;
  }
  if (in->out.length > 1 << 16) flush(in);
  sol_lock_release(in->lock);
}

// ---- start and end ----

static void at_end(void) {
  Inject *in = inject;
  if (!in || (long)getpid() != in->pid) return;
  inject_end_times(in);
  sol_lock_acquire(in->lock);
  if (in->graphs_whole) {
    char why[160];
    sol_format(why, sizeof why, "kernels of CUDA graphs that have %s are timed, not counted", in->graph_why);
    profile_write_trouble(PROFILE_GRAPH, why, "counters of them: run the program without graphs",
                          (double)in->graphs_whole, &in->out);
  }
  if (in->lost) profile_write_trouble(PROFILE_LOST, "launches were lost", "", (double)in->lost, &in->out);
  profile_write_end((double)in->seen, (double)in->reported, &in->out);
  flush(in);
  sol_lock_release(in->lock);
}

static double number_of(const char *variable) {
  const char *text = getenv(variable);
  return text && *text ? (double)strtoull(text, NULL, 10) : 0;
}

static void read_metrics(Inject *in) {
  const char *list = getenv("SOL_PROFILE_METRICS");
  while (list && *list) {
    size_t length = strcspn(list, ",");
    ProfileMetric metric = profile_metric_find(list, length);
    bool again = metric == PROFILE_METRICS;
    for (int i = 0; i < in->metric_count; i++) again |= in->metrics[i] == metric;
    if (!again) {
      in->metric_names[in->metric_count] = profile_metric(metric)->name;
      in->metrics[in->metric_count++] = metric;
    }
    list += length + (list[length] == ',');
  }
}

static void load_driver(Inject *in) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
#define ENTRY_LOAD(field, symbol, parameters)                                                                \
  {                                                                                                          \
    void *address = driver ? dlsym(driver, symbol) : NULL;                                                   \
    memcpy(&in->field, &address, sizeof address);                                                            \
  }
  INJECT_DRIVER(ENTRY_LOAD)
  GRAPH_DRIVER(ENTRY_LOAD)
  GRAPH_DRIVER_MORE(ENTRY_LOAD)
#undef ENTRY_LOAD
}

static bool open_file(const char *base, long pid, SolChannel *out) {
  char path[512];
  if (sol_format(path, sizeof path, "%s.%ld", base, pid) >= sizeof path) return false;
  return !sol_channel_open(out, path, 0600, NULL);
}

static void read_environment(Inject *in) {
  const char *kernels = getenv("SOL_PROFILE_KERNEL");
  in->filter.kernels = kernels && *kernels ? strdup(kernels) : NULL; // the program may change its environment
  in->filter.skip = number_of("SOL_PROFILE_SKIP");
  in->filter.count = number_of("SOL_PROFILE_COUNT");
  in->each = (uint64_t)number_of("SOL_PROFILE_EACH");
  read_metrics(in);
}

// Counters where they are requested and CUPTI has them, times otherwise.
static void start(Inject *in) {
  SolError err = {0};
  bool counts = in->metric_count > 0;
  if (counts && !in->cupti.counts) {
    sol_fail(&err, SOL_ERR_UNSUPPORTED, "this CUPTI (%u) has no range profiler", in->cupti.version);
    sol_hint(&err, "CUDA 12.6 and later have it; times are taken without it");
    inject_trouble(in, PROFILE_OLD, &err);
    counts = false;
  }
  if (counts && inject_start_counts(in, &err)) {
    inject_trouble(in, PROFILE_REFUSED, &err);
    counts = false;
  }
  if (!counts && inject_start_times(in, &err)) inject_trouble(in, PROFILE_REFUSED, &err);
}

// The driver calls it once, in the first cuInit. It always returns 1, success: the program must run in any
// case.
SOL_API int InitializeInjection(void);
int InitializeInjection(void) {
  const char *base = getenv("SOL_PROFILE_OUT");
  SolChannel channel;
  bool wanted = !inject && base && *base && open_file(base, (long)getpid(), &channel);
  Inject *in = wanted ? calloc(1, sizeof *in) : NULL;
  if (!in) return 1;
  inject = in; // until the process ends
  in->pid = (long)getpid();
  in->channel = channel;
  in->lock = sol_lock_create();
  in->serial = sol_lock_create();
  if (!in->lock || !in->serial) return 1;
  read_environment(in);
  load_driver(in);
  SolError err = {0};
  SolStatus status = cupti_load(&in->cupti, &err);
  profile_write_start(in->pid, in->metric_count > 0, in->cupti.version, in->metrics, in->metric_count,
                      &in->out);
  inject_flush(in);
  if (status)
    inject_trouble(in, PROFILE_NO_CUPTI, &err);
  else
    start(in);
  atexit(at_end);
  return 1;
}
