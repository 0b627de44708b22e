// Operands as written against the positions that the opcode has for them.
#include "ptx/operand.h"

bool sol_ptx_mismatch(const Match *m, const Raw *raw, const char *why) {
  return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s': %s", m->code->pub.text, why);
}

// ---- immediates ----

static uint64_t low_bits(uint64_t v, int bits) {
  return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

static uint64_t double_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static uint64_t float_bits(double v) {
  float narrow = (float)v;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

static bool set_immediate(const Match *m, PtxType type, const Raw *raw, PtxOperand *out) {
  const Constant *c = &raw->constant;
  PtxTypeClass class = sol_ptx_type_class(type);
  int bits = sol_ptx_type_bits(type);
  out->kind = PTX_ARG_IMM;
  if (type == PTX_F32 || type == PTX_F64) {
    if (!c->is_real)
      return sol_ptx_mismatch(m, raw, "a floating-point number is needed here, such as 1.0 or 0f3F800000");
    if (type == PTX_F32)
      out->value = c->is_bits32 ? c->value : float_bits(c->real);
    else
      out->value = c->is_bits64 ? c->value : double_bits(c->real);
    return true;
  }
  if (class == PTX_CLASS_FLOAT || class == PTX_CLASS_PACKED || class == PTX_CLASS_ELEMENT ||
      class == PTX_CLASS_OPAQUE || bits > 64)
    return sol_ptx_mismatch(m, raw, "a register is needed here");
  if (c->is_real) {
    bool fits = class == PTX_CLASS_BITS && ((c->is_bits32 && bits == 32) || (c->is_bits64 && bits == 64));
    if (!fits) return sol_ptx_mismatch(m, raw, "an integer is needed here");
  }
  if (class == PTX_CLASS_PRED)
    out->value = c->value != 0;
  else
    out->value = bits ? low_bits(c->value, bits) : c->value;
  return true;
}

// ---- registers ----

static bool is_int(PtxTypeClass class) {
  return class == PTX_CLASS_SIGNED || class == PTX_CLASS_UNSIGNED;
}

// Whether a register so declared can be read or written as `type`.
bool sol_ptx_type_fits(PtxType type, PtxType reg, bool wider) {
  PtxTypeClass want = sol_ptx_type_class(type), have = sol_ptx_type_class(reg);
  int want_bits = sol_ptx_type_bits(type), have_bits = sol_ptx_type_bits(reg);
  if (want == PTX_CLASS_PRED || have == PTX_CLASS_PRED) return want == have;
  if (type == PTX_TYPE_NONE) return have_bits == 32 || have_bits == 64;
  if (want == PTX_CLASS_OPAQUE) return have_bits == 64;
  if (want == PTX_CLASS_FLOAT && is_int(have)) return false;
  if (is_int(want) && have == PTX_CLASS_FLOAT) return false;
  return have_bits == want_bits || (wider && have_bits > want_bits && have_bits <= 64);
}

static bool type_mismatch(const Match *m, const Raw *raw, PtxType type, PtxType have) {
  const char *want = type == PTX_TYPE_NONE ? "32 or 64 bits" : sol_ptx_type_name(type);
  return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s': '%.60s' is a .%s, which does not do for %s%s",
                      m->code->pub.text, raw->name->text, sol_ptx_type_name(have),
                      type == PTX_TYPE_NONE ? "" : ".", want);
}

static bool sreg_allowed(const Code *code) {
  return code->pub.op == PTX_OP_MOV || code->pub.op == PTX_OP_CVT;
}

// %tid.x, %clock, %pm3
static bool set_sreg(const Match *m, const Slot *slot, const Raw *raw, PtxOperand *out) {
  Name *name = raw->name->sreg ? raw->name : raw->name->prefix;
  uint32_t sreg = name->sreg;
  const char *text = sol_ptx_sreg_name((PtxSreg)sreg);
  bool threefold = text[strlen(text) - 2] == '.';
  if (threefold != (raw->component >= 0) || raw->component > 2)
    return sol_ptx_mismatch(m, raw, "there is no such special register");
  if (!sreg_allowed(m->code) || slot->written)
    return sol_ptx_mismatch(m, raw, "a special register can only be read, by mov or cvt");
  if (threefold) sreg += (uint32_t)raw->component;
  PtxType type = sol_ptx_sreg_type((PtxSreg)sreg);
  // The low bits of a wider one may be read: ptxas takes mov.u16 of %tid.x and mov.u32 of %gridid.
  PtxTypeClass class = sol_ptx_type_class(slot->type);
  bool fits = slot->type == type || (type != PTX_PRED && (class == PTX_CLASS_BITS || is_int(class)) &&
                                     sol_ptx_type_bits(slot->type) <= sol_ptx_type_bits(type));
  if (!fits) return type_mismatch(m, raw, slot->type, type);
  out->kind = PTX_ARG_SREG;
  out->sreg = (uint8_t)sreg;
  out->index = name != raw->name       ? raw->name->number
               : sreg == PTX_SREG_PM64 ? (uint32_t)(name->text[3] - '0')
                                       : 0;
  return true;
}

static bool is_sreg(const Name *name) {
  if (name->sreg) return name->sreg != PTX_SREG_PM && name->sreg != PTX_SREG_ENVREG; // these have a number
  if (!name->prefix || !name->prefix->sreg) return false;
  uint32_t sreg = name->prefix->sreg;
  return sreg == PTX_SREG_ENVREG ? name->number < 32 : sreg == PTX_SREG_PM && name->number < 8;
}

// Parts of a word for the scalar video instructions; for the others which parts are written, or for each part which of
// the parts of both sources.
static bool part_fits(const Code *code, const Slot *slot, unsigned part) {
  size_t root = 0;
  while (code->pub.text[root] != '.') root++;
  char ways = code->pub.text[root - 1];
  unsigned count = PTX_PART_COUNT(part), bytes = PTX_PART_BYTES(part), last = 8;
  if (!slot->part) return false;
  if (ways != '2' && ways != '4') return count == 1 && PTX_PART_DIGIT(part, 0) < (bytes ? 4u : 2u);
  if (bytes != (ways == '4')) return false;
  unsigned most = bytes ? 4 : 2;
  for (unsigned i = 0; slot->written && i < count; i++) { // from the highest on, each once
    unsigned digit = PTX_PART_DIGIT(part, count - 1 - i);
    if (digit >= most || digit >= last) return false;
    last = digit;
  }
  for (unsigned i = 0; !slot->written && i < count; i++)
    if (PTX_PART_DIGIT(part, i) >= 2 * most) return false;
  return slot->written ? count <= most : count == most;
}

static bool set_reg(const Match *m, const Slot *slot, const Raw *raw, uint32_t reg, const Binding *b,
                    PtxOperand *out) {
  if (raw->offset || raw->indexed) return sol_ptx_mismatch(m, raw, "a register takes no offset here");
  if (raw->component >= (int)b->vec || (b->vec > 1 && raw->component < 0 && slot->count != b->vec) ||
      (b->vec == 1 && raw->component >= 0))
    return sol_ptx_mismatch(m, raw, "this register has no such part");
  if (!sol_ptx_type_fits(slot->type, b->type, slot->wider)) return type_mismatch(m, raw, slot->type, b->type);
  if (raw->minus && !slot->minus) return sol_ptx_mismatch(m, raw, "a register takes no '-' here");
  if (raw->negated && !raw->minus && (slot->type != PTX_PRED || slot->written))
    return sol_ptx_mismatch(m, raw, "only a predicate that is read takes a '!'");
  if (raw->part && !part_fits(m->code, slot, raw->part))
    return sol_ptx_mismatch(m, raw, "this operand has no such part");
  out->kind = PTX_ARG_REG;
  out->index = reg + (raw->component > 0 ? (uint32_t)raw->component : 0);
  out->negated = raw->negated;
  out->value = raw->part;
  return true;
}

static bool set_address(const Match *m, const Slot *slot, const Raw *raw, const Binding *b, PtxOperand *out) {
  if (!slot->address) return sol_ptx_mismatch(m, raw, "an address has to be moved into a register first");
  if (raw->negated || raw->component >= 0) return sol_ptx_mismatch(m, raw, "this is no address");
  out->kind = b->kind == BIND_FUNC ? PTX_ARG_FUNC : PTX_ARG_SYMBOL;
  out->index = b->index;
  out->value = raw->constant.value;
  if (b->kind == BIND_FUNC) {
    if (m->code->pub.op != PTX_OP_MOV || raw->offset || raw->indexed)
      return sol_ptx_mismatch(m, raw, "a function's address is taken with mov");
    out->value = 0;
  } else if (raw->indexed) {
    const PtxSymbol *s = VEC_AT(&m->p->symbols, PtxSymbol, b->index);
    out->value *= (uint64_t)sol_ptx_type_bits(s->type) / 8 * s->vec;
  }
  int bits = sol_ptx_type_bits(slot->type);
  if (slot->type == PTX_PRED || bits < 32 || bits > 64 || sol_ptx_type_class(slot->type) == PTX_CLASS_FLOAT)
    return sol_ptx_mismatch(m, raw, "an address takes 32 or 64 bits");
  return true;
}

static bool set_label(const Match *m, const Slot *slot, const Raw *raw, PtxOperand *out, uint32_t place) {
  if (raw->offset || raw->indexed || raw->negated || raw->component >= 0)
    return sol_ptx_mismatch(m, raw, "a label is needed here");
  if (slot->table) {
    const Label *label = raw->name->label;
    if (!label || label->kind != LABEL_TABLE)
      return sol_ptx_mismatch(m, raw, "a list of .branchtargets, declared before, is needed here");
    out->kind = PTX_ARG_TABLE;
    out->index = label->index;
    return true;
  }
  out->kind = PTX_ARG_LABEL;
  Pending *use = sol_ptx_vec_add(&m->p->pending, sizeof *use);
  if (!use) return sol_ptx_fail_memory(m->p);
  *use = (Pending){raw->name, place, false, raw->at};
  return true;
}

// A name, a number or '_' in a plain position. `place`: of `out` among all operands.
bool sol_ptx_match_simple(const Match *m, const Slot *slot, const Raw *raw, PtxOperand *out, uint32_t place) {
  *out = (PtxOperand){.type = slot->type, .written = slot->written, .index = PTX_NONE, .symbol = PTX_NONE};
  if (raw->kind == RAW_SINK) {
    if (!slot->written) return sol_ptx_mismatch(m, raw, "'_' can only stand where a result would");
    out->kind = PTX_ARG_SINK;
    return true;
  }
  if (raw->kind == RAW_NUMBER) {
    if (slot->written || slot->label || slot->table)
      return sol_ptx_mismatch(m, raw, slot->written ? "a register is needed here" : "a label is needed here");
    return set_immediate(m, slot->type, raw, out);
  }
  if (raw->kind != RAW_NAME) return sol_ptx_mismatch(m, raw, "a register is needed here");
  if (slot->label || slot->table) return set_label(m, slot, raw, out, place);
  if (slot->constant) return sol_ptx_mismatch(m, raw, "a constant is needed here");
  const Binding *b = NULL;
  uint32_t reg = sol_ptx_find_reg(m->p, raw->name, &b);
  if (reg != PTX_NONE) return set_reg(m, slot, raw, reg, b, out);
  if (m->p->status) return false;
  if (is_sreg(raw->name)) return set_sreg(m, slot, raw, out);
  if (raw->name->bound) return set_address(m, slot, raw, raw->name->bound, out);
  return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s' is not declared", raw->name->text);
}

// ---- vectors ----

bool sol_ptx_add_operands(Parser *p, uint32_t count, uint32_t *first) {
  *first = p->operands.count;
  for (uint32_t i = 0; i < count; i++)
    if (!sol_ptx_vec_add(&p->operands, sizeof(PtxOperand))) return sol_ptx_fail_memory(p);
  return true;
}

static PtxType part_type(PtxType whole, uint32_t parts) {
  if (!parts) return PTX_TYPE_NONE;
  switch (sol_ptx_type_bits(whole) / (int)parts) {
  case 8: return PTX_B8;
  case 16: return PTX_B16;
  case 32: return PTX_B32;
  case 64: return PTX_B64;
  default: return PTX_TYPE_NONE;
  }
}

static void set_vector(PtxOperand *out, const Slot *slot, PtxType type, uint32_t first, uint32_t count) {
  *out = (PtxOperand){.kind = PTX_ARG_VEC,
                      .type = (uint8_t)type,
                      .written = slot->written,
                      .count = (uint16_t)count,
                      .index = PTX_NONE,
                      .symbol = PTX_NONE,
                      .elems = (const PtxOperand *)(uintptr_t)first};
}

static bool match_vector(const Match *m, const Slot *slot, const Raw *raw, uint32_t place) {
  Slot element = *slot;
  element.address = element.parts = false;
  element.count = 1;
  if (slot->parts) {
    element.type =
        (uint8_t)((raw->count == 2 || raw->count == 4) && sol_ptx_type_class(slot->type) == PTX_CLASS_BITS
                      ? part_type(slot->type, raw->count)
                      : PTX_TYPE_NONE);
    if (!element.type)
      return sol_ptx_mismatch(m, raw, "a vector of so many parts does not make up this type");
  } else if (raw->count != slot->count) {
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s': %u elements are needed here, not %u",
                        m->code->pub.text, (unsigned)slot->count, raw->count);
  }
  uint32_t first;
  if (!sol_ptx_add_operands(m->p, raw->count, &first)) return false;
  for (uint32_t i = 0; i < raw->count; i++) {
    PtxOperand operand;
    if (!sol_ptx_match_simple(m, &element, &m->list->elements[raw->first + i], &operand, first + i))
      return false;
    *VEC_AT(&m->p->operands, PtxOperand, first + i) = operand;
  }
  set_vector(VEC_AT(&m->p->operands, PtxOperand, place), slot, element.type, first, raw->count);
  return true;
}

// A vector register in the place of a vector: v for {v.x, v.y, v.z, v.w}.
static bool match_vector_register(const Match *m, const Slot *slot, const Raw *raw, uint32_t count,
                                  uint32_t place) {
  uint32_t first;
  if (!sol_ptx_add_operands(m->p, count, &first)) return false;
  Slot element = *slot;
  element.address = element.parts = false;
  if (slot->parts) element.type = (uint8_t)part_type(slot->type, count);
  Raw part = *raw;
  for (uint32_t i = 0; i < count; i++) {
    part.component = (int)i;
    PtxOperand operand;
    if (!sol_ptx_match_simple(m, &element, &part, &operand, first + i)) return false;
    *VEC_AT(&m->p->operands, PtxOperand, first + i) = operand;
  }
  set_vector(VEC_AT(&m->p->operands, PtxOperand, place), slot, element.type, first, count);
  return true;
}

// How many elements a name has that stands for a vector register as a whole; 1: it does not.
static uint32_t vector_size(const Match *m, const Raw *raw) {
  const Binding *b = NULL;
  if (raw->kind != RAW_NAME || raw->component >= 0) return 1;
  return sol_ptx_find_reg(m->p, raw->name, &b) == PTX_NONE ? 1 : b->vec;
}

static bool match_descriptor(const Match *m, const Raw *raw, uint32_t place) {
  const Slot slot = {.type = PTX_B64, .count = 1};
  PtxOperand operand;
  if (!sol_ptx_match_simple(m, &slot, raw, &operand, place)) return false;
  *VEC_AT(&m->p->operands, PtxOperand, place) = operand;
  return true;
}

bool sol_ptx_match_plain(const Match *m, const Slot *slot, const Raw *raw, uint32_t place) {
  if (slot->descriptor && raw->kind == RAW_MEM) return sol_ptx_match_memory(m, slot, raw, place);
  if (slot->descriptor && raw->kind != RAW_VEC) return match_descriptor(m, raw, place);
  bool vector = slot->count > 1 || slot->fragment;
  if (raw->kind == RAW_VEC && !vector && !slot->parts && raw->count == 1)
    raw = &m->list->elements[raw->first]; // {a} for a
  if (raw->kind == RAW_VEC) {
    if (vector || slot->parts) return match_vector(m, slot, raw, place);
    return sol_ptx_mismatch(m, raw, "one register is needed here, not a vector");
  }
  if (slot->fragment && slot->count == 1) { // a for {a}
    uint32_t first;
    PtxOperand operand;
    if (!sol_ptx_add_operands(m->p, 1, &first) || !sol_ptx_match_simple(m, slot, raw, &operand, first))
      return false;
    *VEC_AT(&m->p->operands, PtxOperand, first) = operand;
    set_vector(VEC_AT(&m->p->operands, PtxOperand, place), slot, slot->type, first, 1);
    return true;
  }
  if (vector) {
    if (vector_size(m, raw) == slot->count) return match_vector_register(m, slot, raw, slot->count, place);
    return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s': %u elements in braces are needed here",
                        m->code->pub.text, (unsigned)slot->count);
  }
  if (slot->parts && vector_size(m, raw) > 1)
    return match_vector_register(m, slot, raw, vector_size(m, raw), place);
  PtxOperand operand;
  if (!sol_ptx_match_simple(m, slot, raw, &operand, place)) return false;
  *VEC_AT(&m->p->operands, PtxOperand, place) = operand;
  return true;
}

// ---- addresses ----

static bool space_fits(int space, int symbol_space) {
  if (space == PTX_SPACE_GENERIC || space == symbol_space) return true;
  return space == PTX_SPACE_SHARED_CLUSTER && symbol_space == PTX_SPACE_SHARED;
}

bool sol_ptx_match_memory(const Match *m, const Slot *slot, const Raw *raw, uint32_t place) {
  PtxOperand out = {.kind = PTX_ARG_MEM, .index = PTX_NONE, .symbol = PTX_NONE, .value = raw->constant.value};
  if (raw->kind == RAW_NAME && raw->indexed) { // ld.global.u32 r, a[3]
    const Binding *b = raw->name->bound;
    if (!b || b->kind != BIND_SYMBOL) return sol_ptx_mismatch(m, raw, "an address is needed here");
    const PtxSymbol *s = VEC_AT(&m->p->symbols, PtxSymbol, b->index);
    out.value *= (uint64_t)sol_ptx_type_bits(s->type) / 8 * s->vec;
  } else if (raw->kind != RAW_MEM && raw->kind != RAW_ABSOLUTE) {
    return sol_ptx_mismatch(m, raw, "an address in brackets is needed here");
  }
  if (raw->kind != RAW_ABSOLUTE) {
    const Binding *b = NULL;
    out.index = sol_ptx_find_reg(m->p, raw->name, &b);
    if (out.index != PTX_NONE) {
      if (b->vec > 1 || !sol_ptx_type_fits(PTX_TYPE_NONE, b->type, false) ||
          sol_ptx_type_class(b->type) == PTX_CLASS_FLOAT)
        return type_mismatch(m, raw, PTX_TYPE_NONE, b->type);
    } else if (m->p->status) {
      return false;
    } else if ((b = raw->name->bound) && b->kind == BIND_SYMBOL) {
      out.symbol = b->index;
      if (!space_fits(slot->space, VEC_AT(&m->p->symbols, PtxSymbol, b->index)->space))
        return sol_ptx_mismatch(m, raw, "this variable is in another state space");
    } else {
      return sol_ptx_fail(m->p, SOL_ERR_SYNTAX, raw->at, "'%.80s' is no register or variable",
                          raw->name->text);
    }
  }
  *VEC_AT(&m->p->operands, PtxOperand, place) = out;
  return true;
}
