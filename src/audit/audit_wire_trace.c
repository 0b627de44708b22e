// The trace of a block on the wire: "trace":[[warps, warps of a block, tokens, block, cut],[ends],[events, seven numbers each]].
#include "audit/audit_wire.h"
#include "base/json_read.h"
#include "base/json_write.h"

enum { EVENT_NUMBERS = 7, MOST_EVENTS = 1 << 18, MOST_WARPS = 1024 };

void audit_write_trace(const SolEmuTrace *t, SolBuffer *out) {
  sol_buffer_format(out, "\"trace\":[[%u,%u,%u,%llu,%d],[", t->warps, t->warps_per_block, t->tokens,
                    (unsigned long long)t->block, t->cut);
  for (uint32_t w = 0; w < t->warps; w++) sol_buffer_format(out, "%s%u", w ? "," : "", t->ends[w]);
  sol_buffer_puts(out, "],[");
  for (uint32_t i = 0; i < t->ends[t->warps - 1]; i++) {
    const SolEmuEvent *e = &t->events[i];
    sol_buffer_format(out, "%s%u,%u,%u,%u,%u,%u,", i ? "," : "", e->step, e->detail, e->inst, e->token,
                      e->count, e->issues);
    sol_json_add_number(out, (double)e->waits);
  }
  sol_buffer_puts(out, "]],");
}

// The next number of a list, from 0 to `most`.
static bool next_number(SolJsonIter *it, double most, double *out) {
  SolJson value;
  return sol_json_next(it, NULL, &value) && sol_json_number(value, out) && *out >= 0 && *out <= most;
}

static bool read_event(SolJsonIter *it, uint32_t tokens, SolEmuEvent *e) {
  double n[EVENT_NUMBERS];
  static const double most[EVENT_NUMBERS] = {SOL_EMU_STEPS - 1, 3,          UINT32_MAX, UINT32_MAX,
                                             UINT32_MAX,        UINT32_MAX, 1e9};
  for (int k = 0; k < EVENT_NUMBERS; k++)
    if (!next_number(it, most[k], &n[k])) return false;
  *e = (SolEmuEvent){.step = (uint8_t)n[0],
                     .detail = (uint8_t)n[1],
                     .inst = (uint32_t)n[2],
                     .token = (uint32_t)n[3],
                     .count = (uint32_t)n[4],
                     .issues = (uint32_t)n[5],
                     .waits = (float)n[6]};
  return e->token <= tokens;
}

static bool read_ends(SolJson list, uint32_t warps, uint32_t *ends) {
  SolJsonIter it = {.container = list};
  double last = 0;
  for (uint32_t w = 0; w < warps; w++) {
    double end;
    if (!next_number(&it, MOST_EVENTS, &end) || end < last) return false;
    ends[w] = (uint32_t)(last = end);
  }
  return true;
}

static bool read_head(SolJson list, SolEmuTrace *t) {
  SolJsonIter it = {.container = list};
  double n[5];
  static const double most[] = {MOST_WARPS, MOST_WARPS, 2.0 * MOST_EVENTS, 9e15, 1};
  for (int k = 0; k < 5; k++)
    if (!next_number(&it, most[k], &n[k])) return false;
  *t = (SolEmuTrace){.warps = (uint32_t)n[0],
                     .warps_per_block = (uint32_t)n[1],
                     .tokens = (uint32_t)n[2],
                     .block = (uint64_t)n[3],
                     .cut = n[4] != 0};
  return t->warps && t->warps_per_block && t->warps % t->warps_per_block == 0;
}

bool audit_read_trace(SolArena *arena, SolJson list, const SolEmuTrace **out) {
  SolJsonIter parts = {.container = list};
  SolJson head, ends, events;
  SolEmuTrace *t = sol_arena_alloc(arena, sizeof *t);
  if (!t || !sol_json_next(&parts, NULL, &head) || !sol_json_next(&parts, NULL, &ends) ||
      !sol_json_next(&parts, NULL, &events) || !read_head(head, t))
    return false;
  uint32_t *room = sol_arena_alloc(arena, sizeof *room * t->warps);
  if (!room || !read_ends(ends, t->warps, room) || !room[t->warps - 1]) return false;
  t->ends = room;
  t->events = sol_arena_alloc(arena, sizeof *t->events * room[t->warps - 1]);
  SolJsonIter it = {.container = events};
  for (uint32_t i = 0; t->events && i < room[t->warps - 1]; i++)
    if (!read_event(&it, t->tokens, &t->events[i])) return false;
  *out = t;
  return t->events != NULL;
}
