// Which row of machine.def holds for a device.
#include "machine/machine.h"

typedef struct Row {
  MachineBasis basis;
  int first, last; // compute capabilities times ten
  const char *on;  // measured: the GPU's id; compiler: its version; published: the row's last architecture
  double value;
  const char *source;
} Row;

#define ANY_FIRST 0
#define ANY_LAST  9999
#define PUBLISHED(first_, last_, value_, from_)                                                              \
  { MACHINE_PUBLISHED, first_, last_, "sm_" #last_, value_, from_ }
#define MEASURED(on_, value_, by_)                                                                           \
  { MACHINE_MEASURED, ANY_FIRST, ANY_LAST, on_, value_, by_ }
#define COMPILER(which_, value_, by_)                                                                        \
  { MACHINE_COMPILER, ANY_FIRST, ANY_LAST, which_, value_, by_ }
#define ASSUMED(value_, why_)                                                                                \
  { MACHINE_ASSUMED, ANY_FIRST, ANY_LAST, 0, value_, why_ }
#define CONSTANT(name_, unit_, label_, ...) static const Row rows_##name_[] = {__VA_ARGS__};
#include "machine/machine.def"
#undef CONSTANT

static const struct {
  const char *name, *unit, *label;
  const Row *rows;
  size_t count;
} constants[] = {
#define CONSTANT(name_, unit_, label_, ...) {#name_, unit_, label_, rows_##name_, SOL_COUNT(rows_##name_)},
#include "machine/machine.def"
#undef CONSTANT
};

const uint8_t machine_l2_sets[MACHINE_L2_SETS] = {76,  95,  105, 95,  105, 76,  101, 114, 95,  105, 86,
                                                  105, 114, 95,  105, 86,  105, 114, 95,  105, 86,  105,
                                                  114, 95,  105, 95,  105, 118, 95,  105, 95,  105};

const char *machine_basis_name(MachineBasis basis) {
  static const char *const names[] = {"published", "measured", "compiler", "assumed"};
  return (unsigned)basis < MACHINE_BASES ? names[basis] : "?";
}

static bool holds(const Row *r, const SolDevice *d) {
  int cc = d->cc_major * 10 + d->cc_minor;
  if (cc < r->first || cc > r->last) return false;
  return r->basis != MACHINE_MEASURED || (d->id && strcmp(r->on, d->id) == 0);
}

// What was measured on the GPU itself comes before what is published; without either, the first row of another's.
static const Row *row_of(const Row *rows, size_t count, const SolDevice *d) {
  const Row *best = NULL;
  for (size_t i = 0; i < count; i++)
    if (holds(&rows[i], d) && (!best || rows[i].basis == MACHINE_MEASURED)) best = &rows[i];
  return best ? best : rows;
}

int machine_constant_count(void) {
  return (int)SOL_COUNT(constants);
}

bool machine_constant(const SolDevice *device, int i, MachineConstant *out) {
  if (i < 0 || i >= machine_constant_count()) return false;
  const Row *r = row_of(constants[i].rows, constants[i].count, device);
  bool own = holds(r, device);
  *out = (MachineConstant){.name = constants[i].name,
                           .unit = constants[i].unit,
                           .label = constants[i].label,
                           .value = r->value,
                           .basis = own ? r->basis : MACHINE_ASSUMED,
                           .from = own && r->basis != MACHINE_COMPILER ? NULL : r->on,
                           .source = r->source};
  return true;
}

MachineModel machine_model(const SolDevice *device) {
  return (MachineModel){
      .device = device,
#define CONSTANT(name_, unit_, label_, ...)                                                                  \
  .name_ = row_of(rows_##name_, SOL_COUNT(rows_##name_), device)->value,
#include "machine/machine.def"
#undef CONSTANT
  };
}

MachineTally machine_tally(const SolDevice *device) {
  MachineTally t = {.all = machine_constant_count()};
  MachineConstant c;
  for (int i = 0; machine_constant(device, i, &c); i++) t.of[c.basis]++;
  return t;
}
