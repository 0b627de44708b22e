// The rule about arithmetic that takes many instructions, on made-up kernels.
#include "rules_rig.h"

static AuditInst *add_math(Rig *rig, const char *text, SolEmuClass unit, uint8_t size, uint64_t times) {
  AuditInst *in = &rig->insts[rig->launch.inst_count];
  *in = (AuditInst){.file = "k.cu",
                    .line = 20 + rig->launch.inst_count,
                    .text = text,
                    .unit = unit,
                    .size = size,
                    .place = rig->launch.inst_count++};
  in->counts = (SolEmuCounts){.executions = times * WARPS, .lanes = times * WARPS * 32};
  double issues = (double)(size * times * WARPS);
  bool doubles = unit == SOL_EMU_CLASS_DOUBLE;
  in->by_machine = true;
  in->executed =
      (AuditExecuted){.issues = issues, .fp64 = doubles ? issues : 0, .integer = doubles ? 0 : issues};
  return in;
}

TEST(quotients_by_what_is_known_at_run_time_only) {
  static const struct {
    const char *text, *fix;
    uint8_t size;
  } cases[] = {{"rem.s32 %r3, %r2, %r1;", "compare and subtract", 16},
               {"@%p1 div.u32 %r3, %r2, %r1;", "compare and subtract", 16},
               {"div.s64 %rd3, %rd2, %rd1;", "32 bits", 90},
               {"div.rn.f32 %f3, %f2, %f1;", "__fdividef", 14},
               {"sqrt.rn.f32 %f3, %f2;", "rsqrtf", 14},
               {"div.approx.f32 %f3, %f2, %f1;", NULL, 3}, // fast already
               {"rem.s32 %r3, %r2, 8;", NULL, 3},          // a power of two
               {"remote.s32 %r3, %r2;", NULL, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig rig;
    rig_start(&rig);
    add_math(&rig, cases[i].text, SOL_EMU_CLASS_INT, cases[i].size, 20)->inlined =
        i ? "main.cu:7 > k.cu:20" : "k.cu:7";
    const AuditFinding *f = find(rig_finish(&rig), "slow_math");
    CHECK_MSG((f != NULL) == (cases[i].fix != NULL), "%s", cases[i].text);
    if (f && cases[i].fix) CHECK_HAS(f->fix, cases[i].fix);
    if (f) CHECK((strstr(f->message, "Called at main.cu:7.") != NULL) == (i > 0)); // another file's
    audit_free(&rig.program);
  }
}

// A constant without an f; a sum that is kept in double on purpose; doubles from memory.
TEST(double_precision_between_floats) {
  static const struct {
    const char *what;
    uint64_t back; // conversions to float
    bool loads, found;
  } cases[] = {{"an expression", 20, false, true}, {"a sum", 1, false, false}, {"data", 20, true, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig rig;
    rig_start(&rig);
    add_math(&rig, "cvt.f64.f32 %fd1, %f1;", SOL_EMU_CLASS_CONVERT, 1, 20);
    add_math(&rig, "mul.rn.f64 %fd2, %fd1, 0d3fb999999999999a;", SOL_EMU_CLASS_DOUBLE, 1, 20);
    add_math(&rig, "cvt.rn.f32.f64 %f2, %fd2;", SOL_EMU_CLASS_CONVERT, 1, cases[i].back);
    if (cases[i].loads)
      add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4)->text = "ld.global.f64 %fd3, [%rd1];";
    const AuditFinding *f = find(rig_finish(&rig), "slow_math");
    CHECK_MSG((f != NULL) == cases[i].found, "%s", cases[i].what);
    if (f) CHECK_HAS(f->fix, "0.1f");
    audit_free(&rig.program);
  }
}

CHECK_MAIN
