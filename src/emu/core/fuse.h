// Of launches that are not counted: instructions whose results only loads and stores of the same stretch use, as addresses, are not
// executed. The access computes the address of one lane from where they would start, and knows the others' by the distances that
// the sources had last time; where those differ it executes the instructions after all. See fuse.c.
#ifndef SOL_EMU_FUSE_H
#define SOL_EMU_FUSE_H

#include "emu/core/exec.h"

enum { EMU_FUSED_TERMS = 4, EMU_FUSED_VARY = 2, EMU_FUSED_OPS = 12 };

typedef struct EmuTerm { // `times` what a register holds
  EmuLoc at;
  bool vary; // from lane to lane
  int64_t times;
} EmuTerm;

typedef struct EmuForm { // the sum of its terms
  uint32_t count;
  int64_t plus;
  EmuTerm terms[EMU_FUSED_TERMS];
} EmuForm;

typedef enum EmuWiden { EMU_NO_NARROW, EMU_SIGNED, EMU_UNSIGNED } EmuWiden;

// The address is that of `wide`, of 64-bit registers, and `scale` times that of `narrow`, of 32-bit ones, widened; or, of 32-bit
// addresses, that of `narrow` alone.
typedef struct EmuFused {
  const EmuInst *plain; // the access itself
  EmuForm wide, narrow;
  int64_t scale;
  EmuWiden widen;
  bool one;                           // `varies` is the only one that does: the usual case
  EmuLoc varies;                      // of 32 bits
  uint32_t count, ops[EMU_FUSED_OPS]; // pcs of what is left out, in order
} EmuFused;

// Memory instructions' `more` starts with this.
typedef struct EmuFusible {
  EmuHandler *fused; // executes the access with an EmuFused for its `more`; NULL: there is none
  EmuHandler *next;  // the access, after another through the same register
} EmuFusible;

#endif
