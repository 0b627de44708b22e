// The tables of words.def and ops.def, and how to look things up in them.
#include "ptx/words.h"

#include "ptx/internal.h"

typedef struct TypeRow {
  const char *text;
  uint8_t bits, class;
} TypeRow;

static const TypeRow types[PTX_TYPE_COUNT] = {
    {"", 0, PTX_CLASS_NONE},
#define PTX_TYPE(id, text, bits, class) {text, bits, PTX_CLASS_##class},
#include "ptx/words.def"
};

typedef struct SregRow {
  const char *text;
  uint8_t type;
} SregRow;

static const SregRow sregs[PTX_SREG_COUNT] = {
    {"", PTX_TYPE_NONE},
#define PTX_SREG(id, text, type) {text, PTX_##type},
#include "ptx/words.def"
};

typedef struct OpRow {
  const char *id, *operands, *handler, *semantics;
} OpRow;

static const OpRow ops[PTX_OP_COUNT] = {
    {"", "", "", ""},
#define PTX_OP(id, root, modifiers, operands, handler, semantics) {#id, operands, #handler, semantics},
#define PTX_FORM(id, root, modifiers, operands)
#define PTX_REFUSED(root, what)
#include "ptx/ops.def"
};

static const PtxFormRow forms[] = {
#define PTX_OP(id, root, modifiers, operands, handler, semantics) {PTX_OP_##id, root, modifiers, operands},
#define PTX_FORM(id, root, modifiers, operands)                   {PTX_OP_##id, root, modifiers, operands},
#define PTX_REFUSED(root, what)
#include "ptx/ops.def"
};

static const PtxRefusedRow refused[] = {
#define PTX_OP(id, root, modifiers, operands, handler, semantics)
#define PTX_FORM(id, root, modifiers, operands)
#define PTX_REFUSED(root, what) {root, what},
#include "ptx/ops.def"
};

static const PtxWordRow words[] = {
#define PTX_FLAG(id, text)        {"", text, PTX_BIT_##id},
#define PTX_WORD(kind, id, text)  {#kind, text, PTX_##kind##_##id},
#define PTX_ALIAS(kind, id, text) {#kind, text, PTX_##kind##_##id},
#include "ptx/words.def"
};

const PtxFormRow *sol_ptx_form(int i) {
  return i >= 0 && i < (int)SOL_COUNT(forms) ? &forms[i] : NULL;
}
const PtxRefusedRow *sol_ptx_refused(int i) {
  return i >= 0 && i < (int)SOL_COUNT(refused) ? &refused[i] : NULL;
}
const PtxWordRow *sol_ptx_word(int i) {
  return i >= 0 && i < (int)SOL_COUNT(words) ? &words[i] : NULL;
}

static bool type_known(PtxType type) {
  return (unsigned)type < PTX_TYPE_COUNT;
}

int sol_ptx_type_bits(PtxType type) {
  return type_known(type) ? types[type].bits : 0;
}
PtxTypeClass sol_ptx_type_class(PtxType type) {
  return type_known(type) ? types[type].class : PTX_CLASS_NONE;
}
const char *sol_ptx_type_name(PtxType type) {
  return type_known(type) ? types[type].text : "";
}

static bool sreg_known(PtxSreg sreg) {
  return (unsigned)sreg < PTX_SREG_COUNT;
}
const char *sol_ptx_sreg_name(PtxSreg sreg) {
  return sreg_known(sreg) ? sregs[sreg].text : "";
}
PtxType sol_ptx_sreg_type(PtxSreg sreg) {
  return sreg_known(sreg) ? sregs[sreg].type : PTX_TYPE_NONE;
}

static const OpRow *op_row(PtxOp op) {
  return &ops[(unsigned)op < PTX_OP_COUNT ? op : 0];
}
const char *sol_ptx_op_id(PtxOp op) {
  return op_row(op)->id;
}
const char *sol_ptx_op_handler(PtxOp op) {
  return op_row(op)->handler;
}
const char *sol_ptx_op_operands(PtxOp op) {
  return op_row(op)->operands;
}
const char *sol_ptx_op_semantics(PtxOp op) {
  return op_row(op)->semantics;
}

const char *sol_ptx_code_operands(const PtxCode *code) {
  const PtxFormRow *form = sol_ptx_form(code->form);
  return form ? form->operands : "";
}

PtxType sol_ptx_type_of(const char *text, size_t length) {
  for (int i = 1; i < PTX_TYPE_COUNT; i++)
    if (strlen(types[i].text) == length && !memcmp(types[i].text, text, length)) return (PtxType)i;
  return PTX_TYPE_NONE;
}
