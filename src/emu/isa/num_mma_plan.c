// Which matrix instructions there are, and where their operands' elements lie.
#include "base/port.h"
#include "emu/isa/num_mma.h"

static int element_bits(NumElement e) {
  switch (e) {
  case NUM_ELEMENT_F16:
  case NUM_ELEMENT_BF16: return 16;
  case NUM_ELEMENT_E4M3:
  case NUM_ELEMENT_E5M2:
  case NUM_ELEMENT_S8:
  case NUM_ELEMENT_U8: return 8;
  case NUM_ELEMENT_S4:
  case NUM_ELEMENT_U4: return 4;
  case NUM_ELEMENT_F64: return 64;
  case NUM_ELEMENT_B1: // by words
  case NUM_ELEMENT_TF32:
  case NUM_ELEMENT_F32:
  case NUM_ELEMENT_S32: return 32;
  }
  return 0;
}

// Each kind of multiplicand with its shapes; accumulators follow from it.
typedef struct Shape {
  uint8_t m, n;
  uint16_t k;
} Shape;
typedef struct Family {
  NumElement first, last; // multiplicands
  bool wmma, mixed;       // mixed: a and b may differ
  Shape shapes[4];
} Family;
static const Family families[] = {
    {NUM_ELEMENT_F16, NUM_ELEMENT_F16, false, false, {{8, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
    {NUM_ELEMENT_BF16, NUM_ELEMENT_BF16, false, false, {{16, 8, 8}, {16, 8, 16}}},
    {NUM_ELEMENT_TF32, NUM_ELEMENT_TF32, false, false, {{16, 8, 4}, {16, 8, 8}}},
    {NUM_ELEMENT_E4M3, NUM_ELEMENT_E5M2, false, true, {{16, 8, 16}, {16, 8, 32}}},
    {NUM_ELEMENT_S8, NUM_ELEMENT_U8, false, true, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}},
    {NUM_ELEMENT_S4, NUM_ELEMENT_U4, false, true, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}},
    {NUM_ELEMENT_B1, NUM_ELEMENT_B1, false, false, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}},
    {NUM_ELEMENT_F64, NUM_ELEMENT_F64, false, false, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
    {NUM_ELEMENT_F16, NUM_ELEMENT_BF16, true, false, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {NUM_ELEMENT_TF32, NUM_ELEMENT_TF32, true, false, {{16, 16, 8}}},
    {NUM_ELEMENT_S8, NUM_ELEMENT_U8, true, false, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {NUM_ELEMENT_S4, NUM_ELEMENT_U4, true, false, {{8, 8, 32}}},
    {NUM_ELEMENT_B1, NUM_ELEMENT_B1, true, false, {{8, 8, 128}}},
    {NUM_ELEMENT_F64, NUM_ELEMENT_F64, true, false, {{8, 8, 4}}},
};

static bool quads(const NumMma *op) { // four products of 8x8x4 at once, one to every eight lanes
  return !op->wmma && op->m == 8 && op->k == 4 && op->a == NUM_ELEMENT_F16;
}

static bool accumulators_fit(const NumMma *op) {
  bool c16 = op->c == NUM_ELEMENT_F16, d16 = op->d == NUM_ELEMENT_F16;
  bool floats = (c16 || op->c == NUM_ELEMENT_F32) && (d16 || op->d == NUM_ELEMENT_F32);
  switch (op->a) {
  case NUM_ELEMENT_F16: return floats && (c16 == d16 || op->wmma || (quads(op) && c16));
  case NUM_ELEMENT_E4M3:
  case NUM_ELEMENT_E5M2: return floats && c16 == d16;
  case NUM_ELEMENT_BF16:
  case NUM_ELEMENT_TF32: return floats && !c16 && !d16;
  case NUM_ELEMENT_F64: return op->c == NUM_ELEMENT_F64 && op->d == NUM_ELEMENT_F64;
  default: return op->c == NUM_ELEMENT_S32 && op->d == NUM_ELEMENT_S32;
  }
}

static bool known(const NumMma *op) {
  for (size_t f = 0; f < SOL_COUNT(families); f++) {
    const Family *family = &families[f];
    if (family->wmma != op->wmma || op->a < family->first || op->a > family->last) continue;
    if (op->b < family->first || op->b > family->last || (op->a != op->b && !family->mixed)) return false;
    for (size_t s = 0; s < SOL_COUNT(family->shapes); s++) {
      const Shape *shape = &family->shapes[s];
      int k = op->sparse ? op->k / 2 : op->k;
      if (shape->m && shape->m == op->m && shape->n == op->n && shape->k == k) return accumulators_fit(op);
    }
    return false;
  }
  return false;
}

typedef struct Place {
  int row, col;
} Place;

// The slots' bits above those within a register, lowest first: what each adds to the place.
typedef struct Steps {
  int count;
  Place step[5];
} Steps;

static void step(Steps *steps, int row, int col) {
  steps->step[steps->count++] = (Place){row, col};
}

// Along k, a group of four lanes holds 4 registers' worth at a time.
static Steps slot_steps(int m, int n, int k, NumOperand operand, int per_reg) {
  Steps steps = {0};
  if (operand == NUM_OPERAND_A) {
    if (m >= 16) step(&steps, 8, 0);
    for (int at = 4 * per_reg; at < k; at *= 2) step(&steps, 0, at);
    if (m == 32) step(&steps, 16, 0);
  } else if (operand == NUM_OPERAND_B) {
    for (int at = 4 * per_reg; at < k; at *= 2) step(&steps, at, 0);
    if (n == 16) step(&steps, 0, 8);
  } else {
    if (m >= 16) step(&steps, 8, 0);
    if (m == 32) step(&steps, 16, 0);
    if (n == 16) step(&steps, 0, 8);
  }
  return steps;
}

// Lane l's eight-row group is l / 4; its place among four runs along k (along n for accumulators, in pairs).
static Place lane_place(NumOperand operand, int lane, int per_reg) {
  int group = lane >> 2, member = lane & 3;
  if (operand == NUM_OPERAND_A) return (Place){group, member * per_reg};
  if (operand == NUM_OPERAND_B) return (Place){member * per_reg, group};
  return (Place){group, member * 2};
}

static Place slot_place(NumOperand operand, const Steps *steps, int slot, int run) {
  int within = slot & (run - 1);
  Place p = operand == NUM_OPERAND_B ? (Place){within, 0} : (Place){0, within};
  for (int i = 0, bit = run; i < steps->count; i++, bit *= 2) {
    if (!(slot & bit)) continue;
    p.row += steps->step[i].row;
    p.col += steps->step[i].col;
  }
  return p;
}

// m8n8k4 with f16: lanes 4q to 4q+3 and, for the lower (B: right) half, 16 more hold product q, which stands
// at rows (B: columns) 8q. Lane and slot contribute apart from each other.
static Place quad_place(const NumMma *op, NumOperand operand, NumElement e, int lane, int slot) {
  int quad = (lane >> 2 & 3) * 8, half = lane >= 16 ? 4 : 0, member = lane & 3;
  switch (operand) {
  case NUM_OPERAND_A:
    return op->a_col ? (Place){quad + half + slot, member} : (Place){quad + half + member, slot};
  case NUM_OPERAND_B:
    return op->b_row ? (Place){member, quad + half + slot} : (Place){slot, quad + half + member};
  default: break;
  }
  if (e == NUM_ELEMENT_F16) return (Place){quad + half + member, slot};
  return (Place){quad + half + (lane & 1) + (slot & 2), (slot & 4) + (lane & 2) + (slot & 1)};
}

static void lay_out(const NumMma *op, NumOperand operand, NumElement e, NumFragment *f) {
  bool accumulator = operand >= NUM_OPERAND_C, turned = op->n == 32; // as m32n8 of the transposed matrices
  int k = op->a == NUM_ELEMENT_B1 ? op->k / 32 : op->k, m = turned ? op->n : op->m,
      n = turned ? op->m : op->n;
  int rows = operand == NUM_OPERAND_B ? k : op->m, cols = operand == NUM_OPERAND_A ? k : op->n;
  int copies = quads(op) ? 4 : 1;
  NumOperand as = !turned || accumulator ? operand : operand == NUM_OPERAND_A ? NUM_OPERAND_B : NUM_OPERAND_A;
  *f = (NumFragment){.bits = element_bits(e), .slots = rows * cols * copies / 32};
  f->per_reg = f->bits == 64 ? 1 : 32 / f->bits;
  f->regs = f->slots / f->per_reg;
  if (op->wmma && e == NUM_ELEMENT_F16 && !accumulator) f->regs = 8;
  f->stride = cols * (operand == NUM_OPERAND_B ? copies : 1);
  int run = accumulator ? 2 : f->per_reg;
  Steps steps = slot_steps(m, n, k, as, f->per_reg);
  for (int l = 0; l < 32; l++) {
    Place p = quads(op) ? quad_place(op, operand, e, l, 0) : lane_place(as, l, f->per_reg);
    f->lane[l] = (uint16_t)(turned ? p.col * f->stride + p.row : p.row * f->stride + p.col);
  }
  for (int s = 0; s < f->slots; s++) {
    Place p = quads(op) ? quad_place(op, operand, e, 0, s) : slot_place(as, &steps, s, run);
    f->slot[s] = (uint16_t)(turned ? p.col * f->stride + p.row : p.row * f->stride + p.col);
  }
}

bool sol_num_mma_plan(const NumMma *op, NumMmaPlan *plan) {
  if (!known(op)) return false;
  plan->op = *op;
  plan->four = quads(op);
  lay_out(op, NUM_OPERAND_A, op->a, &plan->a);
  lay_out(op, NUM_OPERAND_B, op->b, &plan->b);
  lay_out(op, NUM_OPERAND_C, op->c, &plan->c);
  lay_out(op, NUM_OPERAND_D, op->d, &plan->d);
  return true;
}
