// Blocks that take their work from a counter (atomicAdd in a loop, until nothing is left), and blocks that wait for what others write: who
// comes first takes it, or need not wait, so it depends on time what each does. The emulator runs a block for as long as it can; so such an
// access waits until all others that are resident have come as far, by their critical paths (chain.c). A block that starts when another has
// ended starts at that time.
//
// An atomic takes work if it is in a loop and what it returns decides on a branch: itself, computed with, handed to other lanes, or to other
// warps through shared memory. What is loaded from where it points to is the work, not the decision. A strong load (volatile, relaxed,
// acquire) waits if it is in a loop and decides on a branch; then what is waited for may be any strong store or atomic of the program.
#include "base/heap.h"
#include "emu/watch/observe.h"

// ---- which atomics ----

typedef struct Flow {
  uint64_t *set; // registers that depend on what was returned
  bool shared;   // so does something in shared memory
} Flow;

static bool in_set(const Flow *f, uint32_t reg) {
  return reg != PTX_NONE && f->set[reg / 64] >> reg % 64 & 1;
}

static bool depends(const Flow *f, const PtxOperand *o) {
  if (o->kind == PTX_ARG_REG) return in_set(f, o->index);
  for (uint32_t e = 0; o->kind == PTX_ARG_VEC && e < o->count; e++)
    if (depends(f, &o->elems[e])) return true;
  return false;
}

static bool put(Flow *f, const PtxOperand *o) {
  bool fresh = false;
  if (o->kind == PTX_ARG_REG && !in_set(f, o->index)) {
    f->set[o->index / 64] |= UINT64_C(1) << o->index % 64;
    fresh = true;
  }
  for (uint32_t e = 0; o->kind == PTX_ARG_VEC && e < o->count; e++) fresh = put(f, &o->elems[e]) || fresh;
  return fresh;
}

static bool reads_dependent(const Flow *f, const PtxInst *in) {
  for (uint32_t k = 0; k < in->operand_count; k++)
    if (!in->operands[k].written && depends(f, &in->operands[k])) return true;
  return false;
}

static bool is_shared(const PtxCode *code) {
  return code->space == PTX_SPACE_SHARED || code->space == PTX_SPACE_SHARED_CLUSTER;
}

// Returns whether anything was added.
static bool follow(Flow *f, const PtxInst *in) {
  bool fresh = false, memory = sol_emu_class(in) == SOL_EMU_CLASS_MEMORY;
  if (memory && in->code->op == PTX_OP_ST && is_shared(in->code) && !f->shared && reads_dependent(f, in))
    fresh = f->shared = true;
  bool from = memory ? in->code->op == PTX_OP_LD && is_shared(in->code) && f->shared : reads_dependent(f, in);
  for (uint32_t k = 0; from && k < in->operand_count; k++)
    if (in->operands[k].written) fresh = put(f, &in->operands[k]) || fresh;
  return fresh;
}

static bool is_far(const EmuProgram *p, uint32_t pc) {
  return p->source[pc] && (p->code[pc].space == PTX_SPACE_GLOBAL || p->code[pc].space == PTX_SPACE_GENERIC);
}

static bool is_strong(const EmuProgram *p, uint32_t pc, PtxOp op) {
  return is_far(p, pc) && p->source[pc]->code->op == op && p->code[pc].flags & EMU_FLAG_STRONG;
}

static bool counts(const EmuProgram *p, uint32_t pc) {
  const PtxCode *code = p->source[pc] ? p->source[pc]->code : NULL;
  return is_far(p, pc) && code->op == PTX_OP_ATOM &&
         (code->fn == PTX_FN_ADD || code->fn == PTX_FN_INC || code->fn == PTX_FN_DEC);
}

static bool in_loop(const EmuProgram *p, uint32_t pc, uint32_t end) {
  for (uint32_t k = pc; k < end; k++)
    if (p->source[k] && p->source[k]->code->op == PTX_OP_BRA && p->code[k].target <= pc) return true;
  return false;
}

static bool decides(Flow *f, const PtxFunction *fn, const PtxInst *first, size_t bytes) {
  memset(f->set, 0, bytes);
  f->shared = false;
  put(f, &first->operands[0]);
  for (bool fresh = true; fresh;) {
    fresh = false;
    for (uint32_t k = 0; k < fn->inst_count; k++) fresh = follow(f, &fn->insts[k]) || fresh;
  }
  for (uint32_t k = 0; k < fn->inst_count; k++)
    if (fn->insts[k].code->op == PTX_OP_BRA && in_set(f, fn->insts[k].guard)) return true;
  return false;
}

// What those may wait for that wait.
static void mark_writes(const EmuProgram *p, EmuStatics *s) {
  for (uint32_t pc = 0; pc < p->count; pc++) {
    PtxOp op = is_far(p, pc) ? p->source[pc]->code->op : PTX_OP_NONE;
    if (is_strong(p, pc, PTX_OP_ST) || op == PTX_OP_ATOM || op == PTX_OP_RED) s->paths[pc] |= EMU_PATH_TAKES;
  }
}

bool emu_takes_find(const EmuProgram *p, EmuStatics *s) {
  bool waits = false;
  for (uint32_t k = 0; k < p->function_count; k++) {
    const PtxFunction *fn = p->functions[k].fn;
    uint32_t first = p->functions[k].first, end = first + fn->inst_count;
    size_t bytes = ((size_t)fn->reg_count / 64 + 1) * 8;
    Flow flow = {0};
    for (uint32_t pc = first; pc < end && pc < p->count; pc++) {
      bool polls = is_strong(p, pc, PTX_OP_LD);
      if ((!polls && !counts(p, pc)) || !in_loop(p, pc, end < p->count ? end : p->count)) continue;
      if (!flow.set && !(flow.set = sol_heap_alloc(bytes))) return false;
      if (!decides(&flow, fn, p->source[pc], bytes)) continue;
      s->paths[pc] |= EMU_PATH_TAKES;
      s->takes = true;
      waits = waits || polls;
    }
    sol_heap_free(flow.set);
  }
  if (waits) mark_writes(p, s);
  return true;
}

// ---- when ----

enum { STEP = 200, PART = 64 }; // clocks that some may be ahead of others; or this part of the time so far

bool emu_path_held(EmuCtx *x) {
  EmuRun *run = x->launch;
  uint64_t clock =
      x->block->unit->since + emu_path_weight(x->block, &x->block->paths[x->warp->index]) / EMU_WAIT;
  if (clock <= run->horizon) return false;
  uint64_t next = __atomic_load_n(&run->held_at, __ATOMIC_RELAXED);
  while (clock < next && !__atomic_compare_exchange_n(&run->held_at, &next, clock, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
  return true;
}

bool emu_path_let_go(EmuRun *run) {
  if (run->held_at == UINT64_MAX) return false;
  run->horizon = run->held_at + (run->held_at / PART > STEP ? run->held_at / PART : STEP);
  run->held_at = UINT64_MAX;
  return true;
}
