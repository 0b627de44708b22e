// Loads in flight, and classes of instructions.
#include "observe_rig.h"

// ---- loads in flight ----

#define SUM(n)      "add.f32 %f9, %f9, %f" n ";\n"
#define TAP(offset) "ld.global.f32 %f1, [%rd2+" offset "]; fma.rn.f32 %f9, %f1, 0f40000000, %f9; "
#define FIVE                                                                                                 \
  "add.f32 %f8, %f8, %f7; add.f32 %f8, %f8, %f7; add.f32 %f8, %f8, %f7; add.f32 %f8, %f8, %f7; "             \
  "add.f32 %f8, %f8, %f7; "
#define TEN FIVE FIVE
#define LOOP(body)                                                                                           \
  "mov.u32 %r1, 0; again: " body " add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra again;\n"
#define GUARDED(label, body) "setp.eq.u32 %p1, %n, 1; @%p1 bra " label ";\n" body "\n" label ": "

TEST(loads_in_flight) {
  static const struct {
    const char *body;
    double loads, waits; // a warp
  } cases[] = {
      {OWN "ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd3], %f1;", 1, 1},
      {OWN "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd3], 0f00000000;", 1, 0}, // nobody needs it
      {OWN "ld.global.f32 %f1, [%rd2]; mov.f32 %f2, %f1;", 1, 0}, // another name is no use of it
      // Four that wait for each other only in the text: they are issued together.
      {OWN "ld.global.f32 %f1, [%rd2];" SUM("1") "ld.global.f32 %f2, [%rd2+4096];" SUM(
           "2") "ld.global.f32 %f3, [%rd2+8192];" SUM("3") "ld.global.f32 %f4, [%rd2+12288];" SUM("4"),
       4, 1},
      // A store between, which the second load may not pass; .nc does; one to shared memory is no matter.
      {OWN "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd3], %f1; ld.global.f32 %f2, [%rd2+4096];" SUM("2"),
       2, 2},
      {OWN
       "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd3], %f1; ld.global.nc.f32 %f2, [%rd2+4096];" SUM("2"),
       2, 1},
      {OWN "mov.u32 %r1, tile; ld.global.f32 %f1, [%rd2]; st.shared.f32 [%r1], %f1; ld.global.f32 %f2, "
           "[%rd2+4096];" SUM("2"),
       2, 1},
      // To another place by the same register: it may be passed, and be it by a vector; not where they meet,
      // nor where the register moves.
      {OWN "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd2], %f1; ld.global.f32 %f2, [%rd2+4];" SUM("2"), 2,
       1},
      {OWN "ld.global.f32 %f1, [%rd2+16]; st.global.f32 [%rd2+16], %f1; ld.global.v4.f32 {%f2,%f3,%f4,%f5}, "
           "[%in];" SUM("2"),
       2, 2},
      {OWN "ld.global.f32 %f1, [%in+16]; st.global.f32 [%in+16], %f1; ld.global.v4.f32 {%f2,%f3,%f4,%f5}, "
           "[%in];" SUM("2"),
       2, 1},
      {OWN "ld.global.f32 %f1, [%in+12]; st.global.f32 [%in+12], %f1; ld.global.v4.f32 {%f2,%f3,%f4,%f5}, "
           "[%in];" SUM("2"),
       2, 2},
      {OWN "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd2], %f1; add.u64 %rd2, %rd2, 4; ld.global.f32 %f2, "
           "[%rd2+4];" SUM("2"),
       2, 2},
      // A barrier behind the store to shared memory: then it is.
      {OWN "mov.u32 %r1, tile; ld.global.f32 %f1, [%rd2]; st.shared.f32 [%r1], %f1; bar.sync 0; "
           "ld.global.f32 %f2, "
           "[%rd2+4096];" SUM("2"),
       2, 2},
      // An index from memory; what it points to is a second wait.
      {OWN
       "ld.global.u32 %r1, [%rd2]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %in, %rd4; ld.global.f32 %f1, "
       "[%rd5];" SUM("1"),
       2, 2},
      // Needed only in a later block.
      {OWN
       "ld.global.f32 %f1, [%rd2]; setp.eq.u32 %p1, %n, 1; @%p1 bra over; ld.global.f32 %f2, [%rd2+4096];\n"
       "over: add.f32 %f9, %f1, %f2;",
       2, 1},
      // A branch over a few instructions is a guard: the loads go together, and what was added up is needed
      // by the store. Four of them wait one by one where the branches stay: over too many instructions, or
      // over an atomic; where a store lies between them; and where the address is a value that was loaded.
      {OWN GUARDED("a", TAP("0")) GUARDED("b", TAP("4096")) GUARDED("c", TAP("8192"))
           GUARDED("d", TAP("12288")) "st.global.f32 [%rd3], %f9;",
       4, 1},
      {OWN GUARDED("a", TAP("0") TEN TEN) GUARDED("b", TAP("4096") TEN TEN) "st.global.f32 [%rd3], %f9;", 2,
       2},
      {OWN GUARDED("a", TAP("0") TEN "add.f32 %f8, %f8, %f7;")
           GUARDED("b", TAP("4096") TEN) "st.global.f32 [%rd3], %f9;",
       2, 1},
      {OWN GUARDED("a", TAP("0") "red.shared.add.u32 [%r1], 1;") "mov.u32 %r1, tile;\n" GUARDED(
           "b", TAP("4096") "red.shared.add.u32 [%r1], 1;"),
       2, 2},
      {OWN GUARDED("a", "ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd3], %f1; ")
           GUARDED("b", "ld.global.f32 %f1, [%rd2+4096]; st.global.f32 [%rd3+4], %f1; "),
       2, 2},
      {OWN GUARDED("a", "ld.global.u32 %r1, [%rd2]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %in, %rd4; "
                        "ld.global.f32 %f1, [%rd5]; add.f32 %f9, %f9, %f1; ") "st.global.f32 [%rd3], %f9;",
       2, 2},
      // To shared memory: what a barrier or the end of the line waits for.
      {OWN "mov.u32 %r1, tile;\n" GUARDED("a", "ld.global.f32 %f1, [%rd2]; st.shared.f32 [%r1], %f1; ")
           GUARDED("b", "ld.global.f32 %f1, [%rd2+4096]; st.shared.f32 [%r1+4], %f1; ") "bar.sync 0;",
       2, 1},
      // The load is wanted in the guarded part alone, and the warp does not come by.
      {OWN "setp.eq.u32 %p1, %n, 0; @%p1 bra x; ld.global.f32 %f1, [%rd2]; add.f32 %f9, %f9, %f1;\nx: "
           "ld.global.f32 %f2, [%rd2+4096]; add.f32 %f9, %f9, %f2;",
       1, 1},
      // A loop, ten times, which ptxas unrolls by four: a load and its use; two loads; a load for the next turn.
      {OWN LOOP("ld.global.f32 %f1, [%rd2];" SUM("1") "add.u64 %rd2, %rd2, 4096;"), 10, 2.5},
      {OWN LOOP("ld.global.f32 %f1, [%rd2];" SUM("1") "ld.global.f32 %f2, [%rd2+4096];" SUM(
           "2") "add.u64 %rd2, %rd2, 8192;"),
       20, 2.5},
      {OWN "ld.global.f32 %f1, [%rd2];" LOOP("ld.global.f32 %f2, [%rd2+4096];" SUM(
           "1") "mov.f32 %f1, %f2; add.u64 %rd2, %rd2, 4096;") "st.global.f32 [%rd3], %f9;",
       11, 2.5},
      // An index that is loaded in the same turn: both are waited for, of four turns together.
      {OWN LOOP(
           "ld.global.u32 %r5, [%rd2]; mul.wide.u32 %rd4, %r5, 4; add.u64 %rd5, %in, %rd4; ld.global.f32 %f1, [%rd5];" SUM(
               "1")),
       20, 5},
      // Not so: told not to; too long; with a store that the next load may not pass; by an address that the turn before loaded; until a value
      // is found; by a step that is not known.
      {OWN LOOP(".pragma \"nounroll\"; ld.global.f32 %f1, [%rd2];" SUM("1") "add.u64 %rd2, %rd2, 4096;"), 10,
       10},
      {OWN LOOP("ld.global.f32 %f1, [%rd2];" SUM("1") TEN TEN TEN TEN TEN "add.u64 %rd2, %rd2, 4096;"), 10,
       10},
      {OWN LOOP("ld.global.f32 %f1, [%rd2];" SUM("1") "st.global.f32 [%rd3], %f9; add.u64 %rd2, %rd2, 4096;"),
       10, 10},
      {OWN LOOP("ld.global.u32 %r5, [%rd2]; mul.wide.u32 %rd4, %r5, 4; add.u64 %rd2, %in, %rd4;"), 10, 10},
      {OWN "mov.u32 %r1, 0; again: ld.global.u32 %r2, [%rd2]; add.u64 %rd2, %rd2, 4096; add.u32 %r1, %r1, 1; "
           "add.u32 %r3, %r1, %r2; setp.lt.u32 %p1, %r3, 10; @%p1 bra again;",
       10, 10},
      {OWN "mov.u32 %r1, 0; add.u32 %r2, %n, 1; again: ld.global.f32 %f1, [%rd2];" SUM(
           "1") "add.u64 %rd2, %rd2, 4096; "
                "add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 10; @%p1 bra again;",
       10, 10},
      // A constant, a parameter and shared memory are not waited for.
      {OWN "mov.u32 %r1, tile; ld.shared.f32 %f1, [%r1];" SUM("1"), 0, 0},
      {OWN "atom.global.add.u32 %r1, [%in], 1; add.u32 %r2, %r1, 1; red.global.add.u32 [%in], 1;", 1, 1},
      {OWN "atom.global.add.u32 %r1, [%in], 1;", 0, 0}, // a reduction, as nobody reads what it gives
      // Two groups stay open: a third of a wait.
      {OWN "mov.u32 %r2, tile; cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.commit_group; "
           "cp.async.wait_group "
           "2;",
       1, 1. / 3},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    see(&(Job){.body = cases[k].body}, &s);
    CHECK_MSG((double)s.r.flight.loads == 32 * cases[k].loads &&
                  fabs(s.r.flight.waits - 32 * cases[k].waits) < 1e-9,
              "%s: %g loads and %g waits", cases[k].body, (double)s.r.flight.loads / 32,
              s.r.flight.waits / 32);
    CHECK_INT(s.r.flight.async_bytes, strstr(cases[k].body, "cp.async") ? 4 * 1024 : 0);
    done(&s);
  }
}

// Stores to words side by side, with nothing to wait for between them.
TEST(stores_that_follow_others) {
  static const struct {
    const char *body;
    bool second;
  } cases[] = {
      {OWN "st.global.f32 [%rd3], %f1; st.global.f32 [%rd3+4], %f1;", true},
      {OWN "st.global.f32 [%rd3+4], %f1; st.global.f32 [%rd3], %f1;", true},
      {OWN "st.global.f32 [%rd3], %f1; st.global.f32 [%rd3+64], %f1;", false},
      {OWN "st.global.f32 [%rd3], %f1; st.global.f32 [%rd2], %f1;", false},
      {OWN "st.global.f32 [%rd3], %f1; st.global.f32 [%rd3], %f2;", false},
      {OWN "st.global.f32 [%rd3], %f1; ld.global.f32 %f2, [%rd2]; st.global.f32 [%rd3+4], %f2;", false},
      {OWN "ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd3], %f1; ld.global.f32 %f2, [%rd3+4]; "
           "st.global.f32 [%rd3+4], %f2;",
       true},
      // Only the addresses show it.
      {OWN "st.global.f32 [%rd3], %f1; add.u64 %rd3, %rd3, 8; st.global.f32 [%rd3+4], %f1;", true},
      {OWN "st.global.f32 [%rd3], %f1; add.u64 %rd3, %rd3, 8; st.global.f32 [%rd3+56], %f1;", false},
      {OWN "st.global.f32 [%rd3], %f1; add.u64 %rd3, %rd3, 8; bar.sync 0; st.global.f32 [%rd3+4], %f1;",
       false},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    run(&(Job){.body = cases[k].body}, &s);
    CHECK(!inst(&s, "st.global", 0)->follows);
    CHECK_MSG(inst(&s, "st.global", 1)->follows == cases[k].second, "%s", cases[k].body);
    done(&s);
  }
}

TEST(where_a_warp_waits) {
  Seen s;
  run(
      &(Job){
          .body = OWN
          "ld.global.f32 %f1, [%rd2]; sub.f32 %f2, %f3, %f4; add.f32 %f9, %f1, %f1; mul.f32 %f5, %f1, %f9;"},
      &s);
  CHECK(!inst(&s, "ld.global", 0)->waits);
  CHECK(!inst(&s, "sub.f32", 0)->waits);
  CHECK(inst(&s, "add.f32", 0)->waits);
  CHECK(!inst(&s, "mul.f32", 0)->waits);
  done(&s);
}

// ---- classes ----

TEST(classes) {
  static const struct {
    const char *body;
    SolEmuClass class;
  } cases[] = {
      {"add.u32 %r1, %r2, %r3;", SOL_EMU_CLASS_INT},
      {"mad.lo.s32 %r1, %r2, %r3, %r4;", SOL_EMU_CLASS_INT},
      {"mov.u32 %r1, %r2;", SOL_EMU_CLASS_NAME},
      {"setp.lt.u32 %p1, %r1, 3;", SOL_EMU_CLASS_INT},
      {"cvt.u64.u32 %rd1, %r1;", SOL_EMU_CLASS_INT},
      {"cvt.rn.f32.s32 %f1, %r1;", SOL_EMU_CLASS_CONVERT},
      {"cvt.rzi.s32.f32 %r1, %f1;", SOL_EMU_CLASS_CONVERT},
      {"fma.rn.f32 %f1, %f2, %f3, %f4;", SOL_EMU_CLASS_FLOAT},
      {"setp.lt.f32 %p1, %f1, %f2;", SOL_EMU_CLASS_FLOAT},
      {"fma.rn.f64 %rd1, %rd2, %rd3, %rd4;", SOL_EMU_CLASS_DOUBLE},
      {"sqrt.rn.f64 %rd1, %rd2;", SOL_EMU_CLASS_DOUBLE},
      {"fma.rn.f16x2 %r1, %r2, %r3, %r4;", SOL_EMU_CLASS_HALF},
      {"ex2.approx.f32 %f1, %f2;", SOL_EMU_CLASS_SPECIAL},
      {"div.rn.f32 %f1, %f2, %f3;", SOL_EMU_CLASS_SPECIAL},
      {"ld.global.u32 %r1, [%in];", SOL_EMU_CLASS_MEMORY},
      {"red.global.add.u32 [%in], 1;", SOL_EMU_CLASS_MEMORY},
      {"shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", SOL_EMU_CLASS_WARP},
      {"bar.sync 0;", SOL_EMU_CLASS_BARRIER},
      {"membar.gl;", SOL_EMU_CLASS_BARRIER},
      {"bra over; over:", SOL_EMU_CLASS_CONTROL},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
       "{%f1,%f2,%f3,%f4};",
       SOL_EMU_CLASS_TENSOR},
  };
  Seen none;
  run(&(Job){.body = ""}, &none);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Seen s;
    run(&(Job){.body = cases[k].body}, &s);
    for (int c = 0; c < SOL_EMU_CLASS_COUNT; c++)
      CHECK_MSG(s.r.classes[c] - none.r.classes[c] == (c == (int)cases[k].class ? 32 : 0),
                "%s: %llu of class %s", cases[k].body,
                (unsigned long long)(s.r.classes[c] - none.r.classes[c]), sol_emu_class_name((SolEmuClass)c));
    done(&s);
  }
  done(&none);
}

CHECK_MAIN
