// Light: both roofs, on small kernels on the emulator.
#include "audit_ptx.h"

#include "audit/inside.h"

enum { BLOCKS = 264, THREADS = 256, TURNS = 64 };

static double peak_seconds(const Billed *b, double warp_instructions, double rate) {
  const SolDevice *d = b->program.device;
  return warp_instructions / rate / d->sms.value / d->boost_clock.value;
}

static double turns_of_all_warps(void) {
  return (double)BLOCKS * THREADS / 32 * TURNS;
}

#define LOOP(body)                                                                                           \
  "ld.global.u32 %r6, [%rd4];\nmov.b32 %f1, %r6;\nmov.u32 %r5, 0;\nL:\n" body                                \
  "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 64;\n@%p1 bra L;\n"

TEST(arithmetic_is_held_against_its_pipe) {
  static const struct {
    const char *body;
    double operations; // of the pipe, in a turn; the loop's own are integers
    MachinePipe pipe;
  } cases[] = {
      {LOOP(
           "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n"
           "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n") "st.global.f32 [%rd5], %f1;",
       6, MACHINE_FP32},
      {LOOP("xor.b32 %r6, %r6, %r5;\nmul.lo.u32 %r6, %r6, 77;\n") "st.global.u32 [%rd5], %r6;", 4,
       MACHINE_INTEGER},
      {LOOP("ex2.approx.f32 %f1, %f1;\n") "st.global.f32 [%rd5], %f1;", 1, MACHINE_SPECIAL},
      {LOOP(
           "cvt.f64.f32 %d1, %f1;\nfma.rn.f64 %d1, %d1, %d1, %d1;\nfma.rn.f64 %d1, %d1, %d1, %d1;\n"
           "fma.rn.f64 %d1, %d1, %d1, %d1;\nfma.rn.f64 %d1, %d1, %d1, %d1;\nfma.rn.f64 %d1, %d1, %d1, %d1;\n") "cvt.rn.f32.f64 %f1, %d1;\nst.global.f32 [%rd5], %f1;",
       5, MACHINE_FP64},
  };
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    Billed b;
    bill_ptx(&b, cases[i].body, BLOCKS, THREADS);
    const AuditKernel *k = b.kernel;
    double expected = peak_seconds(&b, cases[i].operations * turns_of_all_warps(),
                                   machine_pipe_rate(&b.program.machine, cases[i].pipe));
    CHECK_MSG(k->lights.pipe == cases[i].pipe, "case %zu: %s", i, machine_pipe_name(k->lights.pipe));
    CHECK_MSG(k->lights.compute > 0.99 * expected && k->lights.compute < 1.01 * expected,
              "case %zu: compute light %g, expected %g", i, k->lights.compute, expected);
    CHECK(k->lights.compute > k->lights.memory);
    CHECK_NEAR(k->light, k->lights.compute + k->lights.launch, 1e-12);
    CHECK_MSG(k->tax >= 1 && k->tax < 4, "case %zu: tax %g", i, k->tax);
    bill_free(&b);
  }
}

// Addresses are no arithmetic, however much of it there is: the result does not need it.
TEST(addresses_are_not_arithmetic) {
  Billed b;
  bill_ptx(
      &b,
      LOOP(
          "xor.b32 %r7, %r5, %r1;\nmul.lo.u32 %r7, %r7, 0;\nmul.wide.u32 %rd6, %r7, 4;\n"
          "add.s64 %rd6, %rd4, %rd6;\nld.global.f32 %f2, [%rd6];\nadd.f32 %f1, %f1, %f2;\n") "st.global.f32 [%rd5], %f1;",
      BLOCKS, THREADS);
  const AuditKernel *k = b.kernel;
  double add = peak_seconds(&b, turns_of_all_warps(), machine_pipe_rate(&b.program.machine, MACHINE_FP32));
  CHECK(k->lights.pipe == MACHINE_FP32);
  CHECK_NEAR(k->lights.compute, add, 1e-9);
  bill_free(&b);
}

TEST(inactive_lanes_do_not_count) {
  double light[2];
  for (int part = 0; part < 2; part++) {
    Billed b;
    char body[1024];
    snprintf(
        body, sizeof body, "and.b32 %%r7, %%r4, 31;\nsetp.ge.u32 %%p2, %%r7, %d;\n@%%p2 bra E;\n%s E:\n",
        part ? 8 : 32,
        LOOP(
            "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n"
            "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n"
            "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n") "st.global.f32 [%rd5], %f1;\n");
    bill_ptx(&b, body, BLOCKS, THREADS);
    light[part] = b.kernel->lights.compute;
    bill_free(&b);
  }
  CHECK_NEAR(light[1], light[0] / 4, 0.01 * light[0]);
}

// A compare-and-swap that nothing is decided by is tried once: an atomic like any other.
TEST(swaps_are_tried_again_where_a_branch_depends_on_them) {
  for (int again = 0; again < 2; again++) {
    Billed b;
    char body[300];
    snprintf(
        body, sizeof body,
        "mov.u32 %%r9, 0;\nagain: atom.global.cas.b32 %%r8, [%%rd5], %%r9, 1;\nadd.u32 %%r7, %%r8, 1;\n%s st.global.u32 [%%rd5], %%r7;\n",
        again ? "setp.eq.u32 %p1, %r7, 99; @%p1 bra again;\n" : "");
    bill_ptx(&b, body, BLOCKS, THREADS);
    CHECK_INT(b.kernel->work.swaps > 0, again);
    bill_free(&b);
  }
}

TEST(few_operations_leave_memory_the_roof) {
  Billed b;
  bill_ptx(&b, "ld.global.f32 %f1, [%rd4];\nadd.f32 %f1, %f1, %f1;\nst.global.f32 [%rd5], %f1;", BLOCKS,
           THREADS);
  const AuditKernel *k = b.kernel;
  CHECK_NEAR(k->lights.memory, BLOCKS * THREADS * 8.0 / machine_copy_rate(&b.program.machine), 1e-12);
  CHECK_NEAR(k->light, k->lights.memory + k->lights.launch, 1e-12);
  bill_free(&b);
}

// The arithmetic of a product of fp32 matrices is what the roofline says: 2 m n k over the peak.
TEST(a_product_agrees_with_the_roofline) {
  const SolDevice *d = NULL;
  MachinePipe pipe;
  CHECK(!sol_device_find("h100", &d, NULL));
  MachineModel model = machine_model(d);
  MachineArithmetic work = {.of = {[MACHINE_FP32] = 2.0 * 1024 * 1024 * 1024}};
  CHECK_NEAR(machine_compute_light(&model, &work, &pipe), work.of[MACHINE_FP32] / d->peak_fp32.value, 1e-12);
}

CHECK_MAIN
