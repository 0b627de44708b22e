// Plain instructions in a row run as one stretch where a launch is not observed, and accesses through one register share
// what is known of their lanes where it is not counted: results and executions are those of a launch that looks at each.
#include <stdarg.h>
#include <stdio.h>

#include "check.h"

#include "emu/emu.h"

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    // Guards, lanes that part and meet again, one register for several accesses, changed between some of them.
    ".visible .entry mixed(.param .u64 x, .param .u64 y, .param .u32 rounds) {\n"
    "  .shared .align 16 .b8 tile[8192];\n"
    "  .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [rounds];\n"
    "  mov.u32 %r2, %tid.x; mov.u32 %r3, tile; mul.wide.u32 %rd3, %r2, 4;\n"
    "  add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3; shl.b32 %r4, %r2, 2; add.u32 %r5, %r3, %r4;\n"
    "  mov.u32 %r10, 0;\n"
    "again: ld.global.u32 %r6, [%rd4]; ld.global.u32 %r7, [%rd4+1024]; add.u32 %r10, %r10, %r6;\n"
    "  st.shared.u32 [%r5], %r7; ld.shared.u32 %r8, [%r5]; st.shared.u32 [%r5+4096], %r10;\n"
    "  and.b32 %r9, %r1, 7; add.u32 %r9, %r9, %r2; and.b32 %r9, %r9, 3; setp.eq.u32 %p1, %r9, 0;\n"
    "  @%p1 add.u32 %r10, %r10, %r8; @!%p1 xor.b32 %r10, %r10, %r8; @%p1 bra one;\n"
    "  add.u32 %r10, %r10, 5; mul.lo.u32 %r10, %r10, 3; bra both;\n"
    "one: sub.u32 %r10, %r10, 9; shl.b32 %r11, %r10, 1; xor.b32 %r10, %r10, %r11;\n"
    "both: add.u32 %r12, %r10, %r2; and.b32 %r12, %r12, 255; shl.b32 %r12, %r12, 2; add.u32 %r5, %r3, %r12;\n"
    "  ld.shared.u32 %r13, [%r5+4096]; @%p1 ld.shared.u32 %r14, [%r5]; add.u32 %r5, %r3, %r4;\n"
    "  ld.shared.u32 %r15, [%r5+4096]; add.u32 %r10, %r10, %r15;\n"
    "  sub.u32 %r1, %r1, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra again;\n"
    "  st.global.u32 [%rd5], %r10; st.global.u32 [%rd5+1024], %r15; ret;\n}\n"
    // Strides of a warp of rows of 16 and 8 threads, and of one word for all.
    ".visible .entry groups(.param .u64 x, .param .u64 y, .param .u32 of) {\n"
    "  .reg .b32 %r<12>; .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [of];\n"
    "  mov.u32 %r2, %tid.x; rem.u32 %r3, %r2, %r1; div.u32 %r4, %r2, %r1; mul.lo.u32 %r5, %r4, 37;\n"
    "  add.u32 %r6, %r5, %r3; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd4, %rd1, %rd3;\n"
    "  mul.wide.u32 %rd5, %r5, 4; add.u64 %rd6, %rd1, %rd5;\n"
    "  ld.global.u32 %r7, [%rd4]; ld.global.u32 %r8, [%rd6]; ld.global.u32 %r9, [%rd4+4]; xor.b32 %r7, %r7, %r8;\n"
    "  add.u32 %r7, %r7, %r9; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r7; ret;\n}\n"
    // The second load of a stretch is past the end for some.
    ".visible .entry beyond(.param .u64 x, .param .u64 y, .param .u32 by) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [by]; mov.u32 %r2, %tid.x;\n"
    "  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r3, [%rd4]; ld.global.u32 %r4, [%rd4+8064]; add.u32 %r3, %r3, %r4;\n"
    "  st.global.u32 [%rd5], %r3; ret;\n}\n"
    // The index is 32 bits wide, and passes 0 in some lanes from the fourth round on: those are far beyond the end then.
    ".visible .entry wraps(.param .u64 x, .param .u64 y, .param .u32 rounds) {\n"
    "  .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [rounds]; mov.u32 %r2, %tid.x;\n"
    "  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd5, %rd2, %rd3; mov.u32 %r5, 0; sub.u32 %r3, 40, %r2;\n"
    "  add.u64 %rd1, %rd1, 2048;\n"
    "again: mul.wide.u32 %rd4, %r3, 4; add.s64 %rd6, %rd1, %rd4; ld.global.u32 %r4, [%rd6]; add.u32 %r5, %r5, %r4;\n"
    "  sub.u32 %r3, %r3, 4; sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;\n"
    "  st.global.u32 [%rd5], %r5; ret;\n}\n"
    // A shuffle whose distance is in a register.
    ".visible .entry turn(.param .u64 x, .param .u64 y, .param .u32 by) {\n"
    "  .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<8>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [by]; mov.u32 %r2, %tid.x;\n"
    "  mul.wide.u32 %rd3, %r2, 16; add.u64 %rd5, %rd2, %rd3; mov.u32 %r9, -1; mov.u32 %r8, 4127;\n" // segments of 16
    "  shfl.sync.up.b32 %r3|%p1, %r2, %r1, 4096, %r9; shfl.sync.down.b32 %r4|%p2, %r2, %r1, %r8, %r9;\n"
    "  shfl.sync.bfly.b32 %r5|%p3, %r2, %r1, 31, %r9; shfl.sync.idx.b32 %r6|%p4, %r2, %r1, %r8, %r9;\n"
    "  @!%p1 add.u32 %r3, %r3, 100; @!%p2 add.u32 %r4, %r4, 100; @!%p3 add.u32 %r5, %r5, 100;\n"
    "  @!%p4 add.u32 %r6, %r6, 100; st.global.v4.u32 [%rd5], {%r3, %r4, %r5, %r6}; ret;\n}\n";

enum { WORDS = 2048 };
typedef enum Mode { UNCOUNTED, COUNTED, OBSERVED, CHECKED, MODES } Mode;
typedef struct Ran {
  uint32_t y[WORDS];
  SolEmuResult result;
} Ran;

static const char *source_text = text;

static bool run_mode(const char *kernel, uint32_t threads, uint32_t number, Mode mode, Ran *out) {
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolError err = {0};
  static uint32_t x[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) x[i] = i * 2654435761u;
  struct {
    uint64_t x, y;
    uint32_t number;
  } args = {.number = number};
  SolPtxSource source = {"stretch", source_text, strlen(source_text)};
  bool fine = !sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &err) &&
              !sol_emu_load(emu, &source, 1, &module, &err) &&
              !sol_emu_alloc(emu, sizeof x, "x", &args.x, &err) &&
              !sol_emu_alloc(emu, sizeof out->y, "y", &args.y, &err) &&
              !sol_emu_write(emu, args.x, x, sizeof x, &err);
  SolEmuLaunch launch = {.kernel = fine ? sol_emu_kernel(module, kernel) : NULL,
                         .grid = {1, 1, 1},
                         .block = {threads, 1, 1},
                         .params = &args,
                         .param_bytes = 20,
                         .no_counts = mode == UNCOUNTED,
                         .observe = mode == OBSERVED,
                         .checks = mode == CHECKED ? SOL_EMU_CHECK_SYNC : 0,
                         .keep_going = true};
  out->result = (SolEmuResult){0};
  fine = fine && !sol_emu_launch(emu, &launch, &out->result, &err) &&
         !sol_emu_read(emu, out->y, args.y, sizeof out->y, &err);
  CHECK_STR(err.message, "");
  sol_emu_destroy(emu);
  return fine;
}

#define ANY UINT64_MAX // as many as the first
static void all_alike(const char *kernel, uint32_t threads, uint32_t number, uint64_t findings) {
  static Ran ran[MODES];
  for (int m = 0; m < MODES; m++) {
    if (!run_mode(kernel, threads, number, (Mode)m, &ran[m])) return;
    const SolEmuResult *r = &ran[m].result, *one = &ran[0].result;
    CHECK(memcmp(ran[m].y, ran[0].y, sizeof ran[m].y) == 0);
    CHECK_INT(r->inst_count, one->inst_count);
    for (uint32_t i = 0; i < r->inst_count && i < one->inst_count; i++) {
      CHECK_INT(r->insts[i].counts.executions, one->insts[i].counts.executions);
      CHECK_INT(r->insts[i].counts.lanes, one->insts[i].counts.lanes);
      if (m > COUNTED) CHECK_INT(r->insts[i].counts.bytes, ran[COUNTED].result.insts[i].counts.bytes);
    }
    uint64_t times = 0;
    for (uint32_t i = 0; i < r->finding_count; i++) times += r->findings[i].times;
    if (m == 0 && findings == ANY) findings = times;
    CHECK_INT(times, findings);
  }
  for (int m = 0; m < MODES; m++) sol_emu_result_free(&ran[m].result);
}

TEST(stretches_count_and_compute_as_single_instructions) {
  all_alike("mixed", 256, 3, 0);
  all_alike("mixed", 77, 5, 0);
  all_alike("mixed", 256, 400, 0); // more than a time slice
}

TEST(rows_of_a_warp) {
  for (uint32_t of = 2; of <= 33; of++) all_alike("groups", 64, of, 0);
}

TEST(a_fault_in_a_stretch) {
  all_alike("beyond", 32, 0, 0);
  all_alike("beyond", 40, 0, 8);
}

TEST(shuffles_by_registers) {
  static Ran ran;
  for (uint32_t by = 0; by < 32; by++) {
    all_alike("turn", 32, by, 0);
    if (!run_mode("turn", 32, by, UNCOUNTED, &ran)) return;
    for (uint32_t l = 0; l < 32; l++) {
      uint32_t seg = l & 16, in = l & 15, up = in >= by ? l - by : l + 100,
               down = in + by <= 15 ? l + by : l + 100;
      CHECK_INT(ran.y[l * 4], up);
      CHECK_INT(ran.y[l * 4 + 1], down);
      CHECK_INT(ran.y[l * 4 + 2], l ^ by);
      CHECK_INT(ran.y[l * 4 + 3], seg | (by & 15));
    }
    sol_emu_result_free(&ran.result);
  }
}

// ---- addresses that launches without counts compute at their accesses ----

static uint32_t seed;
static uint32_t next(uint32_t n) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 10) % n;
}

static char made[1 << 16];
static size_t length;
__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
  va_list list;
  va_start(list, format);
  length += (size_t)vsnprintf(made + length, sizeof made - length, format, list);
  va_end(list);
}

typedef struct Names { // registers with values: %r0 to %r(narrow - 1), %rd0 to ...
  uint32_t narrow, wide;
} Names;

// One instruction, to a new register or to one that is there: what could be left out may be read by others, changed, or live on.
static void put_step(Names *n) {
  uint32_t a = next(n->narrow), b = next(n->narrow), c = next(n->wide), e = next(n->wide), kind = next(12);
  bool is_wide = kind >= 3 && kind <= 9;
  uint32_t d = next(4) || kind == 11 ? next(is_wide ? n->wide : n->narrow) : is_wide ? n->wide : n->narrow;
  if (kind != 11 && next(3)) d = is_wide ? n->wide : n->narrow;
  switch (kind) {
  case 0: put("  add.s32 %%r%u, %%r%u, %%r%u;\n", d, a, b); break;
  case 1: put("  sub.s32 %%r%u, %%r%u, %u;\n", d, a, next(9)); break;
  case 2: put("  shl.b32 %%r%u, %%r%u, %u;\n", d, a, next(3)); break;
  case 3: put("  mul.wide.s32 %%rd%u, %%r%u, %u;\n", d, a, next(4)); break;
  case 4: put("  mul.wide.u32 %%rd%u, %%r%u, 3;\n", d, a); break;
  case 5: put("  cvt.s64.s32 %%rd%u, %%r%u;\n", d, a); break;
  case 6: put("  cvt.u64.u32 %%rd%u, %%r%u;\n", d, a); break;
  case 7: put("  add.s64 %%rd%u, %%rd%u, %%rd%u;\n", d, c, e); break;
  case 8: put("  sub.s64 %%rd%u, %%rd%u, %u;\n", d, c, next(5)); break;
  case 9: put("  shl.b64 %%rd%u, %%rd%u, %u;\n", d, c, next(2)); break;
  case 10: put("  xor.b32 %%r%u, %%r%u, %%r%u;\n", d, a, b); break;
  default: put("  @%%p1 add.s32 %%r%u, %%r%u, 1;\n", d, a); break;
  }
  if (d == (is_wide ? n->wide : n->narrow)) is_wide ? n->wide++ : n->narrow++;
}

// Loads and stores at some result: most are inside, some beyond the end or not aligned.
static void put_access(Names *n) {
  uint32_t at = next(n->wide);
  if (next(8)) {
    put("  shl.b64 %%rd%u, %%rd%u, 2;\n", n->wide, at);
    at = n->wide++;
  }
  bool store = next(3) == 0;
  put("  add.s64 %%rd%u, %%%s, %%rd%u;\n", n->wide, store ? "to" : "from", at);
  for (uint32_t k = 1 + next(2); k > 0; k--) {
    if (store)
      put("  st.global.u32 [%%rd%u+%u], %%r%u;\n", n->wide, 4 * next(4), next(n->narrow));
    else
      put("  ld.global.u32 %%x, [%%rd%u+%u]; xor.b32 %%sum, %%sum, %%x;\n", n->wide, 4 * next(4));
    if (next(2)) put_step(n);
  }
  n->wide++;
}

static void make_program(void) {
  Names n = {3, 2};
  length = 0;
  put(".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry made(.param .u64 x, .param .u64 y, .param .u32 by) {\n"
      "  .reg .b32 %%r<300>, %%sum, %%x, %%n; .reg .b64 %%rd<300>, %%from, %%to, %%own; .reg .pred %%p<3>;\n"
      "  ld.param.u64 %%from, [x]; ld.param.u64 %%to, [y]; ld.param.u32 %%r1, [by]; mov.u32 %%r0, %%tid.x;\n"
      "  mul.wide.u32 %%own, %%r0, 4; add.s64 %%own, %%to, %%own; add.s64 %%from, %%from, 2048;\n"
      "  add.s64 %%to, %%to, 4096; setp.lt.u32 %%p1, %%r0, 21; mov.u32 %%n, 0; mov.u32 %%sum, 0;\n"
      "  cvt.u64.u32 %%rd0, %%r0; mul.wide.u32 %%rd1, %%r1, 5;\nagain:\n  add.s32 %%r2, %%n, 1;\n");
  for (int k = 4 + (int)next(12); k > 0; k--) next(3) ? put_step(&n) : put_access(&n);
  put_access(&n);
  put("  add.s32 %%n, %%n, 1; setp.lt.u32 %%p2, %%n, 5; @%%p2 bra again;\n  st.global.u32 [%%own], %%sum; ret;\n}\n");
}

TEST(an_index_that_wraps) {
  all_alike("wraps", 32, 3, 0);
  all_alike("wraps", 32, 5, 3 + 7);
}

TEST(addresses_are_the_same_where_they_are_computed_late) {
  source_text = made;
  for (uint32_t k = 0; k < 300; k++) {
    seed = k * 7919 + 1;
    make_program();
    all_alike("made", k % 3 ? 64 : 45, k % 7, ANY);
  }
  source_text = text;
}

CHECK_MAIN
