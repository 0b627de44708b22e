// The one list of ladders and sweeps.
#include "base/error.h"
#include "base/text.h"
#include "ladder/ladder.h"

const Ladder *const ladders[LADDER_COUNT] = {
#define LADDER(name) &ladder_##name,
#include "ladder/ladders.def"
};

static const char *ladder_name_at(const void *ctx, int i) {
  (void)ctx;
  return ladders[i]->name;
}

const Ladder *ladder_find(const char *name, SolError *err) {
  for (int i = 0; i < LADDER_COUNT; i++)
    if (sol_same_name(name, ladders[i]->name)) return ladders[i];
  sol_fail_unknown(err, "ladder", name, ladder_name_at, NULL, LADDER_COUNT);
  return NULL;
}

static const char *rung_name_at(const void *ladder, int i) {
  return ((const Ladder *)ladder)->rungs[i].name;
}

int ladder_rung(const Ladder *ladder, const char *name, SolError *err) {
  for (int i = 0; i < ladder->rung_count; i++)
    if (sol_same_name(name, ladder->rungs[i].name)) return i;
  sol_fail_unknown(err, "rung", name, rung_name_at, ladder, ladder->rung_count);
  return -1;
}

bool ladder_too_long(const Ladder *ladder, const LadderCase *c) {
  static const double most_products = 2147483648.0;
  LadderBuffer b[LADDER_MAX_BUFFERS] = {0};
  double products = 0;
  int count = ladder->terms ? ladder->buffers(c, b) : 0;
  for (int i = 0; i < count; i++)
    if (b[i].role == OPS_OUT) products += (double)b[i].count * ladder->terms(c);
  return products > most_products;
}
