// Lowers decoded PTX to EmuInst: a kernel and all functions it may call, in one array.
#include "emu/core/lower.h"

#include "base/error.h"
#include "base/heap.h"

typedef struct Family {
  const char *name;
  bool (*lower)(Lower *l, const PtxInst *in, EmuInst *out);
} Family;
static const Family families[] = {
#define EMU_FAMILY(name) {#name, lower_##name},
#include "emu/core/families.def"
};

static const Family *find_family(PtxOp op) {
  const char *name = sol_ptx_op_handler(op);
  for (size_t i = 0; i < SOL_COUNT(families); i++)
    if (strcmp(families[i].name, name) == 0) return &families[i];
  return NULL;
}

const EmuFunction *emu_function_at(const EmuProgram *program, uint32_t pc) {
  for (uint32_t i = 0; i < program->function_count; i++)
    if (pc >= program->functions[i].first && pc <= program->functions[i].end) return &program->functions[i];
  return &program->functions[0];
}

void emu_free_program(EmuProgram *program) {
  if (!program) return;
  sol_heap_free(program->consts);
  sol_heap_free(program->statics);
  sol_arena_free(&program->arena);
  sol_heap_free(program);
}

// ---- which functions ----

static bool takes_param_address(const SolPtxModule *ptx, const PtxFunction *fn) {
  for (uint32_t i = 0; i < fn->inst_count && !fn->entry; i++)
    if (fn->insts[i].code->op == PTX_OP_MOV && lower_is_param(ptx, &fn->insts[i].operands[1])) return true;
  return false;
}

static bool add_function(EmuProgram *p, const SolPtxModule *ptx, uint32_t index) {
  const PtxFunction *fn = &ptx->functions[index];
  if (p->function_of[index] != PTX_NONE || !fn->defined) return false;
  EmuFunction f = {.fn = fn, .index = index, .local_bytes = fn->local_bytes};
  if (takes_param_address(ptx, fn)) {
    f.addressed = true;
    f.param_home = (fn->local_bytes + 15) / 16 * 16;
    f.local_bytes = f.param_home + fn->param_bytes;
  }
  p->function_of[index] = p->function_count;
  p->functions[p->function_count++] = f;
  return true;
}

// Breadth first from the kernel. A function that calls by address may reach all whose address is taken.
static void collect_functions(EmuProgram *p, const SolPtxModule *ptx, uint32_t kernel) {
  for (uint32_t i = 0; i < ptx->function_count; i++) p->function_of[i] = PTX_NONE;
  add_function(p, ptx, kernel);
  bool taken = false; // those whose address is taken are there
  for (uint32_t at = 0; at < p->function_count; at++) {
    const PtxFunction *fn = p->functions[at].fn;
    for (uint32_t k = 0; k < fn->callee_count; k++) add_function(p, ptx, fn->callees[k]);
    if (fn->recursive || fn->calls_indirectly || fn->uses_alloca) p->dynamic_calls = true;
    if (!fn->calls_indirectly || taken) continue;
    taken = true;
    for (uint32_t i = 0; i < ptx->function_count; i++)
      if (ptx->functions[i].address_taken && !ptx->functions[i].entry) add_function(p, ptx, i);
  }
}

static uint64_t frame_local_bytes(const EmuFunction *f) {
  uint64_t align = f->fn->local_align > 16 ? f->fn->local_align : 16;
  return (f->local_bytes + align - 1) / align * align;
}

// Most local memory that calls without recursion can take: callees come after their callers in no fixed
// order, so lengths are relaxed until they are stable. Where that takes long the stack grows as calls need
// it.
enum { MOST_ROUNDS = 64 };
static bool bound_locals(Lower *l) {
  EmuProgram *p = l->program;
  uint64_t *depth = lower_alloc(l, sizeof *depth * p->function_count);
  if (!depth) return false;
  for (uint32_t i = 0; i < p->function_count; i++) depth[i] = frame_local_bytes(&p->functions[i]);
  for (uint32_t round = 0; !p->dynamic_calls && round < p->function_count; round++) {
    bool changed = false;
    for (uint32_t i = 0; i < p->function_count; i++) {
      const PtxFunction *fn = p->functions[i].fn;
      for (uint32_t k = 0; k < fn->callee_count; k++) {
        uint32_t callee = p->function_of[fn->callees[k]];
        uint64_t need = callee == PTX_NONE ? 0 : frame_local_bytes(&p->functions[i]) + depth[callee];
        if (need > depth[i]) depth[i] = need, changed = true;
      }
    }
    if (!changed) break;
    if (round == MOST_ROUNDS) p->dynamic_calls = true;
  }
  p->local_bytes = depth[0] + (p->dynamic_calls ? 1024 : 0);
  return true;
}

// ---- instructions ----

static SolStatus refuse(Lower *l, const PtxInst *in, SolError *err) {
  if (l->failed) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sol_fail(err, SOL_ERR_UNSUPPORTED, "%s: %s%s'%s' cannot be run", l->fn->name, l->reason[0] ? l->reason : "",
           l->reason[0] ? ": " : "", in->code->text);
  if (err) err->line = (int32_t)in->line, err->column = 1;
  return SOL_ERR_UNSUPPORTED;
}

static SolStatus lower_inst(Lower *l, const PtxInst *in, EmuInst *out, uint32_t pc, SolError *err) {
  const Family *family = find_family((PtxOp)in->code->op);
  l->inst = in;
  l->reason[0] = 0;
  *out = (EmuInst){.guard = EMU_TRUE, .index = pc, .vec = in->code->vec ? in->code->vec : 1};
  out->a = out->b = out->c = out->e = out->f = EMU_TRUE;
  out->d = l->function->spare;
  if (in->guard != PTX_NONE) out->guard = l->function->reg_loc[in->guard] | (in->guard_not ? EMU_NOT : 0);
  if (!family || !family->lower(l, in, out) || l->failed || l->reason[0] || !out->run)
    return refuse(l, in, err);
  return SOL_OK;
}

static void implicit_return(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  (void)i;
  emu_return(x, mask);
}

// Locations have 31 bits.
enum { MOST_REGISTERS = 1 << 21, MOST_CONST_BYTES = 1 << 30 };

static SolStatus lower_one(Lower *l, EmuFunction *f, SolError *err) {
  const PtxFunction *fn = f->fn;
  if (fn->reg_count > MOST_REGISTERS)
    return sol_fail(err, SOL_ERR_RANGE, "%.80s has more than %d registers", fn->name, MOST_REGISTERS);
  EmuLoc *loc = lower_alloc(l, sizeof *loc * fn->reg_count);
  if (!loc || !emu_assign_registers(fn, &l->program->arena, loc, &f->reg_bytes))
    return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  f->reg_loc = loc;
  f->spare = f->reg_bytes;
  f->reg_bytes += 512;
  f->param_skip = fn->entry ? (uint32_t)(fn->param_offset + fn->param_size) : 0;
  f->param_stride = (uint32_t)((fn->param_bytes - f->param_skip + 15) / 16 * 16);
  l->fn = fn;
  l->function = f;
  for (uint32_t i = 0; i < fn->inst_count; i++) {
    SolStatus status = lower_inst(l, &fn->insts[i], &l->program->code[f->first + i], f->first + i, err);
    if (status) return status;
    if (l->program->const_bytes > MOST_CONST_BYTES)
      return sol_fail(err, SOL_ERR_RANGE, "%.80s: too many constants", fn->name);
    l->program->source[f->first + i] = &fn->insts[i];
  }
  l->program->code[f->end] = (EmuInst){.run = implicit_return, .guard = EMU_TRUE, .index = f->end};
  return SOL_OK;
}

// Instructions of tcgen05 are of one block or of pairs of blocks, in a kernel all of them.
static bool group_blocks(EmuProgram *p) {
  bool singles = false;
  for (uint32_t f = 0; f < p->function_count; f++)
    for (uint32_t i = 0; i < p->functions[f].fn->inst_count; i++) {
      const PtxCode *code = p->functions[f].fn->insts[i].code;
      p->pairs |= PTX_HAS(code, CTA_GROUP_2);
      singles |= PTX_HAS(code, CTA_GROUP_1) && strcmp(sol_ptx_op_handler((PtxOp)code->op), "tcgen05") == 0;
    }
  return !singles || !p->pairs;
}

// Each use of one is looked up among all of them.
enum { MOST_SHARED = 4096 };

static SolStatus lower_all(Lower *l, uint32_t kernel, SolError *err) {
  EmuProgram *p = l->program;
  const SolPtxModule *ptx = l->ptx;
  if (ptx->functions[kernel].shared_count > MOST_SHARED)
    return sol_fail(err, SOL_ERR_RANGE, "%.80s uses more than %d shared variables",
                    ptx->functions[kernel].name, MOST_SHARED);
  p->functions = lower_alloc(l, sizeof *p->functions * ptx->function_count);
  p->function_of = lower_alloc(l, sizeof *p->function_of * ptx->function_count);
  if (l->failed) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  collect_functions(p, ptx, kernel);
  if (!group_blocks(p))
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%.80s uses both cta_group::1 and cta_group::2",
                    ptx->functions[kernel].name);
  uint64_t count = 0;
  for (uint32_t i = 0; i < p->function_count; i++) {
    p->functions[i].first = (uint32_t)count;
    count += (uint64_t)p->functions[i].fn->inst_count + 1;
    p->functions[i].end = (uint32_t)(count - 1);
    if (count > UINT32_MAX / 2) return sol_fail(err, SOL_ERR_RANGE, "too many instructions");
  }
  p->count = (uint32_t)count;
  uint8_t *code = lower_alloc(l, sizeof *p->code * p->count + 64);
  p->source = lower_alloc(l, sizeof *p->source * p->count);
  if (l->failed || !bound_locals(l)) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  p->code = (EmuInst *)(void *)(code + (64 - (uintptr_t)code % 64) % 64);
  p->const_bytes = 64; // EMU_TRUE, EMU_FALSE
  p->shared_static = ptx->functions[kernel].shared_bytes;
  lower_const(l, 0, 16); // so that no row follows the last too closely to be read whole
  for (uint32_t i = 0; i < p->function_count; i++) {
    SolStatus status = lower_one(l, &p->functions[i], err);
    if (status) return status;
  }
  return SOL_OK;
}

// Whether a loop reads memory in the way of one that waits for other blocks (ld.volatile, ld.relaxed, ld.acquire).
static bool polls(const EmuProgram *p) {
  uint32_t last = PTX_NONE; // such a read
  for (uint32_t pc = 0; pc < p->count; pc++) {
    const EmuInst *i = &p->code[pc];
    PtxOp op = p->source[pc] ? p->source[pc]->code->op : PTX_OP_NONE;
    bool far = i->space == PTX_SPACE_GLOBAL || i->space == PTX_SPACE_GENERIC;
    if (op == PTX_OP_LD && far && i->flags & EMU_FLAG_STRONG) last = pc;
    if (op == PTX_OP_BRA && last != PTX_NONE && i->target <= last) return true;
  }
  return false;
}

// ---- stretches of plain instructions ----

// It computes, or moves data of its own lanes: it neither branches nor waits, and reads no clock.
static bool is_plain(const PtxInst *in, const EmuInst *i) {
  static const char *const computing[] = {"address", "int_arith",   "int_carry",  "int_mul", "int_dot",
                                          "video",   "bits",        "shift",      "compare", "select",
                                          "convert", "float_arith", "float_unary"};
  if (!in) return false;
  PtxOp op = in->code->op;
  if (op == PTX_OP_LD || op == PTX_OP_ST) return !(i->flags & EMU_FLAG_STRONG);
  if (in->operand_count > 1 && in->operands[1].kind == PTX_ARG_SREG) return false;
  if (op == PTX_OP_MOV) return true;
  const char *family = sol_ptx_op_handler(op);
  for (size_t k = 0; k < SOL_COUNT(computing); k++)
    if (strcmp(family, computing[k]) == 0) return true;
  return false;
}

// Backwards: a stretch ends where lanes that took different ways meet again.
static bool find_stretches(Lower *l) {
  EmuProgram *p = l->program;
  uint8_t *meet = sol_heap_alloc(p->count + 1);
  p->straight = lower_alloc(l, sizeof *p->straight * p->count);
  if (!meet || !p->straight) {
    sol_heap_free(meet);
    return false;
  }
  memset(meet, 0, p->count + 1);
  for (uint32_t pc = 0; pc < p->count; pc++) {
    const PtxInst *in = p->source[pc];
    bool branches = in && strcmp(sol_ptx_op_handler((PtxOp)in->code->op), "control") == 0;
    if (branches && p->code[pc].reconverge < p->count) meet[p->code[pc].reconverge] = 1;
  }
  for (uint32_t pc = p->count; pc-- > 0;) {
    if (!is_plain(p->source[pc], &p->code[pc])) continue;
    uint32_t next = pc + 1 < p->count && !meet[pc + 1] ? p->straight[pc + 1] : 0;
    p->straight[pc] = (uint16_t)(next < UINT16_MAX ? next + 1 : next);
  }
  sol_heap_free(meet);
  return true;
}

// ---- accesses with the same lanes ----

static bool writes(const PtxOperand *o, uint32_t reg) {
  if (o->kind == PTX_ARG_REG) return o->written && o->index == reg;
  for (uint32_t k = 0; o->kind == PTX_ARG_VEC && k < o->count; k++)
    if ((o->written || o->elems[k].written) && o->elems[k].kind == PTX_ARG_REG && o->elems[k].index == reg)
      return true;
  return false;
}

static const PtxOperand *address_of(const PtxInst *in) {
  if (in->guard != PTX_NONE || (in->code->op != PTX_OP_LD && in->code->op != PTX_OP_ST)) return NULL;
  const PtxOperand *o = &in->operands[in->code->op == PTX_OP_LD];
  return o->kind == PTX_ARG_MEM && o->index != PTX_NONE ? o : NULL;
}

// Loads and stores of as many bytes through one register that does not change between them: the distances of their lanes
// are the same. Each names the first of them in its basic block (EmuInst.e), few of which are remembered at a time.
static void find_bases(EmuProgram *p) {
  enum { MOST = 8 };
  uint32_t first[MOST], count = 0;
  for (uint32_t pc = 0; pc < p->count; pc++) {
    const PtxInst *in = p->source[pc];
    EmuInst *i = &p->code[pc];
    if (!p->straight[pc] || in->leader) count = 0;
    if (!p->straight[pc]) continue;
    const PtxOperand *at = address_of(in);
    uint32_t k = at ? 0 : count;
    for (; k < count; k++) {
      const EmuInst *f = &p->code[first[k]];
      if (address_of(p->source[first[k]])->index == at->index && f->space == i->space &&
          f->bytes * f->vec == i->bytes * i->vec)
        break;
    }
    if (k < count)
      i->e = first[k];
    else if (at && count < MOST)
      first[count++] = pc;
    for (k = 0; k < count;) {
      bool changed = false;
      for (uint32_t n = 0; n < in->operand_count; n++)
        changed = changed || writes(&in->operands[n], address_of(p->source[first[k]])->index);
      if (changed)
        first[k] = first[--count];
      else
        k++;
    }
  }
}

SolStatus emu_lower(SolEmuModule *module, uint32_t function, EmuProgram **out, SolError *err) {
  EmuProgram *p = sol_heap_alloc(sizeof *p);
  if (!p) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *p = (EmuProgram){.module = module};
  Lower l = {.module = module, .ptx = module->ptx, .program = p};
  SolStatus status = lower_all(&l, function, err);
  if (!status && !find_stretches(&l)) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!status) find_bases(p);
  if (!status && !emu_fuse(&l)) status = sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  sol_heap_free(l.table);
  if (status) {
    emu_free_program(p);
    return status;
  }
  p->polls = polls(p);
  *out = p;
  return SOL_OK;
}
