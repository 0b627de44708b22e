// Ceilings as text, and in the place of a GPU's published figures.
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "measure/ceilings.h"

static const CeilingInfo infos[] = {
#define CEILING(key, unit, label)            {#key, unit, label, 0},
#define CEILING_OF(key, unit, label, figure) {#key, unit, label, offsetof(SolDevice, figure)},
#include "measure/ceilings.def"
#undef CEILING_OF
#undef CEILING
};

const CeilingInfo *ceiling_info(Ceiling ceiling) {
  return &infos[ceiling];
}

SolFigure ceiling_published(Ceiling ceiling, const SolDevice *device) {
  SolFigure figure = {0};
  if (device && infos[ceiling].figure)
    memcpy(&figure, (const char *)device + infos[ceiling].figure, sizeof figure);
  return figure;
}

void ceilings_clear(Ceilings *c) {
  *c = (Ceilings){0};
  for (int i = 0; i < CEILINGS; i++) c->values[i] = c->spreads[i] = __builtin_nan("");
}

void ceilings_write(const Ceilings *c, SolBuffer *out) {
  SolJsonWriter w = {.out = out};
  sol_json_open(&w, NULL, '{');
  sol_json_put_number(&w, "schema", 1);
  sol_json_put_text(&w, c->cpu ? "cpu" : "gpu", c->name);
  sol_json_put_text(&w, "uuid", c->uuid[0] ? c->uuid : NULL);
  sol_json_put_text(&w, "driver", c->driver[0] ? c->driver : NULL);
  sol_json_put_text(&w, "date", c->date);
  sol_json_put_number(&w, c->cpu ? "threads" : "sms", c->units);
  if (c->gpus) sol_json_put_number(&w, "gpus", c->gpus);
  sol_json_put_number(&w, "seconds", c->seconds);
  for (int part = 0; part < 2; part++) {
    sol_json_open(&w, part ? "spread" : "measured", '{');
    for (int i = 0; i < CEILINGS; i++)
      sol_json_put_number(&w, infos[i].key, part ? c->spreads[i] : c->values[i]);
    sol_json_close(&w, '}');
  }
  sol_json_close(&w, '}');
  sol_buffer_puts(out, "\n");
}

static void take_text(SolJson root, const char *key, char *out, size_t cap) {
  SolJson value;
  if (!sol_json_get(root, key, &value) || !sol_json_string(value, out, cap)) out[0] = 0;
}

static double take_number(SolJson object, const char *key) {
  SolJson value;
  double number;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : __builtin_nan("");
}

SolStatus ceilings_read(const char *text, size_t length, Ceilings *c, SolError *err) {
  SolJson root, measured, spread, name;
  ceilings_clear(c);
  SolStatus status = sol_json_check(text, length, &root, err);
  if (status) return status;
  c->cpu = sol_json_get(root, "cpu", &name);
  if (take_number(root, "schema") != 1 || !sol_json_get(root, "measured", &measured))
    return sol_fail(err, SOL_ERR_ARGUMENT, "this is no file of ceilings written by `sol devices --measure`");
  take_text(root, c->cpu ? "cpu" : "gpu", c->name, sizeof c->name);
  take_text(root, "uuid", c->uuid, sizeof c->uuid);
  take_text(root, "driver", c->driver, sizeof c->driver);
  take_text(root, "date", c->date, sizeof c->date);
  double units = take_number(root, c->cpu ? "threads" : "sms");
  c->units = units >= 0 && units < 1e6 ? (int)units : 0;
  double gpus = take_number(root, "gpus");
  c->gpus = gpus >= 1 && gpus < 1e6 ? (int)gpus : 0;
  c->seconds = take_number(root, "seconds");
  for (int i = 0; i < CEILINGS; i++) {
    double value = take_number(measured, infos[i].key);
    if (value > 0) c->values[i] = value; // nothing measured is 0 or less
    if (sol_json_get(root, "spread", &spread)) c->spreads[i] = take_number(spread, infos[i].key);
  }
  return SOL_OK;
}

void ceilings_device(const Ceilings *c, const SolDevice *row, const char *source, SolDevice *out) {
  *out = *row;
  for (int i = 0; i < CEILINGS; i++) {
    SolFigure figure = {c->values[i], source};
    if (infos[i].figure && figure.value == figure.value)
      memcpy((char *)out + infos[i].figure, &figure, sizeof figure);
  }
}
