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

static void put_lanes(Fact *list, uint32_t lanes) {
  for (; lanes; lanes &= lanes - 1) fact_number(list, 0, 0, UNIT_PLAIN, BASIS_EXACT, __builtin_ctz(lanes));
}

// The lanes in each sector of a line: those that touch it when they alone are active.
static void lanes_in(const Access *a, uint64_t line, uint32_t lanes[SOL_LINE_SECTORS]) {
  for (uint32_t lane = 0; lane < SOL_LANES; lane++) {
    SolCoalesced one;
    sol_coalesce(a->address, a->mask & 1u << lane, a->width, &one);
    for (uint32_t i = 0; i < one.lines; i++)
      for (uint32_t k = 0; k < SOL_LINE_SECTORS; k++)
        if (one.line[i].line == line && one.line[i].sectors >> k & 1) lanes[k] |= 1u << lane;
  }
}

// For the picture: touched [{address, sectors [four lists of lanes]}], lines in the order of their addresses.
static void touched_facts(Fact *root, const Access *a, const SolCoalesced *c) {
  Fact *list = fact_list(root, "touched", 0);
  uint64_t next = 0;
  for (uint32_t n = 0; n < c->lines; n++) {
    uint64_t line = UINT64_MAX;
    for (uint32_t i = 0; i < c->lines; i++)
      if (c->line[i].line >= next && c->line[i].line < line) line = c->line[i].line;
    next = line + 1;
    uint32_t lanes[SOL_LINE_SECTORS] = {0};
    lanes_in(a, line, lanes);
    Fact *row = fact_object(list, 0, 0);
    fact_number(row, "address", 0, UNIT_PLAIN, BASIS_EXACT, (double)line * SOL_LINE_BYTES);
    Fact *sectors = fact_list(row, "sectors", 0);
    for (int k = 0; k < SOL_LINE_SECTORS; k++) put_lanes(fact_list(sectors, 0, 0), lanes[k]);
  }
}

// For the picture: words [{group, bank, word, lane}]. Lanes of 8 bytes go by half-warps, of 16 by quarters (mem/banks.h).
static void words_facts(Fact *root, const Access *a) {
  Fact *list = fact_list(root, "words", 0);
  uint32_t group = a->width <= 4 ? SOL_LANES : a->width <= 8 ? SOL_LANES / 2 : SOL_LANES / 4;
  for (uint32_t lane = 0; lane < SOL_LANES; lane++) {
    uint64_t word = a->address[lane] / SOL_BANK_BYTES,
             last = (a->address[lane] + a->width - 1) / SOL_BANK_BYTES;
    for (; a->mask >> lane & 1 && word <= last; word++) {
      Fact *row = fact_object(list, 0, 0);
      put(row, "group", lane / group);
      put(row, "bank", (uint32_t)(word % SOL_BANKS));
      fact_number(row, "word", 0, UNIT_PLAIN, BASIS_EXACT, (double)word);
      put(row, "lane", lane);
    }
  }
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
    words_facts(ask->root, &a);
  } else {
    SolCoalesced c;
    sol_coalesce(a.address, a.mask, a.width, &c);
    put(ask->root, "sectors", c.sectors);
    put(ask->root, "ideal_sectors", c.ideal_sectors);
    put(ask->root, "lines", c.lines);
    put(ask->root, "bytes", c.bytes);
    touched_facts(ask->root, &a, &c);
  }
  return true;
}
