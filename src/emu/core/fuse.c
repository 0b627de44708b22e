// Finds the instructions that launches without counts leave out (fuse.h), and makes the code of such launches: that of the program with
// NULL in their place.
//
// What is left out computes sums, shifts and products with constants, and has one result, which nothing but instructions that are left
// out and addresses of plain loads and stores in the same stretch read. Until those accesses nothing may write where its sources are,
// nor where its result would be: executed late it has to do what it does in its place.
#include "emu/core/fuse.h"

#include "base/heap.h"
#include "emu/core/lower.h"
#include "ptx/ptx.h"

typedef enum Kind { NOT_LINEAR, SUM, DIFFERENCE, SHIFT, WIDEN } Kind;

typedef struct Linear {
  Kind kind;
  bool is_wide; // its result
  EmuWiden widen;
} Linear;

typedef struct Uses { // of a register
  uint32_t defs, uses;
  bool uniform; // the same in all lanes, throughout the launch or the block
} Uses;

typedef struct Fuse {
  Lower *l;
  const EmuFunction *f;
  const PtxFunction *fn;
  Uses *uses;
  uint8_t *left_out; // by instruction of the function
} Fuse;

static Linear linear_of(const PtxInst *in) {
  static const struct {
    const char *text;
    Linear is;
  } known[] = {
      {"add.s64", {SUM, true, EMU_NO_NARROW}},        {"add.u64", {SUM, true, EMU_NO_NARROW}},
      {"add.s32", {SUM, false, EMU_NO_NARROW}},       {"add.u32", {SUM, false, EMU_NO_NARROW}},
      {"sub.s64", {DIFFERENCE, true, EMU_NO_NARROW}}, {"sub.s32", {DIFFERENCE, false, EMU_NO_NARROW}},
      {"shl.b64", {SHIFT, true, EMU_NO_NARROW}},      {"shl.b32", {SHIFT, false, EMU_NO_NARROW}},
      {"mul.wide.s32", {WIDEN, true, EMU_SIGNED}},    {"mul.wide.u32", {WIDEN, true, EMU_UNSIGNED}},
      {"cvt.s64.s32", {WIDEN, true, EMU_SIGNED}},     {"cvt.u64.u32", {WIDEN, true, EMU_UNSIGNED}},
  };
  for (size_t k = 0; in->guard == PTX_NONE && k < SOL_COUNT(known); k++)
    if (strcmp(in->code->text, known[k].text) == 0) return known[k].is;
  return (Linear){0};
}

bool emu_is_linear(const PtxInst *in) {
  return linear_of(in).kind != NOT_LINEAR;
}

// ---- registers ----

typedef void Visit(Fuse *f, uint32_t reg, bool written, void *ctx);
static void visit_operand(Fuse *f, const PtxOperand *o, bool written, Visit *visit, void *ctx) {
  written = written || o->written;
  if (o->kind == PTX_ARG_REG) visit(f, o->index, written, ctx);
  if (o->kind == PTX_ARG_MEM && o->index != PTX_NONE) visit(f, o->index, false, ctx);
  for (uint32_t i = 0; (o->kind == PTX_ARG_VEC || o->kind == PTX_ARG_TEX) && i < o->count; i++)
    visit_operand(f, &o->elems[i], written && o->kind == PTX_ARG_VEC, visit, ctx);
}
static void visit_inst(Fuse *f, const PtxInst *in, Visit *visit, void *ctx) {
  if (in->guard != PTX_NONE) visit(f, in->guard, false, ctx);
  for (uint32_t k = 0; k < in->operand_count; k++) visit_operand(f, &in->operands[k], false, visit, ctx);
}

static void count_use(Fuse *f, uint32_t reg, bool written, void *ctx) {
  (void)ctx;
  if (written)
    f->uses[reg].defs++;
  else
    f->uses[reg].uses++;
}

static void find_varying(Fuse *f, uint32_t reg, bool written, void *ctx) {
  if (!written && !f->uses[reg].uniform) *(bool *)ctx = true;
}

// It computes one result from arguments of the kernel, the block's place and constants. Of a function's code nothing is known.
static bool is_uniform(Fuse *f, const PtxInst *in) {
  static const char *const computing[] = {"address", "int_arith", "int_mul", "bits", "shift", "convert"};
  bool varies = !f->fn->entry || in->guard != PTX_NONE || in->operand_count < 2;
  const PtxOperand *d = in->operands, *a = &in->operands[1];
  if (varies || d->kind != PTX_ARG_REG || f->uses[d->index].defs != 1) return false;
  if (in->code->op == PTX_OP_LD) return in->code->space == PTX_SPACE_PARAM && a->index == PTX_NONE;
  if (a->kind == PTX_ARG_SREG)
    return in->code->op == PTX_OP_MOV && a->sreg >= PTX_SREG_NTID_X && a->sreg <= PTX_SREG_NCTAID_Z;
  bool known = in->code->op == PTX_OP_MOV;
  for (size_t k = 0; k < SOL_COUNT(computing); k++)
    known = known || strcmp(sol_ptx_op_handler((PtxOp)in->code->op), computing[k]) == 0;
  visit_inst(f, in, find_varying, &varies);
  return known && !varies;
}

typedef struct Overlap {
  EmuLoc from, end;
  bool found;
} Overlap;
static EmuLoc end_of(const Fuse *f, uint32_t reg) {
  enum { MOST_LANE_BYTES = 16 };
  uint32_t bits = (uint32_t)sol_ptx_type_bits((PtxType)f->fn->regs[reg].type);
  return f->f->reg_loc[reg] + EMU_LANES * (bits > 8 ? bits / 8 : MOST_LANE_BYTES);
}
static void find_overlap(Fuse *f, uint32_t reg, bool written, void *ctx) {
  Overlap *o = ctx;
  if (written && f->f->reg_loc[reg] < o->end && end_of(f, reg) > o->from) o->found = true;
}
static bool writes_over(Fuse *f, uint32_t at, uint32_t reg) {
  Overlap o = {.from = f->f->reg_loc[reg], .end = end_of(f, reg)};
  visit_inst(f, &f->fn->insts[at], find_overlap, &o);
  return o.found;
}

// ---- what an access needs ----

// The base register of a load or store that can compute its address itself; PTX_NONE: it is none.
static uint32_t base_of(const Fuse *f, uint32_t at) {
  const PtxInst *in = &f->fn->insts[at];
  const EmuInst *i = &f->l->program->code[f->f->first + at];
  if (in->guard != PTX_NONE || (in->code->op != PTX_OP_LD && in->code->op != PTX_OP_ST)) return PTX_NONE;
  const PtxOperand *o = &in->operands[in->code->op == PTX_OP_LD];
  bool plain = f->l->program->straight[f->f->first + at] && i->more && ((const EmuFusible *)i->more)->fused;
  return plain && o->kind == PTX_ARG_MEM ? o->index : PTX_NONE;
}

// The instruction that is left out and computes the register for one at `at`, not far before it; PTX_NONE: none does.
static uint32_t maker_of(const Fuse *f, uint32_t reg, uint32_t at) {
  enum { MOST_BACK = 64 };
  if (f->uses[reg].defs != 1 || f->fn->insts[at].leader) return PTX_NONE;
  for (uint32_t k = at; k-- > 0 && at - k <= MOST_BACK && f->l->program->straight[f->f->first + k];) {
    const PtxOperand *d = f->fn->insts[k].operands;
    if (f->left_out[k] && d->index == reg) return k;
    if (f->fn->insts[k].leader) break;
  }
  return PTX_NONE;
}

static bool add_term(EmuForm *form, EmuTerm term) {
  for (uint32_t k = 0; k < form->count; k++)
    if (form->terms[k].at == term.at) return form->terms[k].times += term.times, true;
  if (form->count == EMU_FUSED_TERMS) return false;
  form->terms[form->count++] = term;
  return true;
}

static bool add_op(EmuFused *p, uint32_t pc) { // in order, each once
  uint32_t k = 0;
  while (k < p->count && p->ops[k] < pc) k++;
  if (k < p->count && p->ops[k] == pc) return true;
  if (p->count == EMU_FUSED_OPS) return false;
  memmove(&p->ops[k + 1], &p->ops[k], (p->count - k) * sizeof *p->ops);
  p->ops[k] = pc;
  p->count++;
  return true;
}

static int64_t constant(const PtxOperand *o, bool is_wide) {
  return is_wide ? (int64_t)o->value : (int64_t)(int32_t)(uint32_t)o->value;
}

static bool expand(Fuse *f, EmuFused *p, const PtxOperand *o, uint32_t at, bool is_wide, int64_t times);

static bool widen(Fuse *f, EmuFused *p, const PtxInst *in, Linear is, uint32_t at, int64_t times) {
  int64_t by = 1;
  if (in->operand_count > 2 && in->operands[2].kind != PTX_ARG_NONE) {
    if (in->operands[2].kind != PTX_ARG_IMM) return false;
    by = is.widen == EMU_SIGNED ? (int64_t)(int32_t)(uint32_t)in->operands[2].value
                                : (int64_t)(uint32_t)in->operands[2].value;
  }
  if (p->widen) return false; // one is enough
  p->widen = is.widen;
  p->scale = times * by;
  return expand(f, p, &in->operands[1], at, false, 1);
}

// Adds `times` what the operand is before instruction `at`.
static bool expand(Fuse *f, EmuFused *p, const PtxOperand *o, uint32_t at, bool is_wide, int64_t times) {
  EmuForm *form = is_wide ? &p->wide : &p->narrow;
  if (times > INT32_MAX || times < INT32_MIN) return false;
  if (o->kind == PTX_ARG_IMM) return form->plus += times * constant(o, is_wide), true;
  if (o->kind != PTX_ARG_REG || o->negated || o->value) return false;
  uint32_t maker = maker_of(f, o->index, at);
  if (sol_ptx_type_bits((PtxType)f->fn->regs[o->index].type) != (is_wide ? 64 : 32)) return false;
  if (maker == PTX_NONE)
    return add_term(form, (EmuTerm){f->f->reg_loc[o->index], !f->uses[o->index].uniform, times});
  const PtxInst *in = &f->fn->insts[maker];
  const PtxOperand *a = &in->operands[1], *b = &in->operands[2];
  Linear is = linear_of(in);
  if (!add_op(p, f->f->first + maker)) return false;
  switch (is.kind) {
  case SUM: return expand(f, p, a, maker, is_wide, times) && expand(f, p, b, maker, is_wide, times);
  case DIFFERENCE: return expand(f, p, a, maker, is_wide, times) && expand(f, p, b, maker, is_wide, -times);
  case SHIFT:
    return b->kind == PTX_ARG_IMM && b->value < 16 &&
           expand(f, p, a, maker, is_wide, times * (INT64_C(1) << b->value));
  case WIDEN: return is_wide && widen(f, p, in, is, maker, times);
  default: return false;
  }
}

static bool is_one_of(const EmuFused *p, uint32_t pc) {
  for (uint32_t k = 0; k < p->count; k++)
    if (p->ops[k] == pc) return true;
  return false;
}

// Whether what is left out can be executed just before the access.
static bool can_wait(Fuse *f, const EmuFused *p, uint32_t access) {
  for (uint32_t k = 0; k < p->count; k++) {
    uint32_t at = p->ops[k] - f->f->first;
    const PtxInst *in = &f->fn->insts[at];
    for (uint32_t n = 0; n < in->operand_count; n++) {
      const PtxOperand *o = &in->operands[n];
      bool made = o->kind == PTX_ARG_REG && !o->written && maker_of(f, o->index, at) != PTX_NONE;
      if (o->kind != PTX_ARG_REG || made) continue;
      for (uint32_t t = p->ops[0] - f->f->first; t < access; t++) {
        bool own = is_one_of(p, f->f->first + t);
        if ((own ? !o->written : t > at) && writes_over(f, t, o->index)) return false;
      }
    }
  }
  return true;
}

static uint32_t varying(EmuFused *p) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < p->wide.count; k++) n += p->wide.terms[k].vary;
  bool narrow = !n;
  for (uint32_t k = 0; k < p->narrow.count; k++) {
    if (p->narrow.terms[k].vary) p->varies = p->narrow.terms[k].at;
    n += p->narrow.terms[k].vary;
  }
  p->one = narrow && n == 1;
  return n;
}

static bool plan_access(Fuse *f, uint32_t at, uint32_t base, EmuFused *p) {
  bool is_wide = f->l->program->code[f->f->first + at].abytes == 8;
  PtxOperand o = {.kind = PTX_ARG_REG, .index = base};
  *p = (EmuFused){.plain = &f->l->program->code[f->f->first + at]};
  return expand(f, p, &o, at, is_wide, 1) && varying(p) <= EMU_FUSED_VARY && can_wait(f, p, at);
}

// ---- what is left out ----

// Those whose results others read are executed after all. True: some were.
static bool drop_read(Fuse *f, uint32_t *left) {
  bool dropped = false;
  for (uint32_t r = 0; r < f->fn->reg_count; r++) left[r] = f->uses[r].uses;
  for (uint32_t at = 0; at < f->fn->inst_count; at++) {
    const PtxInst *in = &f->fn->insts[at];
    uint32_t base = base_of(f, at);
    for (uint32_t k = 1; f->left_out[at] && k < in->operand_count; k++)
      if (in->operands[k].kind == PTX_ARG_REG && maker_of(f, in->operands[k].index, at) != PTX_NONE)
        left[in->operands[k].index]--;
    if (base != PTX_NONE && maker_of(f, base, at) != PTX_NONE) left[base]--;
  }
  for (uint32_t at = 0; at < f->fn->inst_count; at++) {
    const PtxInst *in = &f->fn->insts[at];
    if (!f->left_out[at] || !left[in->operands[0].index]) continue;
    f->left_out[at] = 0;
    dropped = true;
  }
  return dropped;
}

// Those of accesses that cannot do without, too.
static bool drop_refused(Fuse *f) {
  EmuFused p;
  bool dropped = false;
  for (uint32_t at = 0; at < f->fn->inst_count; at++) {
    uint32_t base = base_of(f, at), maker = base != PTX_NONE ? maker_of(f, base, at) : PTX_NONE;
    if (maker == PTX_NONE || plan_access(f, at, base, &p)) continue;
    f->left_out[maker] = 0;
    dropped = true;
  }
  return dropped;
}

static bool replace(Fuse *f) {
  EmuProgram *p = f->l->program;
  for (uint32_t at = f->fn->inst_count; at-- > 0;) {
    if (!f->left_out[at]) continue;
    bool more = at + 1 < f->fn->inst_count && f->left_out[at + 1];
    EmuInst *i = &p->bare[f->f->first + at];
    i->run = NULL;
    i->target = 1 + (more && p->straight[i->index] > 1 ? i[1].target : 0);
  }
  for (uint32_t at = 0; at < f->fn->inst_count; at++) {
    EmuInst *i = &p->bare[f->f->first + at];
    uint32_t base = base_of(f, at);
    if (base == PTX_NONE) continue;
    if (maker_of(f, base, at) == PTX_NONE) {
      if (i->e != i->index) i->run = ((const EmuFusible *)i->more)->next;
      continue;
    }
    EmuFused *plan = lower_alloc(f->l, sizeof *plan);
    if (!plan || !plan_access(f, at, base, plan)) return false;
    i->run = ((const EmuFusible *)i->more)->fused;
    i->more = plan;
  }
  return true;
}

enum { MOST_PASSES = 64 };

static bool fuse_function(Lower *l, const EmuFunction *f) {
  Fuse fuse = {.l = l, .f = f, .fn = f->fn};
  const PtxFunction *fn = f->fn;
  fuse.uses = sol_heap_alloc(sizeof *fuse.uses * (fn->reg_count + 1));
  fuse.left_out = sol_heap_alloc(fn->inst_count + 1);
  uint32_t *left = sol_heap_alloc(sizeof *left * (fn->reg_count + 1));
  bool fine = fuse.uses && fuse.left_out && left;
  if (fine) {
    memset(fuse.uses, 0, sizeof *fuse.uses * (fn->reg_count + 1));
    for (uint32_t at = 0; at < fn->inst_count; at++) visit_inst(&fuse, &fn->insts[at], count_use, NULL);
    for (uint32_t at = 0; at < fn->inst_count; at++) {
      const PtxInst *in = &fn->insts[at];
      if (is_uniform(&fuse, in)) fuse.uses[in->operands[0].index].uniform = true;
      fuse.left_out[at] = linear_of(in).kind && l->program->straight[f->first + at] &&
                          in->operands[0].kind == PTX_ARG_REG && fuse.uses[in->operands[0].index].defs == 1;
    }
    int passes = 0;
    while (drop_read(&fuse, left) || drop_refused(&fuse))
      if (++passes == MOST_PASSES) memset(fuse.left_out, 0, fn->inst_count); // entangled: all is executed
    fine = replace(&fuse);
  }
  sol_heap_free(fuse.uses);
  sol_heap_free(fuse.left_out);
  sol_heap_free(left);
  return fine;
}

bool emu_fuse(Lower *l) {
  EmuProgram *p = l->program;
  uint8_t *code = lower_alloc(l, sizeof *p->bare * p->count + 64);
  if (!code) return false;
  p->bare = (EmuInst *)(void *)(code + (64 - (uintptr_t)code % 64) % 64);
  memcpy(p->bare, p->code, sizeof *p->bare * p->count);
  for (uint32_t k = 0; k < p->function_count; k++)
    if (!fuse_function(l, &p->functions[k])) return false;
  return true;
}
