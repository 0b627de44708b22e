// Operands as they are written: what operand.c reads and match.c makes into PtxOperands.
#ifndef SOL_PTX_OPERAND_H
#define SOL_PTX_OPERAND_H

#include "ptx/internal.h"

typedef enum RawKind { RAW_NAME, RAW_NUMBER, RAW_SINK, RAW_MEM, RAW_ABSOLUTE, RAW_VEC, RAW_TEX } RawKind;

typedef struct Raw {
  uint8_t kind;         // RawKind
  bool negated, joined; // negated: by '!' or '-'; joined: written after a '|'
  bool minus;           // negated by '-'
  uint16_t part;        // of a video instruction: PTX_PART; 0: none
  bool offset, indexed; // name+constant, name[constant]
  int component;        // of a vector register; -1: none
  size_t at;
  Name *name;
  Constant constant;                  // a number's; a name's or address's offset in `value`
  uint32_t first, count, coordinates; // elements; coordinates: the first of a texture's
} Raw;

enum { MAX_RAW = 12 };

typedef struct RawList {
  Raw raws[MAX_RAW], elements[MAX_ELEMENTS];
  uint32_t count, element_count;
} RawList;

// The operands up to the ';'.
bool sol_ptx_parse_raw(Parser *p, RawList *list);
// A call's (a, b): one RAW_VEC.
bool sol_ptx_parse_raw_list(Parser *p, RawList *list, Raw *raw);

// ---- against the opcode's positions (match.c) ----

typedef struct Match {
  Parser *p;
  const Code *code;
  const RawList *list;
} Match;

bool sol_ptx_mismatch(const Match *m, const Raw *raw, const char *why); // false
// Whether a register declared `reg` can be read or written as `type`; PTX_TYPE_NONE: as an address.
bool sol_ptx_type_fits(PtxType type, PtxType reg, bool wider);
// Adds empty operands to the function's; *first is the place of the first of them.
bool sol_ptx_add_operands(Parser *p, uint32_t count, uint32_t *first);
// Fill in the operand at `place`; match_simple fills in `out`, which is stored there.
bool sol_ptx_match_simple(const Match *m, const Slot *slot, const Raw *raw, PtxOperand *out, uint32_t place);
bool sol_ptx_match_plain(const Match *m, const Slot *slot, const Raw *raw, uint32_t place);
bool sol_ptx_match_memory(const Match *m, const Slot *slot, const Raw *raw, uint32_t place);

#endif
