// Detects deadlocks of spinning warps: try_wait, volatile loads, atomics, nanosleep.
//
// A round in which every warp only spun is not yet a deadlock: two blocks that communicate have many such rounds.
// A round is idle if it also left memory unchanged. After an idle round only the state of the warps can differ:
// - where registers and pcs are those of an earlier idle round, with only idle rounds since, the state repeats
//   for ever: a deadlock. A warp that reads a clock never counts as unchanged;
// - where they differ (a loop that counts its attempts, or reads a clock) the spin may still end by itself, and
//   has many rounds and instructions to do so. The clock runs faster meanwhile, as the whole GPU waits.
// All of it is counted in rounds, instructions and bytes, never in seconds.
#include "base/heap.h"
#include "emu/core/hooks.h"

enum {
  MOST_ROUNDS = 1 << 17,        // idle, in a row
  FEW_ROUNDS = 128,             // enough, with as many instructions
  MOST_INSTRUCTIONS = 16000000, //
  SLOW_ROUNDS = 16,             // before time passes faster
  CLOCK_SHIFT = 28,             // clocks that a round takes then, at most
  HASH_BYTES = 256 << 20,       // that are hashed in a launch, and so many more per instruction
  HASH_PER_INSTRUCTION = 16
};

// ---- what an instruction may do ----

static uint8_t by_space(uint8_t space) {
  bool near = space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER || space == PTX_SPACE_LOCAL;
  return space == PTX_SPACE_PARAM ? EMU_DOES_NOTHING : near ? EMU_WRITES_NEAR : EMU_WRITES_FAR;
}

static bool reads_clock(const PtxInst *in) {
  const PtxOperand *from = &in->operands[1];
  return (in->code->op == PTX_OP_MOV || in->code->op == PTX_OP_CVT) && in->operand_count > 1 &&
         from->kind == PTX_ARG_SREG && from->sreg >= PTX_SREG_CLOCK && from->sreg <= PTX_SREG_GLOBALTIMER_HI;
}

static uint8_t effect_of(const EmuProgram *p, const PtxInst *in) {
  switch (in->code->op) {
  case PTX_OP_ST:
  case PTX_OP_WMMA_STORE: return by_space(in->code->space);
  case PTX_OP_ST_ASYNC:
  case PTX_OP_ST_BULK:
  case PTX_OP_STMATRIX:
  case PTX_OP_CLUSTER_TRY_CANCEL:
  case PTX_OP_CP_ASYNC: return EMU_WRITES_NEAR;
  case PTX_OP_CP_ASYNC_BULK:
  case PTX_OP_CP_REDUCE_ASYNC_BULK:
  case PTX_OP_CP_TENSOR:
  case PTX_OP_CP_TENSOR_STORE:
  case PTX_OP_CP_TENSOR_REDUCE:
  case PTX_OP_TENSORMAP_REPLACE:
  case PTX_OP_TENSORMAP_COPY:
  case PTX_OP_SUST:
  case PTX_OP_SURED: return EMU_WRITES_FAR;
  case PTX_OP_CALL: // of printf, malloc ...
    return in->operands[0].kind == PTX_ARG_FUNC && !p->module->ptx->functions[in->operands[0].index].defined
               ? EMU_CHANGES
               : EMU_DOES_NOTHING;
  default: return reads_clock(in) ? EMU_READS_CLOCK : EMU_DOES_NOTHING;
  }
}

static bool list_effects(EmuIdle *idle, const EmuProgram *p) {
  idle->pcs = sol_heap_alloc(sizeof *idle->pcs * (p->count + 1));
  if (!idle->pcs) return false;
  for (uint32_t pc = 0; pc < p->count; pc++) {
    uint8_t effect = p->source[pc] ? effect_of(p, p->source[pc]) : EMU_DOES_NOTHING;
    if (effect) idle->pcs[idle->count++] = (EmuEffectAt){pc, effect};
  }
  return true;
}

// Whether any lane did one of these since the last time it was asked.
static void effects_since(const EmuRun *run, EmuIdle *idle, bool since[EMU_EFFECTS]) {
  uint64_t lanes[EMU_EFFECTS] = {0};
  for (uint32_t w = 0; w < run->worker_count; w++) {
    EmuWorker *worker = emu_worker(&run->workers[w]);
    for (uint32_t k = 0; k < idle->count; k++)
      lanes[idle->pcs[k].effect] +=
          run->workers[w].counts[idle->pcs[k].pc].lanes + worker->idle_counts[idle->pcs[k].pc].lanes;
    lanes[EMU_CHANGES] += worker->changes;
  }
  for (int d = 0; d < EMU_EFFECTS; d++) since[d] = lanes[d] != idle->lanes[d];
  memcpy(idle->lanes, lanes, sizeof lanes);
}

// ---- hashes ----

typedef struct Hash {
  uint64_t value, bytes;
} Hash;

static void add_word(Hash *h, uint64_t v) {
  h->value = (h->value ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  h->value ^= h->value >> 29;
}

static void add_memory(Hash *h, const void *from, size_t bytes) {
  const uint8_t *at = from;
  uint64_t v = 0;
  h->bytes += bytes;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    memcpy(&v, at, 8);
    add_word(h, v);
  }
  v = bytes;
  memcpy(&v, at, bytes);
  add_word(h, v);
}

static void add_fiber(const EmuRun *run, Hash *h, const EmuFiber *f) {
  add_word(h, (uint64_t)f->lanes << 32 | f->count);
  add_word(h, (uint64_t)f->state << 40 | (uint64_t)f->barrier << 32 | f->members);
  for (uint32_t k = 0; k < f->count; k++) {
    const EmuEntry *e = &f->entries[k];
    add_word(h, (uint64_t)e->pc << 32 | e->reconverge);
    add_word(h, (uint64_t)e->mask << 1 | e->base);
    if (!e->base) continue;
    add_memory(h, e->frame->regs, run->program->functions[e->frame->function].spare);
    add_memory(h, e->frame->params, (size_t)e->frame->param_stride * EMU_LANES);
  }
}

static void add_warp(const EmuRun *run, Hash *h, const EmuWarp *w) {
  add_word(h, (uint64_t)w->carry << 32 | w->cluster_arrived);
  for (const EmuFiber *f = w->fibers; f; f = f->next) add_fiber(run, h, f);
}

static void add_near_memory(Hash *h, const EmuBlock *b) {
  add_memory(h, b->shared, (size_t)b->shared_bytes);
  for (uint32_t w = 0; w < b->warp_count; w++)
    if (b->local[w]) add_memory(h, b->local[w], (size_t)b->local_cap[w] * EMU_LANES);
}

static void add_blocks(const EmuRun *run, Hash *h, bool memory) {
  for (uint32_t s = 0; s < run->sm_count; s++)
    for (const EmuUnit *u = run->sms[s].units; u; u = u->next)
      for (uint32_t k = 0; k < u->count; k++) {
        const EmuBlock *b = u->blocks[k];
        add_word(h, b->id);
        if (memory) add_near_memory(h, b);
        for (uint32_t w = 0; !memory && w < b->warp_count; w++) add_warp(run, h, &b->warps[w]);
      }
}

static uint64_t far_bytes(const EmuRun *run) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < run->emu->alloc_count; k++)
    if (!run->emu->allocs[k]->freed) sum += run->emu->allocs[k]->size;
  return sum;
}

static void add_far_memory(const EmuRun *run, Hash *h) {
  for (uint32_t k = 0; k < run->emu->alloc_count; k++) {
    const EmuAlloc *a = run->emu->allocs[k];
    if (!a->freed && a->host) add_memory(h, a->host, (size_t)a->size);
  }
}

static bool may_hash(const EmuRun *run, const EmuIdle *idle, uint64_t bytes) {
  uint64_t most = HASH_BYTES + run->instructions * HASH_PER_INSTRUCTION;
  return idle->hashed <= most && bytes <= most - idle->hashed;
}

// Whether the stores of the last rounds changed memory. Where there is too much of it to look, they did.
static bool memory_changed(const EmuRun *run, EmuIdle *idle, const bool since[EMU_EFFECTS]) {
  bool changed = false;
  Hash h = {0};
  if (since[EMU_WRITES_NEAR] || since[EMU_WRITES_FAR]) { // a generic address may be near
    if (!may_hash(run, idle, 0)) return true;
    add_blocks(run, &h, true);
    changed = h.value != idle->near;
    idle->near = h.value;
  }
  if (since[EMU_WRITES_FAR]) {
    if (!may_hash(run, idle, far_bytes(run))) return true;
    add_far_memory(run, &h);
    changed = changed || h.value != idle->far;
    idle->far = h.value;
  }
  idle->hashed += h.bytes;
  return changed;
}

// ---- rounds ----

// Whether the warps are where they were in an earlier idle round. It is compared with the last one whose
// number is a power of two, so that a cycle of any length is found.
static bool state_repeats(const EmuRun *run, EmuIdle *idle) {
  Hash h = {0};
  if (!may_hash(run, idle, 0)) return false;
  add_blocks(run, &h, false);
  idle->hashed += h.bytes;
  if (idle->rounds > 1 && !idle->timed && h.value == idle->saved) return true;
  if (idle->rounds & (idle->rounds - 1)) return false;
  idle->saved = h.value;
  idle->timed = false;
  return false;
}

static void pass_time(EmuRun *run, uint64_t rounds) {
  uint64_t shift = rounds < CLOCK_SHIFT ? rounds : CLOCK_SHIFT;
  for (uint32_t s = 0; s < run->sm_count; s++) run->sms[s].clock += UINT64_C(1) << shift;
}

bool emu_idle_round(EmuRun *run, EmuIdle *idle) {
  bool since[EMU_EFFECTS];
  if (!idle->pcs && !list_effects(idle, run->program)) return false;
  effects_since(run, idle, since);
  if (since[EMU_CHANGES] || memory_changed(run, idle, since)) {
    idle->rounds = 0;
    idle->start = run->instructions;
    return false;
  }
  idle->rounds++;
  idle->timed = idle->timed || since[EMU_READS_CLOCK];
  if (state_repeats(run, idle)) return true;
  if (since[EMU_READS_CLOCK] && idle->rounds > SLOW_ROUNDS) pass_time(run, idle->rounds);
  return idle->rounds > MOST_ROUNDS ||
         (idle->rounds > FEW_ROUNDS && run->instructions - idle->start > MOST_INSTRUCTIONS);
}

void emu_idle_free(EmuIdle *idle) {
  sol_heap_free(idle->pcs);
}
