// The rows of ops.def and words.def as tables; tests iterate over them to see that each opcode is covered.
#ifndef SOL_PTX_WORDS_H
#define SOL_PTX_WORDS_H

#include "ptx/ptx.h"

typedef struct PtxFormRow {
  uint16_t op; // PtxOp
  const char *root, *modifiers, *operands;
} PtxFormRow;

typedef struct PtxRefusedRow {
  const char *root, *what;
} PtxRefusedRow;

typedef struct PtxWordRow {
  const char *kind; // "RND"; "": a flag
  const char *text;
  uint8_t value; // a flag's bit
} PtxWordRow;

// NULL past the last one.
const PtxFormRow *sol_ptx_form(int i);
const PtxRefusedRow *sol_ptx_refused(int i);
const PtxWordRow *sol_ptx_word(int i);

#endif
