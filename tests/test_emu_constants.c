// Constant memory: words that lanes read apart, and the lines that the cache of constants lacks (src/emu/core/access.c).
#include "check.h"

#include "driver/driver.h"

// Eight times, each lane a line of its own; with `more`, further 2 KiB as well.
static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 64 .b8 table[4096];\n"
    ".visible .entry k(.param .u32 more) {\n"
    "  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
    "  ld.param.u32 %r1, [more]; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %laneid; mul.wide.u32 %rd1, %r2, 64;\n"
    "  mov.u64 %rd2, table; add.u64 %rd2, %rd2, %rd1; mov.u32 %r3, 0;\n"
    "again: ld.const.u32 %r4, [%rd2]; @%p1 ld.const.u32 %r5, [%rd2+2048];\n"
    "  add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 8; @%p2 bra again;\n  ret;\n}\n";

static SolEmuCounts constants_of(uint32_t more, unsigned checks) {
  const SolDevice *h200 = NULL;
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolError err = {0};
  SolEmuResult r = {0};
  if (sol_device_find("h200", &h200, &err)) exit(1);
  SolEmuMachine machine = sol_driver_machine(h200);
  SolPtxSource source = {"k.ptx", text, strlen(text)};
  bool ok = !sol_emu_create(&machine, &emu, &err) && !sol_emu_load(emu, &source, 1, &module, &err);
  if (!CHECK_MSG(ok, "%d: %s", err.line, err.message)) exit(1);
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"), .grid = {1, 1, 1}, .block = {32, 1, 1}};
  launch.params = &more, launch.param_bytes = sizeof more, launch.checks = checks;
  CHECK_MSG(!sol_emu_launch(emu, &launch, &r, &err), "%s", err.message);
  SolEmuCounts sum = r.kinds[SOL_EMU_KIND_CONST_LOAD];
  sol_emu_result_free(&r);
  sol_emu_destroy(emu);
  return sum;
}

// With checks the emulator looks at every lane by itself.
TEST(the_cache_of_constants_keeps_2_kib) {
  static const unsigned ways[] = {0, SOL_EMU_CHECK_SYNC};
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    SolEmuCounts kept = constants_of(0, ways[k]), gone = constants_of(1, ways[k]);
    CHECK_INT(kept.turns, 8 * 32);
    CHECK_INT(kept.lines, 32);
    CHECK_INT(gone.turns, 2 * 8 * 32);
    CHECK_INT(gone.lines, 2 * 8 * 32);
  }
}

CHECK_MAIN
