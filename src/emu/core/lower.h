// Internals of lowering, shared by lower.c and lower_operand.c.
#ifndef SOL_EMU_LOWER_H
#define SOL_EMU_LOWER_H

#include "emu/core/state.h"

struct Lower {
  SolEmuModule *module;
  const SolPtxModule *ptx;
  EmuProgram *program;
  const PtxFunction *fn;
  EmuFunction *function;
  const PtxInst *inst;
  uint32_t *table; // hash of constants: number + 1
  uint32_t table_size;
  uint64_t *reads; // a bit per register: some instruction of `reads_of` reads it; NULL: not computed yet
  const PtxFunction *reads_of;
  const PtxOperand *
      *constants; // by register: the immediate that its only write moves there; NULL: not computed yet
  const PtxFunction *constants_of;
  bool failed; // out of memory
  char reason[200];
};

EmuLoc lower_const_row(Lower *l, EmuConst want);
// Value of a symbol's address in its own space, known before the launch; false for dynamic shared memory.
bool lower_symbol_address(Lower *l, uint32_t symbol, uint64_t *value);
static inline bool lower_is_param(const SolPtxModule *ptx, const PtxOperand *o) {
  return o->kind == PTX_ARG_SYMBOL && ptx->symbols[o->index].space == PTX_SPACE_PARAM;
}

bool emu_is_linear(const PtxInst *in); // fuse.c: it may be left out
bool emu_fuse(Lower *l);               // fuse.c: makes EmuProgram.bare; false: out of memory
bool lower_call(Lower *l, const PtxInst *in, EmuInst *out);       // call.c
bool lower_store_bulk(Lower *l, const PtxInst *in, EmuInst *out); // ops_async.c

#endif
