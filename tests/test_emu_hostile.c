// Kernels that try to leave the emulator, to stop it from ending, or to make it take more than there is
// (control: calls, mbarriers, printf, spins, sizes). Each must end by a finding or an error that says what
// and where, or, where it is legal, by itself. Run under ASan and UBSan too.
#include "base/buffer.h"
#include "emu_body.h"

static void keep_text(void *ctx, const char *text, size_t length) {
  SolBuffer *out = ctx;
  sol_buffer_put(out, text, length);
}

// ---- whole texts ----

typedef struct Case {
  const char *name, *text;
  const char *says;              // part of the load's error or of the first finding; NULL: it runs to its end
  uint32_t grid, block, cluster; // 0: 1, 1, none
} Case;

#define HEAD ".version 8.7\n.target sm_100\n.address_size 64\n"
#define REGS ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b128 %q<4>;\n"

typedef struct Outcome {
  SolStatus status;
  SolError err;
  SolEmuEnd end;
  uint64_t executions;
  char message[400];
  SolBuffer printed;
} Outcome;

static Outcome run_text(const Case *c, SolEmuMachine machine) {
  Outcome o = {0};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  uint64_t out = 0;
  machine.workers = 2;
  o.status = sol_emu_create(&machine, &emu, &o.err);
  if (!o.status) o.status = sol_emu_alloc(emu, 8192, "out", &out, &o.err);
  if (!o.status)
    o.status = sol_emu_load(emu, &(SolPtxSource){c->name, c->text, strlen(c->text)}, 1, &module, &o.err);
  if (!o.status) {
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {c->grid ? c->grid : 1, 1, 1},
                           .block = {c->block ? c->block : 1, 1, 1},
                           .dynamic_shared = 1024,
                           .params = &out,
                           .param_bytes = sizeof out,
                           .no_counts = true,
                           .max_instructions = 200000000,
                           .print = keep_text,
                           .print_ctx = &o.printed};
    if (c->cluster) launch.cluster[0] = c->cluster, launch.cluster[1] = launch.cluster[2] = 1;
    o.status = sol_emu_launch(emu, &launch, &result, &o.err);
  }
  o.end = result.end;
  o.executions = result.total.executions;
  snprintf(o.message, sizeof o.message, "%s",
           o.status               ? o.err.message
           : result.finding_count ? result.findings[0].message
                                  : "");
  sol_emu_result_free(&result);
  sol_emu_destroy(emu);
  return o;
}

static void check_case(const Case *c) {
  Outcome o = run_text(c, (SolEmuMachine){0});
  if (c->says)
    CHECK_MSG(strstr(o.message, c->says) && (o.status || o.end == SOL_EMU_FAULT),
              "%s: end %d, '%s', expected '%s'", c->name, o.end, o.message, c->says);
  else
    CHECK_MSG(!o.status && o.end == SOL_EMU_DONE && !o.message[0], "%s: end %d, '%s'", c->name, o.end,
              o.message);
  sol_buffer_free(&o.printed);
}
#define CHECK_CASES(cases)                                                                                   \
  for (size_t n = 0; n < SOL_COUNT(cases); n++) check_case(&(cases)[n])

// ---- calls ----

#define FUNCTIONS                                                                                            \
  ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r0,[a]; add.u32 "             \
  "%r0,%r0,%r0; st.param.b32 [r],%r0; ret; }\n"                                                              \
  ".func wide(.param .b64 a) { ret; }\n.func none() { ret; }\n"                                              \
  ".func fall(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r0,[a]; }\n"                                   \
  ".func down(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r0,[a]; call down,(a); ret; }\n"               \
  ".func deep(.param .b32 a) { .reg .b32 %r<2>; .local .b8 l[4096]; ld.param.b32 %r0,[a]; call "             \
  "deep,(a); ret; }\n"
#define CALLS(body)                                                                                          \
  HEAD FUNCTIONS ".visible .entry k(.param .u64 p) {\n" REGS                                                 \
                 "pr: .callprototype (.param .b32 _) _ (.param .b32 _);\nct: .calltargets twice;\n"          \
                 ".param .b32 a; .param .b32 r; .param .b64 w; mov.u32 %r0,7; st.param.b32 [a],%r0;\n" body  \
                 "\nret;\n}\n"

TEST(calls_by_address) {
  static const Case cases[] = {
      {"right",
       CALLS("mov.u64 %rd0,twice; call (r),%rd0,(a),pr; ld.param.b32 %r1,[r]; setp.ne.u32 "
             "%p0,%r1,14; @%p0 trap;"),
       NULL, 0, 0, 0},
      {"named", CALLS("mov.u64 %rd0,twice; call (r),%rd0,(a),ct;"), NULL, 0, 0, 0},
      {"self", CALLS("mov.u64 %rd0,k; call (r),%rd0,(a),pr;"), "k, which is a kernel", 0, 0, 0},
      {"wider", CALLS("mov.u64 %rd0,wide; call (r),%rd0,(a),pr;"), "wide, whose parameters and results", 0, 0,
       0},
      {"fewer", CALLS("mov.u64 %rd0,none; call (r),%rd0,(a),pr;"), "none, whose parameters and results", 0, 0,
       0},
      {"result", CALLS("mov.u64 %rd0,fall; call (r),%rd0,(a),pr;"), "fall, whose parameters and results", 0,
       0, 0},
      {"unnamed", CALLS("mov.u64 %rd0,fall; call (r),%rd0,(a),ct;"), "fall, which the call's .calltargets", 0,
       0, 0},
      {"garbage", CALLS("mov.u64 %rd0,0x740000000013; call (r),%rd0,(a),pr;"), "where no function is", 0, 0,
       0},
      {"null", CALLS("mov.u64 %rd0,0; call (r),%rd0,(a),pr;"), "where no function is", 0, 0, 0},
      {"far", CALLS("mov.u64 %rd0,0x7400ffffffff0; call (r),%rd0,(a),pr;"), "where no function is", 0, 0, 0},
      {"no ret", CALLS("call fall,(a);"), NULL, 0, 0, 0},
      {"recursion", CALLS("call down,(a);"), "stack: calls are nested too deep", 0, 32, 0},
      {"deep", CALLS("call deep,(a);"), "stack: a call of deep goes beyond the stack", 0, 0, 0},
      {"size", CALLS("call (r),twice,(w);"), "an argument has another size", 0, 0, 0},
  };
  CHECK_CASES(cases);
}

// A function with many registers that calls itself does not take the machine's memory.
TEST(recursion_with_many_registers) {
  enum { REGISTERS = 4000 };
  char *text = malloc(1 << 20), *to = text;
  if (!text) abort();
  to += sprintf(to, HEAD ".func f(.param .b32 a) { .reg .b64 %%x<%d>;\n", REGISTERS);
  for (int r = 0; r < REGISTERS; r++) to += sprintf(to, "mov.u64 %%x%d,%d;\n", r, r);
  to += sprintf(to, "call f,(a);\n");
  for (int r = 0; r < REGISTERS; r++) to += sprintf(to, "add.u64 %%x0,%%x0,%%x%d;\n", r);
  sprintf(to, "ret; }\n.visible .entry k(.param .u64 p) { .param .b32 a; call f,(a); ret; }\n");
  check_case(&(Case){"registers", text, "stack: calls are nested too deep", 0, 0, 0});
  free(text);
}

TEST(predicates_are_no_parameters) {
  static const Case cases[] = {
      {"formal", HEAD ".func f(.reg .pred a) { ret; }\n.visible .entry k() { ret; }\n",
       "no parameter of a function can have type .pred", 0, 0, 0},
      {"result", HEAD ".func (.reg .pred a) f() { ret; }\n.visible .entry k() { ret; }\n",
       "no parameter of a function can have type .pred", 0, 0, 0},
      {"variable", HEAD ".func f(.param .pred a) { ret; }\n.visible .entry k() { ret; }\n",
       "no variable can have type .pred", 0, 0, 0},
      {"prototype", HEAD ".visible .entry k() { pr: .callprototype _ (.reg .pred _); ret; }\n",
       "no parameter of a function can have type .pred", 0, 0, 0},
      {"argument", CALLS("call twice,(%p0);"), "a predicate cannot be passed", 0, 0, 0},
  };
  CHECK_CASES(cases);
}

#define BODY(body)                                                                                           \
  HEAD                                                                                                       \
      ".extern .shared .align 16 .b8 ds[];\n.visible .entry k(.param .u64 p) {\n" REGS                       \
      ".shared .align 16 .b8 bar[64];\nld.param.u64 %rd15,[p]; mov.u32 %r15,%tid.x; mov.u32 %r0,bar;\n" body \
      "\nret;\n}\n"

TEST(stacks_and_tables) {
  static const Case cases[] = {
      {"alloca", BODY("alloca.u64 %rd0,0xffffffffffffffff,16;"), "stack: alloca exceeds", 0, 0, 0},
      {"negative", BODY("mov.u64 %rd1,-64; alloca.u64 %rd0,%rd1,16;"), "stack: alloca exceeds", 0, 0, 0},
      {"save",
       BODY("stacksave.u64 %rd0; alloca.u64 %rd1,64,16; st.local.u64 [%rd1],%rd1; stackrestore.u64 "
            "%rd0;"),
       NULL, 0, 0, 0},
      {"restore", BODY("mov.u64 %rd0,0xfffffffffffffff0; stackrestore.u64 %rd0; alloca.u64 %rd1,64,16;"),
       "stackrestore of 0xfffffffffffffff0", 0, 0, 0},
      {"above", BODY("mov.u64 %rd0,4096; stackrestore.u64 %rd0;"), "stackrestore of 0x1000", 0, 0, 0},
      {"brx", BODY("t: .branchtargets A,B; mov.u32 %r1,2; brx.idx %r1,t; A: B:"), "brx index 2", 0, 0, 0},
      {"brx -1", BODY("t: .branchtargets A,B; mov.u32 %r1,-1; brx.idx %r1,t; A: B:"), "brx index 4294967295",
       0, 0, 0},
  };
  CHECK_CASES(cases);
}

// ---- mbarriers ----

#define INIT "mbarrier.init.shared.b64 [%r0],2;\n"

TEST(mbarriers) {
  static const Case cases[] = {
      {"tx",
       BODY(INIT "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r0],1000; mov.u32 %r2,0x7fffffff; "
                 "mbarrier.arrive.expect_tx.shared.b64 %rd1,[%r0],%r2;"),
       "count of bytes leaves its range", 0, 0, 0},
      {"tx -1", BODY(INIT "mov.u32 %r2,-1; mbarrier.arrive.expect_tx.shared.b64 %rd1,[%r0],%r2;"),
       "count of bytes leaves its range", 0, 0, 0},
      {"under", BODY(INIT "mov.u32 %r2,0x7fffffff; mbarrier.complete_tx.relaxed.cta.shared.b64 [%r0],%r2;"),
       "count of bytes leaves its range", 0, 0, 0},
      {"zero", BODY("mbarrier.init.shared.b64 [%r0],0;"), "1 to 1048575 arrivals", 0, 0, 0},
      {"many", BODY("mbarrier.init.shared.b64 [%r0],1048576;"), "1 to 1048575 arrivals", 0, 0, 0},
      {"count", BODY(INIT "mbarrier.arrive.shared.b64 %rd1,[%r0],3;"), "more arrive at an mbarrier", 0, 0, 0},
      {"misaligned", BODY("mbarrier.init.shared.b64 [%r0+4],1;"), "misaligned", 0, 0, 0},
      {"outside", BODY("mbarrier.init.shared.b64 [%r0+65536],1;"), "out of bounds", 0, 0, 0},
      {"global", BODY("mbarrier.init.b64 [%rd15],1;"), "not 8 bytes of shared memory", 0, 0, 0},
      {"not made", BODY("mbarrier.arrive.shared.b64 %rd1,[%r0];"), "is not initialised", 0, 0, 0},
      {"not made, wait", BODY("mbarrier.test_wait.parity.shared.b64 %p0,[%r0],0;"), "is not initialised", 0,
       0, 0},
      {"invalidated", BODY(INIT "mbarrier.inval.shared.b64 [%r0]; mbarrier.arrive.shared.b64 %rd1,[%r0];"),
       "is not initialised", 0, 0, 0},
      {"again",
       BODY(INIT "mbarrier.inval.shared.b64 [%r0];" INIT "mbarrier.arrive.shared.b64 %rd1,[%r0],2; "
                 "mbarrier.test_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 trap;"),
       NULL, 0, 0, 0},
      {"no such rank", BODY(INIT "add.u32 %r1,%r0,0x08000000; mbarrier.arrive.shared::cluster.b64 _,[%r1];"),
       "out of bounds", 2, 0, 2},
      {"no such rank by mapa",
       BODY(INIT "mapa.shared::cluster.u32 %r1,%r0,7; mbarrier.arrive.shared::cluster.b64 _,[%r1];"),
       "rank 7 in a cluster of 2 blocks", 2, 0, 2},
      {"ended rank",
       BODY(INIT "barrier.cluster.arrive; barrier.cluster.wait;\nmov.u32 %r2,%cluster_ctarank; setp.eq.u32 "
                 "%p0,%r2,1; @%p0 ret; nanosleep.u32 100; nanosleep.u32 100; mapa.shared::cluster.u32 "
                 "%r1,%r0,1; mbarrier.arrive.shared::cluster.b64 _,[%r1];"),
       "of a block of the cluster that has ended", 2, 0, 2},
  };
  CHECK_CASES(cases);
}

// ---- printf ----

#define PRINT(format, args)                                                                                  \
  HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 f,.param .b64 a);\n"                              \
       ".global .align 1 .b8 fm[]={" format "};\n.global .align 8 .b64 ar[16]={" args "};\n"                 \
       ".visible .entry k(.param .u64 p) {\n" REGS                                                           \
       "{.param .b64 f; .param .b64 a; .param .b32 r; mov.u64 %rd1,fm; cvta.global.u64 %rd1,%rd1; "          \
       "st.param.b64 [f],%rd1; mov.u64 %rd2,ar; cvta.global.u64 %rd2,%rd2; st.param.b64 [a],%rd2; call "     \
       "(r),vprintf,(f,a);}\nret;\n}\n"

static void check_print(const Case *c, size_t most, const char *has) {
  Outcome o = run_text(c, (SolEmuMachine){0});
  CHECK_MSG(o.printed.length <= most, "%s: %zu bytes", c->name, o.printed.length);
  CHECK_HAS(o.printed.text ? o.printed.text : "", has);
  sol_buffer_free(&o.printed);
}

TEST(printf_is_bounded) {
  // "%*d|": the least int has no positive twin.
  check_print(&(Case){"width", PRINT("37,42,100,124,0", "0x80000000,5"), NULL, 0, 0, 0}, 5000, "truncated");
  check_print(&(Case){"precision", PRINT("37,46,42,100,124,0", "0x7fffffff,5"), NULL, 0, 0, 0}, 5000,
              "truncated");
  check_print(&(Case){"digits", PRINT("37,57,57,57,57,57,57,57,57,57,57,57,100,0", "5"), NULL, 0, 0, 0}, 5000,
              "truncated");
  check_print(&(Case){"n", PRINT("97,37,110,98,0", "0"), NULL, 0, 0, 0}, 10, "a%nb");
  check_print(&(Case){"end", PRINT("97,37,0", "0"), NULL, 0, 0, 0}, 10, "a%");
  // 20,000 times %4096d would be 80 MB.
  char *format = malloc(400000), *text, *to = format;
  if (!format) abort();
  for (int k = 0; k < 10000; k++) to += sprintf(to, "37,52,48,57,54,100,");
  sprintf(to, "0");
  size_t size = strlen(format) + 2000;
  text = malloc(size);
  if (!text) abort();
  const char *whole = PRINT("@", "1"), *at = strchr(whole, '@');
  snprintf(text, size, "%.*s%s%s", (int)(at - whole), whole, format, at + 1);
  check_print(&(Case){"long", text, NULL, 0, 0, 0}, 70000, "");
  free(format);
  free(text);
}

TEST(printf_reads_only_what_is_there) {
  check_case(&(Case){"string", PRINT("37,115,0", "0x99999999999"), "out of bounds", 0, 0, 0});
  check_case(&(Case){"null", PRINT("37,115,0", "0"), "null pointer", 0, 0, 0});
  check_case(&(Case){"missing",
                     PRINT("37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,"
                           "100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,"
                           "37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,37,100,0",
                           "0"),
                     "out of bounds", 0, 0, 0});
}

// ---- sizes ----

TEST(variables_larger_than_memory) {
  static const Case cases[] = {
      {"global", HEAD ".global .b8 big[0x8000000000];\n.visible .entry k() { ret; }\n",
       "big takes 549755813888", 0, 0, 0},
      {"sum",
       HEAD ".global .b8 a[0x800000000];\n.global .b8 b[0x800000000];\n.global .b8 c[0x800000000];\n.visible "
            ".entry k() { ret; }\n",
       " takes 34359738368 bytes", 0, 0, 0},
      {"const", HEAD ".const .b8 big[0x8000000000];\n.visible .entry k() { ret; }\n",
       "big takes 549755813888", 0, 0, 0},
      {"shared", HEAD ".shared .b8 big[0x8000000000];\n.visible .entry k() { ret; }\n",
       "big takes 549755813888", 0, 0, 0},
      {"local", HEAD ".visible .entry k() { .local .b8 big[0x8000000000]; ret; }\n", "big takes 549755813888",
       0, 0, 0},
      {"locals", HEAD ".visible .entry k() { .local .b8 a[400000]; .local .b8 b[400000]; ret; }\n",
       "k takes 800000 bytes of local memory a thread", 0, 0, 0},
      {"count", HEAD ".global .b64 big[0x100000000][0x100000000];\n.visible .entry k() { ret; }\n",
       "too large", 0, 0, 0},
      {"param", HEAD ".func f(.param .b8 a[4294967312]) { ret; }\n.visible .entry k() { ret; }\n",
       "with 'a' the .param variables take more", 0, 0, 0},
      {"prototype", HEAD ".visible .entry k() { pr: .callprototype _ (.param .b8 _[4294967304]); ret; }\n",
       "a parameter takes more than", 0, 0, 0},
      {"align", HEAD ".global .align -16 .b8 a[4];\n.visible .entry k() { ret; }\n", ".align takes", 0, 0, 0},
      {"aligned",
       HEAD
       ".func f(.param .align 1048576 .b8 a[4], .param .align 1048576 .b8 b[4]) { ret; }\n.visible .entry "
       "k() { ret; }\n",
       "with 'b' the .param variables take more", 0, 0, 0},
  };
  CHECK_CASES(cases);
}

// ---- waiting for ever ----

static void check_deadlock(const Case *c, uint64_t most) {
  Outcome o = run_text(c, (SolEmuMachine){.sms = 4});
  CHECK_MSG(o.end == SOL_EMU_FAULT && strstr(o.message, "deadlock"), "%s: end %d, '%s'", c->name, o.end,
            o.message);
  CHECK_MSG(o.executions <= most, "%s: %llu instructions", c->name, (unsigned long long)o.executions);
  sol_buffer_free(&o.printed);
}

TEST(spins_that_never_end_are_deadlocks_soon) {
  static const Case cases[] = {
      {"try_wait", BODY(INIT "W: mbarrier.try_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 bra W;"), NULL, 0, 0,
       0},
      {"try_wait, many",
       BODY(INIT "bar.sync 0; W: mbarrier.try_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 bra W;"), NULL, 64,
       1024, 0},
      {"test_wait", BODY(INIT "W: mbarrier.test_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 bra W;"), NULL, 0,
       64, 0},
      {"with loads and stores",
       BODY(INIT "W: st.shared.u32 [%r0+16],%r15; ld.global.u32 %r2,[%rd15]; st.global.u32 [%rd15+8],%r2; "
                 "mbarrier.try_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 bra W;"),
       NULL, 0, 0, 0},
      {"volatile", BODY("W: ld.volatile.global.u32 %r1,[%rd15]; setp.eq.u32 %p0,%r1,0; @%p0 bra W;"), NULL, 8,
       256, 0},
      {"acquire",
       BODY("W: ld.acquire.gpu.global.u32 %r1,[%rd15]; ld.relaxed.gpu.global.u32 %r2,[%rd15+4]; "
            "ld.volatile.global.u32 %r3,[%rd15+8]; setp.eq.u32 %p0,%r1,0; @%p0 bra W;"),
       NULL, 2, 64, 0},
      {"lock",
       BODY("mov.u32 %r2,1; atom.global.exch.b32 %r1,[%rd15],%r2; W: atom.global.cas.b32 "
            "%r1,[%rd15],0,1; setp.ne.u32 %p0,%r1,0; @%p0 bra W;"),
       NULL, 4, 32, 0},
      {"exchange",
       BODY("mov.u32 %r2,1; W: atom.global.exch.b32 %r1,[%rd15],%r2; setp.lt.u32 %p0,%r1,2; @%p0 "
            "bra W;"),
       NULL, 4, 32, 0},
      {"nanosleep",
       BODY("W: nanosleep.u32 1000; ld.volatile.global.u32 %r1,[%rd15]; setp.eq.u32 %p0,%r1,0; "
            "@%p0 bra W;"),
       NULL, 2, 64, 0},
      {"lanes",
       BODY("setp.eq.u32 %p1,%r15,5; @%p1 bra E; W: ld.volatile.global.u32 %r1,[%rd15]; setp.eq.u32 "
            "%p0,%r1,0; @%p0 bra W; E: bar.sync 0;"),
       NULL, 1, 64, 0},
  };
  for (size_t n = 0; n < SOL_COUNT(cases); n++) check_deadlock(&cases[n], 4000000);
}

// Those that count their tries or read a clock may end by themselves, and are given up later.
TEST(spins_that_count_are_deadlocks_in_the_end) {
  static const Case cases[] = {
      {"count",
       BODY(INIT "mov.u32 %r1,0; W: add.u32 %r1,%r1,1; mbarrier.try_wait.parity.shared.b64 %p0,[%r0],0; "
                 "@!%p0 bra W; st.global.u32 [%rd15],%r1;"),
       NULL, 0, 0, 0},
      {"clock",
       BODY(INIT "W: mov.u64 %rd1,%clock64; mbarrier.try_wait.parity.shared.b64 %p0,[%r0],0; @!%p0 bra "
                 "W; st.global.u64 [%rd15],%rd1;"),
       NULL, 0, 0, 0},
  };
  for (size_t n = 0; n < SOL_COUNT(cases); n++) check_deadlock(&cases[n], 20000000);
}

TEST(long_waits_that_end_are_no_deadlocks) {
  static const Case cases[] = {
      // Each block waits for the one before it (a look-back scan), all resident or not.
      {"chain",
       BODY("mov.u32 %r1,%ctaid.x; mul.wide.u32 %rd1,%r1,4; add.u64 %rd1,%rd15,%rd1; setp.eq.u32 "
            "%p0,%r1,0; @%p0 bra D; W: ld.volatile.global.u32 %r2,[%rd1+-4]; setp.eq.u32 %p1,%r2,0; "
            "@%p1 bra W; D: mov.u32 %r3,1; st.volatile.global.u32 [%rd1],%r3;"),
       NULL, 1024, 32, 0},
      // Two blocks answer each other 20,000 times; every turn ends in a spin.
      {"ping-pong",
       BODY("mov.u32 %r1,%ctaid.x; mov.u32 %r4,%r1; W: ld.volatile.global.u32 %r2,[%rd15]; setp.lt.u32 "
            "%p1,%r2,%r4; @%p1 bra W; add.u32 %r3,%r4,1; st.volatile.global.u32 [%rd15],%r3; add.u32 "
            "%r4,%r4,2; setp.lt.u32 %p2,%r4,20000; @%p2 bra W;"),
       NULL, 2, 1, 0},
      // Nothing but atomics, which change a value each: 100,000 in a row.
      {"atomics",
       BODY("mov.u32 %r1,0; W: red.global.add.u32 [%rd15],1; add.u32 %r1,%r1,1; setp.lt.u32 "
            "%p0,%r1,100000; @%p0 bra W;"),
       NULL, 8, 32, 0},
      // A lock that its holder keeps for 2,000,000 instructions.
      {"lock",
       BODY("mov.u32 %r1,%ctaid.x; setp.ne.u32 %p0,%r1,0; @%p0 bra W; atom.global.exch.b32 "
            "%r2,[%rd15],1; st.volatile.global.u32 [%rd15+4],%r1; mov.u32 %r3,0; H: add.u32 %r3,%r3,1; "
            "setp.lt.u32 %p1,%r3,600000; @%p1 bra H; atom.global.exch.b32 %r2,[%rd15],0; ret; W: "
            "nanosleep.u32 20; atom.global.cas.b32 %r2,[%rd15],0,1; setp.ne.u32 %p1,%r2,0; @%p1 bra W; "
            "atom.global.exch.b32 %r2,[%rd15],0;"),
       NULL, 4, 1, 0},
      // A second by the clock, asleep and awake.
      {"sleep",
       BODY("mov.u64 %rd1,%globaltimer; W: nanosleep.u32 1000; mov.u64 %rd2,%globaltimer; sub.u64 "
            "%rd3,%rd2,%rd1; setp.lt.u64 %p0,%rd3,1000000000; @%p0 bra W;"),
       NULL, 2, 64, 0},
      {"clock",
       BODY("mov.u32 %r1,%clock; W: ld.volatile.global.u32 %r3,[%rd15]; mov.u32 %r2,%clock; sub.u32 "
            "%r2,%r2,%r1; setp.lt.u32 %p0,%r2,1000000000; @%p0 bra W;"),
       NULL, 2, 64, 0},
      // Gives up after 50,000 tries.
      {"tries",
       BODY("mov.u32 %r1,0; W: add.u32 %r1,%r1,1; ld.volatile.global.u32 %r2,[%rd15]; setp.eq.u32 "
            "%p0,%r2,0; setp.lt.and.u32 %p0,%r1,50000,%p0; @%p0 bra W;"),
       NULL, 2, 64, 0},
  };
  CHECK_CASES(cases);
}

// Limits stop whatever a kernel does; an instruction that takes long counts as many.
TEST(limits_stop_long_instructions) {
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolError err = {0};
  static const char loop[] = HEAD
      ".func f(.param .b32 a) { .local .b8 l[100000]; ret; }\n.visible .entry k() { .param .b32 a; W: call "
      "f,(a); bra W; }\n";
  if (!CHECK_INT(sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &err), SOL_OK)) return;
  if (CHECK_INT(sol_emu_load(emu, &(SolPtxSource){"loop", loop, strlen(loop)}, 1, &module, &err), SOL_OK)) {
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {1, 1, 1},
                           .block = {32, 1, 1},
                           .no_counts = true,
                           .max_instructions = 100000};
    SolEmuResult result = {0};
    CHECK_INT(sol_emu_launch(emu, &launch, &result, &err), SOL_OK);
    CHECK_INT(result.end, SOL_EMU_INSTRUCTION_LIMIT);
    sol_emu_result_free(&result);
  }
  sol_emu_destroy(emu);
}

// ---- texts that take much more than their length ----

TEST(large_kernels_load_in_little_time) {
  enum { MANY = 40000 };
  char *text = malloc((size_t)MANY * 120 + 4096);
  if (!text) abort();
  // Each block goes to the one before it in the text, and has a register of its own.
  char *to = text + sprintf(text,
                            HEAD ".visible .entry k(.param .u64 p) { .reg .b32 %%r<%d>; .reg .pred %%p;\n"
                                 "mov.u32 %%r%d,0; bra L%d;\n",
                            MANY + 1, MANY, MANY - 1);
  for (int b = 0; b < MANY; b++)
    to += sprintf(to, "L%d: add.u32 %%r%d,%%r%d,1; bra %s%d;\n", b, b, b + 1, b ? "L" : "E", b ? b - 1 : 0);
  sprintf(to, "E0: setp.ne.u32 %%p,%%r0,%d; @%%p trap; ret;\n}\n", MANY);
  check_case(&(Case){"backwards", text, NULL, 0, 0, 0});
  // A chain of calls, the last function first; each has a variable of its own.
  to = text + sprintf(text, HEAD ".func f0() { .local .b32 x; .reg .b32 %%r; st.local.u32 [x],1; ret; }\n");
  for (int f = 1; f < MANY / 4; f++)
    to += sprintf(to, ".func f%d() { .local .b32 x; st.local.u32 [x],1; call f%d; ret; }\n", f, f - 1);
  sprintf(to, ".visible .entry k(.param .u64 p) { call f%d; ret; }\n", MANY / 4 - 1);
  check_case(&(Case){"chain", text, NULL, 0, 0, 0});
  free(text);
}

CHECK_MAIN
