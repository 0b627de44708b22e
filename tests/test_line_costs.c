// What lines cost: shares of the time that add up to it.
#include <math.h>

#include "audit/inside.h"
#include "audit_ptx.h"

enum { BLOCKS = 1056, THREADS = 256 };

#define HEAD                                                                                                        \
  ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"/home/me/k.cu\"\n"                                      \
  ".file 2 \"/cuda/targets/include/cccl/cub/block.cuh\"\n.file 3 \"/cuda/targets/include/cccl/cub/dispatch.cuh\"\n" \
  ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.loc 1 3 0\n"                                                \
  ".reg .pred %p<9>;\n.reg .f32 %f<9>;\n.reg .b32 %r<19>;\n.reg .b64 %rd<9>;\n"                                     \
  "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"               \
  "mov.u32 %r4, %tid.x;\nmad.lo.s32 %r1, %r2, %r3, %r4;\nmul.wide.u32 %rd3, %r1, 4;\n"                              \
  "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"

static const AuditLine *line_at(const AuditKernel *k, uint32_t number) {
  for (uint32_t i = 0; i < k->line_count; i++)
    if (k->lines[i].line == number) return &k->lines[i];
  return NULL;
}

static void check_sum(const AuditKernel *k) {
  double sum = k->parts[MACHINE_LAUNCH] + k->unowned, parts = 0;
  for (uint32_t i = 0; i < k->line_count; i++) {
    CHECK(k->lines[i].cost >= 0);
    sum += k->lines[i].cost;
  }
  for (int r = 0; r < MACHINE_RESOURCES; r++) parts += k->parts[r];
  CHECK_MSG(fabs(sum - k->time.total) < 1e-9 * k->time.total, "%g of %g s", sum, k->time.total);
  CHECK_MSG(fabs(parts - k->time.total) < 1e-9 * k->time.total, "%g of %g s", parts, k->time.total);
}

// One load of every lane's own sector, which is nearly all of the work; the line after it uses what came.
TEST(a_load_that_makes_the_time_has_that_share) {
  Billed b;
  bill_module(&b,
              HEAD ".loc 1 5 0\nand.b32 %r5, %r1, 4095;\nmul.lo.u32 %r6, %r5, 61;\nand.b32 %r6, %r6, 16383;\n"
                   "mul.wide.u32 %rd6, %r6, 4;\nadd.s64 %rd6, %rd1, %rd6;\n"
                   "ld.global.f32 %f1, [%rd6];\nld.global.f32 %f2, [%rd4];\n"
                   ".loc 1 6 0\nadd.f32 %f1, %f1, %f2;\n.loc 1 7 0\nst.global.f32 [%rd5], %f1;\n"
                   ".loc 1 8 1\nret;\n}\n",
              BLOCKS, THREADS);
  const AuditKernel *k = b.kernel;
  check_sum(k);
  const AuditLine *load = line_at(k, 5), *use = line_at(k, 6), *end = line_at(k, 8);
  if (CHECK(load && use && end)) {
    double work = k->time.total - k->parts[MACHINE_LAUNCH];
    CHECK_MSG(load->cost > 0.6 * work, "%g of %g", load->cost, work);
    CHECK_MSG(use->cost < 0.1 * load->cost, "%g, the load %g", use->cost, load->cost);
    CHECK_NEAR(end->cost, 0, 0); // the closing brace
    CHECK(load == k->lines);     // costliest first
  }
  bill_free(&b);
}

TEST(costs_of_every_kind_of_kernel_add_up) {
  static const char *const bodies[] = {
      "ld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd5], %f1;",
      "atom.global.add.u32 %r5, [%rd2], 1;",
      "fma.rn.f32 %f1, %f1, %f1, %f1;\nst.global.f32 [%rd5], %f1;",
      "bar.sync 0;\nst.global.u32 [%rd5], %r1;",
      "",
  };
  for (size_t i = 0; i < SOL_COUNT(bodies); i++)
    for (uint32_t blocks = 1; blocks < 500; blocks *= 20) {
      Billed b;
      bill_ptx(&b, bodies[i], blocks, THREADS);
      check_sum(b.kernel);
      bill_free(&b);
    }
}

// What a library inlines belongs to the line that calls it, and the chain says through what. A library's own
// kernel has no such line: then the innermost, not the call of everything.
TEST(inlined_code_belongs_to_the_users_line) {
  for (int own = 0; own < 2; own++) {
    Billed b;
    char text[4096];
    snprintf(text, sizeof text,
             "%s.loc %d 40 0\nld.global.f32 %%f1, [%%rd4];\n"
             ".loc 2 77 0, function_name $L__info_string0, inlined_at %d 40 0\nadd.f32 %%f1, %%f1, %%f1;\n"
             "st.global.f32 [%%rd5], %%f1;\nret;\n}\n"
             ".section .debug_str\n{\n$L__info_string0:\n.b8 95\n.b8 0\n}\n",
             HEAD, own ? 3 : 1, own ? 3 : 1);
    bill_module(&b, text, BLOCKS, THREADS);
    const AuditLine *user = line_at(b.kernel, 40), *inner = line_at(b.kernel, 77);
    CHECK(user != NULL && (inner != NULL) == own);
    const AuditLine *with = own ? inner : user;
    if (CHECK(with))
      CHECK_STR(with->inlined, own ? "dispatch.cuh:40 > block.cuh:77" : "k.cu:40 > block.cuh:77");
    check_sum(b.kernel);
    bill_free(&b);
  }
}

// One lane allocates 64 times: its load, of a moment, is not what it waits for, and without the load it would wait as long.
TEST(calls_of_malloc_cost_what_they_take) {
  Billed b;
  bill_module(&b,
              ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"/home/me/k.cu\"\n"
              ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
              ".visible .entry k(.param .u64 a)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n"
              ".loc 1 5 0\nld.param.u64 %rd1, [a];\nld.global.u64 %rd2, [%rd1];\nmov.u32 %r1, 0;\n"
              ".loc 1 7 0\nL: { .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); "
              "ld.param.b64 %rd3, [r]; }\n"
              ".loc 1 8 0\nst.global.u64 [%rd1], %rd3;\nadd.u32 %r1, %r1, 1;\n"
              "setp.lt.u32 %p1, %r1, 64;\n@%p1 bra L;\nst.global.u64 [%rd1], %rd2;\nret;\n}\n",
              1, 1);
  const AuditKernel *k = b.kernel;
  const AuditLine *call = line_at(k, 7);
  check_sum(k);
  if (CHECK(call)) CHECK_MSG(call->cost > 0.8 * k->time.total, "%g of %g", call->cost, k->time.total);
  CHECK_MSG(k->work.call_clocks > 10 * k->work.load_wait_clocks, "%g, loads %g", k->work.call_clocks,
            k->work.load_wait_clocks);
  bill_free(&b);
}

CHECK_MAIN
