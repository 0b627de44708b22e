// Operands of lowered instructions: registers, constants, addresses.
#include <stdarg.h>

#include "base/format.h"
#include "base/heap.h"
#include "emu/core/lower.h"

bool lower_refuse(Lower *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  sol_vformat(l->reason, sizeof l->reason, format, args);
  va_end(args);
  return false;
}

const PtxFunction *lower_function(const Lower *l) {
  return l->fn;
}
const SolPtxModule *lower_module(const Lower *l) {
  return l->ptx;
}

void *lower_alloc(Lower *l, size_t bytes) {
  void *p = sol_arena_alloc(&l->program->arena, bytes ? bytes : 1);
  if (!p) l->failed = true;
  return p;
}

// ---- constants ----

static uint32_t hash_const(const EmuConst *c) {
  uint64_t h = c->value * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)c->kind << 8 ^
               (uint64_t)c->lane_bytes << 16 ^ (uint64_t)c->load_bytes << 24 ^ (uint64_t)c->is_signed << 32;
  return (uint32_t)(h >> 32 ^ h);
}

static bool same_const(const EmuConst *a, const EmuConst *b) {
  return a->value == b->value && a->kind == b->kind && a->lane_bytes == b->lane_bytes &&
         a->load_bytes == b->load_bytes && a->is_signed == b->is_signed;
}

static bool grow_consts(Lower *l) {
  EmuProgram *p = l->program;
  uint32_t cap = p->const_cap ? p->const_cap * 2 : 64;
  EmuConst *grown = sol_heap_realloc(p->consts, sizeof *grown * cap);
  if (!grown) return false;
  p->consts = grown;
  p->const_cap = cap;
  uint32_t *table = sol_heap_realloc(l->table, sizeof *table * cap * 2);
  if (!table) return false;
  l->table = table;
  l->table_size = cap * 2;
  memset(table, 0, sizeof *table * l->table_size);
  for (uint32_t i = 0; i < p->const_count; i++) {
    uint32_t at = hash_const(&p->consts[i]) % l->table_size;
    while (table[at]) at = (at + 1) % l->table_size;
    table[at] = i + 1;
  }
  return true;
}

EmuLoc lower_const_row(Lower *l, EmuConst want) {
  EmuProgram *p = l->program;
  if (p->const_count == p->const_cap && !grow_consts(l)) {
    l->failed = true;
    return EMU_TRUE;
  }
  uint32_t at = hash_const(&want) % l->table_size;
  for (; l->table[at]; at = (at + 1) % l->table_size) {
    const EmuConst *have = &p->consts[l->table[at] - 1];
    if (same_const(have, &want)) return have->offset | EMU_BANK_LAUNCH;
  }
  want.offset = p->const_bytes;
  p->const_bytes += ((uint32_t)want.lane_bytes * EMU_LANES + 63) / 64 * 64;
  p->consts[p->const_count++] = want;
  l->table[at] = p->const_count;
  return want.offset | EMU_BANK_LAUNCH;
}

EmuLoc lower_const(Lower *l, uint64_t value, int bytes) {
  if (bytes < 2) bytes = 2;
  if (bytes < 8) value &= (UINT64_C(1) << bytes * 8) - 1;
  return lower_const_row(l,
                         (EmuConst){.kind = EMU_CONST_VALUE, .lane_bytes = (uint8_t)bytes, .value = value});
}

static int lane_bytes_of_type(uint8_t type) {
  int bits = sol_ptx_type_bits((PtxType)type);
  return bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

int lower_lane_bytes(Lower *l, const PtxOperand *o) {
  if (o->kind == PTX_ARG_VEC && o->count) return lower_lane_bytes(l, &o->elems[0]);
  if (o->kind == PTX_ARG_REG) return lane_bytes_of_type(l->fn->regs[o->index].type);
  return lane_bytes_of_type(o->type);
}

// ---- registers that are constants ----

static const PtxOperand varies; // in place of a constant: it is not one

static void note_write(Lower *l, const PtxInst *in, const PtxOperand *o, bool written) {
  written = written || o->written;
  for (uint32_t k = 0; o->kind == PTX_ARG_VEC && k < o->count; k++) note_write(l, in, &o->elems[k], written);
  if (o->kind != PTX_ARG_REG || !written) return;
  bool moves = in->code->op == PTX_OP_MOV && in->guard == PTX_NONE && in->operands[1].kind == PTX_ARG_IMM;
  l->constants[o->index] = moves && !l->constants[o->index] ? &in->operands[1] : &varies;
}

static bool find_constants(Lower *l) {
  const PtxFunction *fn = l->fn;
  if (l->constants_of == fn) return l->constants != NULL;
  l->constants = lower_alloc(l, sizeof *l->constants * (fn->reg_count + 1));
  l->constants_of = fn;
  for (uint32_t n = 0; l->constants && n < fn->inst_count; n++)
    for (uint32_t k = 0; k < fn->insts[n].operand_count; k++)
      note_write(l, &fn->insts[n], &fn->insts[n].operands[k], false);
  for (uint32_t k = 0; l->constants && fn->param_regs && k < fn->param_count; k++)
    if (fn->param_regs[k] != PTX_NONE) l->constants[fn->param_regs[k]] = &varies;
  return l->constants != NULL;
}

const PtxOperand *lower_constant(Lower *l, const PtxOperand *o) {
  if (o->kind == PTX_ARG_IMM) return o;
  if (o->kind != PTX_ARG_REG || o->value || !find_constants(l)) return NULL;
  const PtxOperand *c = l->constants[o->index];
  return c != &varies ? c : NULL;
}

// ---- special registers ----

static EmuLoc row(int number, int bank) {
  return (EmuLoc)(number * EMU_ROW_BYTES) | (EmuLoc)bank;
}

static bool varying_sreg(PtxSreg sreg, EmuLoc *loc) {
  switch (sreg) {
  case PTX_SREG_TID_X: *loc = row(EMU_ROW_TID_X, EMU_BANK_WARP); return true;
  case PTX_SREG_TID_Y: *loc = row(EMU_ROW_TID_Y, EMU_BANK_WARP); return true;
  case PTX_SREG_TID_Z: *loc = row(EMU_ROW_TID_Z, EMU_BANK_WARP); return true;
  case PTX_SREG_WARPID: *loc = row(EMU_ROW_WARPID, EMU_BANK_WARP); return true;
  case PTX_SREG_CTAID_X: *loc = row(EMU_ROW_CTAID_X, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CTAID_Y: *loc = row(EMU_ROW_CTAID_Y, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CTAID_Z: *loc = row(EMU_ROW_CTAID_Z, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTERID_X: *loc = row(EMU_ROW_CLUSTERID_X, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTERID_Y: *loc = row(EMU_ROW_CLUSTERID_Y, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTERID_Z: *loc = row(EMU_ROW_CLUSTERID_Z, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTER_CTAID_X: *loc = row(EMU_ROW_RANK_X, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTER_CTAID_Y: *loc = row(EMU_ROW_RANK_Y, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTER_CTAID_Z: *loc = row(EMU_ROW_RANK_Z, EMU_BANK_BLOCK); return true;
  case PTX_SREG_CLUSTER_CTARANK: *loc = row(EMU_ROW_RANK, EMU_BANK_BLOCK); return true;
  case PTX_SREG_SMID: *loc = row(EMU_ROW_SMID, EMU_BANK_BLOCK); return true;
  default: return false;
  }
}

static EmuLoc read_sreg(Lower *l, const PtxOperand *o) {
  EmuLoc loc;
  PtxSreg sreg = (PtxSreg)o->sreg;
  if (varying_sreg(sreg, &loc)) return loc;
  int bytes = sreg == PTX_SREG_IS_EXPLICIT_CLUSTER ? 4 : lane_bytes_of_type((uint8_t)sol_ptx_sreg_type(sreg));
  uint64_t number = sreg == PTX_SREG_ENVREG ? o->index : 0;
  uint64_t value = (uint64_t)sreg | number << 16;
  return lower_const_row(l, (EmuConst){.kind = EMU_CONST_SREG, .lane_bytes = (uint8_t)bytes, .value = value});
}

// ---- operands ----

bool lower_symbol_address(Lower *l, uint32_t symbol, uint64_t *value) {
  const PtxSymbol *s = &l->ptx->symbols[symbol];
  const PtxFunction *kernel = l->program->functions[0].fn;
  switch (s->space) {
  case PTX_SPACE_SHARED:
  case PTX_SPACE_SHARED_CLUSTER:
    if (s->dynamic) return false;
    for (uint32_t i = 0; i < kernel->shared_count; i++)
      if (kernel->shared[i].symbol == symbol) {
        *value = kernel->shared[i].offset;
        return true;
      }
    return false;
  case PTX_SPACE_LOCAL: *value = s->offset; return true;
  case PTX_SPACE_PARAM:
    *value = s->function != PTX_NONE && l->fn->entry && s->offset < l->fn->param_offset + l->fn->param_size
                 ? s->offset - l->fn->param_offset
                 : s->offset;
    return true;
  default: *value = l->module->address[symbol]; return true;
  }
}

static EmuLoc read_symbol(Lower *l, const PtxOperand *o) {
  const PtxSymbol *s = &l->ptx->symbols[o->index];
  int bytes = lane_bytes_of_type(o->type);
  uint64_t value = 0;
  if (lower_symbol_address(l, o->index, &value)) return lower_const(l, value + o->value, bytes);
  if (s->dynamic)
    return lower_const_row(
        l, (EmuConst){.kind = EMU_CONST_DYNAMIC, .lane_bytes = (uint8_t)bytes, .value = o->value});
  lower_refuse(l, "the address of %s is not known", s->name);
  return EMU_TRUE;
}

EmuLoc lower_read(Lower *l, const PtxOperand *o) {
  bool pred = o->type == PTX_PRED;
  switch (o->kind) {
  case PTX_ARG_REG: return l->function->reg_loc[o->index] | (pred && o->negated ? EMU_NOT : 0);
  case PTX_ARG_IMM:
    return pred ? lower_const_pred((o->value != 0) != o->negated)
                : lower_const(l, o->value, lane_bytes_of_type(o->type));
  case PTX_ARG_SREG: return read_sreg(l, o);
  case PTX_ARG_SYMBOL: return read_symbol(l, o);
  case PTX_ARG_FUNC:
    return lower_const(l, EMU_CODE_WINDOW + (uint64_t)(o->index + 1) * EMU_CODE_STEP,
                       lane_bytes_of_type(o->type));
  case PTX_ARG_VEC: return o->count ? lower_read(l, &o->elems[0]) : EMU_TRUE;
  default: return pred ? EMU_TRUE : lower_const(l, 0, 16);
  }
}

EmuLoc lower_write(Lower *l, const PtxOperand *o) {
  if (o->kind == PTX_ARG_REG) return l->function->reg_loc[o->index];
  if (o->kind == PTX_ARG_VEC && o->count) return lower_write(l, &o->elems[0]);
  return l->function->spare;
}

const EmuLoc *lower_list(Lower *l, const PtxOperand *o) {
  uint32_t count = o->kind == PTX_ARG_VEC ? o->count : 1;
  EmuLoc *list = lower_alloc(l, sizeof *list * count);
  for (uint32_t i = 0; list && i < count; i++) {
    const PtxOperand *e = o->kind == PTX_ARG_VEC ? &o->elems[i] : o;
    bool written = o->written || e->written || e->kind == PTX_ARG_SINK;
    list[i] = written ? lower_write(l, e) : lower_read(l, e);
  }
  return list;
}

void lower_dabc(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxOperand *o = in->operands;
  if (in->operand_count > 0) out->d = lower_write(l, &o[0]);
  if (in->operand_count > 1) out->a = lower_read(l, &o[1]);
  if (in->operand_count > 2) out->b = lower_read(l, &o[2]);
  if (in->operand_count > 3) out->c = lower_read(l, &o[3]);
}

bool lower_mem2(Lower *l, const PtxOperand *o, EmuLoc *base, int64_t *offset, uint8_t *abytes) {
  *abytes = 8;
  *offset = (int64_t)o->value;
  if (o->index != PTX_NONE) {
    *base = l->function->reg_loc[o->index];
    *abytes = (uint8_t)lane_bytes_of_type(l->fn->regs[o->index].type);
    return *abytes == 4 || *abytes == 8 || lower_refuse(l, "an address of 16 bits");
  }
  if (o->symbol == PTX_NONE) {
    *base = lower_const(l, 0, 8);
    return true;
  }
  uint64_t value = 0;
  if (lower_symbol_address(l, o->symbol, &value)) {
    *base = lower_const(l, 0, 8);
    *offset = (int64_t)(o->value + value);
    return true;
  }
  if (!l->ptx->symbols[o->symbol].dynamic)
    return lower_refuse(l, "the address of %s is not known", l->ptx->symbols[o->symbol].name);
  *base = lower_const_row(l, (EmuConst){.kind = EMU_CONST_DYNAMIC, .lane_bytes = 8});
  return true;
}

bool lower_address_operand(Lower *l, const PtxOperand *o, EmuAddress *out) {
  return lower_mem2(l, o, &out->base, &out->offset, &out->abytes);
}

bool lower_mem(Lower *l, const PtxOperand *o, int space, EmuInst *out) {
  out->space = (uint8_t)space;
  if (o->symbol != PTX_NONE && o->index == PTX_NONE) {
    // Named without its space: the generic address is meant.
    const PtxSymbol *s = &l->ptx->symbols[o->symbol];
    if (space == PTX_SPACE_GENERIC) out->space = s->space;
    if (s->space == PTX_SPACE_LOCAL) out->flags |= EMU_FLAG_FRAME;
  }
  return lower_mem2(l, o, &out->a, &out->offset, &out->abytes);
}
