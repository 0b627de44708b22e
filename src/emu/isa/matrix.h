// Shared by the files of the matrix family.
#ifndef SOL_EMU_MATRIX_H
#define SOL_EMU_MATRIX_H

#include "emu/core/exec.h"
#include "emu/isa/num_mma.h"

// The matrix product that an instruction computes, or that its fragment belongs to. False: no such element type.
bool matrix_num(const PtxCode *code, NumMma *num);
bool lower_mma(Lower *l, const PtxInst *in, EmuInst *out);         // ops_mma.c: mma, wmma.mma
bool lower_wgmma(Lower *l, const PtxInst *in, EmuInst *out);       // ops_wgmma.c
bool lower_wmma_memory(Lower *l, const PtxInst *in, EmuInst *out); // ops_wmma.c: wmma.load, wmma.store

#endif
