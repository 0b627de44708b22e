// Calls: a new frame of registers, parameters and local memory for the lanes that call; returns copy the results
// to the caller.
#include "base/format.h"
#include "emu/core/lower.h"

static uint32_t formal_offset(const EmuProgram *p, const EmuFunction *f, const uint32_t *symbols,
                              uint32_t k) {
  const PtxSymbol *s = &p->module->ptx->symbols[symbols[k]];
  return (uint32_t)s->offset - f->param_skip;
}
static uint32_t formal_bytes(const EmuProgram *p, const uint32_t *symbols, uint32_t k) {
  return (uint32_t)p->module->ptx->symbols[symbols[k]].size;
}

// Where one lane's value stands: in a frame of parameters or in a row of registers.
typedef struct Place {
  uint8_t *base;
  size_t stride;
  uint32_t bytes;
} Place;

static Place place_of_move(uint8_t *const bank[4], const EmuFrame *frame, const EmuMove *m) {
  if (m->in_frame) return (Place){frame->params + m->offset, frame->param_stride, m->bytes};
  return (Place){bank[m->loc & 3] + (m->loc & 0x7ffffffcu), m->bytes, m->bytes};
}

static Place place_of_formal(const EmuProgram *p, const EmuFrame *frame, bool result, uint32_t k) {
  const EmuFunction *f = &p->functions[frame->function];
  const uint32_t *symbols = result ? f->fn->results : f->fn->params;
  const uint32_t *regs = result ? f->fn->result_regs : f->fn->param_regs;
  if (symbols[k] != PTX_NONE)
    return (Place){frame->params + formal_offset(p, f, symbols, k), frame->param_stride,
                   formal_bytes(p, symbols, k)};
  int bits = sol_ptx_type_bits((PtxType)f->fn->regs[regs[k]].type);
  uint32_t bytes = bits <= 16 ? 2 : (uint32_t)bits / 8;
  return (Place){frame->regs + f->reg_loc[regs[k]], bytes, bytes};
}

static void move_lanes(Place to, Place from, uint32_t mask) {
  uint32_t bytes = to.bytes < from.bytes ? to.bytes : from.bytes;
  for (; mask; mask &= mask - 1) {
    size_t lane = (size_t)emu_first(mask);
    memcpy(to.base + lane * to.stride, from.base + lane * from.stride, bytes);
  }
}

// A parameter whose address is taken is a local variable of the call, with the argument's value.
static void store_in_local(EmuCtx *x, const EmuFrame *frame, uint32_t mask) {
  const EmuProgram *p = x->launch->program;
  const EmuFunction *f = &p->functions[frame->function];
  uint32_t warp = x->warp->index;
  if (!f->addressed) return;
  uint8_t *base = x->block->local[warp] + frame->local_base + f->param_home;
  for (uint32_t k = 0; k < f->fn->param_count; k++) {
    if (f->fn->params[k] == PTX_NONE) continue; // a register
    Place from = place_of_formal(p, frame, false, k), to = from;
    to.base = base + formal_offset(p, f, f->fn->params, k);
    to.stride = x->block->local_cap[warp];
    move_lanes(to, from, mask);
  }
}

// Lanes of the running entry's frame go back to the caller. At the bottom, the kernel's own end.
bool emu_return(EmuCtx *x, uint32_t mask) {
  EmuFiber *f = x->fiber;
  EmuFrame *frame = x->frame;
  emu_store_top(x);
  if (!frame->caller) {
    emu_end_lanes(x, mask);
    return true;
  }
  const EmuCall *call = frame->call->more;
  const EmuFunction *fn = &x->launch->program->functions[frame->function];
  uint8_t *bank[4] = {frame->caller->regs, x->bank[1], x->bank[2], x->bank[3]};
  for (uint32_t k = 0; k < call->result_count && k < fn->fn->result_count; k++)
    move_lanes(place_of_move(bank, frame->caller, &call->results[k]),
               place_of_formal(x->launch->program, frame, true, k), mask);
  for (uint32_t k = f->count; k-- > 0;) {
    f->entries[k].mask &= ~mask;
    if (f->entries[k].base) break;
  }
  emu_reconverge(x);
  return true;
}

// Of nested calls: this many, and registers and parameters of so many bytes.
enum { MAX_CALLS = 1 << 16, MAX_CALL_BYTES = 64 << 20 };

static void no_call(EmuCtx *x, const EmuInst *i, uint32_t mask, const char *name, uint64_t need, bool fits) {
  if (fits)
    emu_find(x, i, mask, SOL_EMU_STACK, need, 0,
             "calls are nested too deep: one of %s is beyond %d calls or %d MiB of registers and parameters",
             name, MAX_CALLS, MAX_CALL_BYTES >> 20);
  else
    emu_find(x, i, mask, SOL_EMU_STACK, need, 0,
             "a call of %s goes beyond the stack of %llu bytes a thread has", name,
             (unsigned long long)x->launch->emu->machine.stack_bytes);
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
}

static bool enter(EmuCtx *x, const EmuInst *i, uint32_t function, uint32_t mask, EmuFrame *caller) {
  const EmuCall *call = i->more;
  const EmuProgram *p = x->launch->program;
  const EmuFunction *fn = &p->functions[function];
  EmuFrame *frame = emu_new_frame(x, function, caller);
  if (!frame) return false;
  frame->call = i;
  uint64_t need = frame->local_top;
  uint64_t *cap = &x->block->local_cap[x->warp->index];
  bool fits = need <= *cap || (need <= x->launch->emu->machine.stack_bytes &&
                               emu_grow_local(x, x->block, x->warp->index, need));
  if (!fits || x->fiber->count > MAX_CALLS || frame->bytes > MAX_CALL_BYTES) {
    no_call(x, i, mask, fn->fn->name, need, fits);
    emu_release_frame(x, frame);
    return false;
  }
  uint8_t *bank[4] = {caller->regs, x->bank[1], x->bank[2], x->bank[3]};
  for (uint32_t k = 0; k < call->arg_count && k < fn->fn->param_count; k++)
    move_lanes(place_of_formal(p, frame, false, k), place_of_move(bank, caller, &call->args[k]), mask);
  store_in_local(x, frame, mask);
  EmuEntry entry = {.pc = fn->first, .reconverge = UINT32_MAX, .mask = mask, .base = true, .frame = frame};
  if (emu_push(x->fiber, entry)) return true;
  emu_release_frame(x, frame);
  return false;
}

static void call_direct(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const EmuCall *call = i->more;
  emu_store_top(x);
  if (enter(x, i, call->function, mask, x->frame))
    emu_reconverge(x);
  else {
    emu_stop(x->launch, SOL_EMU_FAULT);
    x->budget = 0;
  }
}

static uint32_t function_at(const EmuProgram *p, uint64_t address) {
  uint64_t n = (address - EMU_CODE_WINDOW) / EMU_CODE_STEP;
  if (address < EMU_CODE_WINDOW || address % EMU_CODE_STEP || !n || n > p->module->ptx->function_count)
    return PTX_NONE;
  return p->function_of[n - 1];
}

// Bytes of the k-th parameter or result as it is declared.
static uint64_t declared_bytes(const EmuProgram *p, const PtxFunction *fn, bool result, uint32_t k) {
  uint32_t symbol = result ? fn->results[k] : fn->params[k];
  if (symbol != PTX_NONE) return p->module->ptx->symbols[symbol].size;
  uint32_t reg = result ? fn->result_regs[k] : fn->param_regs[k];
  return (uint64_t)sol_ptx_type_bits((PtxType)fn->regs[reg].type) / 8;
}

static bool same_sizes(const EmuProgram *p, const PtxFunction *fn, const PtxPrototype *t) {
  if (fn->param_count != t->param_count || fn->result_count != t->result_count) return false;
  for (uint32_t k = 0; k < t->param_count; k++)
    if (declared_bytes(p, fn, false, k) != t->param_bytes[k]) return false;
  for (uint32_t k = 0; k < t->result_count; k++)
    if (declared_bytes(p, fn, true, k) != t->result_bytes[k]) return false;
  return true;
}

static bool is_target(const PtxPrototype *t, uint32_t function) {
  for (uint32_t k = 0; k < t->target_count; k++)
    if (t->targets[k] == function) return true;
  return !t->target_count;
}

// Why the function cannot be called with the prototype; NULL: it can.
static const char *bad_callee(const EmuProgram *p, uint32_t function, const PtxPrototype *t) {
  if (function == PTX_NONE) return "where no function is that the kernel can call";
  const EmuFunction *f = &p->functions[function];
  if (f->fn->entry) return "which is a kernel";
  if (!is_target(t, f->index)) return "which the call's .calltargets do not name";
  if (!same_sizes(p, f->fn, t)) return "whose parameters and results are not those of the call's prototype";
  return NULL;
}

// Lanes may call different functions: each gets an entry of its own, and they reconverge after the call.
static void call_indirect(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const uint64_t *address = EMU_IN(uint64_t, i->a);
  EmuFrame *caller = x->frame;
  emu_store_top(x);
  for (uint32_t left = mask; left;) {
    uint64_t to = address[emu_first(left)];
    uint32_t group = 0;
    for (uint32_t k = left; k; k &= k - 1)
      if (address[emu_first(k)] == to) group |= 1u << emu_first(k);
    left &= ~group;
    uint32_t function = function_at(x->launch->program, to);
    const char *why = bad_callee(x->launch->program, function, ((const EmuCall *)i->more)->prototype);
    if (why) {
      bool named = function != PTX_NONE;
      emu_find(x, i, group, SOL_EMU_BAD_CALL, to, 0, "a call to 0x%llx%s%s, %s", (unsigned long long)to,
               named ? ", " : "", named ? x->launch->program->functions[function].fn->name : "", why);
      emu_stop(x->launch, SOL_EMU_FAULT);
      x->budget = 0;
      return;
    }
    if (!enter(x, i, function, group, caller)) {
      emu_stop(x->launch, SOL_EMU_FAULT);
      x->budget = 0;
      return;
    }
  }
  emu_reconverge(x);
}

// ---- lowering ----

static bool lower_moves(Lower *l, const PtxOperand *list, const EmuMove **out, uint32_t *count) {
  *count = list->kind == PTX_ARG_VEC ? list->count : 0;
  EmuMove *moves = lower_alloc(l, sizeof *moves * (*count + 1));
  if (!moves) return false;
  for (uint32_t k = 0; k < *count; k++) {
    const PtxOperand *o = &list->elems[k];
    if (o->kind == PTX_ARG_SYMBOL) {
      const PtxSymbol *s = &l->ptx->symbols[o->index];
      bool formal_of_kernel = l->fn->entry && s->offset < l->function->param_skip;
      if (s->space != PTX_SPACE_PARAM || formal_of_kernel)
        return lower_refuse(l, "%s as an operand of call", s->name);
      moves[k] = (EmuMove){.in_frame = true,
                           .offset = (uint32_t)s->offset - l->function->param_skip,
                           .bytes = (uint32_t)s->size};
    } else {
      moves[k].loc = o->written ? lower_write(l, o) : lower_read(l, o);
      moves[k].bytes = (uint32_t)lower_lane_bytes(l, o);
    }
  }
  *out = moves;
  return true;
}

bool lower_call(Lower *l, const PtxInst *in, EmuInst *out) {
  EmuCall *call = lower_alloc(l, sizeof *call);
  if (!call) return false;
  out->more = call;
  if (!lower_moves(l, &in->operands[1], &call->results, &call->result_count)) return false;
  if (!lower_moves(l, &in->operands[2], &call->args, &call->arg_count)) return false;
  const PtxOperand *callee = &in->operands[0];
  if (callee->kind != PTX_ARG_FUNC) {
    call->function = PTX_NONE;
    call->prototype = &l->fn->prototypes[in->prototype];
    out->a = lower_read(l, callee);
    out->run = call_indirect;
    return lower_lane_bytes(l, callee) == 8 || lower_refuse(l, "a function address that is not of 64 bits");
  }
  const PtxFunction *fn = &l->ptx->functions[callee->index];
  call->function = l->program->function_of[callee->index];
  if (fn->defined) {
    out->run = call_direct;
    return call->function != PTX_NONE;
  }
  out->run = emu_builtin(fn->name);
  return out->run || lower_refuse(l, "%s is defined nowhere", fn->name);
}
