// Look-up in the table of GPUs. The figures are in devices.def (one row a GPU), archs.def (what a compute
// capability fixes) and sources.h (where each comes from).
#include "sol/device.h"

#include "base/error.h"
#include "base/text.h"

#include "device/sources.h"

// Binary units for on-chip sizes, decimal ones for what vendors quote in decimal.
#define Ki                             1024.0
#define Mi                             (1024.0 * 1024.0)
#define MHz                            1e6
#define GB                             1e9
#define GiB                            (1024.0 * 1024.0 * 1024.0)
#define TFLOPS                         1e12
#define FMA_RATE(sms_, per_clock, mhz) (2.0 * MHz * (sms_) * (per_clock) * (mhz))

#define FIG(field, number, from) .field = {.value = (number), .source = (from)},
#define DEVICE(id_, name_, aliases_, ARCH, mem_type_, mem_source_, note_, ...)                               \
  {.id = id_,                                                                                                \
   .name = name_,                                                                                            \
   .aliases = aliases_,                                                                                      \
   .mem_type = mem_type_,                                                                                    \
   .mem_type_source = mem_source_,                                                                           \
   .note = note_,                                                                                            \
   ARCH __VA_ARGS__},

#include "device/archs.def"

static const SolDevice devices[] = {
#include "device/devices.def"
};

#define ARCH_OTHER(family_, arch_) .family = family_, .arch = arch_,
#define OTHER_LAUNCH               FIG(launch_us, 2.5, SRC_LAUNCH_DEFAULT) FIG(graph_launch_us, 1.3, SRC_GRAPH_DEFAULT)
static const SolDevice others[] = {
#include "device/others.def"
};

int sol_device_count(void) {
  return (int)SOL_COUNT(devices);
}

const SolDevice *sol_device_at(int i) {
  return i >= 0 && i < sol_device_count() ? &devices[i] : 0;
}

// Past "NVIDIA", "GeForce" and the like, which drivers put before the name.
static const char *skip_maker(const char *name) {
  static const char *const makers[] = {"nvidia", "geforce", "tesla"};
  for (size_t i = 0; i < SOL_COUNT(makers); i++) {
    size_t n = strlen(makers[i]), k = 0;
    while (k < n && (name[k] | 0x20) == makers[i][k]) k++;
    bool parted = k == n && (name[n] == ' ' || name[n] == '-' || name[n] == '_');
    if (parted && name[n + 1]) name += n + 1;
  }
  return name;
}

static bool is_named(const SolDevice *device, const char *name) {
  return sol_same_name(name, device->id) || sol_same_name(name, device->name) ||
         sol_same_name(name, skip_maker(device->name)) || sol_name_in_list(name, device->aliases);
}

// How far `name` is from the device's id or the nearest of its aliases.
static int distance_to(const SolDevice *device, const char *name) {
  int best = sol_name_distance(name, device->id);
  const char *list = device->aliases;
  while (*list) {
    char word[48];
    size_t n = 0;
    for (; *list && *list != ' '; list++)
      if (n + 1 < sizeof word) word[n++] = *list;
    word[n] = 0;
    int distance = sol_name_distance(name, word);
    if (distance < best) best = distance;
    while (*list == ' ') list++;
  }
  return best;
}

// The maker of a GPU with this name, where it is not NVIDIA; NULL: unknown.
static const char *other_maker(const char *name) {
  static const struct {
    const char *start, *maker;
  } makers[] = {{"mi1", "AMD"},      {"mi2", "AMD"},        {"mi3", "AMD"},     {"mi4", "AMD"},
                {"amd", "AMD"},      {"radeon", "AMD"},     {"rx", "AMD"},      {"gfx", "AMD"},
                {"instinct", "AMD"}, {"intel", "Intel"},    {"gaudi", "Intel"}, {"arc", "Intel"},
                {"tpu", "Google"},   {"trainium", "Amazon"}};
  for (size_t i = 0; i < SOL_COUNT(makers); i++) {
    size_t n = strlen(makers[i].start), k = 0;
    while (k < n && (name[k] | 0x20) == makers[i].start[k]) k++;
    if (k == n) return makers[i].maker;
  }
  return 0;
}

// Offers ids, though an alias may be what the name resembles: "h1000" is near "h100", which is "h100-sxm".
static SolStatus fail_unknown(SolError *err, const char *name) {
  SolStatus status = sol_fail(err, SOL_ERR_NOT_FOUND, "unknown device '%.80s'", name);
  if (!err) return status;
  const char *maker = other_maker(name);
  if (maker) {
    sol_hint(err,
             "a device of %s serves sol roofline and sol model alone, where the table has it: sol devices",
             maker);
    return status;
  }
  enum { OFFER = 3 };
  int nearest[OFFER] = {0}, distance[OFFER] = {0}, found = 0;
  for (int i = 0; i < sol_device_count(); i++) {
    int d = distance_to(&devices[i], name), at = found;
    while (at > 0 && distance[at - 1] > d) at--;
    if (at == OFFER) continue;
    if (found < OFFER) found++;
    for (int k = found - 1; k > at; k--) nearest[k] = nearest[k - 1], distance[k] = distance[k - 1];
    nearest[at] = i, distance[at] = d;
  }
  // Further off than half the name's length is a guess, not a typing error; one is offered all the same.
  int limit = 1 + (int)(strlen(name) / 2), offered = 1;
  while (offered < found && distance[offered] <= limit) offered++;
  const char *ids[OFFER];
  for (int k = 0; k < OFFER; k++) ids[k] = k < offered ? devices[nearest[k]].id : "";
  sol_hint(err, "nearest: %s%s%s%s%s", ids[0], offered > 1 ? ", " : "", ids[1], offered > 2 ? ", " : "",
           ids[2]);
  return status;
}

SolStatus sol_device_find(const char *name, const SolDevice **out, SolError *err) {
  if (!name || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "name and out must not be NULL");
  const char *bare = skip_maker(name);
  for (int i = 0; i < sol_device_count(); i++) {
    if (!is_named(&devices[i], name) && !is_named(&devices[i], bare)) continue;
    *out = &devices[i];
    return SOL_OK;
  }
  return fail_unknown(err, bare);
}

static const SolFigureInfo figure_infos[] = {
#define INFO(field, unit, label) {#field, unit, label},
    SOL_DEVICE_FIGURES(INFO)
#undef INFO
};

int sol_device_figure_count(void) {
  return (int)SOL_COUNT(figure_infos);
}

SolFigure sol_device_figure(const SolDevice *device, int i, SolFigureInfo *info) {
  static const size_t offsets[] = {
#define OFFSET(field, unit, label) offsetof(SolDevice, field),
      SOL_DEVICE_FIGURES(OFFSET)
#undef OFFSET
  };
  SolFigure figure = {0};
  if (i < 0 || i >= sol_device_figure_count()) {
    if (info) *info = (SolFigureInfo){"", "", ""};
    return figure;
  }
  if (info) *info = figure_infos[i];
  if (device) memcpy(&figure, (const char *)device + offsets[i], sizeof figure);
  return figure;
}

int sol_accelerator_count(void) {
  return sol_device_count() + (int)SOL_COUNT(others);
}

const SolDevice *sol_accelerator_at(int i) {
  int n = sol_device_count();
  return i < n ? sol_device_at(i) : i < sol_accelerator_count() ? &others[i - n] : 0;
}

SolStatus sol_accelerator_find(const char *name, const SolDevice **out, SolError *err) {
  for (size_t i = 0; name && out && i < SOL_COUNT(others); i++)
    if (is_named(&others[i], name)) return *out = &others[i], SOL_OK;
  return sol_device_find(name, out, err);
}
