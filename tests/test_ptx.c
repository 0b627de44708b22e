// PTX text to modules (src/ptx): what is written, and what comes of it.
#include "ptx/lex.h"
#include "ptx_check.h"

// ---- numbers ----

TEST(decimal_numbers_are_correctly_rounded) {
  static const char *const texts[] = {
      "0.1",
      "1e22",
      "1e23",
      "9007199254740993",
      "2.2250738585072011e-308",
      "4.9406564584124654e-324",
      "2.4703282292062327e-324",
      "1.7976931348623157e308",
      "1.7976931348623159e308",
      "123456789012345678901234567890e-10",
      "0.0",
      "000.5",
      "8.41e21",
      "5e-324",
      "1e400",
      "1e-400",
      "9007199254740992.99999999999999999999999999999999999999999999999999999999999",
      "9007199254740993.00000000000000000000000000000000000000000000000000000000001"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    double got = sol_ptx_read_decimal(texts[i], strlen(texts[i])), want = strtod(texts[i], NULL);
    CHECK_MSG(memcmp(&got, &want, sizeof got) == 0, "%s: %.17g, not %.17g", texts[i], got, want);
  }
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    char text[64];
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(state >> (state % 60)),
             (unsigned long long)(state * 2654435761u >> 20), (int)(state >> 20 & 1023) - 560);
    double got = sol_ptx_read_decimal(text, strlen(text)), want = strtod(text, NULL);
    if (!CHECK_MSG(memcmp(&got, &want, sizeof got) == 0, "%s: %.17g, not %.17g", text, got, want)) break;
  }
}

// The immediate that `mov.TYPE` of the text gives.
static uint64_t immediate(const char *type, const char *reg, const char *text) {
  char body[256];
  snprintf(body, sizeof body, ".visible .entry k() {\n%smov.%s %s, %s;\n}", KERNEL_REGS, type, reg, text);
  SolPtxModule *m = LOAD(body);
  uint64_t value = m ? kernel(m)->insts[0].operands[1].value : 0xdeadbeef;
  CHECK(!m || kernel(m)->insts[0].operands[1].kind == PTX_ARG_IMM);
  sol_ptx_free(m);
  return value;
}

TEST(immediates) {
  CHECK_INT(immediate("u32", "%r1", "0x1F"), 31);
  CHECK_INT(immediate("u32", "%r1", "017"), 15);
  CHECK_INT(immediate("u32", "%r1", "0b101"), 5);
  CHECK_INT(immediate("u32", "%r1", "42U"), 42);
  CHECK_INT(immediate("s32", "%r1", "-1"), 0xffffffff);
  CHECK_INT(immediate("u16", "%h1", "70000"), 70000 & 0xffff);
  CHECK_INT(immediate("s64", "%d1", "-1"), -1);
  CHECK_INT(immediate("b64", "%d1", "0xffffffffffffffff"), -1);
  CHECK_INT(immediate("f32", "%f1", "1.5"), 0x3fc00000);
  CHECK_INT(immediate("f32", "%f1", "-0f3F800000"), 0xbf800000);
  CHECK_INT(immediate("f32", "%f1", "0f7fC00001"), 0x7fc00001);
  CHECK_INT(immediate("f32", "%f1", "0d3FF8000000000000"), 0x3fc00000);
  CHECK_INT(immediate("f64", "%fd1", "0d3FF0000000000000"), 0x3ff0000000000000);
  CHECK_INT(immediate("f64", "%fd1", "0f3F800000"), 0x3ff0000000000000);
  CHECK_INT(immediate("f64", "%fd1", ".5e1"), 0x4014000000000000);
  CHECK_INT(immediate("b32", "%r1", "0f3F800000"), 0x3f800000);
  CHECK_INT(immediate("pred", "%p1", "1"), 1);
  CHECK_INT(immediate("u32", "%r1", "WARP_SZ"), 32);
}

TEST(constant_expressions) {
  static const struct {
    const char *text;
    int64_t value;
  } cases[] = {{"1+2*3", 7},
               {"(1+2)*3", 9},
               {"7-2-1", 4},
               {"100/7 % 4", 2},
               {"1<<4|3", 19},
               {"~0", -1},
               {"!5", 0},
               {"!0", 1},
               {"-8>>1", -4},
               {"0xFFFFFFFFFFFFFFFF>>60", 15},
               {"3<5", 1},
               {"-1<1", 1},
               {"-1<1U", 0},
               {"4>=4", 1},
               {"4!=4", 0},
               {"5==5&&0||1", 1},
               {"6^3&1", 7},
               {"1?2:3", 2},
               {"0?2:3", 3},
               {"1?0?4:5:6", 5},
               {"(.u64)-1/2", INT64_MAX},
               {"(.s64)0xFFFFFFFFFFFFFFFF/2", 0},
               {"1<<70", 0},
               {"- -5", 5},
               {"10 % 4", 2},
               {"(-9223372036854775807-1)/-1", INT64_MIN}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t got = (int64_t)immediate("s64", "%d1", cases[i].text);
    CHECK_MSG(got == cases[i].value, "%s is %lld, not %lld", cases[i].text, (long long)got,
              (long long)cases[i].value);
  }
}

// ---- registers and labels ----

static const PtxReg *reg_of(const PtxFunction *f, uint32_t inst, int operand) {
  return &f->regs[f->insts[inst].operands[operand].index];
}

TEST(registers_are_numbered_densely_by_use) {
  SolPtxModule *m = LOAD(".entry k() { .reg .b32 %r<1000000000>, x; .reg .pred p, q;\n"
                         " mov.u32 %r999999999, 1; mov.u32 x, %r5; @!p mov.u32 %r5, %r999999999; }");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  CHECK_INT(f->reg_count, 4); // q and the rest are never used
  CHECK_INT(reg_of(f, 0, 0)->number, 999999999);
  CHECK_STR(reg_of(f, 0, 0)->name, "%r");
  CHECK_STR(reg_of(f, 1, 0)->name, "x");
  CHECK_INT(reg_of(f, 1, 0)->number, PTX_NONE);
  CHECK_INT(f->insts[2].operands[1].index, f->insts[0].operands[0].index);
  CHECK(f->insts[2].guard_not);
  CHECK_STR(f->regs[f->insts[2].guard].name, "p");
  sol_ptx_free(m);
}

TEST(inner_registers_shadow_outer_ones) {
  SolPtxModule *m = LOAD(".entry k() { .reg .b32 %r<9>, x;\n"
                         "mov.u32 %r1, 1; mov.u32 x, 1;\n"
                         "{ .reg .b64 %r<3>; .reg .f32 x; mov.u64 %r1, 2; mov.f32 x, 2.0; mov.u32 %r7, 3; }\n"
                         "{ .reg .b16 %r<2>; mov.u16 %r1, 4; { mov.u16 %r1, 4; } }\n"
                         "mov.u32 %r1, 5; mov.u32 x, 5; mov.u32 %r7, 6; }");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  uint32_t reg[10];
  for (int i = 0; i < 10; i++) reg[i] = f->insts[i].operands[0].index;
  CHECK_INT(reg[0], reg[7]);
  CHECK_INT(reg[1], reg[8]);
  CHECK_INT(reg[4], reg[9]); // past the inner %r<3>: the outer one
  CHECK_INT(reg[5], reg[6]);
  CHECK_INT(f->regs[reg[2]].type, PTX_B64);
  CHECK_INT(f->regs[reg[3]].type, PTX_F32);
  CHECK_INT(f->regs[reg[5]].type, PTX_B16);
  CHECK_INT(f->reg_count, 6);
  sol_ptx_free(m);
}

TEST(vector_registers) {
  SolPtxModule *m =
      LOAD(".entry k() { .reg .v4 .f32 v, w<3>; .reg .b64 d; ld.global.v4.f32 v, [d]; mov.f32 w2.y, v.w; }");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  const PtxOperand *v = &f->insts[0].operands[0];
  CHECK_INT(v->kind, PTX_ARG_VEC);
  CHECK_INT(v->count, 4);
  CHECK_INT(v->elems[3].index, v->elems[0].index + 3);
  CHECK_INT(f->insts[1].operands[1].index, v->elems[3].index);
  CHECK_INT(f->reg_count, 9);
  sol_ptx_free(m);
}

TEST(labels_belong_to_their_block) {
  SolPtxModule *m = LOAD(".entry k() { .reg .pred p;\n"
                         "L: @p bra L;\n"                   // 0 -> 0
                         "{ bra L; L: @p bra L; bra E; }\n" // 1 -> 2, 2 -> 2, 3 -> 7
                         "{ L: @p bra L; { bra M; } M: }\n" // 4 -> 4, 5 -> 6
                         "bra L;\n"                         // 6 -> 0
                         "E: }");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  static const uint32_t targets[] = {0, 2, 2, 7, 4, 6, 0};
  CHECK_INT(f->inst_count, 7);
  for (int i = 0; i < 7; i++) CHECK_INT(f->insts[i].operands[0].index, targets[i]);
  sol_ptx_free(m);
}

// ---- operands ----

static void check_format(const char *written, const char *want) {
  char body[512], got[512];
  static const char before[] = ".global .align 8 .u32 g[4]; .shared .b8 s[64]; .func fn() { ret; }\n";
  snprintf(body, sizeof body, "%s.visible .entry k() {\n%s%s\n}", before, KERNEL_REGS, written);
  SolPtxModule *m = LOAD(body);
  if (!m) return;
  const PtxFunction *f = kernel(m);
  sol_ptx_format_inst(m, f, &f->insts[0], got, sizeof got);
  CHECK_STR(got, want);
  sol_ptx_free(m);
}

TEST(operands_in_all_shapes) {
  check_format("@!%p1 add.s32 %r1,%r2,-3;", "@!%p1 add.s32 %r1, %r2, -3;");
  check_format("add .s32 %r1 , %r2 /* c */, // d\n 3 ;", "add.s32 %r1, %r2, 3;");
  check_format("ld.global.u32 %r1, [g+4*2];", "ld.global.u32 %r1, [g+8];");
  check_format("ld.global.u32 %r1, g[3];", "ld.global.u32 %r1, [g+12];");
  check_format("ld.global.u32 %r1, [%d1+-4];", "ld.global.u32 %r1, [%d1-4];");
  check_format("ld.global.u32 %r1, [16];", "ld.global.u32 %r1, [16];");
  check_format("ld.u8 %r1, [s+1];", "ld.u8 %r1, [s+1];");
  check_format("ld.global.v2.f32 {%f1, _}, [%d1];", "ld.global.v2.f32 {%f1, _}, [%d1];");
  check_format("st.global.v2.u32 [%d1], {%r1, 7};", "st.global.v2.u32 [%d1], {%r1, 7};");
  check_format("mov.u64 %d1, g+4;", "mov.u64 %d1, g+4;");
  check_format("mov.u64 %d1, fn;", "mov.u64 %d1, fn;");
  check_format("mov.u64 %d1, k;", "mov.u64 %d1, k;");
  check_format("mov.u32 %r1, %ctaid.z;", "mov.u32 %r1, %ctaid.z;");
  check_format("mov.u32 %r1, %envreg7;", "mov.u32 %r1, %envreg7;");
  check_format("mov.b64 %d1, {%r1, %r2};", "mov.b64 %d1, {%r1, %r2};");
  check_format("mov.b32 {%h1, _}, %r1;", "mov.b32 {%h1, _}, %r1;");
  check_format("mov.b32 %r1, {%b1, %b2, %b3, %b4};", "mov.b32 %r1, {%b1, %b2, %b3, %b4};");
  check_format("setp.lt.and.f32 %p1|%p2, %f1, 0f3F800000, !%p3;",
               "setp.lt.and.f32 %p1|%p2, %f1, 0f3f800000, !%p3;");
  check_format("setp.lt.s32 %p1, %r1, 5;", "setp.lt.s32 %p1, %r1, 5;");
  check_format("selp.b32 %r1, 1, 2, !%p1;", "selp.b32 %r1, 1, 2, !%p1;");
  check_format("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;", "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;");
  check_format("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;");
  check_format("elect.sync _|%p1, -1;", "elect.sync _|%p1, -1;");
  check_format("atom.global.add.u32 _, [%d1], 1;", "atom.global.add.u32 _, [%d1], 1;");
  check_format("bar.red.popc.u32 %r1, 0, %p1;", "bar.red.popc.u32 %r1, 0, %p1;");
  check_format("bar.red.and.pred %p1, 0, 64, !%p2;", "bar.red.and.pred %p1, 0, 64, !%p2;");
  check_format("cp.async.ca.shared.global [s], [%d1], 4, %p1;",
               "cp.async.ca.shared.global [s], [%d1], 4, %p1;");
  check_format("cp.async.ca.shared.global.L2::cache_hint [s], [%d1], 4, %r1, %d2;",
               "cp.async.ca.shared.global.L2::cache_hint [s], [%d1], 4, %r1, %d2;");
  check_format("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5,%f6}];",
               "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5, %f6}];");
  check_format("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%d1, %d2, %r1];",
               "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, %d2, {%r1}];");
  check_format("txq.width.b32 %r1, [%d1];", "txq.width.b32 %r1, [%d1];");
  check_format("call fn;", "call fn;");
  check_format("call fn, ();", "call fn;");
  check_format("mul.rn.sat.ftz.f32 %f1, %f2, %f3;", "mul.rn.sat.ftz.f32 %f1, %f2, %f3;"); // in any order
}

TEST(optional_operands_keep_their_positions) {
  SolPtxModule *m = BODY(
      "bar.sync 0; bar.sync 1, 64; setp.eq.u32 %p1, %r1, 0; setp.eq.or.u32 %p1|%p2, %r1, 0, %p3;\n"
      "max.f32 %f1, %f2, %f3; max.f32 %f1, %f2, %f3, %f4; cp.async.ca.shared.global [%r1], [%d1], 4, %p1;");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  CHECK_INT(f->insts[0].operands[1].kind, PTX_ARG_NONE);
  CHECK_INT(f->insts[1].operands[1].value, 64);
  CHECK_INT(f->insts[2].operands[1].kind, PTX_ARG_NONE);
  CHECK_INT(f->insts[2].operands[4].kind, PTX_ARG_NONE);
  CHECK_INT(f->insts[3].operands[1].kind, PTX_ARG_REG);
  CHECK_INT(f->insts[3].operands[4].kind, PTX_ARG_REG);
  CHECK_INT(f->insts[4].operands[3].kind, PTX_ARG_NONE);
  CHECK_INT(f->insts[5].operands[3].kind, PTX_ARG_REG);
  CHECK_INT(f->insts[6].operands[3].kind, PTX_ARG_NONE); // a predicate is the ignore-src, not the size
  CHECK_INT(f->insts[6].operands[4].kind, PTX_ARG_REG);
  sol_ptx_free(m);
}

TEST(types_of_operands) {
  SolPtxModule *m = BODY("mul.wide.s32 %d1, %r1, 4; cvt.rzi.u8.f32 %h1, %f1; ld.global.s8 %d1, [%d2]; "
                         "mad.wide.u16 %r1, %h1, %h2, 7;\n"
                         "shl.b64 %d1, %d2, 3; dp4a.s32.u32 %r1, %r2, %r3, %r4;");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  CHECK_INT(f->insts[0].operands[0].type, PTX_S64);
  CHECK_INT(f->insts[0].operands[1].type, PTX_S32);
  CHECK_INT(f->insts[1].operands[0].type, PTX_U8);
  CHECK_INT(f->insts[1].operands[1].type, PTX_F32);
  CHECK_INT(f->insts[2].operands[0].type, PTX_S8);
  CHECK_INT(f->insts[3].operands[0].type, PTX_U32);
  CHECK_INT(f->insts[3].operands[3].type, PTX_U32);
  CHECK_INT(f->insts[4].operands[2].type, PTX_U32);
  CHECK_INT(f->insts[5].operands[2].type, PTX_U32);
  sol_ptx_free(m);
}

CHECK_MAIN
