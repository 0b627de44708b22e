// A device by its figures in a JSON file:
//
//     {"id": "mine", "base": "h100", "mem_bandwidth": 5e12, "peak_bf16": {"value": 1e15, "source": "measured"}}
//
// Fields are those of SOL_DEVICE_FIGURES in plain SI units. What the file does not say is the base's, or unknown.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/json_read.h"
#include "cli/cli.h"
#include "cli/device_figure.h"

enum { MOST_FILE = 1 << 20, MOST_TEXT = 200 };

typedef struct DeviceFile {
  Cli *cli;
  const char *path, *text;
  SolDevice device;
  SolError *err;
} DeviceFile;

static const char *keep(DeviceFile *f, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(&f->cli->arena, n);
  return copy ? memcpy(copy, text, n) : "";
}

static SolStatus bad(DeviceFile *f, const char *key, const char *what) {
  return sol_fail(f->err, SOL_ERR_ARGUMENT, "'%.100s': %.60s %s", f->path, key, what);
}

SolFigure *cli_device_figure(SolDevice *d, const char *name) {
#define IS_FIELD(field, unit, label)                                                                         \
  if (strcmp(name, #field) == 0) return &d->field;
  SOL_DEVICE_FIGURES(IS_FIELD)
#undef IS_FIELD
  return NULL;
}

static SolStatus take_figure(DeviceFile *f, const char *name, SolJson value) {
  SolFigure *figure = cli_device_figure(&f->device, name);
  char source[MOST_TEXT] = "";
  SolJson part;
  double number;
  if (!figure) return bad(f, name, "is no figure of a device; 'sol devices h100 --json' shows their names");
  if (sol_json_kind(value) == SOL_JSON_NULL) return *figure = (SolFigure){0}, SOL_OK;
  if (sol_json_kind(value) == SOL_JSON_OBJECT) {
    if (sol_json_get(value, "source", &part)) sol_json_string(part, source, sizeof source);
    if (!sol_json_get(value, "value", &value)) return bad(f, name, "has no \"value\"");
  }
  if (!sol_json_number(value, &number) || number < 0 || number > 1e21)
    return bad(f, name, "must be a number from 0 to 1e21, or {\"value\": ..., \"source\": ...}");
  *figure = (SolFigure){number, source[0] ? keep(f, source) : f->path};
  return SOL_OK;
}

static SolStatus take_base(DeviceFile *f, SolJson root) {
  SolJson value;
  char name[MOST_TEXT];
  const SolDevice *base;
  if (!sol_json_get(root, "base", &value)) return SOL_OK;
  if (!sol_json_string(value, name, sizeof name)) return bad(f, "base", "must be the name of a device");
  SolStatus status = sol_accelerator_find(name, &base, f->err);
  if (!status) f->device = *base;
  return status;
}

static SolStatus take_fields(DeviceFile *f, SolJson root) {
  SolJsonIter it = {.container = root};
  SolJson key, value;
  SolStatus status = take_base(f, root);
  f->device.id = f->device.name = f->path;
  f->device.aliases = "";
  while (!status && sol_json_next(&it, &key, &value)) {
    char name[MOST_TEXT], text[MOST_TEXT];
    sol_json_string(key, name, sizeof name);
    const char **field = strcmp(name, "id") == 0     ? &f->device.id
                         : strcmp(name, "name") == 0 ? &f->device.name
                         : strcmp(name, "note") == 0 ? &f->device.note
                                                     : NULL;
    if (strcmp(name, "base") == 0) continue;
    if (!field)
      status = take_figure(f, name, value);
    else if (sol_json_string(value, text, sizeof text))
      *field = keep(f, text);
    else
      status = bad(f, name, "must be a text");
  }
  return status;
}

SolStatus cli_device_file(Cli *cli, const char *path, const SolDevice **out, SolError *err) {
  DeviceFile f = {.cli = cli, .err = err};
  f.path = keep(&f, path);
  f.device = (SolDevice){.family = "", .arch = "", .mem_type = ""};
  size_t length;
  char *text = cli_read_file(path, MOST_FILE, &length, err);
  if (!text) return SOL_ERR_IO;
  SolJson root;
  SolStatus status = sol_json_check(text, length, &root, err);
  if (!status && sol_json_kind(root) != SOL_JSON_OBJECT)
    status = bad(&f, "the file", "must hold a JSON object");
  if (!status) status = take_fields(&f, root);
  free(text);
  SolDevice *device = status ? NULL : sol_arena_alloc(&cli->arena, sizeof *device);
  if (!status && !device) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (device) *device = f.device, *out = device;
  return status;
}
