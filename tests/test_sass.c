// Machine code (src/sass), and what the audit makes of it (src/audit/machine_code.c, merged.c).
#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include "audit/audit.h"
#include "sass/sass_code.h"

typedef struct File {
  char *data;
  size_t size;
} File;

static File read_file(const char *path) {
  File out = {0};
  FILE *f = fopen(path, "rb");
  if (!CHECK_MSG(f != NULL, "cannot open %s", path)) return out;
  fseek(f, 0, SEEK_END);
  out.size = (size_t)ftell(f);
  rewind(f);
  out.data = malloc(out.size + 1);
  if (fread(out.data, 1, out.size, f) == out.size) out.data[out.size] = 0;
  fclose(f);
  return out;
}

static const int archs[] = {75, 90};

static File tile_cubin(int arch) {
  char path[64];
  snprintf(path, sizeof path, "tests/data/sass/tile.sm_%d.cubin", arch);
  return read_file(path);
}

// ---- reading ----

// nvcc writes comments behind calls, which one of the two texts has kept and the other has not.
TEST(comments_do_not_make_another_text) {
  File ptx = read_file("tests/data/sass/tile.ptx"), cubin = tile_cubin(archs[0]);
  char *noted = malloc(2 * ptx.size + 1);
  size_t length = 0;
  for (size_t i = 0; i < ptx.size && noted; i++) {
    bool ends = i && ptx.data[i] == '\n' && ptx.data[i - 1] == ';';
    for (const char *c = " //"; ends && *c; c++) noted[length++] = *c;
    noted[length++] = ptx.data[i];
    if (length + 4 > 2 * ptx.size) break;
  }
  CHECK(length > ptx.size && sass_is_of(cubin.data, cubin.size, noted, length));
  free(noted);
  free(ptx.data);
  free(cubin.data);
}

TEST(every_instruction_has_its_line_and_block) {
  File ptx = read_file("tests/data/sass/tile.ptx");
  for (size_t a = 0; a < SOL_COUNT(archs); a++) {
    File cubin = tile_cubin(archs[a]);
    SolArena arena = {0};
    SassCode c;
    CHECK_INT(sass_arch(cubin.data, cubin.size), archs[a]);
    CHECK(sass_is_of(cubin.data, cubin.size, ptx.data, ptx.size));
    if (CHECK_INT(sass_read(cubin.data, cubin.size, "tile", &arena, &c, NULL), SOL_OK)) {
      uint32_t at = 0, lines = 0, loops = 0, wide = 0, subroutines = 0;
      for (uint32_t b = 0; b < c.block_count; b++) {
        CHECK_INT(c.blocks[b].first, at);
        at += c.blocks[b].count;
        loops += c.blocks[b].branch <= b && c.blocks[b].count > 1;
        subroutines += c.blocks[b].subroutine;
      }
      for (uint32_t i = 0; i < c.count; i++) {
        lines += c.insts[i].line > 0;
        wide += c.insts[i].kind == SASS_KIND_SHARED_LOAD && c.insts[i].width == 16;
        if (c.insts[i].kind == SASS_KIND_BRANCH) CHECK(c.insts[i].target != SASS_NONE);
      }
      CHECK_INT(at, c.count);
      CHECK(lines * 10 > c.count * 8);
      CHECK(loops >= 1 && wide >= 4 && subroutines > 1);
    }
    CHECK_INT(sass_read(cubin.data, cubin.size, "other", &arena, &c, NULL), SOL_ERR_NOT_FOUND);
    sol_arena_free(&arena);
    free(cubin.data);
  }
  free(ptx.data);
}

TEST(another_text_is_told_apart) {
  File ptx = read_file("tests/data/sass/tile.ptx"), cubin = tile_cubin(90);
  char *add = strstr(ptx.data, "st.shared.f32");
  CHECK(add != NULL);
  add[3] = 'X';
  CHECK(!sass_is_of(cubin.data, cubin.size, ptx.data, ptx.size));
  CHECK(!sass_is_of(cubin.data, cubin.size, "", 0));
  free(ptx.data);
  free(cubin.data);
}

TEST(a_cut_cubin_is_refused) {
  File cubin = tile_cubin(90);
  uint64_t table; // of the sections, which stands behind what it tells of
  memcpy(&table, cubin.data + 40, sizeof table);
  for (size_t size = 0; size < table; size += 61) {
    SolArena arena = {0};
    SassCode c;
    char *part = malloc(size + 1); // so that a sanitizer sees a byte too much
    memcpy(part, cubin.data, size);
    CHECK(sass_read(part, size, "tile", &arena, &c, NULL) != SOL_OK);
    free(part);
    sol_arena_free(&arena);
  }
  free(cubin.data);
}

static FILE *disassemble(const char *cubin) {
  static const char *const places[] = {"nvdisasm", "/usr/local/cuda/bin/nvdisasm", "build/cuda/bin/nvdisasm"};
  for (size_t i = 0; i < SOL_COUNT(places); i++) {
    char command[256];
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", places[i]);
    if (system(command)) continue;
    snprintf(command, sizeof command, "%s -c -ndf %s", places[i], cubin);
    return popen(command, "r");
  }
  return NULL;
}

TEST(names_are_nvdisasms) {
  for (size_t a = 0; a < SOL_COUNT(archs); a++) {
    char path[64], line[512], name[32];
    snprintf(path, sizeof path, "tests/data/sass/tile.sm_%d.cubin", archs[a]);
    FILE *listing = disassemble(path);
    if (!listing) SKIP("no nvdisasm");
    File cubin = tile_cubin(archs[a]);
    SolArena arena = {0};
    SassCode c;
    uint32_t seen = 0;
    if (sass_read(cubin.data, cubin.size, "tile", &arena, &c, NULL)) c.count = 0;
    while (fgets(line, sizeof line, listing)) {
      unsigned at;
      const char *rest = strstr(line, "*/");
      if (!rest || sscanf(line, " /*%x*/", &at) != 1 || at / 16 >= c.count) continue;
      rest += 2 + strspn(rest + 2, " {");
      bool guarded = *rest == '@';
      if (guarded) rest += strcspn(rest, " "), rest += strspn(rest, " ");
      snprintf(name, sizeof name, "%.*s", (int)strspn(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), rest);
      const char *ours = sass_opcode_name(c.insts[at / 16].opcode);
      CHECK_INT(c.insts[at / 16].guarded, guarded);
      CHECK_MSG(strncmp(ours, name, strlen(ours)) == 0, "%s is nvdisasm's %s", ours,
                name); // RED is REDG since sm_90
      seen++;
    }
    CHECK_INT(seen, c.count);
    pclose(listing);
    sol_arena_free(&arena);
    free(cubin.data);
  }
}

// ---- executions ----

static const SolDevice *gpu(const char *name) {
  const SolDevice *d = NULL;
  if (sol_device_find(name, &d, NULL)) abort();
  return d;
}

// The tile kernel on the emulator: `n` turns of its loop by one block of eight warps.
static const AuditInst *launch_tile(int n, const SassCode *code, SolArena *arena, AuditLaunch *out) {
  File ptx = read_file("tests/data/sass/tile.ptx");
  SolPtxSource source = {"tile.ptx", ptx.data, ptx.size};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  uint64_t result, input, count;
  SolError err = {0};
  CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &err));
  if (!CHECK_MSG(!sol_emu_load(emu, &source, 1, &module, &err), "%s", err.message)) return NULL;
  CHECK(!sol_emu_alloc(emu, 1024, "out", &result, &err) && !sol_emu_alloc(emu, 4, "large", &count, &err));
  CHECK(!sol_emu_alloc(emu, (uint64_t)n * 1024, "a", &input, &err));
  for (int i = 0; i < n * 256; i++) {
    float one = 1;
    sol_emu_write(emu, input + (uint64_t)i * 4, &one, 4, &err);
  }
  struct {
    uint64_t out, a;
    int n, pad;
    uint64_t large;
  } args = {result, input, n, 0, count};
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "tile"),
                         .grid = {1, 1, 1},
                         .block = {16, 16, 1},
                         .params = &args,
                         .param_bytes = sizeof args,
                         .observe = true};
  SolEmuResult r = {0};
  CHECK(!sol_emu_launch(emu, &launch, &r, &err));
  CHECK_INT(r.end, SOL_EMU_DONE);
  *out = (AuditLaunch){.code = code, .device = gpu("h200")};
  CHECK(!audit_take(sol_emu_ptx(module), &r, arena, out, &err));
  sol_emu_result_free(&r);
  sol_emu_destroy(emu);
  free(ptx.data);
  return out->insts; // texts are in the arena; files are not looked at
}

static double sum_of(const AuditLaunch *l, const char *start, size_t field) {
  double sum = 0;
  for (uint32_t i = 0; i < l->inst_count; i++)
    if (strncmp(l->insts[i].text, start, strlen(start)) == 0) {
      double value;
      memcpy(&value, (const char *)&l->insts[i].executed + field, sizeof value);
      sum += value;
    }
  return sum;
}

// That they take, and the fewest that they could.
static uint64_t wavefronts_of(const AuditLaunch *l, SolEmuKind kind, uint64_t *ideal) {
  uint64_t sum = *ideal = 0;
  for (uint32_t i = 0; i < l->inst_count; i++)
    if (l->insts[i].kind == kind)
      sum += l->insts[i].counts.wavefronts, *ideal += l->insts[i].counts.wavefronts_ideal;
  return sum;
}

TEST(an_unrolled_loop_is_counted_as_often_as_it_runs) {
  const int turns[] = {3, 8, 64};
  for (size_t a = 0; a < SOL_COUNT(archs); a++)
    for (size_t t = 0; t < SOL_COUNT(turns); t++) {
      File cubin = tile_cubin(archs[a]);
      SolArena arena = {0};
      SassCode code;
      AuditLaunch l;
      CHECK(!sass_read(cubin.data, cubin.size, "tile", &arena, &code, NULL));
      if (!launch_tile(turns[t], &code, &arena, &l)) return;
      CHECK(l.machine);
      double warps = 8, n = turns[t];
      CHECK_NEAR(sum_of(&l, "fma.rn.f32", offsetof(AuditExecuted, fp32)), 16 * n * warps, 0.01);
      // Of 32 loads a turn the 16 broadcast ones are four of 16 bytes, two wavefronts each: as few as it can be.
      uint64_t ideal;
      CHECK_INT(wavefronts_of(&l, SOL_EMU_KIND_SHARED_LOAD, &ideal), (int)((16 + 4 * 2) * n * warps));
      CHECK_INT(ideal, (int)((16 + 4 * 2) * n * warps));
      CHECK_INT(wavefronts_of(&l, SOL_EMU_KIND_SHARED_STORE, &ideal), (int)(n * warps));
      for (uint32_t i = 0; i < l.inst_count; i++)
        if (l.insts[i].kind == SOL_EMU_KIND_GLOBAL_ATOMIC) {
          CHECK_INT(l.insts[i].counts.atomics, (int)warps); // one lane of each
          CHECK_INT(l.insts[i].pattern.queue_packets, 0);
        }
      sol_arena_free(&arena);
      free(cubin.data);
    }
}

// A kernel made by hand: its machine instructions, each with a line, and what the PTX of those lines did.
typedef struct Made {
  SassInst insts[32];
  SassBlock blocks[8];
  SassCode code;
  AuditInst ptx[8];
} Made;

static void add_block(Made *m, uint32_t count, uint32_t next, uint32_t branch) {
  SassBlock *last = m->code.block_count ? &m->blocks[m->code.block_count - 1] : NULL;
  m->blocks[m->code.block_count++] = (SassBlock){
      .first = last ? last->first + last->count : 0, .count = count, .next = next, .branch = branch};
}

static void add_inst(Made *m, uint32_t line, SassUnit unit, SassKind kind, bool guarded) {
  m->insts[m->code.count++] = (SassInst){.line = line,
                                         .target = SASS_NONE,
                                         .unit = (uint8_t)unit,
                                         .kind = (uint8_t)kind,
                                         .width = unit == SASS_UNIT_MEMORY ? 4 : 0,
                                         .guarded = guarded};
}

static AuditInst did(uint32_t line, const char *text, SolEmuClass unit, SolEmuKind kind,
                     uint64_t executions) {
  return (AuditInst){.ptx_line = line,
                     .text = text,
                     .unit = unit,
                     .kind = kind,
                     .barrier = unit == SOL_EMU_CLASS_BARRIER,
                     .machine_likeness = unit == SOL_EMU_CLASS_FLOAT ? 2 : 3,
                     .counts = {.executions = executions, .lanes = 32 * executions}};
}

static void read_made(Made *m, const SolDevice *device, uint32_t count) {
  SolArena arena = {0};
  m->code.insts = m->insts;
  m->code.blocks = m->blocks;
  CHECK(audit_machine_code(&m->code, device, m->ptx, count, &arena));
  sol_arena_free(&arena);
}

// Two loads with scoreboards 0 and 1, then what needs the first, then what needs the second: it has arrived by
// then. In a loop the wait of the second iteration is for the load of the first.
static Made loads_waited_for(const SolDevice *device) {
  Made m = {0};
  m.ptx[0] = did(1, "ld.global.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 100);
  m.ptx[1] = did(2, "ld.global.f32 %f2, [%rd2];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 100);
  m.ptx[2] = did(3, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  m.ptx[3] = did(4, "add.f32 %f3, %f2, %f3;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  m.ptx[0].is_load = m.ptx[1].is_load = true;
  for (uint32_t i = 0; i < 4; i++) {
    add_inst(&m, i + 1, i < 2 ? SASS_UNIT_MEMORY : SASS_UNIT_FP32,
             i < 2 ? SASS_KIND_GLOBAL_LOAD : SASS_KIND_NONE, false);
    m.insts[i].stall = 5;
    m.insts[i].sets = i < 2 ? (uint8_t)i : 7;
    m.insts[i].waits = (uint8_t)(i < 2 ? 0 : 1 << (i - 2));
  }
  add_block(&m, 4, SASS_NONE, SASS_NONE);
  read_made(&m, device, 4);
  return m;
}

// What the second load's issue hides of the first one's latency is by the GPU's latency.
TEST(waits_are_the_scoreboards) {
  const char *const names[] = {"h200", "a100"};
  for (size_t i = 0; i < SOL_COUNT(names); i++) {
    MachineModel model = machine_model(gpu(names[i]));
    Made m = loads_waited_for(model.device);
    double far = machine_far_clocks(&model);
    CHECK_NEAR(m.ptx[2].executed.load_waits, 100 * (far - 5) / far, 1e-9);
    CHECK(m.ptx[3].executed.load_waits < 2);
    CHECK_NEAR(m.ptx[0].executed.clocks, 500, 1e-9);
  }
}

// The address of a load comes out of constant memory, which ptxas reads at the load's line: that is no wait for a load.
TEST(an_address_is_no_load) {
  Made m = {0};
  m.ptx[0] = did(1, "ld.global.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 10);
  m.ptx[0].is_load = true;
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_CONST_LOAD, false);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, false);
  m.insts[0].sets = 0, m.insts[1].sets = 1, m.insts[1].waits = 1;
  add_block(&m, 2, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 1);
  CHECK_NEAR(m.ptx[0].executed.load_waits, 0, 0);
  CHECK(m.ptx[0].executed.unit_waits > 0);
}

// A load before a loop, which needs it: of a hundred iterations the first one waits.
TEST(what_is_loaded_before_a_loop_is_waited_for_once) {
  Made m = {0};
  m.ptx[0] = did(1, "ld.global.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 10);
  m.ptx[1] = did(2, "add.f32 %f3, %f1, %f3;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 1000);
  m.ptx[0].is_load = true;
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, false);
  add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  m.insts[0].stall = m.insts[1].stall = 4;
  m.insts[0].sets = 0, m.insts[1].sets = 7, m.insts[1].waits = 1;
  add_block(&m, 1, 1, SASS_NONE);
  add_block(&m, 1, SASS_NONE, 1);
  read_made(&m, gpu("h200"), 2);
  CHECK_NEAR(m.ptx[1].executed.load_waits, 10, 1e-6);
}

// An addition that waits for the load before it, by a scoreboard; with it the block is complete.
static void add_waiting(Made *m) {
  add_inst(m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  m->insts[0].stall = m->insts[1].stall = 1;
  m->insts[0].sets = 0, m->insts[1].sets = 7, m->insts[1].waits = 1;
  add_block(m, 2, SASS_NONE, SASS_NONE);
}

// Where most warps have no lane for a guarded load, it is waited for as often as one has.
TEST(a_guarded_load_without_a_lane_is_not_waited_for) {
  Made m = {0};
  m.ptx[0] = did(1, "@%p1 ld.shared.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_SHARED_LOAD, 10);
  m.ptx[1] = did(2, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_SHARED_LOAD, true);
  add_waiting(&m);
  read_made(&m, gpu("h200"), 2);
  CHECK_NEAR(m.ptx[0].executed.issues, 100, 1e-6);
  CHECK_NEAR(m.ptx[1].executed.shared_waits, 10, 1e-6);
}

// Two guarded loads that the same few warps have lanes for: when the first has come, so has the second. The other warps issue both, and
// the guarded addition, for no lane.
TEST(guarded_loads_are_waited_for_together) {
  Made m = {0};
  m.ptx[0] = did(1, "@%p1 ld.shared.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_SHARED_LOAD, 10);
  m.ptx[1] = did(2, "@%p1 ld.shared.f32 %f2, [%rd2];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_SHARED_LOAD, 10);
  m.ptx[2] = did(3, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  m.ptx[3] = did(4, "add.f32 %f3, %f2, %f3;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  for (uint32_t i = 0; i < 4; i++) {
    add_inst(&m, i + 1, i < 2 ? SASS_UNIT_MEMORY : SASS_UNIT_FP32,
             i < 2 ? SASS_KIND_SHARED_LOAD : SASS_KIND_NONE, i < 3);
    m.insts[i].stall = 1;
    m.insts[i].sets = i < 2 ? (uint8_t)i : 7;
    m.insts[i].waits = i < 2 ? 0 : (uint8_t)(1 << (i - 2));
  }
  add_block(&m, 4, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 4);
  CHECK_NEAR(m.ptx[2].executed.shared_waits, 10, 1); // less the load issued since
  CHECK_NEAR(m.ptx[3].executed.shared_waits, 0, 1e-6);
  for (uint32_t i = 0; i < 4; i++) CHECK_NEAR(m.ptx[i].executed.idle, i < 3 ? 90 : 0, 1e-6);
}

// A constant load whose lanes read different words is waited for as long as it takes to serve them.
TEST(constants_apart_are_waited_for) {
  MachineModel model = machine_model(gpu("h200"));
  for (uint64_t words = 1; words <= 32; words *= 32) {
    Made m = {0};
    m.ptx[0] = did(1, "ld.const.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_CONST_LOAD, 100);
    m.ptx[1] = did(2, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
    m.ptx[0].counts.requests = 100;
    m.ptx[0].counts.turns = 100 * words;
    add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_NONE, false);
    add_waiting(&m);
    read_made(&m, model.device, 2);
    double clocks = model.unit_clocks + (double)(words - 1) * model.constant_apart_clocks;
    CHECK_NEAR(m.ptx[1].executed.unit_waits * model.unit_clocks, 100 * clocks, 1e-6);
  }
}

// Such an atomic is a loop of a load and a compare-and-swap, gone through once for it.
TEST(a_real_atomic_on_shared_memory_is_one_loop) {
  Made m = {0};
  m.ptx[0] =
      did(1, "atom.shared.add.f32 %f1, [%r1], %f2;", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_SHARED_ATOMIC, 100);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_SHARED_LOAD, false);
  add_inst(&m, 1, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_SHARED_ATOMIC, false);
  for (uint32_t i = 0; i < 3; i++) m.insts[i].stall = 1, m.insts[i].sets = 7;
  add_block(&m, 3, SASS_NONE, 0);
  read_made(&m, gpu("h200"), 1);
  CHECK_NEAR(m.ptx[0].executed.issues, 300, 1e-6);
}

// Code that is longer than what an SM keeps is fetched no faster than that; a short loop in it is fetched once.
TEST(long_code_has_to_be_fetched) {
  enum { MOST = 10000 };
  MachineModel model = machine_model(gpu("h200"));
  static SassInst insts[MOST];
  const uint32_t counts[] = {1000, 4000, 9000};
  const double clocks[] = {1, model.fetch_clocks, model.fetch_far_clocks};
  for (size_t k = 0; k < SOL_COUNT(counts); k++) {
    Made m = {0};
    SolArena arena = {0};
    m.ptx[0] = did(1, "mov.f32 %f3, 0f00000000;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 100);
    m.ptx[1] = did(2, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100 * counts[k]);
    m.ptx[2] = did(3, "mul.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100 * 50 * 10);
    for (uint32_t i = 0; i < counts[k] + 10; i++)
      insts[i] = (SassInst){
          .line = i < counts[k] ? 2 : 3, .target = SASS_NONE, .unit = SASS_UNIT_FP32, .stall = 1, .sets = 7};
    add_block(&m, counts[k], 1, SASS_NONE);
    add_block(&m, 10, SASS_NONE, 1);
    m.code.insts = insts;
    m.code.count = counts[k] + 10;
    m.code.blocks = m.blocks;
    CHECK(audit_machine_code(&m.code, model.device, m.ptx, 3, &arena));
    CHECK_NEAR(m.ptx[1].executed.clocks, 100.0 * counts[k] * clocks[k], 1e-6 * counts[k]);
    CHECK_NEAR(m.ptx[2].executed.clocks, 100.0 * 500, 1e-6);
    sol_arena_free(&arena);
  }
}

// Of a hundred warps sixty branch over what the others execute: that takes them longer, the more so the further their code reaches.
TEST(branches_that_are_taken_hold_warps_up) {
  enum { MOST = 5000 };
  MachineModel model = machine_model(gpu("h200"));
  static SassInst insts[MOST];
  const uint32_t past[] = {100, 4000};
  const double clocks[] = {model.jump_clocks, model.jump_far_clocks};
  for (size_t k = 0; k < SOL_COUNT(past); k++) {
    Made m = {0};
    SolArena arena = {0};
    for (uint32_t i = 0; i < 3; i++)
      m.ptx[i] = did(i + 1, "add.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER,
                     i == 1 ? 40 * (uint64_t)past[k] : 100);
    m.code.count = past[k] + 3;
    for (uint32_t i = 0; i < m.code.count; i++)
      insts[i] = (SassInst){.line = i < 2             ? 1
                                    : i < past[k] + 2 ? 2
                                                      : 3,
                            .target = SASS_NONE,
                            .unit = SASS_UNIT_FP32,
                            .stall = 4,
                            .sets = 7};
    insts[1].kind = SASS_KIND_BRANCH, insts[1].unit = SASS_UNIT_OTHER, insts[1].line = 0;
    add_block(&m, 2, 1, 2);
    add_block(&m, past[k], 2, SASS_NONE);
    add_block(&m, 1, SASS_NONE, SASS_NONE);
    m.code.insts = insts, m.code.blocks = m.blocks;
    CHECK(audit_machine_code(&m.code, model.device, m.ptx, 3, &arena));
    double all = 0;
    for (uint32_t i = 0; i < 3; i++) all += m.ptx[i].executed.clocks;
    CHECK_NEAR(all, 4.0 * (100 * 3 + 40 * past[k]) + 60 * clocks[k], 1e-3);
    sol_arena_free(&arena);
  }
}

// A branch over a load is a guard: the load takes its slot in every warp.
TEST(a_guarded_instruction_takes_its_slot) {
  Made m = {0};
  m.ptx[0] = did(10, "ld.global.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 1000);
  m.ptx[1] = did(12, "ld.global.f32 %f2, [%rd2];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 10);
  add_inst(&m, 10, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, false);
  add_inst(&m, 12, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, true);
  add_inst(&m, 10, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 3, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 2);
  CHECK_NEAR(m.ptx[1].executed.issues, 1000, 1e-9);
}

// What is left of an unrolled loop is reached once a warp at most.
TEST(the_rest_of_a_loop_is_no_loop) {
  Made m = {0};
  m.ptx[0] = did(1, "bar.sync 0;", SOL_EMU_CLASS_BARRIER, SOL_EMU_KIND_OTHER, 10);
  m.ptx[0].barrier = true;
  m.ptx[1] = did(2, "add.f32 %f1, %f1, %f2;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 410);
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_BARRIER, false);
  add_block(&m, 1, 1, SASS_NONE);
  for (int i = 0; i < 4; i++) add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 5, 2, 1);
  add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 2, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 2);
  CHECK_NEAR(m.ptx[1].executed.fp32, 410, 0.01); // 100 times four, and ten
  CHECK_NEAR(m.ptx[0].executed.issues, 10 + 100 + 100 * 0 + 10, 0.15);
}

// Of two loops with the same line, one unrolled four times, the other does what that leaves: three rounds at most. The block between
// them holds nothing but the loops' counters, which are executed as often as they are.
TEST(a_loop_of_what_is_left_takes_no_more) {
  Made m = {0};
  m.ptx[0] = did(1, "bar.sync 0;", SOL_EMU_CLASS_BARRIER, SOL_EMU_KIND_OTHER, 10);
  m.ptx[0].barrier = true;
  m.ptx[1] = did(2, "add.f32 %f1, %f1, %f2;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 4020);
  m.ptx[2] = did(3, "add.s32 %r1, %r1, %r2;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 4020);
  m.ptx[2].machine_likeness = 1;
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_BARRIER, false);
  add_block(&m, 1, 1, SASS_NONE);
  for (int i = 0; i < 4; i++) add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 5, 2, 1);
  add_inst(&m, 3, SASS_UNIT_INT, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 2, 3, 4);
  add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 3, SASS_UNIT_INT, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 3, 4, 3);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 1, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 3);
  CHECK_NEAR(m.ptx[1].executed.fp32, 4020, 0.1);
  CHECK(m.ptx[2].executed.integer <= 10 + 10 * 4);
}

// A division that the block before it may branch past, with its call of a function of ptxas's own, which has ten instructions.
static double called_by(const char *division, SolEmuClass unit, uint64_t turns) {
  Made m = {0};
  m.ptx[0] = did(1, "ld.global.u64 %rd1, [%rd2];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 1000);
  m.ptx[1] = did(2, division, unit, SOL_EMU_KIND_OTHER, 400);
  m.ptx[1].machine_likeness = 0;
  m.ptx[1].counts.turns = turns;
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 2, 1, 2);
  add_inst(&m, 2, SASS_UNIT_OTHER, SASS_KIND_CALL, false);
  add_block(&m, 1, 2, SASS_NONE);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 1, SASS_NONE, SASS_NONE);
  m.insts[2].target = 4;
  for (int i = 0; i < 10; i++) add_inst(&m, 0, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_block(&m, 10, SASS_NONE, SASS_NONE);
  m.blocks[3].subroutine = true;
  read_made(&m, gpu("h200"), 2);
  return m.ptx[0].executed.fp32;
}

// A 64-bit remainder always calls; a floating-point division where its operands leave the short way: here a tenth.
TEST(a_call_is_executed_as_often_as_it_is_needed) {
  CHECK_NEAR(called_by("rem.u64 %rd3, %rd1, %rd4;", SOL_EMU_CLASS_INT, 0), 4000, 1e-3);
  CHECK_NEAR(called_by("div.rn.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, 0), 0, 1e-9);
  CHECK_NEAR(called_by("div.rn.f32 %f3, %f1, %f4;", SOL_EMU_CLASS_FLOAT, 40), 1000, 1e-3);
}

// A loop of eight turns that ptxas unrolls whole, with additions of three: all is in the first block, which no branch leads back to.
TEST(the_first_block_is_executed_once) {
  Made m = {0};
  m.ptx[0] = did(1, "mov.u32 %r1, 0;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 10);
  m.ptx[1] = did(2, "ld.const.u32 %r2, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_CONST_LOAD, 80);
  m.ptx[2] = did(3, "add.s32 %r1, %r1, %r2;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 80);
  m.ptx[3] = did(4, "add.s32 %r3, %r3, 4;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER,
                 80); // a counter, of which one addition is left
  for (uint32_t i = 0; i < 8; i++) add_inst(&m, 2, SASS_UNIT_OTHER, SASS_KIND_NONE, false);
  for (uint32_t i = 0; i < 4; i++) add_inst(&m, 3, SASS_UNIT_OTHER, SASS_KIND_NONE, false);
  add_inst(&m, 4, SASS_UNIT_INT, SASS_KIND_NONE, false);
  add_block(&m, 13, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 4);
  CHECK_NEAR(m.ptx[1].executed.issues, 8 * 10, 1e-6);
  CHECK_NEAR(m.ptx[2].executed.issues, 4 * 10, 1e-6);
}

// Most of what a block holds comes from lines that were not executed (constants that ptxas moved), but one line of its own was: so
// were the block and, after it, the others.
TEST(a_line_of_its_own_shows_that_a_block_was_executed) {
  Made m = {0};
  m.ptx[0] = did(1, "add.f32 %f1, %f1, %f2;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  m.ptx[1] = did(2, "add.f32 %f2, %f1, %f3;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  m.ptx[2] = did(3, "add.f32 %f3, %f2, %f4;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
  add_inst(&m, 1, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_block(&m, 1, 1, SASS_NONE);
  for (uint32_t line = 50; line < 53; line++) add_inst(&m, line, SASS_UNIT_OTHER, SASS_KIND_MOVE, false);
  add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_block(&m, 4, 2, SASS_NONE);
  add_inst(&m, 3, SASS_UNIT_FP32, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 2, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 3);
  for (int i = 0; i < 3; i++) CHECK_NEAR(m.ptx[i].executed.fp32, 100, 1e-3);
}

// Guarded instructions of lines that were not executed (the long way of a division, of which ptxas makes no branch) say nothing of their
// block, whose other line is elsewhere, too.
TEST(guarded_lines_that_were_not_executed_say_nothing) {
  for (int guarded = 0; guarded < 2; guarded++) {
    Made m = {0};
    m.ptx[0] = did(1, "add.f32 %f1, %f1, %f2;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 100);
    m.ptx[1] = did(2, "add.f32 %f2, %f1, %f3;", SOL_EMU_CLASS_FLOAT, SOL_EMU_KIND_OTHER, 200);
    add_inst(&m, 1, SASS_UNIT_FP32, SASS_KIND_NONE, false);
    add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
    add_block(&m, 2, 1, SASS_NONE);
    for (uint32_t line = 50; line < 53; line++) add_inst(&m, line, SASS_UNIT_FP32, SASS_KIND_NONE, guarded);
    add_inst(&m, 2, SASS_UNIT_FP32, SASS_KIND_NONE, false);
    add_block(&m, 4, 2, SASS_NONE);
    add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
    add_block(&m, 1, SASS_NONE, SASS_NONE);
    read_made(&m, gpu("h200"), 2);
    double slots = m.ptx[0].executed.issues + m.ptx[1].executed.issues;
    CHECK_NEAR(slots, guarded ? 100 * (1 + 1 + 4 + 1) : 100 * (1 + 2 + 1), 110);
    CHECK(guarded ? slots > 590 : slots < 410);
  }
}

// A loop of uniform additions, unrolled eight times: none of its instructions votes, and each line is there eight times.
TEST(an_unrolled_loop_without_votes_is_executed_less_often) {
  Made m = {0};
  m.ptx[0] = did(1, "bar.sync 0;", SOL_EMU_CLASS_BARRIER, SOL_EMU_KIND_OTHER, 10);
  m.ptx[1] = did(2, "add.s32 %r1, %r1, %r2;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 640);
  m.ptx[2] = did(3, "add.s32 %r3, %r3, %r4;", SOL_EMU_CLASS_INT, SOL_EMU_KIND_OTHER, 640);
  m.ptx[1].machine_likeness = m.ptx[2].machine_likeness = 1;
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_BARRIER, false);
  add_block(&m, 1, 1, SASS_NONE);
  for (uint32_t i = 0; i < 16; i++) add_inst(&m, 2 + i % 2, SASS_UNIT_OTHER, SASS_KIND_NONE, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
  add_block(&m, 17, 2, 1);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 1, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 3);
  CHECK_NEAR(m.ptx[1].executed.issues, 640, 1e-3);
  CHECK_NEAR(m.ptx[2].executed.issues, 640, 1e-3);
}

// Halves vote by the half-precision pipe, special functions by theirs: the loop is unrolled twice, and its comparison stands there once more.
TEST(each_pipe_votes) {
  static const struct {
    SolEmuClass class;
    SassUnit unit;
  } cases[] = {{SOL_EMU_CLASS_HALF, SASS_UNIT_FP16}, {SOL_EMU_CLASS_SPECIAL, SASS_UNIT_SPECIAL}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Made m = {0};
    m.ptx[0] = did(1, "bar.sync 0;", SOL_EMU_CLASS_BARRIER, SOL_EMU_KIND_OTHER, 10);
    m.ptx[1] = did(2, "fma.rn.f16x2 %r1, %r1, %r2, %r3;", cases[k].class, SOL_EMU_KIND_OTHER, 640);
    m.ptx[1].machine_likeness = 2;
    add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_BARRIER, false);
    add_block(&m, 1, 1, SASS_NONE);
    for (int i = 0; i < 2; i++) add_inst(&m, 2, cases[k].unit, SASS_KIND_NONE, false);
    add_inst(&m, 2, SASS_UNIT_INT, SASS_KIND_NONE, false); // no vote
    add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_BRANCH, true);
    add_block(&m, 4, 2, 1);
    add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
    add_block(&m, 1, SASS_NONE, SASS_NONE);
    read_made(&m, gpu("h200"), 2);
    CHECK_NEAR(m.ptx[1].executed.fp16 + m.ptx[1].executed.special, 640, 1e-3);
  }
}

// The machine votes which lane adds for its warp: where one lane did so by itself, its turn at L2 is still taken.
TEST(an_atomic_of_one_lane_takes_its_turn) {
  Made m = {0};
  m.ptx[0] =
      did(1, "atom.global.add.u32 %r1, [%rd1], 1;", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_ATOMIC, 100);
  m.ptx[0].counts.requests = m.ptx[0].counts.atomics = 100;
  m.ptx[0].pattern.queue_packets = 100;
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_VOTE, false);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_ATOMIC, false);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 3, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 1);
  CHECK_INT(m.ptx[0].pattern.queue_lanes, 100);
  CHECK_INT(m.ptx[0].pattern.queue_packets, 0);
}

// Of two such atomics the first has the vote; the second, by the same warps, is guarded by what it found. One that is not guarded is by all lanes.
TEST(atomics_side_by_side_share_a_vote) {
  Made m = {0};
  for (uint32_t i = 0; i < 3; i++) {
    m.ptx[i] = did(i + 1, "atom.global.add.u32 %r1, [%rd1], 1;", SOL_EMU_CLASS_MEMORY,
                   SOL_EMU_KIND_GLOBAL_ATOMIC, 100);
    m.ptx[i].counts.requests = 100;
    m.ptx[i].counts.atomics = m.ptx[i].pattern.same = m.ptx[i].pattern.queue_lanes = 3200;
  }
  add_inst(&m, 1, SASS_UNIT_OTHER, SASS_KIND_VOTE, false);
  for (uint32_t i = 0; i < 3; i++) add_inst(&m, i + 1, SASS_UNIT_MEMORY, SASS_KIND_ATOMIC, i < 2);
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 5, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 3);
  for (uint32_t i = 0; i < 3; i++) CHECK_INT(m.ptx[i].pattern.queue_lanes, i < 2 ? 100 : 3200);
}

// Two stores of four bytes to an array, of which the machine makes one of eight, and one to an array that it keeps in registers.
TEST(local_stores_are_joined_or_dropped) {
  Made m = {0};
  for (uint32_t i = 0; i < 3; i++) {
    m.ptx[i] = did(i + 1, "st.local.u32 [%rd1], %r1;", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_LOCAL_STORE, 100);
    m.ptx[i].counts.requests = 100, m.ptx[i].counts.sectors = m.ptx[i].counts.l2_writes = 400;
    m.ptx[i].width = 4;
    m.ptx[i].base = i < 2 ? 7 : 8;
    m.ptx[i].offset = 4 * i;
  }
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_LOCAL_STORE, false);
  m.insts[0].width = 8;
  add_inst(&m, 0, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 2, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 3);
  for (int i = 0; i < 3; i++) CHECK_INT(m.ptx[i].counts.l2_writes, i < 2 ? 400 : 0);
}

TEST(spills_and_dropped_accesses) {
  Made m = {0};
  m.ptx[0] = did(1, "ld.global.f32 %f1, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 100);
  m.ptx[1] = did(2, "ld.global.f32 %f2, [%rd1];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 100);
  m.ptx[2] = did(3, "ld.local.f32 %f3, [%rd3];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_LOCAL_LOAD, 100);
  m.ptx[3] = did(4, "ld.global.f32 %f4, [%rd4];", SOL_EMU_CLASS_MEMORY, SOL_EMU_KIND_GLOBAL_LOAD, 100);
  for (int i = 0; i < 4; i++) {
    m.ptx[i].counts.requests = m.ptx[i].counts.sectors = 100;
    m.ptx[i].width = 4;
    m.ptx[i].base = i < 2 ? 7 : 8 + (uint64_t)i;
  }
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_GLOBAL_LOAD, false);
  add_inst(&m, 1, SASS_UNIT_MEMORY, SASS_KIND_LOCAL_STORE, false);
  add_inst(&m, 4, SASS_UNIT_MEMORY, SASS_KIND_LOCAL_LOAD, false);
  add_inst(&m, 4, SASS_UNIT_OTHER, SASS_KIND_EXIT, false);
  add_block(&m, 4, SASS_NONE, SASS_NONE);
  read_made(&m, gpu("h200"), 4);
  CHECK_NEAR(m.ptx[0].executed.spills + m.ptx[3].executed.spills, 200, 0.01);
  CHECK_INT(m.ptx[0].counts.requests, 100);
  CHECK_INT(m.ptx[1].counts.requests, 0); // the same address as the first
  CHECK_INT(m.ptx[2].counts.requests, 0); // the array is in registers
  CHECK_INT(m.ptx[3].counts.requests, 100);
}

CHECK_MAIN
