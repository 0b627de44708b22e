// Reads the machine code of a kernel from a cubin that was made with -lineinfo: its instructions in basic
// blocks, and the line of the PTX text that each instruction was made from (section .nv_debug_line_sass).
//
//   SassCode code;
//   if (sass_is_of(elf, size, ptx, length) && !sass_read(elf, size, "kernel", &arena, &code, &err)) ...
//   for (uint32_t i = 0; i < code.count; i++) ... code.insts[i].line ...
//
// The bytes may be anything: nothing outside of them is read. This folder also builds for wasm.
#ifndef SOL_SASS_H
#define SOL_SASS_H

#include "base/arena.h"
#include "sol/status.h"

enum { SASS_NONE = 0xffffffffu, SASS_SCOREBOARDS = 6 };

typedef enum SassUnit {
  SASS_UNIT_OTHER, // takes an issue slot alone: control, uniform registers, constants, barriers
  SASS_UNIT_INT,   // the ALU: integers but for products, comparisons, minima, moves
  SASS_UNIT_MAD,   // IMAD: that half of the FMA pipe which multiplies integers too
  SASS_UNIT_FP32,
  SASS_UNIT_FP16,
  SASS_UNIT_FP64,
  SASS_UNIT_SPECIAL, // MUFU, POPC, and conversions but those of the ALU (I2FP, F2FP): ncu counts them as XU's
  SASS_UNIT_TENSOR,
  SASS_UNIT_MEMORY,
  SASS_UNITS
} SassUnit;

typedef enum SassKind {
  SASS_KIND_NONE,
  SASS_KIND_GENERIC_LOAD,
  SASS_KIND_GLOBAL_LOAD,
  SASS_KIND_SHARED_LOAD,
  SASS_KIND_LOCAL_LOAD,
  SASS_KIND_GENERIC_STORE,
  SASS_KIND_GLOBAL_STORE,
  SASS_KIND_SHARED_STORE,
  SASS_KIND_LOCAL_STORE,
  SASS_KIND_ATOMIC, // on global or generic memory
  SASS_KIND_SHARED_ATOMIC,
  SASS_KIND_ASYNC_COPY,
  SASS_KIND_CONST_LOAD,
  SASS_KIND_UNIFORM_LOAD, // of a constant, at a uniform register
  SASS_KIND_MOVE,         // of a register or a constant, by whatever instruction
  SASS_KIND_SHUFFLE,
  SASS_KIND_VOTE, // votes and reductions over the warp
  SASS_KIND_BARRIER,
  SASS_KIND_BRANCH, // to a known place
  SASS_KIND_JUMP,   // to one of several
  SASS_KIND_CALL,
  SASS_KIND_RETURN,
  SASS_KIND_EXIT
} SassKind;

typedef struct SassInst {
  uint32_t line;   // of the PTX, from 1; 0: none
  uint32_t target; // BRANCH, CALL: index of the instruction; SASS_NONE: unknown
  uint16_t opcode; // 9 bits
  uint8_t unit, kind;
  uint8_t width; // bytes that a lane loads or stores
  bool guarded;  // by a predicate: it takes its issue slot also where it does nothing
  uint8_t stall; // clocks until the warp may issue the next, at least 1
  uint8_t sets;  // the scoreboard, 0 to 5, that is released when its result has arrived; 7: none
  uint8_t waits; // bit per scoreboard that must have been released before it issues
} SassInst;

typedef struct SassBlock { // a basic block: a call does not end one
  uint32_t first, count;
  uint32_t next, branch; // the blocks that follow, by falling through and by its branch; SASS_NONE
  bool subroutine;       // in a function of ptxas's own, for the rare cases of a division or a square root
} SassBlock;

typedef struct SassCode { // a kernel, and the functions of the module that it may call
  SassInst *insts;
  uint32_t count;
  SassBlock *blocks; // in the order of the instructions
  uint32_t block_count;
} SassCode;

// SOL_ERR_NOT_FOUND: no such kernel, or no lines; SOL_ERR_SYNTAX: damaged. *out lies in the arena.
SolStatus sass_read(const void *elf, size_t size, const char *kernel, SolArena *arena, SassCode *out,
                    SolError *err);
int sass_arch(const void *elf, size_t size); // 90: for sm_90; 0: this is no cubin
// Whether the cubin was made from that very text: only then its lines are that text's.
bool sass_is_of(const void *elf, size_t size, const char *ptx, size_t length);
const char *sass_opcode_name(uint16_t opcode); // "FFMA"; "" where it is not in opcodes.def

#endif
