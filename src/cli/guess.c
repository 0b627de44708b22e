// Blocks and threads for a kernel without a host program. A kernel shows how far its indices may go
// where it compares its indices with its arguments: `if (row < rows)`. Registers are followed through the
// text once, from the special registers and the arguments to the comparisons; what no comparison bounds gets
// as many threads as the largest buffer has elements. Every guess is printed.
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/kernel.h"

enum {
  TID = 1,
  CTAID = 8,
  OTHER = 64
}; // shifted by 0, 1, 2 for x, y, z; OTHER: not from an index or argument

typedef struct Value { // what a register holds, as far as it is known
  unsigned from;       // indices it is made of
  bool known;          // it is a number
  double number;
} Value;

typedef struct Bound { // of one dimension
  bool seen;           // an index of it is read
  bool by_block;       // the index that was compared is the block's alone
  double count;        // 0: nothing was compared
} Bound;

typedef struct Guess {
  const KernelRun *run;
  const PtxFunction *f;
  const SolPtxModule *ptx;
  Value *regs;
  Bound bound[3];
} Guess;

static Value special(Guess *g, PtxSreg sreg) {
  static const struct {
    PtxSreg sreg;
    unsigned from;
  } indices[] = {{PTX_SREG_TID_X, TID},     {PTX_SREG_TID_Y, TID << 1},     {PTX_SREG_TID_Z, TID << 2},
                 {PTX_SREG_CTAID_X, CTAID}, {PTX_SREG_CTAID_Y, CTAID << 1}, {PTX_SREG_CTAID_Z, CTAID << 2}};
  for (size_t i = 0; i < SOL_COUNT(indices); i++)
    if (indices[i].sreg == sreg) {
      g->bound[i % 3].seen = true;
      return (Value){.from = indices[i].from};
    }
  return (Value){0}; // %ntid and its like scale an index and do not make one
}

// The argument at an offset of the parameter space, where it is a whole number.
static Value argument(const Guess *g, const PtxOperand *mem) {
  for (uint32_t i = 0; i < g->f->param_count; i++) {
    if (mem->symbol == PTX_NONE || g->f->params[i] != mem->symbol || mem->value) continue;
    const SolKernelArg *a = &g->run->arg[i];
    if (!a->buffer && a->is_whole) return (Value){.known = true, .number = (double)a->whole};
  }
  return (Value){.from = OTHER};
}

static Value operand(Guess *g, const PtxInst *in, const PtxOperand *o) {
  switch (o->kind) {
  case PTX_ARG_REG: return g->regs[o->index];
  case PTX_ARG_SREG: return special(g, (PtxSreg)o->sreg);
  case PTX_ARG_IMM: {
    int bits = sol_ptx_type_bits((PtxType)o->type);
    int64_t value = bits == 32 ? (int32_t)o->value : (int64_t)o->value;
    return (Value){.known = true, .number = (double)value};
  }
  case PTX_ARG_MEM:
    return in->code->op == PTX_OP_LD && in->code->space == PTX_SPACE_PARAM ? argument(g, o)
                                                                           : (Value){.from = OTHER};
  default: return (Value){.from = OTHER};
  }
}

// An index on one side, a number on the other.
static void compare(Guess *g, Value index, Value limit) {
  if (!limit.known || limit.number < 1 || index.known || index.from & OTHER || !index.from) return;
  for (int d = 0; d < 3; d++) {
    unsigned own = (unsigned)(TID | CTAID) << d;
    if (index.from & ~own) continue; // of one dimension alone
    Bound *b = &g->bound[d];
    if (!(index.from & (unsigned)CTAID << d)) continue; // of a thread in its block: no grid follows from it
    if (b->count > limit.number) continue;
    b->count = limit.number;
    b->by_block = !(index.from & (unsigned)TID << d);
  }
}

static Value combine(const PtxInst *in, const Value *v, int count) {
  Value out = {.known = count > 0};
  for (int i = 0; i < count; i++) {
    out.from |= v[i].from;
    out.known = out.known && v[i].known;
  }
  if (!out.known) return out;
  switch (in->code->op) {
  case PTX_OP_MUL: out.number = v[0].number * v[1].number; break;
  case PTX_OP_MAD: out.number = v[0].number * v[1].number + v[2].number; break;
  case PTX_OP_ADD: out.number = v[0].number + v[1].number; break;
  case PTX_OP_SUB: out.number = v[0].number - v[1].number; break;
  case PTX_OP_SHL: out.number = v[1].number < 62 ? v[0].number * (double)(1ll << (int)v[1].number) : 0; break;
  case PTX_OP_LD:
  case PTX_OP_MOV:
  case PTX_OP_CVT: out.number = v[0].number; break;
  default: return (Value){.from = OTHER};
  }
  return out;
}

static void step(Guess *g, const PtxInst *in) {
  Value v[PTX_MAX_OPERANDS];
  int count = 0;
  for (int i = 0; i < in->operand_count; i++)
    if (!in->operands[i].written && in->operands[i].kind != PTX_ARG_NONE)
      v[count++] = operand(g, in, &in->operands[i]);
  if (in->code->op == PTX_OP_SETP && count >= 2) {
    compare(g, v[0], v[1]);
    compare(g, v[1], v[0]);
  }
  Value result = combine(in, v, count);
  for (int i = 0; i < in->operand_count; i++) {
    const PtxOperand *o = &in->operands[i];
    if (o->written && o->kind == PTX_ARG_REG) g->regs[o->index] = result;
    for (int k = 0; o->written && o->kind == PTX_ARG_VEC && k < o->count; k++)
      if (o->elems[k].kind == PTX_ARG_REG) g->regs[o->elems[k].index] = (Value){.from = OTHER};
  }
}

static double largest_buffer(const KernelRun *r) {
  double most = 1;
  bool out = false;
  for (int i = 0; i < r->args->args.count; i++) {
    const SolKernelArg *a = &r->arg[i];
    bool is_out = a->buffer && strncmp(a->name, "out", 3) == 0;
    if (!a->buffer || (out && !is_out)) continue;
    if ((is_out && !out) || (double)a->count > most) most = (double)a->count;
    out |= is_out;
  }
  return most;
}

// What the kernel requires; else 256 in x, or a square tile where it has a second index of threads.
static void guess_block(const Guess *g, bool second, uint32_t block[3]) {
  const uint32_t *fixed = g->f->reqntid[0] ? g->f->reqntid : g->f->maxntid;
  uint32_t most = fixed[0] ? fixed[0] * (fixed[1] ? fixed[1] : 1) * (fixed[2] ? fixed[2] : 1) : 256;
  block[0] = second ? 16 : most < 256 || g->f->reqntid[0] ? most : 256;
  block[1] = second ? (most < 256 ? most / 16 : 16) : 1;
  block[2] = 1;
  if (!block[1]) block[1] = 1;
  for (int i = 0; g->f->reqntid[0] && i < 3; i++) block[i] = fixed[i] ? fixed[i] : 1;
}

static void guess_grid(const Guess *g, const uint32_t block[3], uint32_t grid[3]) {
  double left = largest_buffer(g->run);
  for (int d = 0; d < 3; d++) left /= g->bound[d].count > 0 ? g->bound[d].count : 1;
  for (int d = 0; d < 3; d++) {
    const Bound *b = &g->bound[d];
    double count = b->count;
    if (count <= 0) count = b->seen && (d == 0 || g->bound[0].count > 0) ? left : 1;
    double blocks = b->by_block ? count : __builtin_ceil(count / block[d]);
    double most = d == 0 ? 2147483647.0 : 65535.0;
    grid[d] = blocks < 1 ? 1 : (uint32_t)(blocks > most ? most : blocks);
    if (b->count <= 0) left = 1;
  }
}

void cli_kernel_guess(KernelRun *r) {
  const PtxFunction *f = sol_driver_function(r->kernel);
  Guess g = {.run = r, .f = f, .ptx = sol_driver_ptx(r->module)};
  g.regs = calloc(f->reg_count + 1, sizeof *g.regs);
  bool second = false;
  for (uint32_t i = 0; g.regs && i < f->inst_count; i++) {
    const PtxInst *in = &f->insts[i];
    for (int k = 0; k < in->operand_count; k++)
      second |= in->operands[k].kind == PTX_ARG_SREG && in->operands[k].sreg == PTX_SREG_TID_Y;
    step(&g, in);
  }
  free(g.regs);
  uint32_t *block = r->launch.block, *grid = r->launch.grid;
  if (!r->args->block) guess_block(&g, second, block);
  if (!r->args->grid) guess_grid(&g, block, grid);
  bool both = !r->args->block && !r->args->grid, bounded = false;
  for (int d = 0; d < 3; d++) bounded |= g.bound[d].count > 0;
  sol_format(r->guessed, sizeof r->guessed, "%s was guessed from %s: --grid %u,%u,%u --block %u,%u,%u",
             both            ? "The launch"
             : r->args->grid ? "The block"
                             : "The grid",
             bounded ? "what the kernel compares its indices with" : "the size of the largest buffer",
             grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}
