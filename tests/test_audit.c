// Demands from counts; the bill from launches. Constants are read from the machine's model.
#include <math.h>

#include "audit/audit.h"

#include "audit/inside.h"
#include "check.h"

static const SolDevice *gpu(const char *name) {
  const SolDevice *d = NULL;
  if (sol_device_find(name, &d, NULL)) abort();
  return d;
}

static const MachineModel *h200(void) {
  static MachineModel model;
  model = machine_model(gpu("h200"));
  return &model;
}

// ---- from counts ----

TEST(atomics_to_one_address_wait_for_each_other) {
  AuditInst in = {.pattern = {.queue_lanes = 320, .queue_packets = 40}};
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_int_clocks * 320, 1e-9);
  in.real = true;
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_real_clocks * 320, 1e-9);
  in.width = 8;
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_double_clocks * 320, 1e-9);
  in.pattern.queue_lanes = 0; // each lane an address of its own
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_double_packet * 40, 1e-9);
  in.width = 4;
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_packet * 40, 1e-9);
}

// Two instructions on the same few words wait for each other; in different parts of L2 they need not meet.
TEST(atomics_of_several_instructions_on_few_words_add_up) {
  AuditInst in[2] = {{.pattern = {.queue_lanes = 320, .queue_slice = 3}},
                     {.pattern = {.queue_lanes = 32, .queue_slice = 3}}};
  AuditLaunch l = {.insts = in, .inst_count = 2};
  CHECK_NEAR(audit_atomics_together(h200(), &l, &in[0]), h200()->atomic_int_clocks * 352, 1e-9);
  in[1].pattern.queue_slice = 4;
  CHECK_NEAR(audit_atomics_together(h200(), &l, &in[0]), h200()->atomic_int_clocks * 320, 1e-9);
}

// Constants that the machine has as operands take no turn of the constant unit.
TEST(constants_that_are_operands_cost_nothing) {
  AuditInst in = {.kind = SOL_EMU_KIND_CONST_LOAD,
                  .by_machine = true,
                  .counts = {.executions = 10, .requests = 10, .turns = 10},
                  .executed = {.constants = 5}};
  double loaded[2];
  for (int i = 0; i < 2; i++, in.executed.constants = 0) {
    MachineWork w = {.warps_per_block = 1};
    audit_demand(h200(), &in, &(AuditWaits){0}, 1, &w);
    loaded[i] = w.constant_turns;
  }
  CHECK_NEAR(loaded[0], 5 * h200()->constant_least, 1e-9);
  CHECK_NEAR(loaded[1], 0, 0);
}

// A line that the cache of constants lacks takes longer than the words that are in it.
TEST(constants_beyond_their_cache_are_fetched) {
  AuditInst in = {.kind = SOL_EMU_KIND_CONST_LOAD,
                  .counts = {.executions = 10, .requests = 10, .turns = 320}};
  MachineWork near = {.warps_per_block = 1}, far = near;
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &near);
  in.counts.lines = 200;
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &far);
  CHECK_NEAR(near.constant_turns, 320, 1e-9);
  CHECK_NEAR(far.constant_turns, 200 * h200()->constant_line_clocks / h200()->constant_clocks, 1e-9);
}

TEST(a_load_of_many_lines_takes_the_passes_of_its_banks) {
  AuditInst in = {.kind = SOL_EMU_KIND_GLOBAL_LOAD,
                  .is_load = true,
                  .counts = {.executions = 10, .requests = 10, .sectors = 320, .lines = 320}};
  const uint64_t turns[] = {0, 320, 20}; // of an older recording; all words in one bank; two words in a bank
  const double passes[] = {320, 320, 320 * h200()->l1_line_clocks};
  for (int i = 0; i < 3; i++) {
    MachineWork w = {.warps_per_block = 1};
    in.counts.turns = turns[i];
    audit_demand(h200(), &in, &(AuditWaits){0}, 1, &w);
    CHECK_NEAR(w.l1_wavefronts, passes[i], 1e-9);
  }
}

TEST(spills_are_what_ptxas_puts_on_the_stack) {
  CHECK_NEAR(audit_spilled(AUDIT_FROM_PTXAS, 100, 40), 60, 0);
  CHECK_NEAR(audit_spilled(AUDIT_FROM_EMULATOR, 100, 40), 0, 0);
}

static AuditInst load_inst(uint64_t requests, uint64_t sectors) {
  return (AuditInst){.file = "a.cu",
                     .line = 7,
                     .text = "ld.global.f32 %f1, [%rd1];",
                     .place = 3,
                     .kind = SOL_EMU_KIND_GLOBAL_LOAD,
                     .unit = SOL_EMU_CLASS_MEMORY,
                     .width = 4,
                     .is_load = true,
                     .counts = {.executions = requests,
                                .lanes = 32 * requests,
                                .requests = requests,
                                .sectors = sectors,
                                .sectors_ideal = 4 * requests,
                                .l1_misses = sectors,
                                .l2_misses = sectors,
                                .dram_read = sectors * 32}};
}

TEST(a_request_passes_l1_once_for_every_line) {
  AuditWaits waits = {.per_load = 1, .clocks = 100};
  AuditInst in = load_inst(1000, 4000);
  MachineWork w = {0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l1_wavefronts, 1000, 0);
  CHECK_NEAR(w.load_wait_clocks, 100000, 0);
  CHECK_NEAR(w.l2_reads, 4000, 0);
  in = load_inst(1000, 32000);
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 2, &w);
  CHECK_NEAR(w.l1_wavefronts, 16000, 0);
  CHECK_NEAR(w.dram_read, 2 * 32000 * 32, 0);
  in.counts.lines = 32000; // a sector of each
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l1_wavefronts, 32000, 0);
  in.counts.l2_writes = 32000;
  in.counts.l2_packets = 64000;
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l1_wavefronts, 32000 * h200()->store_passes, 0);
  CHECK_NEAR(w.l2_packets, 64000, 0);
  in.kind = SOL_EMU_KIND_CONST_LOAD; // elsewhere
  in.counts.turns = 9000, in.counts.lines = 0;
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.constant_turns, 9000, 0);
  double more = (9000 - (double)in.counts.requests) * h200()->constant_apart_clocks / h200()->near_in_flight;
  CHECK_NEAR(w.shared_waits * h200()->device->smem_latency.value, more, 1e-6);
  CHECK_NEAR(w.l1_wavefronts + w.l2_reads + w.load_waits, 0, 0);
}

TEST(stores_that_follow_others_are_joined_with_them) {
  AuditWaits waits = {0};
  AuditInst in = {.text = "",
                  .kind = SOL_EMU_KIND_GLOBAL_STORE,
                  .counts = {.executions = 100, .requests = 100, .l2_writes = 2400}};
  in.counts.l2_packets = 3000;
  in.counts.lines = (uint64_t)(100 * h200()->join_lines);
  MachineWork w = {0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l2_packets, 3000, 0);
  in.follows = true;
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l2_packets, 3000 * h200()->join_share, 0);
  in.counts.lines += 100; // a line a request more: too many
  w = (MachineWork){0};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l2_packets, 3000, 0);
}

static double far_clocks(void) {
  return gpu("h200")->mem_latency.value;
}
static double l2_clocks(void) {
  return gpu("h200")->l2_latency.value;
}

TEST(a_wait_is_as_long_as_the_slowest_of_its_loads) {
  AuditInst in = load_inst(100, 400);
  SolEmuFlight flight = {.loads = 100, .waits = 100};
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight).clocks, far_clocks(), 1e-12);
  in.counts.dram_read /= 2; // half of the sectors were in L2
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight).clocks, (far_clocks() + l2_clocks()) / 2, 1e-12);
  flight.waits = 50; // two together: a quarter of the waits find both in L2
  AuditWaits w = audit_waits(h200(), &in, 1, &flight);
  CHECK_NEAR(w.per_load, 0.5, 0);
  CHECK_NEAR(w.clocks, 0.25 * l2_clocks() + 0.75 * far_clocks(), 1e-12);
  in.counts.l2_requests = 3200; // lanes at 32 lines: the last request leaves later than the first
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight).clocks - w.clocks, 31 / h200()->l2_scattered_rate, 1e-9);
}

TEST(shared_memory_and_shuffles_are_waited_for) {
  AuditInst shared = {
      .text = "", .kind = SOL_EMU_KIND_SHARED_LOAD, .counts = {.executions = 400, .wavefronts = 800}};
  AuditInst shuffle = {.unit = SOL_EMU_CLASS_WARP, .counts = {.executions = 10}};
  AuditInst barrier = {.unit = SOL_EMU_CLASS_BARRIER, .barrier = true, .counts = {.executions = 5}};
  AuditWaits waits = {0};
  MachineWork w = {0};
  audit_demand(h200(), &shared, &waits, 1, &w);
  audit_demand(h200(), &shuffle, &waits, 1, &w);
  audit_demand(h200(), &barrier, &waits, 1, &w);
  CHECK_NEAR(w.shared_waits, 400 / h200()->near_in_flight + 10, 0);
  CHECK_NEAR(w.shared_wavefronts, 800, 0);
  CHECK_NEAR(w.barriers, 5, 0);
}

// Calls of printf keep a warp waiting, and take turns; of malloc, each lane does.
TEST(calls_of_the_device_runtime_take_turns) {
  AuditInst in = {
      .text = "", .unit = SOL_EMU_CLASS_CONTROL, .prints = true, .counts = {.executions = 10, .lanes = 320}};
  AuditWaits waits = {0};
  MachineWork w = {.warps_per_block = 1};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.load_wait_clocks, 10 * h200()->print_clocks, 1e-6);
  CHECK_NEAR(w.atomic_clocks, 10 * h200()->print_turn_clocks, 1e-6);
  in.prints = false;
  in.allocates = true;
  w = (MachineWork){.warps_per_block = 1};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.load_wait_clocks, 10 * h200()->heap_clocks + 310 * h200()->heap_lane_clocks, 1e-6);
  CHECK_NEAR(w.atomic_clocks, 10 * h200()->heap_turn_clocks + 320 * h200()->heap_turn_lane_clocks, 1e-6);
}

// The machine code has the first round of a compare-and-swap loop; each further lane at the address adds a round.
TEST(the_first_round_of_a_shared_atomic_is_the_machine_codes) {
  AuditInst in = {.text = "",
                  .kind = SOL_EMU_KIND_SHARED_ATOMIC,
                  .real = true,
                  .by_machine = true,
                  .counts = {.executions = 100, .shared_requests = 100, .wavefronts = 100},
                  .pattern = {.same = 100}};
  AuditWaits waits = {0};
  MachineWork w = {.warps_per_block = 8};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.shared_waits, 0, 0); // no two lanes at one address
  in.pattern.same = 300;
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.shared_waits * h200()->device->smem_latency.value, h200()->shared_swap_clocks * 200, 1e-6);
  in.executed.issues = 500;
  in.pattern.same = 3200;
  w = (MachineWork){.warps_per_block = 8};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.issues, 500 * 32, 1e-9);
  CHECK_NEAR(w.shared_wavefronts, 100.0 * 32 * 33 / 2, 1e-9);
}

// A lane samples eight bytes of two rows at once; filtering reads pairs of texels, in two rows, of a volume in four.
TEST(textures_take_turns_by_what_is_sampled) {
  static const struct {
    uint32_t width, rows;
    bool list;
    double clocks; // of a warp: bench/probe_fetch.cu
  } rows[] = {{4, 1, false, 8},   {8, 2, false, 8},  {16, 2, false, 16}, {16, 1, false, 16},
              {32, 2, false, 32}, {8, 4, false, 16}, {4, 1, true, 4},    {16, 1, true, 8}};
  AuditWaits waits = {0};
  for (size_t i = 0; i < SOL_COUNT(rows); i++) {
    AuditInst in = load_inst(100 * rows[i].rows, 400);
    in.kind = SOL_EMU_KIND_TEXTURE;
    in.width = rows[i].width, in.list = rows[i].list;
    in.counts.executions = 100, in.counts.lanes = 3200;
    MachineWork w = {.warps_per_block = 8};
    audit_demand(h200(), &in, &waits, 1, &w);
    CHECK_NEAR(w.texture_lanes / h200()->texture_rate, 100 * rows[i].clocks, 1e-9);
  }
}

// All 32 lanes of a warp on one word, or each on its own; without a result they are served faster.
TEST(atomics_know_lanes_on_one_word_and_who_asks_for_a_result) {
  AuditWaits waits = {0};
  AuditInst in = load_inst(100, 400);
  in.kind = SOL_EMU_KIND_GLOBAL_ATOMIC;
  in.counts.atomics = 3200, in.counts.l2_misses = 400, in.pattern.same = 100;
  MachineWork w = {.warps_per_block = 8};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l2_atomic_alike, 0, 0);
  CHECK_NEAR(w.l2_atomics, 400, 0);
  in.counts.l2_misses = 100, in.pattern.same = 3200, in.executed.reds = 100;
  w = (MachineWork){.warps_per_block = 8};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.l2_atomic_alike, 3100, 0);
  CHECK_NEAR(w.l2_atomics, 100 * h200()->l2_atomic_rate / h200()->l2_red_rate, 1e-9);
}

// ---- the bill ----

static AuditTouch buffer(uint64_t address, double read, double written) {
  return (AuditTouch){.address = address,
                      .bytes = 1 << 20,
                      .label = "",
                      .read = read,
                      .read_first = read,
                      .written = written};
}

static AuditLaunch launch_of(const char *name, AuditInst *inst, AuditTouch *touches, uint32_t count) {
  return (AuditLaunch){.name = name,
                       .grid = {132, 1, 1},
                       .block = {256, 1, 1},
                       .registers = 32,
                       .blocks = 132,
                       .flight = {.loads = inst->counts.requests, .waits = (double)inst->counts.requests},
                       .insts = inst,
                       .inst_count = 1,
                       .touches = touches,
                       .touch_count = count};
}

// L2 keeps nothing of the host's memory, and DRAM has nothing to do with it.
TEST(mapped_memory_of_the_host_comes_over_the_link) {
  AuditInst in = load_inst(1000, 4000);
  AuditTouch touches[] = {buffer(1 << 20, 64000, 0)};
  in.pattern.allocation = touches[0].address;
  in.counts.l2_hits = 2000, in.counts.l2_misses = 2000;
  AuditLaunch launch = launch_of("k", &in, touches, 1);
  MachineTime there, here;
  CHECK_INT(audit_launch_time(gpu("h200"), &launch, &here, NULL), SOL_OK);
  touches[0].host = true;
  CHECK_INT(audit_launch_time(gpu("h200"), &launch, &there, NULL), SOL_OK);
  CHECK(here.seconds[MACHINE_DRAM] > 0);
  CHECK_NEAR(there.seconds[MACHINE_DRAM], 0, 0);
  CHECK(there.total - here.total > 4000 * 32 / 63e9 / 2);
  CHECK(there.seconds[MACHINE_LATENCY] > 2 * here.seconds[MACHINE_LATENCY]);
}

// Atomics on a line of it wait for each other, those on different lines do not.
TEST(atomics_on_the_hosts_memory_take_turns_by_line) {
  AuditInst in = {.kind = SOL_EMU_KIND_GLOBAL_ATOMIC,
                  .counts = {.executions = 64, .requests = 64, .atomics = 64}};
  AuditTouch touches[] = {buffer(1 << 20, 0, 128)};
  in.pattern.allocation = touches[0].address;
  touches[0].host = true;
  AuditLaunch launch = launch_of("k", &in, touches, 1);
  double seconds[2];
  for (int k = 0; k < 2; k++) {
    MachineTime t;
    touches[0].written_sectors = k ? 16 * 4 : 4;
    CHECK_INT(audit_launch_time(gpu("h200"), &launch, &t, NULL), SOL_OK);
    seconds[k] = t.total;
  }
  double turn = h200()->host_atomic_clocks / h200()->device->boost_clock.value;
  CHECK_NEAR(seconds[0] - seconds[1], 60 * turn, turn / 2);
}

TEST(launches_of_a_kernel_are_summed_and_shapes_kept_apart) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1000, 32000);
  AuditTouch t[] = {buffer(0x1000, 1e6, 0), buffer(0x900000, 0, 5e5)};
  AuditLaunch l = launch_of("_Z3addPfPKfi", &in, t, 2);
  l.left_dirty = 500000;
  l.dirty_limit = 1200000;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  l.grid[0] = 264;
  l.blocks = 66; // a quarter ran
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  l.name = "other";
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  CHECK_INT(p.kernel_count, 2);
  const AuditKernel *k = &p.kernels[0];
  CHECK_STR(k->title, "add");
  CHECK_NEAR(k->launches, 3, 0);
  CHECK_INT(k->shape_count, 2);
  CHECK_INT(k->kinds[SOL_EMU_KIND_GLOBAL_LOAD].requests, 1000 + 1000 + 4000);
  CHECK_INT(k->insts[0].counts.sectors, 32000 * 6);
  // Scaled, but never more than the buffer has.
  CHECK_NEAR(k->floor_bytes, 2 * 1.5e6 + 2 * 1048576, 1e-12);
  CHECK_NEAR(k->time.total, k->shapes[0].time.total + k->shapes[1].time.total, 1e-12);
  CHECK_NEAR(k->tax, k->time.total / k->light, 1e-12);
  CHECK_NEAR(p.time, k->time.total + p.kernels[1].time.total, 1e-12);
  CHECK_INT(k->line_count, 1);
  CHECK_INT(k->lines[0].line, 7);
  CHECK_NEAR(k->lines[0].wasted_bytes, 32.0 * 28000 * 6, 0);
  CHECK_NEAR(k->active_lanes, 32, 0);
  // What stays in L2 is not written during the launch; of the sampled one no more can stay than there is room for.
  CHECK_NEAR(k->left_dirty, 2 * 5e5 + 1.2e6, 1e-12);
  CHECK_NEAR(k->work.dram_write, 4 * 5e5 - 1.2e6, 1e-12);
  audit_free(&p);
}

// A title cuts template arguments that are too long; what differs in them alone is told apart all the same.
TEST(instances_of_a_template_have_different_titles) {
  AuditProgram p;
  AuditInst in = load_inst(1000, 4000);
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  const char *const names[] = {"_Z1kIfEvPT_", "_Z1kIdEvPT_", "_Z3addPfPKfi", "_Z3addPfPKfj"};
  for (size_t i = 0; i < SOL_COUNT(names); i++) {
    AuditLaunch l = launch_of(names[i], &in, NULL, 0);
    CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  }
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  const char *const titles[] = {"k<float>", "k<double>", "add", "add (instance 2)"};
  for (uint32_t i = 0; i < 4; i++) CHECK_STR(p.kernels[i].title, titles[i]);
  audit_free(&p);
}

static const AuditLeft *left_of(const AuditProgram *p, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < p->left_count; i++)
    if (p->lefts[i].from == from && p->lefts[i].to == to) return &p->lefts[i];
  return NULL;
}

TEST(what_l2_carries_from_launch_to_launch_is_known_by_kernel) {
  AuditProgram p;
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch a = launch_of("a", &in, NULL, 0), b = launch_of("b", &in, NULL, 0);
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  a.left_dirty = 3200;
  CHECK_INT(audit_add(&p, &a, NULL), SOL_OK);
  b.earlier.found[1] = 640; // of a
  CHECK_INT(audit_add(&p, &b, NULL), SOL_OK);
  b.earlier.found[1] = 64; // of b
  b.earlier.found[2] = 32; // of a
  b.earlier.found[SOL_OLDEST] = 96;
  b.earlier.written[2] = 1600;
  b.earlier_read = 32;
  CHECK_INT(audit_add(&p, &b, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  const AuditLeft *of_a = left_of(&p, 0, 1), *of_b = left_of(&p, 1, 1), *old = left_of(&p, UINT32_MAX, 1);
  CHECK(of_a && of_a->found == 672 && of_a->written == 1600);
  CHECK(of_b && of_b->found == 64 && of_b->written == 0);
  CHECK(old && old->found == 96);
  CHECK(p.kernels[1].found == 832 && p.kernels[1].earlier_written == 1600);
  CHECK_NEAR(p.kernels[0].work.dram_write, 0, 0);
  CHECK_NEAR(p.kernels[1].work.dram_write, 1600, 0);
  CHECK_NEAR(p.kernels[1].work.dram_read, 2 * (double)in.counts.dram_read + 32, 0);
  audit_free(&p);
}

// One of many on other memory: it writes back for the one before what it leaves to the next.
TEST(steady_launches_write_back_what_they_leave) {
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch l = launch_of("a", &in, NULL, 0);
  MachineTime alone, steady;
  in.counts.dram_read = 0;
  l.left_dirty = l.dirty_limit = 20000000;
  CHECK_INT(audit_launch_time(gpu("h200"), &l, &alone, NULL), SOL_OK);
  l.steady = true;
  CHECK_INT(audit_launch_time(gpu("h200"), &l, &steady, NULL), SOL_OK);
  CHECK(alone.seconds[MACHINE_DRAM] < 1e-7);
  CHECK_NEAR(steady.seconds[MACHINE_DRAM], 2e7 / machine_copy_rate(h200()), 1e-9);
}

// The longest chain of a block over that of a warp on average, scaled where only some of the blocks ran.
TEST(chains_are_a_factor) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1056, 4224); // each of 8 warps of 132 blocks waits once
  AuditLaunch l = launch_of("k", &in, NULL, 0);
  l.chain = (SolEmuChain){.issues = 132, .far_waits = 8 * 132}; // but one waits 8 times
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  CHECK_NEAR(p.kernels[0].work.chain,
             (8 * far_clocks() + h200()->issue_clocks) / (far_clocks() + h200()->issue_clocks), 1e-9);
  l.blocks = 33; // a quarter of them
  l.name = "other";
  in.counts.executions /= 4, in.counts.requests /= 4, l.chain.issues /= 4, l.chain.far_waits /= 4;
  audit_free(&p);
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  CHECK_NEAR(p.kernels[0].work.chain,
             (8 * far_clocks() + h200()->issue_clocks) / (far_clocks() + h200()->issue_clocks), 1e-9);
  audit_free(&p);
}

TEST(chains_wait_for_fences_and_clusters) {
  AuditInst in = load_inst(1056, 4224);
  AuditWaits waits = {.per_load = 1, .clocks = far_clocks(), .far = far_clocks()};
  MachineWork w = {.warps_per_block = 8};
  SolEmuChain c = {.other_waits = 132e3, .cluster_barriers = 132e3, .fences = 132e3, .store_fences = 132e3};
  audit_demand(h200(), &in, &waits, 1, &w);
  const MachineModel *m = h200();
  double mean = (far_clocks() + m->issue_clocks) * 132;
  double each = m->other_shared_clocks + m->cluster_barrier_clocks + m->fence_clocks + m->store_fence_clocks;
  AuditPtx ptx = {.executions = 1056};
  CHECK_NEAR(audit_chain(m, &w, &waits, &c, &ptx, 1), 132e3 * each / mean, 1e-9);
}

// Of a chain's loads those from local memory are the machine's few waits for it, not its many for global memory.
TEST(chains_take_local_memory_for_what_the_machine_made_of_it) {
  AuditInst in = load_inst(1056, 4224);
  AuditWaits waits = {.per_load = 1, .clocks = far_clocks(), .far = far_clocks()};
  MachineWork w = {.warps_per_block = 8};
  SolEmuChain c = {.far_waits = 132e3};
  audit_demand(h200(), &in, &waits, 1, &w);
  const MachineModel *m = h200();
  double mean = machine_wait_clocks(m, &w) / 8;
  AuditPtx ptx = {.executions = 1056,
                  .load_waits = w.load_waits / 10}; // the machine waits ten times as often
  CHECK_NEAR(audit_chain(m, &w, &waits, &c, &ptx, 1), 1320e3 * far_clocks() / mean, 1e-9);
  ptx.local_waits = 9 * ptx.load_waits;
  CHECK_NEAR(audit_chain(m, &w, &waits, &c, &ptx, 1), 132e3 * far_clocks() / mean, 1e-9);
}

// In clusters an SM holds fewer blocks, however small.
TEST(blocks_of_clusters_have_few_places) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch l = launch_of("k", &in, NULL, 0);
  l.block[0] = 32;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  l.name = "in clusters";
  l.cluster[0] = 2, l.cluster[1] = l.cluster[2] = 1;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  l.name = "few";
  l.registers = 255;
  l.block[0] = 256;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  CHECK_NEAR(p.kernels[0].work.blocks_per_sm, 32, 0);
  CHECK_NEAR(p.kernels[1].work.blocks_per_sm, h200()->cluster_blocks, 0);
  CHECK_NEAR(p.kernels[1].shapes[0].occupancy.occupancy, h200()->cluster_blocks / 64, 1e-12);
  CHECK_INT(p.kernels[1].shapes[0].occupancy.limiter, SOL_LIMIT_BLOCKS);
  CHECK_NEAR(p.kernels[2].work.blocks_per_sm, 1, 0);
  audit_free(&p);
}

TEST(a_launch_that_was_cut_short_is_billed_for_what_it_did) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch l = launch_of("k", &in, NULL, 0);
  AuditFault faults[] = {{.message = "out of bounds: here", .kind = "out of bounds", .file = "", .times = 3}};
  l.blocks = 1;
  l.end = SOL_EMU_FAULT;
  l.faults = faults;
  l.fault_count = 1;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  CHECK_INT(p.kernels[0].insts[0].counts.requests, 1000);
  CHECK_INT(p.kernels[0].fault_count, 1);
  CHECK_STR(p.kernels[0].faults[0].message, "out of bounds: here");
  audit_free(&p);
}

TEST(without_its_waste_a_kernel_takes_less) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1000000, 32000000);
  AuditLaunch l = launch_of("k", &in, NULL, 0);
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  l.grid[0] = 1320;
  l.blocks = 1320;
  CHECK_INT(audit_add(&p, &l, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  const AuditKernel *k = &p.kernels[0];
  MachineWork after = k->work;
  CHECK_NEAR(audit_gain(&p, k, &after), 1, 1e-9);
  after.dram_read /= 8;
  after.l2_reads /= 8;
  after.l1_wavefronts /= 8;
  double gain = audit_gain(&p, k, &after);
  CHECK_MSG(gain > 1.5 && gain <= 8, "gain %g", gain);
  after = (MachineWork){0}; // nothing at all, not even launches
  CHECK_NEAR(audit_seconds_with(&p, k, &after), 0, 0);
  audit_free(&p);
}

// What kernel 0 writes and kernel 1 reads; then read twice; then changed in between.
TEST(flows_between_kernels) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(10, 40);
  AuditTouch writes[] = {buffer(0x1000, 0, 1000)}, reads[] = {buffer(0x1000, 800, 0)};
  AuditLaunch a = launch_of("a", &in, writes, 1), b = launch_of("b", &in, reads, 1),
              c = launch_of("c", &in, reads, 1);
  CHECK(!audit_add(&p, &a, NULL) && !audit_add(&p, &b, NULL));
  if (CHECK_INT(p.flow_count, 1)) {
    CHECK(p.flows[0].from == 0 && p.flows[0].to == 1 && p.flows[0].only);
    CHECK_NEAR(p.flows[0].bytes, 800, 0);
  }
  CHECK(!audit_add(&p, &c, NULL)); // a second reader
  CHECK_INT(p.flow_count, 2);
  CHECK(!p.flows[0].only && !p.flows[1].only);
  CHECK(!audit_add(&p, &a, NULL));
  audit_outside(&p, AUDIT_OUTSIDE_WROTE, 0x1100, 4); // a copy from the host
  CHECK(!audit_add(&p, &b, NULL));
  CHECK_NEAR(p.flows[0].times, 1, 0);
  CHECK(!audit_add(&p, &a, NULL));
  audit_outside(&p, AUDIT_OUTSIDE_WROTE, 0x1000 + (1 << 20), 4); // next to it
  CHECK(!audit_add(&p, &b, NULL));
  CHECK_NEAR(p.flows[0].times, 2, 0);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  audit_free(&p);
}

TEST(names_for_people) {
  static const char *const names[][2] = {
      {"column_scale", "column_scale"},
      {"_Z12column_scalePfPKfS1_ii", "column_scale"},
      {"_Z3addIfEvPT_S1_", "add<float>"},
      {"_ZN3foo3barIfLi32EEEvPT_", "foo::bar<float,32>"},
      {"_Z1kIPKd6__halfLin5ELb1EEvv", "k<double*,__half,-5,1>"},
      {"_Z1kIN2ns4typeEiEvv", "k<ns::type,int>"},
      {"_Z1kIf3boxIiEEvv", "k<float,box<int>>"},
      {"_ZN12_GLOBAL__N_15stepsEv", "(anonymous)::steps"},
      {"_ZN1aIN1b1cEE1dIiEEvv", "a<b::c>::d<int>"},
      {"_ZN1n1kINS_1aENS_1bIS1_iEES1_EEvv", "n::k<n::a,n::b<n::a,int>,n::a>"},
      {"_Z1kILN1a4kindE2EPFvPKciEEvT0_", "k<(a::kind)2,void(char*,int)*>"},
      {"_Z3lamIZ4mainEUliE_EvT_", "lam<main()::lambda(int)#1>"},
      {"_Z1kIiJfSt5tupleIJEEEEvv", "k<int,float,std::tuple<>>"},
      {"_Z1kI2OpIiLi3EJEEEvv", "k<Op<int,3>>"},
      {"__nv_static_21__dadc2c69_5_rb_cu_tab__Z1kPf", "k"},
      {"__nv_static_99__dadc", "__nv_static_99__dadc"},
      {"_Z1kIS9_Evv", "_Z1kIS9_Evv"},
      {"_Z", "_Z"},
      {"_Z999x", "_Z999x"},
      {"_ZN3fooIf", "_ZN3fooIf"},
      {"", ""}};
  for (size_t i = 0; i < SOL_COUNT(names); i++) {
    char title[64];
    audit_title(names[i][0], title, sizeof title);
    CHECK_STR(title, names[i][1]);
  }
  char tiny[4], title[40];
  audit_title("_Z12column_scalePf", tiny, sizeof tiny);
  CHECK_STR(tiny, "col");
  audit_title("_Z5applyI5outerI14a_rather_long_14one_inside_of_EiEvv", title, sizeof title);
  CHECK_STR(title, "apply<outer<...>,int>");
}

CHECK_MAIN
