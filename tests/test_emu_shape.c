// An ld or st remembers how its lanes lay the last time (src/emu/isa/shape.h). Here one of each meets one turn
// after the other: the same again, moved by lines, by words, other strides, lanes missing, lanes far apart.
// What it counts is held to the coalescer and the banks themselves, and to a launch with checks, which looks
// at every lane.
#include "check.h"

#include "emu/emu.h"
#include "mem/banks.h"
#include "mem/coalesce.h"

enum { TURNS = 40, TILE = 32768 };

typedef struct Turn { // lane l goes to (l * stride ^ flip) + base, in units of the access; where mask has it
  uint32_t stride, base, mask, flip;
} Turn;

static const Turn turns[] = {
    {1, 0, ~0u, 0},         {1, 0, ~0u, 0},         {1, 32, ~0u, 0},       {1, 33, ~0u, 0},
    {1, 35, ~0u, 0},        {1, 2, ~0u, 0},         {1, 512, ~0u, 0},      {1, 640, ~0u, 0},
    {1, 768, ~0u, 0},       {1, 512, ~0u, 0},       {1, 640, ~0u, 0},      {2, 0, ~0u, 0},
    {2, 128, ~0u, 0},       {2, 129, ~0u, 0},       {0, 0, ~0u, 0},        {0, 77, ~0u, 0},
    {0, 78, ~0u, 0},        {33, 0, ~0u, 0},        {33, 1, ~0u, 0},       {33, 96, ~0u, 0},
    {32, 5, ~0u, 0},        {32, 37, ~0u, 0},       {1, 0, ~0u, 31},       {1, 64, ~0u, 31},
    {1, 64, ~0u, 5},        {1, 64, 0xff, 0},       {1, 96, 0xff, 0},      {1, 96, 0xff00, 0},
    {1, 128, 0xff00, 0},    {1, 3, 0x80000001, 0},  {1, 4, 0x80000001, 0}, {7, 9, 0x5a5a5a5a, 0},
    {7, 41, 0x5a5a5a5a, 0}, {7, 42, 0x5a5a5a5a, 0}, {1, 0, 1, 0},          {1, 1, 1, 0},
    {1, 500, 1u << 31, 0},  {1, 0, ~0u, 0},         {1, 0, ~0u, 0}};
enum { PLAIN = sizeof turns / sizeof *turns };
_Static_assert((int)PLAIN < (int)TURNS, "one more comes behind");

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry turns(.param .u64 x, .param .u64 y, .param .u32 n, .param .align 16 .b8 how[640]) {\n"
    "  .shared .align 16 .b8 tile[32768];\n"
    "  .reg .b32 %%r<20>, %%v<4>; .reg .b64 %%rd<12>, %%w<2>; .reg .pred %%p<3>;\n"
    "  ld.param.u64 %%rd1, [x]; ld.param.u64 %%rd2, [y]; ld.param.u32 %%r1, [n]; mov.u64 %%rd3, how;\n"
    "  mov.u32 %%r2, %%tid.x; mov.u32 %%r3, tile; mul.wide.u32 %%rd4, %%r2, %d; add.u64 %%rd2, %%rd2, "
    "%%rd4;\n"
    "again: ld.param.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%rd3]; add.u64 %%rd3, %%rd3, 16;\n"
    "  mul.lo.u32 %%r8, %%r2, %%r4; xor.b32 %%r8, %%r8, %%r7; add.u32 %%r8, %%r8, %%r5;\n"
    "  shr.u32 %%r9, %%r6, %%r2; and.b32 %%r9, %%r9, 1; setp.ne.u32 %%p1, %%r9, 0;\n"
    "  mul.wide.u32 %%rd5, %%r8, %d; add.u64 %%rd6, %%rd1, %%rd5;\n"
    "  cvt.u32.u64 %%r10, %%rd5; and.b32 %%r10, %%r10, 32767; add.u32 %%r11, %%r3, %%r10;\n"
    "  @%%p1 ld.global.%s, [%%rd6];\n"
    "  @%%p1 st.shared.%s;\n"
    "  @%%p1 ld.shared.%s, [%%r11];\n"
    "  @%%p1 st.global.%s;\n"
    "  add.u64 %%rd2, %%rd2, %d; sub.u32 %%r1, %%r1, 1; setp.ne.u32 %%p2, %%r1, 0;\n"
    "  @%%p2 bra again;\n  ret;\n}\n";

static const struct {
  int bytes;
  const char *load, *to_shared, *to_global;
} widths[] = {{1, "u8 %v0", "u8 [%r11], %v0", "u8 [%rd2], %v0"},
              {2, "u16 %v0", "u16 [%r11], %v0", "u16 [%rd2], %v0"},
              {4, "u32 %v0", "u32 [%r11], %v0", "u32 [%rd2], %v0"},
              {8, "u64 %w0", "u64 [%r11], %w0", "u64 [%rd2], %w0"},
              {8, "v2.u32 {%v0, %v1}", "v2.u32 [%r11], {%v0, %v1}", "v2.u32 [%rd2], {%v0, %v1}"},
              {16, "v4.u32 {%v0, %v1, %v2, %v3}", "v4.u32 [%r11], {%v0, %v1, %v2, %v3}",
               "v4.u32 [%rd2], {%v0, %v1, %v2, %v3}"}};

typedef struct Ran {
  SolEmuResult result;
  uint8_t y[TURNS * 32 * 16];
} Ran;

typedef struct Args {
  uint64_t x, y;
  uint32_t n, pad[3];
  Turn how[TURNS];
} Args;

static uint8_t value_at(uint64_t i) {
  return (uint8_t)(i * 7 + i / 251);
}

// The last turn's lanes 0 and 1 are in x and in a buffer of their own.
static bool run_turns(int w, unsigned checks, int workers, Args *args, Ran *out) {
  char ptx[4096];
  int bytes = widths[w].bytes;
  SolError err = {0};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  uint64_t other;
  *out = (Ran){0};
  *args = (Args){.n = PLAIN + 1};
  snprintf(ptx, sizeof ptx, text, bytes, bytes, widths[w].load, widths[w].to_shared, widths[w].load,
           widths[w].to_global, bytes * 32);
  bool ok = !sol_emu_create(&(SolEmuMachine){.workers = workers}, &emu, &err) &&
            !sol_emu_load(emu, &(SolPtxSource){"shape.ptx", ptx, strlen(ptx)}, 1, &module, &err) &&
            !sol_emu_alloc(emu, TILE, "x", &args->x, &err) &&
            !sol_emu_alloc(emu, 256, "other", &other, &err) &&
            !sol_emu_alloc(emu, sizeof out->y, "y", &args->y, &err);
  if (ok) {
    memcpy(args->how, turns, sizeof turns);
    args->how[PLAIN] = (Turn){(uint32_t)(other - args->x) / (uint32_t)bytes, 0, 3, 0};
    uint8_t *x = sol_emu_host(emu, args->x, TILE), *o = sol_emu_host(emu, other, 256);
    for (uint64_t i = 0; i < TILE; i++) x[i] = value_at(i);
    for (uint64_t i = 0; i < 256; i++) o[i] = value_at(other - args->x + i);
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "turns"), .grid = {1, 1, 1}, .block = {32, 1, 1}};
    launch.params = args, launch.param_bytes = sizeof *args, launch.checks = checks;
    ok = !sol_emu_launch(emu, &launch, &out->result, &err) && out->result.end == SOL_EMU_DONE &&
         !out->result.finding_count;
    memcpy(out->y, sol_emu_host(emu, args->y, sizeof out->y), sizeof out->y);
  }
  CHECK_MSG(ok, "%s: line %d: %s %s", widths[w].load, err.line, err.message,
            out->result.finding_count ? out->result.findings[0].message : "");
  sol_emu_destroy(emu);
  return ok;
}

typedef struct Expected {
  SolEmuCounts load, shared_load, shared_store;
  uint8_t y[sizeof((Ran){0}.y)];
} Expected;

static void expect_turn(Expected *e, const Turn *turn, uint32_t bytes, uint64_t x, uint8_t *seen,
                        uint32_t number) {
  uint64_t addr[32], at[32];
  SolCoalesced c;
  uint8_t tile[TILE] = {0};
  for (uint32_t l = 0; l < 32; l++) {
    uint64_t offset = (uint64_t)((l * turn->stride ^ turn->flip) + turn->base) * bytes;
    addr[l] = x + offset;
    at[l] = offset % TILE;
    for (uint32_t k = 0; turn->mask >> l & 1 && k < bytes; k++) tile[at[l] + k] = value_at(offset + k);
  }
  for (uint32_t l = 0; l < 32; l++)
    if (turn->mask >> l & 1) memcpy(e->y + (number * 32 + l) * bytes, tile + at[l], bytes);
  sol_coalesce(addr, turn->mask, bytes, &c);
  SolWavefronts loads = sol_banks(at, turn->mask, bytes, SOL_SHARED_LOAD),
                stores = sol_banks(at, turn->mask, bytes, SOL_SHARED_STORE);
  e->load.requests++;
  e->load.sectors += c.sectors;
  e->load.sectors_ideal += c.ideal_sectors;
  e->shared_load.wavefronts += loads.wavefronts;
  e->shared_load.wavefronts_ideal += loads.ideal;
  e->shared_store.wavefronts += stores.wavefronts;
  e->shared_store.wavefronts_ideal += stores.ideal;
  for (uint32_t i = 0; i < c.lines; i++)
    for (uint32_t k = 0; k < SOL_LINE_SECTORS; k++)
      if (c.line[i].sectors >> k & 1) {
        uint64_t sector = c.line[i].line * SOL_LINE_SECTORS + k - x / SOL_SECTOR_BYTES;
        e->load.l1_misses += !seen[sector];
        seen[sector] = 1;
      }
}

TEST(what_is_remembered_counts_as_if_it_were_new) {
  static Ran quick, slow;
  static Expected e;
  static uint8_t seen[1 << 20];
  Args args;
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    if (!run_turns((int)w, SOL_EMU_CHECK_SYNC, 1, &args, &slow)) return;
    if (!run_turns((int)w, 0, 2, &args, &quick)) return;
    memset(&e, 0, sizeof e);
    memset(seen, 0, sizeof seen);
    for (uint32_t k = 0; k <= PLAIN; k++)
      expect_turn(&e, &args.how[k], (uint32_t)widths[w].bytes, args.x, seen, k);
    const SolEmuCounts *load = &quick.result.kinds[SOL_EMU_KIND_GLOBAL_LOAD];
    const SolEmuCounts *sl = &quick.result.kinds[SOL_EMU_KIND_SHARED_LOAD];
    const SolEmuCounts *ss = &quick.result.kinds[SOL_EMU_KIND_SHARED_STORE];
    CHECK_INT(load->requests, e.load.requests);
    CHECK_INT(load->sectors, e.load.sectors);
    CHECK_INT(load->sectors_ideal, e.load.sectors_ideal);
    CHECK_INT(load->l1_misses, e.load.l1_misses);
    CHECK_INT(load->l1_hits, e.load.sectors - e.load.l1_misses);
    CHECK_INT(sl->wavefronts, e.shared_load.wavefronts);
    CHECK_INT(sl->wavefronts_ideal, e.shared_load.wavefronts_ideal);
    CHECK_INT(ss->wavefronts, e.shared_store.wavefronts);
    CHECK_INT(ss->wavefronts_ideal, e.shared_store.wavefronts_ideal);
    CHECK(memcmp(quick.y, e.y, sizeof e.y) == 0);
    CHECK(memcmp(quick.y, slow.y, sizeof slow.y) == 0);
    CHECK(memcmp(&quick.result.total, &slow.result.total, sizeof slow.result.total) == 0);
    sol_emu_result_free(&quick.result);
    sol_emu_result_free(&slow.result);
  }
}

CHECK_MAIN
