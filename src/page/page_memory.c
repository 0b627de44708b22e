// One access of a warp: its sectors and lines, or its wavefronts, as src/mem counts them.
#include "base/error.h"
#include "mem/banks.h"
#include "page/page.h"

typedef struct Access {
  uint64_t address[SOL_LANES];
  uint32_t mask, width;
} Access;

static bool read_lanes(PageAsk *ask, Access *a) {
  SolJson list, value;
  double number;
  int lane = 0;
  if (sol_json_get(ask->question, "addresses", &list))
    for (SolJsonIter it = {.container = list}; lane < SOL_LANES && sol_json_next(&it, NULL, &value); lane++) {
      if (!sol_json_number(value, &number)) continue;
      if (!(number >= 0 && number <= 9007199254740992.0) || number != __builtin_floor(number)) {
        sol_fail(&ask->err, SOL_ERR_RANGE, "lane %d: the address must be a whole number from 0 to 2^53",
                 lane);
        return false;
      }
      a->address[lane] = (uint64_t)number;
      a->mask |= 1u << lane;
    }
  if (!sol_json_get(ask->question, "width", &value) || !sol_json_number(value, &number)) number = 4;
  for (a->width = 1; a->width < SOL_MAX_LANE_BYTES && a->width < number;) a->width *= 2;
  if (a->width == number) return true;
  sol_fail(&ask->err, SOL_ERR_RANGE, "the width must be 1, 2, 4, 8, 16 or 32 bytes");
  return false;
}

static bool is_on(const PageAsk *ask, const char *key) {
  SolJson value;
  bool on = false;
  return sol_json_get(ask->question, key, &value) && sol_json_bool(value, &on) && on;
}

static void put(Fact *o, const char *key, uint32_t value) {
  fact_number(o, key, 0, UNIT_PLAIN, BASIS_EXACT, value);
}

bool page_memory(PageAsk *ask) {
  Access a = {0};
  if (!read_lanes(ask, &a)) return false;
  page_schema(ask);
  if (is_on(ask, "shared")) {
    SolWavefronts w =
        sol_banks(a.address, a.mask, a.width, is_on(ask, "store") ? SOL_SHARED_STORE : SOL_SHARED_LOAD);
    put(ask->root, "wavefronts", w.wavefronts);
    put(ask->root, "ideal_wavefronts", w.ideal);
  } else {
    SolCoalesced c;
    sol_coalesce(a.address, a.mask, a.width, &c);
    put(ask->root, "sectors", c.sectors);
    put(ask->root, "ideal_sectors", c.ideal_sectors);
    put(ask->root, "lines", c.lines);
    put(ask->root, "bytes", c.bytes);
  }
  return true;
}
