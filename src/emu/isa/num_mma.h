// Matrix instructions of a warp: mma.sync, wmma.mma, and the rearrangements of ldmatrix, stmatrix, movmatrix.
// A plan is made once, when the instruction is decoded, and run on registers: reg[i] points at register i of
// the operand, 32 lanes of 4 bytes side by side (8 bytes where elements are f64).
//
// Results. Integers are exact; f64 is a chain of fma in ascending k. Of f16, bf16 and tf32 with f32
// accumulators (but m8n8k4) the PTX manual leaves order and rounding open; here they come out as on an H200,
// which was measured with random normal operands: every product and c is cut off 25 bits below the largest
// exponent among them, the sum of what is left is exact, and is cut off to f32. Other generations of GPU cut
// elsewhere and differ in the last bits. All other floats: exact products and c are summed in double in
// ascending k and rounded once, to nearest; a GPU may differ in the last bit (an H200 does for m8n8k4 with
// f32, and for e4m3 and e5m2 with f16 accumulators). tf32 operands lose their lower 13 bits.
//
// Fragments of mma.sync lie as the PTX manual says. Those of wmma, which the manual leaves open, lie as on an
// H200.
#ifndef SOL_EMU_NUM_MMA_H
#define SOL_EMU_NUM_MMA_H

#include "emu/isa/num_float.h"

typedef enum NumElement {
  NUM_ELEMENT_F16,
  NUM_ELEMENT_BF16,
  NUM_ELEMENT_TF32,
  NUM_ELEMENT_E4M3,
  NUM_ELEMENT_E5M2,
  NUM_ELEMENT_S8,
  NUM_ELEMENT_U8,
  NUM_ELEMENT_S4,
  NUM_ELEMENT_U4,
  NUM_ELEMENT_B1,
  NUM_ELEMENT_F64,
  NUM_ELEMENT_F32, // accumulators only, as is S32
  NUM_ELEMENT_S32
} NumElement;

typedef struct NumMma {
  int m, n, k;
  NumElement a, b, c, d;
  bool wmma;
  bool a_col, b_row; // layouts, which matter to mma.m8n8k4 with f16 alone
  bool satfinite;    // of an integer sum
  bool sparse;       // k is twice a shape's, and half of A's elements are zeros
  bool bit_and;      // b1: .and.popc, else .xor.popc
  NumRound rnd;      // f64
} NumMma;

typedef enum NumOperand { NUM_OPERAND_A, NUM_OPERAND_B, NUM_OPERAND_C, NUM_OPERAND_D } NumOperand;

enum { NUM_MAX_SLOTS = 32, NUM_MAX_MMA_REGS = 8 };

// Where an operand's elements are. Slot s of a lane is element s % per_reg of register s / per_reg, counted
// from the low bits. For b1 an element is a word of 32 bits along k.
typedef struct NumFragment {
  int regs, per_reg, bits; // bits of an element
  int slots;               // those that count; f16 fragments of wmma repeat them in their upper registers
  int stride;              // columns of the matrix
  uint16_t lane[32], slot[NUM_MAX_SLOTS]; // row * stride + column is lane[l] + slot[s]
} NumFragment;

typedef struct NumMmaPlan {
  NumMma op;
  bool four; // m8n8k4 with f16: four products at once, one to every eight lanes; q stands at rows (b:
             // columns) 8q
  NumFragment a, b, c, d;
} NumMmaPlan;

// False where PTX has no such instruction.
bool sol_num_mma_plan(const NumMma *op, NumMmaPlan *plan);

// d may be the registers of a, b or c.
void sol_num_mma(const NumMmaPlan *plan, void *const d[], const void *const a[], const void *const b[],
                 const void *const c[]);

// Matrices of 8x8 16-bit elements. rows: 8 rows for each of `count` matrices, as their addresses point at
// them.
void sol_num_ldmatrix(uint32_t *const r[], uint16_t rows[][8], int count, bool trans);
void sol_num_stmatrix(uint16_t rows[][8], const uint32_t *const r[], int count, bool trans);
void sol_num_movmatrix(uint32_t d[32], const uint32_t a[32]);

#endif
