// Instructions back to text, for messages and reports.
#include "base/format.h"
#include "ptx/ptx.h"

typedef struct Out {
  const SolPtxModule *m;
  const PtxFunction *f;
  char *to;
  size_t cap, length;
} Out;

SOL_PRINTF(2, 3) static void put(Out *o, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = o->length < o->cap ? o->cap - o->length : 0;
  o->length += sol_vformat(room ? o->to + o->length : NULL, room, format, args);
  va_end(args);
}

static void put_reg(Out *o, uint32_t reg) {
  const PtxReg *r = &o->f->regs[reg];
  put(o, "%s", r->name);
  if (r->number != PTX_NONE) put(o, "%u", r->number);
}

static void put_offset(Out *o, uint64_t offset) {
  if (offset) put(o, "%s%lld", (int64_t)offset < 0 ? "" : "+", (long long)offset);
}

static void put_immediate(Out *o, const PtxOperand *a) {
  PtxTypeClass class = sol_ptx_type_class(a->type);
  int bits = sol_ptx_type_bits(a->type);
  if (class == PTX_CLASS_FLOAT && bits == 32)
    put(o, "0f%08llx", (unsigned long long)a->value);
  else if (class == PTX_CLASS_FLOAT)
    put(o, "0d%016llx", (unsigned long long)a->value);
  else if (class == PTX_CLASS_UNSIGNED || bits == 0 || bits >= 64)
    put(o, "%lld", (long long)a->value);
  else
    put(o, "%lld", (long long)(int64_t)(a->value << (64 - bits)) >> (64 - bits));
}

static void put_part(Out *o, unsigned part) {
  if (part) put(o, ".%c", PTX_PART_BYTES(part) ? 'b' : 'h');
  for (unsigned i = PTX_PART_COUNT(part); i-- > 0;) put(o, "%u", PTX_PART_DIGIT(part, i));
}

static void put_operand(Out *o, const PtxOperand *a);

static void put_list(Out *o, const PtxOperand *a, uint32_t from, char open, char close) {
  put(o, "%c", open);
  for (uint32_t i = from; i < a->count; i++) {
    if (i > from) put(o, ", ");
    put_operand(o, &a->elems[i]);
  }
  put(o, "%c", close);
}

static void put_operand(Out *o, const PtxOperand *a) {
  if (a->negated) put(o, a->type == PTX_PRED ? "!" : "-");
  switch ((PtxArgKind)a->kind) {
  case PTX_ARG_NONE: break;
  case PTX_ARG_REG:
    put_reg(o, a->index);
    put_part(o, (unsigned)a->value);
    break;
  case PTX_ARG_IMM: put_immediate(o, a); break;
  case PTX_ARG_SREG:
    put(o, "%s", sol_ptx_sreg_name((PtxSreg)a->sreg));
    if (a->sreg == PTX_SREG_PM || a->sreg == PTX_SREG_ENVREG) put(o, "%u", a->index);
    break;
  case PTX_ARG_SYMBOL:
    put(o, "%s", o->m->symbols[a->index].name);
    put_offset(o, a->value);
    break;
  case PTX_ARG_FUNC: put(o, "%s", o->m->functions[a->index].name); break;
  case PTX_ARG_MEM:
    put(o, "[");
    if (a->index != PTX_NONE)
      put_reg(o, a->index);
    else if (a->symbol != PTX_NONE)
      put(o, "%s", o->m->symbols[a->symbol].name);
    else
      put(o, "%lld", (long long)a->value);
    if (a->index != PTX_NONE || a->symbol != PTX_NONE) put_offset(o, a->value);
    put(o, "]");
    break;
  case PTX_ARG_VEC: put_list(o, a, 0, '{', '}'); break;
  case PTX_ARG_TEX:
    put(o, "[");
    put_operand(o, &a->elems[0]);
    if (a->elems[1].kind != PTX_ARG_NONE) put(o, ", "), put_operand(o, &a->elems[1]);
    if (a->count > 2) put(o, ", "), put_list(o, a, 2, '{', '}');
    put(o, "]");
    break;
  case PTX_ARG_LABEL: put(o, "#%u", a->index); break;
  case PTX_ARG_TABLE: put(o, "table %u", a->index); break;
  case PTX_ARG_SINK: put(o, "_"); break;
  }
}

static void put_call(Out *o, const PtxInst *inst) {
  const PtxOperand *a = inst->operands;
  if (a[1].count) put_list(o, &a[1], 0, '(', ')'), put(o, ", ");
  put_operand(o, &a[0]);
  if (a[2].count) put(o, ", "), put_list(o, &a[2], 0, '(', ')');
}

size_t sol_ptx_format_inst(const SolPtxModule *module, const PtxFunction *function, const PtxInst *inst,
                           char *out, size_t cap) {
  Out o = {module, function, out, cap, 0};
  if (cap) out[0] = 0;
  if (inst->guard != PTX_NONE) {
    put(&o, inst->guard_not ? "@!" : "@");
    put_reg(&o, inst->guard);
    put(&o, " ");
  }
  put(&o, "%s", inst->code->text);
  if (inst->code->op == PTX_OP_CALL) {
    put(&o, " ");
    put_call(&o, inst);
  } else {
    const char *shape = sol_ptx_code_operands(inst->code); // says which operand '|' joins to the one before
    bool first = true;
    for (int i = 0; i < inst->operand_count; i++) {
      bool joined = *shape == '|';
      while (*shape && *shape != ' ') shape++;
      while (*shape == ' ') shape++;
      if (inst->operands[i].kind == PTX_ARG_NONE) continue;
      put(&o, first ? " " : joined ? "|" : ", ");
      put_operand(&o, &inst->operands[i]);
      first = false;
    }
  }
  put(&o, ";");
  return o.length;
}
