// A whole instruction's operands: which goes to which position; textures and calls.
#include "ptx/operand.h"

// ---- textures and surfaces ----

static bool is_tensor(const PtxCode *code) {
  return code->op == PTX_OP_CP_TENSOR || code->op == PTX_OP_CP_TENSOR_STORE ||
         code->op == PTX_OP_CP_TENSOR_REDUCE || code->op == PTX_OP_CP_TENSOR_PREFETCH;
}

static uint32_t coordinates_of(const PtxCode *code) {
  // A column and four rows.
  if (is_tensor(code) && (code->fn == PTX_FN_GATHER4 || code->fn == PTX_FN_SCATTER4)) return 5;
  switch (code->geom) {
  case PTX_GEOM_1D: return 1;
  case PTX_GEOM_2D:
  case PTX_GEOM_A1D: return 2;
  case PTX_GEOM_3D:
  case PTX_GEOM_A2D: return 3;
  case PTX_GEOM_CUBE: return 4; // of which three count
  case PTX_GEOM_ACUBE:
  case PTX_GEOM_4D: return 4;
  case PTX_GEOM_5D: return 5;
  default: return 0;
  }
}

// The i-th coordinate's type: the layer of an array is an integer.
static PtxType coordinate_type(const PtxCode *code, uint32_t i) {
  bool array = code->geom == PTX_GEOM_A1D || code->geom == PTX_GEOM_A2D || code->geom == PTX_GEOM_ACUBE;
  bool texture = code->op == PTX_OP_TEX || code->op == PTX_OP_TLD4;
  return !texture || (array && i == 0) ? PTX_B32 : (PtxType)code->type[1];
}

static bool match_texture(const Match *m, const Raw *raw, uint32_t place) {
  const PtxCode *code = &m->code->pub;
  uint32_t need = coordinates_of(code), have = 0, first;
  Raw handle = *raw;
  const Raw *coordinates = NULL;
  bool sampler = false;
  if (raw->kind == RAW_TEX) {
    handle = m->list->elements[raw->first];
    coordinates = &m->list->elements[raw->coordinates];
    have = raw->first + raw->count - raw->coordinates;
    sampler = raw->coordinates - raw->first == 2;
    if (raw->coordinates - raw->first > 2)
      return sol_ptx_mismatch(m, raw, "a texture, a sampler and coordinates are needed here");
  } else if (raw->kind != RAW_MEM || raw->offset) {
    return sol_ptx_mismatch(m, raw, "a texture or surface in brackets is needed here");
  }
  handle.kind = RAW_NAME;
  if (have < need || have > (is_tensor(code) ? need : 4) || (sampler && is_tensor(code)))
    return sol_ptx_mismatch(m, raw, "another number of coordinates is needed here");
  if (!sol_ptx_add_operands(m->p, 2 + have, &first)) return false;
  PtxOperand operand;
  Slot slot = {.type = PTX_B64, .count = 1, .address = true};
  if (!sol_ptx_match_simple(m, &slot, &handle, &operand, first)) return false;
  *VEC_AT(&m->p->operands, PtxOperand, first) = operand;
  if (sampler) {
    if (!sol_ptx_match_simple(m, &slot, &m->list->elements[raw->first + 1], &operand, first + 1))
      return false;
    *VEC_AT(&m->p->operands, PtxOperand, first + 1) = operand;
  }
  slot.address = false;
  for (uint32_t i = 0; i < have; i++) {
    slot.type = (uint8_t)coordinate_type(code, i);
    if (!sol_ptx_match_simple(m, &slot, &coordinates[i], &operand, first + 2 + i)) return false;
    *VEC_AT(&m->p->operands, PtxOperand, first + 2 + i) = operand;
  }
  *VEC_AT(&m->p->operands, PtxOperand, place) = (PtxOperand){.kind = PTX_ARG_TEX,
                                                             .count = (uint16_t)(2 + have),
                                                             .index = PTX_NONE,
                                                             .symbol = PTX_NONE,
                                                             .elems = (const PtxOperand *)(uintptr_t)first};
  return true;
}

// ---- positions ----

static bool match_slot(const Match *m, const Slot *slot, const Raw *raw, uint32_t place) {
  switch (slot->shape) {
  case SLOT_MEM: return sol_ptx_match_memory(m, slot, raw, place);
  case SLOT_TEX: return match_texture(m, raw, place);
  default: return sol_ptx_match_plain(m, slot, raw, place);
  }
}

// Whether an operand can be meant for a position that may stay empty.
static bool may_take(const Match *m, const Slot *slot, const Raw *raw) {
  if (raw->kind != RAW_NAME) return slot->type != PTX_PRED;
  const Binding *b = NULL;
  uint32_t reg = sol_ptx_find_reg(m->p, raw->name, &b);
  return reg == PTX_NONE || sol_ptx_type_fits(slot->type, b->type, slot->wider);
}

static bool wrong_count(const Match *m, size_t at) {
  uint32_t most = 0;
  for (int i = 0; i < m->code->slot_count; i++) most += m->code->slots[i].shape != SLOT_NEVER;
  unsigned least = m->code->required;
  if (least == most)
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at, "'%.80s' takes %u operands, not %u", m->code->pub.text,
                        least, m->list->count);
  return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at, "'%.80s' takes %u to %u operands, and not these %u",
                      m->code->pub.text, least, most, m->list->count);
}

static bool is_scalar_video(const PtxCode *code) {
  return code->op >= PTX_OP_VADD && code->op <= PTX_OP_VSET;
}

// What depends on the operands themselves.
static bool check_operands(const Match *m, uint32_t first, size_t at) {
  const PtxCode *code = &m->code->pub;
  if ((code->op == PTX_OP_FMIN || code->op == PTX_OP_FMAX) && PTX_HAS(code, ABS) && !PTX_HAS(code, XORSIGN) &&
      VEC_AT(&m->p->operands, PtxOperand, first + 3)->kind == PTX_ARG_NONE)
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at, "'%.80s': .abs of two operands needs .xorsign", code->text);
  const PtxOperand *o = VEC_AT(&m->p->operands, PtxOperand, first);
  if (is_scalar_video(code) && !code->fn && (o[3].kind == PTX_ARG_NONE) == (o[0].value != 0))
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at,
                        "'%.80s' takes a fourth operand exactly where a part of the first is written",
                        code->text);
  if (code->op == PTX_OP_VMAD && (o[1].negated != o[2].negated) && o[3].negated)
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at, "'%.80s' negates the product or the addend, not both",
                        code->text);
  if (code->op != PTX_OP_CP_ASYNC) return true;
  uint64_t size = VEC_AT(&m->p->operands, PtxOperand, first + 2)->value;
  if (size == 16 || (code->cop == PTX_COP_CA && (size == 4 || size == 8))) return true;
  return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, at, "'%.80s' copies 4, 8 or 16 bytes, with .cg only 16",
                      code->text);
}

bool sol_ptx_parse_operands(Parser *p, const Code *code, PtxInst *inst, size_t at) {
  RawList list;
  if (!sol_ptx_parse_raw(p, &list)) return false;
  Match m = {p, code, &list};
  uint32_t first, next = 0, required = code->required;
  if (!sol_ptx_add_operands(p, code->slot_count, &first)) return false;
  for (uint32_t i = 0; i < code->slot_count; i++) {
    const Slot *slot = &code->slots[i];
    const Raw *raw = next < list.count ? &list.raws[next] : NULL;
    if (slot->shape == SLOT_NEVER) continue;
    if (slot->joined ? !raw || !raw->joined
                     : slot->optional && (!raw || list.count - next <= required || !may_take(&m, slot, raw)))
      continue;
    if (!raw || (raw->joined && !slot->joined)) return wrong_count(&m, at);
    if (!slot->optional) required--;
    if (!match_slot(&m, slot, raw, first + i)) return false;
    next++;
  }
  if (next != list.count) return wrong_count(&m, at);
  inst->operands = (const PtxOperand *)(uintptr_t)first;
  inst->operand_count = code->slot_count;
  return check_operands(&m, first, at);
}

// ---- calls ----

static bool match_argument(const Match *m, const Raw *raw, bool written, PtxOperand *out) {
  Parser *p = m->p;
  const Binding *b = raw->name ? raw->name->bound : NULL;
  *out = (PtxOperand){.written = written, .index = PTX_NONE, .symbol = PTX_NONE};
  if (raw->kind == RAW_NUMBER && !written) {
    out->kind = PTX_ARG_IMM;
    out->type = raw->constant.is_bits32 ? PTX_F32 : raw->constant.is_real ? PTX_F64 : PTX_B64;
    out->value = raw->constant.value;
    return true;
  }
  if (raw->kind == RAW_SINK && written) return out->kind = PTX_ARG_SINK, true;
  if (raw->kind != RAW_NAME || raw->offset || raw->indexed || raw->negated || raw->component >= 0)
    return sol_ptx_mismatch(m, raw, "a .param variable or a register is needed here");
  if (b && b->kind == BIND_SYMBOL && VEC_AT(&p->symbols, PtxSymbol, b->index)->space == PTX_SPACE_PARAM) {
    out->kind = PTX_ARG_SYMBOL;
    out->index = b->index;
    return true;
  }
  const Binding *found = NULL;
  out->index = sol_ptx_find_reg(p, raw->name, &found);
  if (out->index == PTX_NONE)
    return sol_ptx_mismatch(m, raw, "a .param variable or a register is needed here");
  if (found->type == PTX_PRED)
    return sol_ptx_mismatch(m, raw, "a predicate cannot be passed: make it a number with selp first");
  out->kind = PTX_ARG_REG;
  out->type = found->type;
  return true;
}

// Registers a name in a list of arguments stands for: a vector is passed as its elements.
static uint32_t argument_count(const Match *m, const Raw *raw) {
  const Binding *b = NULL;
  if (raw->kind != RAW_NAME || (raw->name->bound && raw->name->bound->kind == BIND_SYMBOL)) return 1;
  return sol_ptx_find_reg(m->p, raw->name, &b) == PTX_NONE ? 1 : b->vec;
}

static bool match_arguments(const Match *m, const Raw *raw, bool written, uint32_t place) {
  uint32_t first, count = 0;
  for (uint32_t i = 0; i < raw->count; i++) count += argument_count(m, &m->list->elements[raw->first + i]);
  if (!sol_ptx_add_operands(m->p, count, &first)) return false;
  uint32_t to = first;
  for (uint32_t i = 0; i < raw->count; i++) {
    const Raw *argument = &m->list->elements[raw->first + i];
    PtxOperand operand;
    if (!match_argument(m, argument, written, &operand)) return false;
    for (uint32_t k = argument_count(m, argument); k > 0; k--, operand.index++)
      *VEC_AT(&m->p->operands, PtxOperand, to++) = operand;
  }
  *VEC_AT(&m->p->operands, PtxOperand, place) = (PtxOperand){.kind = PTX_ARG_VEC,
                                                             .written = written,
                                                             .count = (uint16_t)count,
                                                             .index = PTX_NONE,
                                                             .symbol = PTX_NONE,
                                                             .elems = (const PtxOperand *)(uintptr_t)first};
  return true;
}

static bool match_callee(const Match *m, const Raw *raw, PtxOperand *out) {
  *out = (PtxOperand){.type = PTX_B64, .index = PTX_NONE, .symbol = PTX_NONE};
  const Binding *b = NULL;
  out->index = sol_ptx_find_reg(m->p, raw->name, &b);
  if (out->index != PTX_NONE) {
    out->kind = PTX_ARG_REG;
    out->type = b->type;
    int bits = sol_ptx_type_bits(b->type);
    return (b->vec == 1 && (bits == 64 || bits == 32)) ||
           sol_ptx_mismatch(m, raw, "a function or a register with its address is needed here");
  }
  b = raw->name->bound;
  if (!b || b->kind != BIND_FUNC)
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s' is no function", raw->name->text);
  out->kind = PTX_ARG_FUNC;
  out->index = b->index;
  return true;
}

// call (results), callee, (arguments), prototype;
static bool parse_call_parts(Parser *p, RawList *list, Raw *results, Raw *callee, Raw *arguments,
                             Name **prototype) {
  *results = *arguments = (Raw){.kind = RAW_VEC};
  if (sol_ptx_is_mark(p, '(') && (!sol_ptx_parse_raw_list(p, list, results) || !sol_ptx_expect(p, ',')))
    return false;
  *callee = (Raw){.kind = RAW_NAME, .at = p->lex.token.at, .component = -1};
  callee->name = sol_ptx_take_name(p, "the function to call");
  if (!callee->name) return false;
  if (!sol_ptx_take(p, ',')) return true;
  if (sol_ptx_is_mark(p, '(')) {
    if (!sol_ptx_parse_raw_list(p, list, arguments)) return false;
    if (!sol_ptx_take(p, ',')) return true;
  }
  *prototype = sol_ptx_take_name(p, "a prototype");
  return *prototype != 0;
}

bool sol_ptx_parse_call(Parser *p, const Code *code, PtxInst *inst, size_t at) {
  RawList list;
  list.count = list.element_count = 0;
  Raw results, callee, arguments;
  Name *prototype = NULL;
  if (!parse_call_parts(p, &list, &results, &callee, &arguments, &prototype)) return false;
  Match m = {p, code, &list};
  uint32_t first;
  PtxOperand operand;
  if (!sol_ptx_add_operands(p, 4, &first) || !match_callee(&m, &callee, &operand)) return false;
  *VEC_AT(&p->operands, PtxOperand, first) = operand;
  if (!match_arguments(&m, &results, true, first + 1) || !match_arguments(&m, &arguments, false, first + 2))
    return false;
  if (operand.kind == PTX_ARG_REG) {
    const Label *label = prototype ? prototype->label : NULL;
    if (!label || label->kind != LABEL_PROTOTYPE)
      return sol_ptx_fail(p, SOL_ERR_SYNTAX, at,
                          "an indirect call ends with its .callprototype or .calltargets, declared before");
    inst->prototype = label->index;
  }
  inst->operands = (const PtxOperand *)(uintptr_t)first;
  inst->operand_count = 4;
  return true;
}
