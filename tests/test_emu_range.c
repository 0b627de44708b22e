// Accesses whose two ends look right, or whose address or length does not fit its type: each must lie, whole,
// in one allocation, one block's shared memory, one thread's local memory or the parameters.
#include "emu_body.h"

#define GLOBALS                                                                                              \
  ".global .align 16 .b8 A[61440];\n.global .align 16 .b8 B[61440];\n.const .align 16 .b8 C[64];\n"          \
  ".extern .shared .align 16 .b8 dynamic[];\n"                                                               \
  ".func (.param .b32 r) f(.param .align 16 .b8 q[32])\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"            \
  "ld.param.u64 %rd2, [q];\nmov.b64 %rd1, q;\nadd.u64 %rd1, %rd1, %rd2;\nld.param.u32 %r1, [%rd1];\n"        \
  "st.param.b32 [r], %r1;\nret;\n}\n"
// %r10: the tile, of 4096 bytes, which is all that the block has; %rd10, %rd11: A, B.
#define SETUP "mov.u32 %r10, tile;\nmov.u64 %rd10, A;\nmov.u64 %rd11, B;\n"
#define BARRIER                                                                                              \
  "mbarrier.init.shared.b64 [%r10], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd9, [%r10], 64;\n"
#define TO_SHARED "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define INSIDE    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
#define TO_GLOBAL "cp.async.bulk.global.shared::cta.bulk_group"
#define REDUCE    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64"

typedef struct Case {
  const char *ptx;
  SolEmuFindingKind kind; // SOL_EMU_FINDING_KINDS: none
  const char *says;
} Case;
#define FINE SOL_EMU_FINDING_KINDS

static void check_case(const Case *c, int threads, int cluster) {
  char ptx[2048];
  snprintf(ptx, sizeof ptx, "%s%s", SETUP, c->ptx);
  for (int checking = 0; checking < 2; checking++) {
    SolEmu *emu = NULL;
    SolEmuMachine machine = {.workers = 1, .sms = 1, .track_init = checking == 1};
    if (!CHECK(!sol_emu_create(&machine, &emu, NULL))) return;
    Ran r = run_body(&(Body){.ptx = ptx,
                             .before = GLOBALS,
                             .threads = threads,
                             .blocks = cluster ? cluster : 1,
                             .cluster = cluster,
                             .emu = emu});
    if (c->kind == FINE) {
      body_ok(&r, c->ptx);
    } else if (CHECK_MSG(!r.status && r.findings, "%s: no finding%s", c->ptx, r.err.message)) {
      CHECK_INT(r.end, SOL_EMU_FAULT);
      CHECK_MSG(r.finding.kind == c->kind, "%s: %s", c->ptx, r.finding.message);
      CHECK_HAS(r.finding.message, c->says);
    }
    sol_emu_destroy(emu);
  }
}
#define CHECK_CASES(cases, threads, cluster)                                                                 \
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_case(&cases[k], threads, cluster)

TEST(bulk_copies) {
  static const Case cases[] = {
      // B starts 65536 bytes after A, and a copy could end in it.
      {"mov.u32 %r1, 65552;\n" TO_SHARED " [%r10+64], [%rd10], %r1, [%r10];\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 65552 bytes at 0x"},
      {TO_SHARED " [%r10+64], [%rd10+61424], 32, [%r10];\n", SOL_EMU_OUT_OF_BOUNDS, "past the end of A"},
      {BARRIER TO_SHARED " [%r10+64], [%rd10+61376], 64, [%r10];\n", FINE, NULL},
      {TO_GLOBAL " [%rd10+61424], [%r10], 32;\n", SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes"},
      {TO_GLOBAL " [%rd10+57344], [%r10], 4096;\n", FINE, NULL},
      {TO_GLOBAL " [%rd10], [%r10], 4112;\n", SOL_EMU_OUT_OF_BOUNDS, "of which the block has 4096 bytes"},
      {TO_GLOBAL " [%rd10], [%r10+4080], 32;\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 32 bytes at 0xff0 of shared"},
      {TO_SHARED " [%r10+4080], [%rd10], 32, [%r10];\n", SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes at 0xff0"},
      {REDUCE " [%rd10+61424], [%r10], 32;\n", SOL_EMU_OUT_OF_BOUNDS, "past the end of A of 61440 bytes"},
      {REDUCE " [%rd10+57344], [%r10], 4096;\n", FINE, NULL},
      // Lengths and addresses whose sum has more than 32 or 64 bits.
      {"mov.u32 %r1, 0x80000000;\n" TO_SHARED " [%r10+64], [%rd10], %r1, [%r10];\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 2147483648 bytes"},
      {"mov.u32 %r1, 0xfffffff0;\n" TO_GLOBAL " [%rd10], [%r10], %r1;\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 4294967280 bytes"},
      {"mov.u32 %r1, 0xfffffff0;\n" TO_GLOBAL " [%rd10], [%r1], 32;\n", SOL_EMU_OUT_OF_BOUNDS, "0xfffffff0"},
      {"mov.u64 %rd1, -16;\n" TO_GLOBAL " [%rd1], [%r10], 32;\n", SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes"},
      {"mov.u64 %rd1, -16;\n" TO_SHARED " [%r10+64], [%rd1], 32, [%r10];\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 32 bytes"},
      {TO_GLOBAL " [%rd10+8], [%r10], 32;\n", SOL_EMU_MISALIGNED, "no multiple of 16"},
      {TO_GLOBAL " [%rd10], [%r10], 24;\n", SOL_EMU_BAD_USE, "24 bytes, which is no multiple of 16"},
      {TO_GLOBAL " [%rd10], [%r10], 0;\n", FINE, NULL},
      // The mbarrier.
      {TO_SHARED " [%r10+64], [%rd10], 64, [%r10+4];\n", SOL_EMU_MISALIGNED, "which is no multiple of 8"},
      {TO_SHARED " [%r10+64], [%rd10], 64, [%r10+4092];\n", SOL_EMU_MISALIGNED, "which is no multiple of 8"},
      {TO_SHARED " [%r10+64], [%rd10], 64, [%r10+4096];\n", SOL_EMU_OUT_OF_BOUNDS,
       "write of 8 bytes at 0x1000"},
      // st.bulk.
      {"mov.u64 %rd1, 4096;\nst.bulk.weak.shared::cta [%r10], %rd1, 0;\n", FINE, NULL},
      {"mov.u64 %rd1, 4112;\nst.bulk.weak.shared::cta [%r10], %rd1, 0;\n", SOL_EMU_OUT_OF_BOUNDS,
       "write of 4112 bytes"},
      {"mov.u64 %rd1, 0x1000000000010;\nst.bulk.weak.shared::cta [%r10], %rd1, 0;\n", SOL_EMU_OUT_OF_BOUNDS,
       "write of 281474976710672 bytes"},
      {"mov.u64 %rd1, -16;\nst.bulk.weak.shared::cta [%r10], %rd1, 0;\n", SOL_EMU_OUT_OF_BOUNDS, "of shared"},
  };
  CHECK_CASES(cases, 1, 0);
}

TEST(bulk_copies_in_a_cluster) {
  static const Case cases[] = {
      {"mov.u16 %h1, 3;\n" TO_SHARED ".multicast::cluster [%r10+4080], [%rd10], 32, [%r10], %h1;\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes"},
      {"mov.u16 %h1, 0x8000;\n" TO_SHARED ".multicast::cluster [%r10+64], [%rd10], 32, [%r10], %h1;\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes"},
      {"mov.u16 %h1, 2;\n" TO_SHARED ".multicast::cluster [%r10+64], [%rd10], 32, [%r10+4092], %h1;\n",
       SOL_EMU_MISALIGNED, "no multiple of 8"},
      {"mov.u32 %r1, 1;\nmapa.shared::cluster.u32 %r2, %r10, %r1;\n" INSIDE
       " [%r2+4080], [%r10], 32, [%r2];\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 32 bytes"},
  };
  CHECK_CASES(cases, 1, 2);
}

// A copy inside of shared memory that overlaps itself moves what was there before.
TEST(bulk_copy_onto_itself) {
  static uint32_t out[32];
  Ran r = run_body(&(Body){.ptx = SETUP
                           "mad.lo.u32 %r1, %t, 4, %r10;\nst.shared.u32 [%r1+128], %t;\nbar.sync 0;\n"
                           "setp.eq.u32 %p1, %t, 0;\n@!%p1 bra done;\n" BARRIER INSIDE
                           " [%r10+144], [%r10+128], 64, [%r10];\ndone: bar.sync 0;\n"
                           "ld.shared.u32 %r2, [%r1+128];\nst.global.u32 [%out], %r2;\n",
                           .before = GLOBALS,
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = 4});
  body_ok(&r, "overlap");
  for (uint32_t t = 0; t < 32; t++) CHECK_INT(out[t], t < 4 || t >= 20 ? t : t - 4);
}

TEST(ends_of_memory) {
  static const Case cases[] = {
      {"ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd10+61424];\n", FINE, NULL},
      {"ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd10+61440];\n", SOL_EMU_OUT_OF_BOUNDS, "past the end of A"},
      {"ld.global.v4.u64 {%rd1,%rd2,%rd3,%rd4}, [%all];\n", SOL_EMU_OUT_OF_BOUNDS, "read of 32 bytes"},
      {"atom.global.exch.b128 %q0, [%all+16], %q1;\n", SOL_EMU_OUT_OF_BOUNDS, "write of 16 bytes"},
      {"mov.u64 %rd1, -8;\nld.global.u64 %rd2, [%rd1];\n", SOL_EMU_OUT_OF_BOUNDS, "0xfffffffffffffff8"},
      {"mov.u64 %rd1, -8;\nld.global.u64 %rd2, [%rd1+8];\n", SOL_EMU_NULL, "at 0x0"},
      {"mov.u32 %r1, -16;\nld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r1];\n", SOL_EMU_OUT_OF_BOUNDS, "of shared"},
      {"ld.shared.u32 %r1, [%r10+4092];\n", FINE, NULL},
      {"ld.shared.u32 %r1, [%r10+4096];\n", SOL_EMU_OUT_OF_BOUNDS, "of shared memory"},
      {"ld.shared::cluster.u32 %r1, [%r10+33554432];\n", SOL_EMU_OUT_OF_BOUNDS, "of shared memory"},
      {"mov.u64 %rd1, 0x71fffffffffc;\nld.u32 %r1, [%rd1];\n", SOL_EMU_OUT_OF_BOUNDS, "of shared memory"},
      {"mov.u64 %rd1, 0x71fffffffffc;\nst.u32 [%rd1+4], %r1;\n", SOL_EMU_OUT_OF_BOUNDS, "of local memory"},
      {"mov.u64 %rd1, 0x740000000010;\nld.u32 %r1, [%rd1];\n", SOL_EMU_OUT_OF_BOUNDS, "read of 4 bytes"},
      {"mov.u64 %rd1, -8;\nld.local.u64 %rd1, [%rd1];\n", SOL_EMU_OUT_OF_BOUNDS, "of local memory"},
      {"mov.u32 %r1, -8;\nld.local.u64 %rd1, [%r1];\n", SOL_EMU_OUT_OF_BOUNDS, "of local memory"},
      {"ld.const.v2.u64 {%rd1,%rd2}, [C+48];\n", FINE, NULL},
      {"ld.const.v2.u64 {%rd1,%rd2}, [C+64];\n", SOL_EMU_OUT_OF_BOUNDS, "past the end of C"},
      {"cp.async.ca.shared.global [%r10+4080], [%rd10+61432], 8;\ncp.async.cg.shared.global [%r10+4088], "
       "[%rd10], 16;\n",
       SOL_EMU_MISALIGNED, "no multiple of 16"},
      {"cp.async.ca.shared.global [%r10+4096], [%rd10], 8;\n", SOL_EMU_OUT_OF_BOUNDS, "write of 8 bytes"},
      {"cp.async.ca.shared.global [%r10], [%rd10+61440], 8;\n", SOL_EMU_OUT_OF_BOUNDS, "read of 8 bytes"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %t, [%r10+4096];\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 8 bytes"},
      // A mask of its own, that no rank of the cluster has.
      {"mapa.shared::cluster.u32 %r1, %r10, -1;\nld.shared::cluster.u32 %r2, [%r1];\n", SOL_EMU_BAD_USE,
       "rank 4294967295"},
  };
  CHECK_CASES(cases, 1, 0);
}

TEST(matrices) {
  static const Case cases[] = {
      {"mov.u32 %r1, 4080;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];\n", FINE, NULL},
      {"mov.u32 %r1, 4096;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];\n", SOL_EMU_OUT_OF_BOUNDS,
       "read of 16 bytes"},
      {"mov.u32 %r1, -16;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2,%r3,%r4,%r5};\n",
       SOL_EMU_OUT_OF_BOUNDS, "write of 16 bytes"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r10+3584], "
       "16;\n",
       FINE, NULL},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r10+3616], "
       "16;\n",
       SOL_EMU_OUT_OF_BOUNDS, "of shared memory"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd10], "
       "0xfffffff8;\n",
       SOL_EMU_OUT_OF_BOUNDS, "read of"},
      {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd10+60448], "
       "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 16;\n",
       SOL_EMU_OUT_OF_BOUNDS, "past the end of A"},
  };
  CHECK_CASES(cases, 32, 0);
}

#define CALL(set)                                                                                            \
  "{ .param .align 16 .b8 p[32]; .param .b32 r; mov.u64 %rd2, 0;\nst.param.u64 [p], %rd2;\n" set             \
  "call (r), f, (p);\nld.param.b32 %r1, [r]; }\n"
TEST(parameters) {
  static const Case cases[] = {
      {"mov.b64 %rd1, a;\nld.param.u64 %rd2, [%rd1+16];\n", FINE, NULL},
      {"mov.b64 %rd1, a;\nld.param.u64 %rd2, [%rd1+24];\n", SOL_EMU_OUT_OF_BOUNDS, "kernel's parameters"},
      {"mov.b64 %rd1, a;\nld.param.u64 %rd2, [%rd1+-8];\n", SOL_EMU_OUT_OF_BOUNDS, "kernel's parameters"},
      {CALL(""), FINE, NULL},
      {CALL("mov.u64 %rd2, 28;\nst.param.u64 [p], %rd2;\n"), FINE, NULL},
      {CALL("mov.u64 %rd2, 4096;\nst.param.u64 [p], %rd2;\n"), SOL_EMU_OUT_OF_BOUNDS, "parameter space"},
      {CALL("mov.u64 %rd2, -4096;\nst.param.u64 [p], %rd2;\n"), SOL_EMU_OUT_OF_BOUNDS, "parameter space"},
      {CALL("mov.u64 %rd2, 0x7fffffffffffffe0;\nst.param.u64 [p], %rd2;\n"), SOL_EMU_OUT_OF_BOUNDS,
       "parameter space"},
  };
  CHECK_CASES(cases, 32, 0);
}

// What is wrong whatever a kernel computes is refused before it runs.
TEST(refused_at_load) {
  static const char *const bodies[] = {
      "ld.param.u64 %rd1, [c+8];\n",
      "ld.param.u64 %rd1, [a+-8];\n",
      "ld.param.u64 %rd1, [a+0x7fffffffffffffff];\n",
      "ld.param.v2.u64 {%rd1,%rd2}, [c];\n",
      CALL("st.param.u32 [p+1024], %t;\n"),
      CALL("st.param.u32 [p+0x7ffffffffffffffc], %t;\n"),
      CALL("st.param.u32 [p+-9223372036854775808], %t;\n"),
  };
  for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
    Ran r = run_body(&(Body){.ptx = bodies[k], .before = GLOBALS, .threads = 1});
    if (CHECK_MSG(r.status, "%s was not refused", bodies[k]))
      CHECK_HAS(r.err.message, "beyond the parameter");
  }
}

// The registers of a vector have one width, and an immediate among them has theirs.
TEST(widths) {
  static const char *const mixed[] = {
      "ld.global.v2.u16 {%h63,%r1}, [%rd10];\n", "ld.global.v2.u16 {%r1,%h63}, [%rd10];\n",
      "ld.global.v2.u8 {%h1,%rd1}, [%rd10];\n",  "ld.global.v4.u8 {_,_,%rd1,%h1}, [%rd10];\n",
      "ld.global.v2.u32 {%r1,%rd1}, [%rd10];\n", "st.global.v2.u16 [%rd10], {%h1,%rd1};\n",
      "st.global.v2.u16 [%rd10], {%rd1,%h1};\n"};
  for (size_t k = 0; k < sizeof mixed / sizeof *mixed; k++) {
    Ran r = run_body(&(Body){.ptx = mixed[k], .before = GLOBALS, .threads = 1});
    if (CHECK_MSG(r.status, "%s was not refused", mixed[k])) CHECK_HAS(r.err.message, "different widths");
  }
  static uint8_t out[32][4];
  Ran r = run_body(&(Body){.ptx = "cvt.u64.u32 %rd1, %t;\nst.global.v2.u8 [%out], {17,%rd1};\n"
                                  "ld.global.v2.u8 {_,%rd2}, [%out];\nst.global.v2.u8 [%out+2], {%rd2,-1};\n",
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = 4});
  body_ok(&r, "immediates");
  for (uint8_t t = 0; t < 32; t++)
    CHECK(out[t][0] == 17 && out[t][1] == t && out[t][2] == t && out[t][3] == 255);
}

CHECK_MAIN
