// Fabrics by name and by file. A field that is wrong is named as it stands in the file: "inside.bandwidth".
#include "base/error.h"
#include "base/format.h"
#include "base/json_read.h"
#include "base/port.h"
#include "base/text.h"
#include "sol/fabric.h"

typedef struct Preset {
  const char *name;
  SolFabricLevel level;
} Preset;

static const Preset presets[] = {
#define LEVEL(name, kind, bandwidth, gpus, one_shot) {name, {SOL_LINK_##kind, bandwidth, 0, gpus, one_shot}},
#include "roofline/fabric.def"
#undef LEVEL
};

int sol_fabric_preset_count(void) {
  return (int)SOL_COUNT(presets);
}

const char *sol_fabric_preset_name(int i) {
  return i < 0 || i >= sol_fabric_preset_count() ? NULL : presets[i].name;
}

static const char *name_at(const void *ctx, int i) {
  (void)ctx;
  return sol_fabric_preset_name(i);
}

static SolStatus find_level(const char *text, size_t length, SolFabricLevel *out, SolError *err) {
  char name[48];
  sol_format(name, sizeof name, "%.*s", (int)(length < 40 ? length : 40), text);
  for (size_t i = 0; i < SOL_COUNT(presets); i++)
    if (sol_same_name(name, presets[i].name)) return *out = presets[i].level, SOL_OK;
  return sol_fail_unknown(err, "fabric", name, name_at, 0, (int)SOL_COUNT(presets));
}

SolStatus sol_fabric_find(const char *name, SolFabric *out, SolError *err) {
  if (!name || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "name and out must not be NULL");
  *out = (SolFabric){0};
  sol_format(out->name, sizeof out->name, "%s", name);
  size_t n = 0;
  while (name[n] && name[n] != ',') n++;
  SolStatus status = find_level(name, n, &out->inside, err);
  if (status || !name[n]) return status;
  const char *rest = name + n + 1;
  for (n = 0; rest[n];) n++;
  status = find_level(rest, n, &out->between, err);
  if (!status && out->between.kind != SOL_LINK_NETWORK)
    status =
        sol_fail(err, SOL_ERR_ARGUMENT, "fabric: '%.40s' joins no machines; ib200, ib400 or ib800 do", rest);
  return status;
}

typedef struct FabricFile {
  const char *level; // whose fields are read: "inside"
  SolError *err;
} FabricFile;

static SolStatus wrong(const FabricFile *f, const char *field, const char *must) {
  return sol_fail(f->err, SOL_ERR_ARGUMENT, "%s%s%s %s", f->level, *f->level ? "." : "", field, must);
}

static SolStatus read_kind(const FabricFile *f, SolJson value, SolLinkKind *out) {
  static const char *const names[] = {"nvlink", "pcie", "network"};
  char text[16];
  for (int i = 0; sol_json_string(value, text, sizeof text) && i < 3; i++)
    if (sol_same_name(text, names[i])) return *out = (SolLinkKind)i, SOL_OK;
  return wrong(f, "kind", "must be \"nvlink\", \"pcie\" or \"network\"");
}

static SolStatus read_number(const FabricFile *f, const char *field, SolJson value, double least, double most,
                             double *out) {
  char must[64];
  if (sol_json_number(value, out) && *out >= least && *out <= most) return SOL_OK;
  sol_format(must, sizeof must, "must be a number from %g to %g", least, most);
  return wrong(f, field, must);
}

// JSON allows a name twice; which one was meant nobody can say. Every name is known by now, so that one of the first few
// is found again.
static SolStatus check_once(const FabricFile *f, SolJson object) {
  SolJsonIter outer = {.container = object};
  SolJson key, value;
  char field[40], other[40];
  for (int at = 0; sol_json_next(&outer, &key, &value); at++) {
    SolJsonIter inner = {.container = object};
    sol_json_string(key, field, sizeof field);
    for (int i = 0; i < at && sol_json_next(&inner, &key, &value); i++)
      if (sol_json_string(key, other, sizeof other) && sol_same_name(field, other))
        return wrong(f, field, "is there twice");
  }
  return SOL_OK;
}

static SolStatus read_field(const FabricFile *f, const char *field, SolJson value, SolFabricLevel *l) {
  double number = 0;
  bool flag;
  if (sol_same_name(field, "kind")) return read_kind(f, value, &l->kind);
  if (sol_same_name(field, "bandwidth")) return read_number(f, field, value, 1, 1e18, &l->bandwidth);
  if (sol_same_name(field, "latency_us")) return read_number(f, field, value, 1e-6, 1e6, &l->latency_us);
  if (sol_same_name(field, "gpus")) {
    SolStatus status = read_number(f, field, value, 1, 65536, &number);
    l->gpus = (int64_t)number;
    return status || (double)l->gpus == number ? status : wrong(f, field, "must be a whole number");
  }
  if (!sol_same_name(field, "one_shot"))
    return wrong(f, field, "is no field of a level: kind, bandwidth, latency_us, gpus, one_shot");
  if (!sol_json_bool(value, &flag)) return wrong(f, field, "must be true or false");
  l->one_shot = flag;
  return SOL_OK;
}

static SolStatus read_level(FabricFile *f, const char *name, SolJson object, SolFabricLevel *out) {
  SolJsonIter it = {.container = object};
  SolJson key, value;
  char field[40];
  SolStatus status = SOL_OK;
  if (sol_json_kind(object) != SOL_JSON_OBJECT) return wrong(f, name, "must be an object");
  f->level = name;
  if (sol_same_name(name, "between")) out->kind = SOL_LINK_NETWORK;
  while (!status && sol_json_next(&it, &key, &value)) {
    sol_json_string(key, field, sizeof field);
    status = read_field(f, field, value, out);
  }
  if (!status) status = check_once(f, object);
  if (!status && out->bandwidth <= 0)
    status = wrong(f, "bandwidth", "is missing: bytes/s that one GPU sends");
  f->level = "";
  return status;
}

static SolStatus read_top(FabricFile *f, const char *field, SolJson value, SolFabric *out) {
  if (sol_same_name(field, "inside")) return read_level(f, field, value, &out->inside);
  if (sol_same_name(field, "between")) return read_level(f, field, value, &out->between);
  if (sol_same_name(field, "overlap")) return read_number(f, field, value, 0, 1, &out->overlap);
  if (!sol_same_name(field, "name"))
    return wrong(f, field, "is no field of a fabric: name, inside, between, overlap");
  return sol_json_string(value, out->name, sizeof out->name) ? SOL_OK : wrong(f, field, "must be a text");
}

SolStatus sol_fabric_parse(const char *json, size_t length, SolFabric *out, SolError *err) {
  if (!json || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "json and out must not be NULL");
  FabricFile f = {.level = "", .err = err};
  *out = (SolFabric){0};
  SolJson root, key, value;
  char field[40];
  SolStatus status = sol_json_check(json, length, &root, err);
  if (!status && sol_json_kind(root) != SOL_JSON_OBJECT)
    status = wrong(&f, "a fabric", "must be a JSON object");
  SolJsonIter it = {.container = root};
  while (!status && sol_json_next(&it, &key, &value)) {
    sol_json_string(key, field, sizeof field);
    status = read_top(&f, field, value, out);
  }
  if (!status) status = check_once(&f, root);
  if (!status && out->inside.bandwidth <= 0)
    status = wrong(&f, "inside", "is missing: what joins the GPUs of a machine");
  return status;
}
