// Cubins from any bytes (src/sass): whatever is read holds together.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sass/sass_code.h"

static void walk(const SassCode *c) {
  uint32_t at = 0;
  for (uint32_t b = 0; b < c->block_count; b++) {
    const SassBlock *block = &c->blocks[b];
    MUST(block->first == at && block->count > 0);
    MUST(block->next == SASS_NONE || block->next < c->block_count);
    MUST(block->branch == SASS_NONE || block->branch < c->block_count);
    at += block->count;
  }
  MUST(at == c->count);
  for (uint32_t i = 0; i < c->count; i++) {
    MUST(c->insts[i].target == SASS_NONE || c->insts[i].target < c->count);
    MUST(c->insts[i].unit < SASS_UNITS && sass_opcode_name(c->insts[i].opcode));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char text[] = ".version 8.0\n.target sm_75\n";
  SolArena arena = {0};
  SolError err = {0};
  SassCode code;
  MUST(sass_arch(data, size) >= 0);
  sass_is_of(data, size, text, sizeof text - 1);
  SolStatus status = sass_read(data, size, "k", &arena, &code, &err);
  if (status)
    MUST(err.message[0]);
  else
    walk(&code);
  sol_arena_free(&arena);
  return 0;
}
