// The bill, from launches. Constants are read from the machine's model.
#include <math.h>

#include "audit_counts.h"

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

// A division is many instructions, which a warp goes through once; of a loop that ptxas adds an SM has one copy.
TEST(code_is_what_the_machine_has_for_each_instruction_that_ran) {
  AuditInst in = load_inst(1000, 4000);
  CHECK_NEAR(audit_code(&in), 1, 0);
  in.by_machine = true;
  in.executed.issues = 28000;
  CHECK_NEAR(audit_code(&in), 28, 0);
  in.executed.issues = 1e6;
  CHECK_NEAR(audit_code(&in), 32, 0);
  in.counts.executions = 0;
  CHECK_NEAR(audit_code(&in), 0, 0);
}

// Of blocks with equal work the one that comes first waits for memory, where others find the same in L1: as long as what serves this launch
// takes, not as long as the emulator took it for. A block with more work than others is as much longer, whatever serves it.
TEST(the_longest_block_waits_for_what_serves_it) {
  const MachineModel *m = h200();
  const SolDevice *d = m->device;
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch l = launch_of("k", &in, NULL, 0);
  AuditPtx ptx = {0};
  MachineWork w = {.blocks = 132, .warps_per_block = 1, .stall = m->issue_clocks};
  double far = machine_far_clocks(m), near = d->l1_latency.value, mean = 75 * near + 25 * far;
  l.chain = (SolEmuChain){.l1_waits = 132 * 75, .far_waits = 132 * 25};
  l.balance = (SolEmuBalance){.longest = (100 * far) / mean, .busiest = 1};
  AuditWaits same = {.far = far}, l2 = {.far = d->l2_latency.value};
  CHECK_NEAR(audit_longest(m, &w, &same, &l, &ptx, 1), 100 * far / mean, 1e-9);
  double found = 75 * near + 25 * l2.far, excess = 100 * far - mean;
  CHECK_NEAR(audit_longest(m, &w, &l2, &l, &ptx, 1), 1 + excess * l2.far / far / found, 1e-9);
  CHECK_NEAR(audit_longest(m, &w, &l2, &l, &ptx, 1), 100 * l2.far / found, 0.1);
  l.balance.busiest = l.balance.longest;
  CHECK_NEAR(audit_longest(m, &w, &l2, &l, &ptx, 1), l.balance.longest, 0);
}

// Of two launches of one shape that differ, each takes its own time: what one waits does not overlap with what the other moves.
TEST(launches_that_differ_are_priced_one_by_one) {
  AuditProgram p;
  CHECK_INT(audit_start(&p, gpu("h200"), NULL), SOL_OK);
  AuditInst in = load_inst(1000, 4000);
  AuditLaunch moves = launch_of("k", &in, NULL, 0), waits = moves;
  moves.earlier_read = 400000000;
  waits.chain.sleeps = 132 * 200e3;
  MachineTime each[2], both = {0};
  CHECK_INT(audit_launch_time(gpu("h200"), &moves, &each[0], NULL), SOL_OK);
  CHECK_INT(audit_launch_time(gpu("h200"), &waits, &each[1], NULL), SOL_OK);
  CHECK(each[0].bound == MACHINE_DRAM && each[1].bound == MACHINE_LATENCY);
  CHECK_INT(audit_add(&p, &moves, NULL), SOL_OK);
  CHECK_INT(audit_add(&p, &waits, NULL), SOL_OK);
  CHECK_INT(audit_finish(&p, NULL), SOL_OK);
  const AuditKernel *k = &p.kernels[0];
  CHECK_NEAR(k->time.total, each[0].total + each[1].total, 1e-12);
  CHECK_INT(machine_time(h200(), &k->work, &both, NULL), SOL_OK);
  CHECK(k->time.total > 1.2 * both.total);
  CHECK_NEAR(audit_gain(&p, k, &k->work), 1, 1e-12); // a rule that changes nothing gains nothing
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

// A wait that the machine splits into two was beyond L1 if either of its loads was: of all waits three quarters, of the loads half.
TEST(chains_split_waits_into_those_of_single_loads) {
  AuditInst in = load_inst(1056, 4224);
  AuditWaits waits = {.per_load = 1, .clocks = far_clocks(), .far = far_clocks()};
  MachineWork w = {.warps_per_block = 8};
  SolEmuChain c = {.l1_waits = 100e3, .far_waits = 300e3};
  audit_demand(h200(), &in, &waits, 1, &w);
  AuditPtx ptx = {.executions = 1056, .load_waits = w.load_waits / 2};
  double clocks = 400e3 * (far_clocks() + h200()->device->l1_latency.value);
  CHECK_NEAR(audit_chain(h200(), &w, &waits, &c, &ptx, 1), clocks / (machine_wait_clocks(h200(), &w) / 8),
             1e-3);
}

// A loop of one thread, of which ptxas made a quarter of the instructions and which has stalls of its own: the chain has its clocks. Where
// a lane of each warp has a loop, no path has all of them, and what all do in the mean counts.
TEST(chains_have_the_clocks_of_what_one_lane_does_alone) {
  AuditWaits waits = {0};
  double alone = 1e6, others = 8e6;
  MachineWork w = {.blocks = 132, .warps_per_block = 8, .issues = alone / 4 + 2 * others, .stall = 3};
  AuditPtx ptx = {
      .executions = alone + others, .alone = alone, .alone_issues = alone / 4, .alone_clocks = 5 * alone / 4};
  SolEmuChain c = {.issues = (uint64_t)(alone + others / 8)};
  double mean = machine_wait_clocks(h200(), &w) / 8, rest = (3 * w.issues - ptx.alone_clocks) / (2 * others);
  CHECK_NEAR(audit_chain(h200(), &w, &waits, &c, &ptx, 1), (ptx.alone_clocks + others / 8 * 2 * rest) / mean,
             1e-6);
  c.issues = (uint64_t)((alone + others) / 8 * 1.2); // an uneven loop of each warp
  double each = w.issues / ptx.executions * 3;
  CHECK_NEAR(audit_chain(h200(), &w, &waits, &c, &ptx, 1), (double)c.issues * each / mean, 1e-6);
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
