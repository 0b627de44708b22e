// ldmatrix, stmatrix, movmatrix, mma, wmma. Layouts here are written down once more from the PTX manual;
// products have operands so small that every order and rounding of sums gives the same.
#include "emu_body.h"
COVERS(LDMATRIX, STMATRIX, MOVMATRIX)

enum { LANES = 32 };

static void append(char *text, size_t cap, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t at = strlen(text);
  vsnprintf(text + at, cap - at, format, args);
  va_end(args);
}
static void append_list(char *text, size_t cap, const char *reg, int first, int count) {
  for (int e = 0; e < count; e++) append(text, cap, "%s%s%d", e ? "," : "{", reg, first + e);
  append(text, cap, "}");
}

// ---- ldmatrix, stmatrix, movmatrix ----

// Every lane brings 16 bytes into the tile at 16 times a number drawn for it; row numbers of lanes are drawn
// too.
static const char tile_head[] =
    "ld.global.v4.u32 {%r40,%r41,%r42,%r43}, [%in];\nld.global.v2.u32 {%r50,%r51}, [%in+16];\n"
    "mov.u32 %r52, tile;\nadd.u32 %r50, %r50, %r52;\nadd.u32 %r51, %r51, %r52;\n";

typedef struct TileIn {
  uint8_t bytes[16];
  uint32_t place, row, regs[4];
  uint32_t pad[6];
} TileIn;

static void draw_tiles(TileIn in[LANES], uint64_t *seed, uint8_t memory[512]) {
  uint32_t place[LANES], row[LANES];
  for (uint32_t l = 0; l < LANES; l++) place[l] = row[l] = l;
  for (uint32_t l = 0; l < LANES; l++) {
    uint32_t a = body_random(seed) % LANES, b = body_random(seed) % LANES, t = place[l];
    place[l] = place[a], place[a] = t;
    t = row[l], row[l] = row[b], row[b] = t;
  }
  for (int l = 0; l < LANES; l++) {
    for (int k = 0; k < 16; k++) in[l].bytes[k] = (uint8_t)body_random(seed);
    for (int k = 0; k < 4; k++) in[l].regs[k] = body_random(seed);
    in[l].place = place[l] * 16, in[l].row = row[l] * 16;
    memcpy(memory + in[l].place, in[l].bytes, 16);
  }
}

// Byte e of register r of a lane: which lane names its row, and which byte of the row it is.
static void tile_byte(const char *form, int r, int lane, int e, int *row, int *byte) {
  bool trans = strstr(form, "trans");
  if (strstr(form, "b16")) { // manual: row lane / 4, elements 2 (lane % 4) and the next; transposed: that
                             // element of column lane / 4
    int element = lane % 4 * 2 + e / 2;
    *row = 8 * r + (trans ? element : lane / 4);
    *byte = 2 * (trans ? lane / 4 : element) + e % 2;
  } else if (strstr(form, "m16n16")) {
    *row = r / 2 * 16 + lane % 4 * 4 + r % 2 * 2 + e % 2;
    *byte = lane / 4 + e / 2 * 8;
  } else {
    *row = r * 8 + lane % 4 * 2 + e % 2;
    *byte = lane / 4 + e / 2 * 8;
  }
}

static int form_regs(const char *form) {
  return (form[strcspn(form, "x") + 1] - '0') * (strstr(form, "m16n16") ? 2 : 1);
}

static void check_ldmatrix(const char *form, uint64_t *seed) {
  TileIn in[LANES];
  uint32_t out[LANES][4];
  uint8_t memory[512];
  char text[2048] = "";
  int regs = form_regs(form);
  draw_tiles(in, seed, memory);
  memset(out, 0, sizeof out);
  append(text, sizeof text,
         "%sst.shared.v4.u32 [%%r50], {%%r40,%%r41,%%r42,%%r43};\nbar.sync 0;\nldmatrix.sync.aligned.%s ",
         tile_head, form);
  append_list(text, sizeof text, "%r", 1, regs);
  append(text, sizeof text, ", [%%r51];\n");
  for (int r = 0; r < regs; r++)
    append(text, sizeof text, "st.global.u32 [%%out+%d], %%r%d;\n", r * 4, 1 + r);
  Ran ran = run_body(&(Body){.ptx = text,
                             .in = in,
                             .in_bytes = sizeof in,
                             .in_stride = sizeof in[0],
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 16});
  if (!body_ok(&ran, text)) return;
  for (int l = 0; l < LANES; l++)
    for (int r = 0; r < regs; r++)
      for (int e = 0; e < 4; e++) {
        int row, byte;
        tile_byte(form, r, l, e, &row, &byte);
        int want = memory[in[row].row + (uint32_t)byte], got = (int)(out[l][r] >> 8 * e & 255);
        CHECK_MSG(got == want, "ldmatrix.%s lane %d register %d byte %d: %02x, not %02x", form, l, r, e, got,
                  want);
      }
}

static void check_stmatrix(const char *form, uint64_t *seed) {
  TileIn in[LANES];
  uint8_t memory[512], out[512];
  char text[2048] = "";
  int regs = form_regs(form);
  draw_tiles(in, seed, memory);
  append(
      text, sizeof text,
      "%sst.shared.v4.u32 [%%r50], {%%r40,%%r41,%%r42,%%r43};\nld.global.v2.u32 {%%r1,%%r2}, "
      "[%%in+24];\nld.global.v2.u32 {%%r3,%%r4}, [%%in+32];\nbar.sync 0;\nstmatrix.sync.aligned.%s [%%r51], ",
      tile_head, form);
  append_list(text, sizeof text, "%r", 1, regs);
  append(text, sizeof text,
         ";\nbar.sync 0;\nmul.lo.u32 %%r53, %%t, 16;\nadd.u32 %%r53, %%r53, %%r52;\nld.shared.v4.u32 "
         "{%%r40,%%r41,%%r42,%%r43}, [%%r53];\nst.global.v4.u32 [%%out], {%%r40,%%r41,%%r42,%%r43};\n");
  memset(out, 0, sizeof out);
  Ran ran = run_body(&(Body){.ptx = text,
                             .in = in,
                             .in_bytes = sizeof in,
                             .in_stride = sizeof in[0],
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 16});
  if (!body_ok(&ran, text)) return;
  for (int l = 0; l < LANES; l++)
    for (int r = 0; r < regs; r++)
      for (int e = 0; e < 4; e++) {
        int row, byte;
        tile_byte(form, r, l, e, &row, &byte);
        memory[in[row].row + (uint32_t)byte] = (uint8_t)(in[l].regs[r] >> 8 * e);
      }
  CHECK_MSG(!memcmp(out, memory, sizeof out), "stmatrix.%s", form);
}

TEST(ldmatrix) {
  static const char *const forms[] = {"m8n8.x1.shared.b16",        "m8n8.x2.shared.b16",
                                      "m8n8.x4.shared.b16",        "m8n8.x1.trans.shared.b16",
                                      "m8n8.x2.trans.shared.b16",  "m8n8.x4.trans.shared::cta.b16",
                                      "m16n16.x1.trans.shared.b8", "m16n16.x2.trans.shared.b8"};
  uint64_t seed = 1;
  for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) check_ldmatrix(forms[f], &seed);
}
TEST(stmatrix) {
  static const char *const forms[] = {
      "m8n8.x1.shared.b16",       "m8n8.x2.shared.b16",       "m8n8.x4.shared.b16",
      "m8n8.x1.trans.shared.b16", "m8n8.x2.trans.shared.b16", "m8n8.x4.trans.shared.b16",
      "m16n8.x1.trans.shared.b8", "m16n8.x2.trans.shared.b8", "m16n8.x4.trans.shared.b8"};
  uint64_t seed = 2;
  for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) check_stmatrix(forms[f], &seed);
}

TEST(generic_address) {
  uint32_t out[LANES] = {0};
  const char *ptx = "mov.u64 %rd1, tile;\nmul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd3, %rd1, "
                    "%rd2;\nst.shared.u32 [%rd3], %t;\nbar.sync 0;\ncvta.shared.u64 %rd1, %rd1;\n"
                    "add.u64 %rd2, %rd2, %rd2;\nadd.u64 %rd2, %rd2, %rd2;\nadd.u64 %rd1, %rd1, "
                    "%rd2;\nldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1];\nst.global.u32 [%out], %r1;\n";
  Ran r = run_body(&(Body){.ptx = ptx, .out = out, .out_bytes = sizeof out, .out_stride = 4});
  if (!body_ok(&r, ptx)) return;
  for (uint32_t l = 0; l < LANES; l++) CHECK_INT(out[l], l);
}

TEST(movmatrix) {
  uint16_t in[LANES][2], out[LANES][2];
  for (int l = 0; l < LANES; l++)
    in[l][0] = (uint16_t)(l * 2), in[l][1] = (uint16_t)(l * 2 + 1); // element (r, c) is 8r + c
  memset(out, 0, sizeof out);
  const char *ptx = "ld.global.u32 %r1, [%in];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, "
                    "%r1;\nst.global.u32 [%out], %r1;\n";
  Ran r = run_body(&(Body){.ptx = ptx,
                           .in = in,
                           .in_bytes = sizeof in,
                           .in_stride = 4,
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = 4});
  if (!body_ok(&r, ptx)) return;
  for (int row = 0; row < 8; row++)
    for (int col = 0; col < 8; col++) CHECK_INT(out[row * 4 + col / 2][col % 2], col * 8 + row);
}

static SolEmuCounts count_tiles(const char *text) {
  uint32_t out[1] = {0};
  Ran r = run_body(&(Body){.ptx = text, .out = out, .out_bytes = 4});
  body_ok(&r, text);
  return r.total;
}
// Eight rows a pass, more where their banks clash.
TEST(wavefronts) {
  const char *dense = "mov.u32 %r9, tile;\nmul.lo.u32 %r8, %t, 16;\nadd.u32 %r9, %r9, "
                      "%r8;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r9];\n";
  CHECK_INT(count_tiles(dense).wavefronts, 4);
  CHECK_INT(count_tiles(dense).wavefronts_ideal, 4);
  CHECK_INT(count_tiles("mov.u32 %r9, tile;\nmul.lo.u32 %r8, %t, 128;\nadd.u32 %r9, %r9, "
                        "%r8;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r9];\n")
                .wavefronts,
            32);
  CHECK_INT(count_tiles("mov.u32 %r9, tile;\nmul.lo.u32 %r8, %t, 64;\nadd.u32 %r9, %r9, "
                        "%r8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9];\n")
                .wavefronts,
            4);
  CHECK_INT(count_tiles("mov.u32 %r9, tile;\nmul.lo.u32 %r8, %t, 112;\nadd.u32 %r9, %r9, "
                        "%r8;\nstmatrix.sync.aligned.m8n8.x2.shared.b16 [%r9], {%r1,%r2};\n")
                .wavefronts,
            2);
  CHECK_INT(count_tiles("mov.u32 %r9, tile;\nmul.lo.u32 %r8, %t, 128;\nadd.u32 %r9, %r9, "
                        "%r8;\nstmatrix.sync.aligned.m8n8.x2.shared.b16 [%r9], {%r1,%r2};\n")
                .shared_requests,
            1);
}

TEST(findings) {
  uint32_t out[LANES] = {0};
  Ran r = run_body(&(Body){.ptx = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%all];\n",
                           .out = out,
                           .out_bytes = sizeof out,
                           .keep_going = true});
  if (CHECK(r.findings > 0)) CHECK_INT(r.finding.kind, SOL_EMU_BAD_USE);
  r = run_body(
      &(Body){.ptx = "mov.u32 %r9, tile;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+8];\n",
              .out = out,
              .out_bytes = sizeof out,
              .keep_going = true});
  if (CHECK(r.findings > 0)) CHECK_INT(r.finding.kind, SOL_EMU_MISALIGNED);
}

CHECK_MAIN
