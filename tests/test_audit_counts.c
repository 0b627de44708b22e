// What instructions demand of the machine, from their counts. Constants are read from the machine's model.
#include "audit_counts.h"

TEST(atomics_to_one_address_wait_for_each_other) {
  AuditInst in = {.pattern = {.queue_lanes = 320, .queue_packets = 40}};
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_int_clocks * 320, 1e-9);
  in.real = true;
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_real_clocks * 320, 1e-9);
  in.width = 8;
  CHECK_NEAR(audit_atomic_clocks(h200(), &in), h200()->atomic_double_clocks * 320, 1e-9);
  in.pattern.queue_lanes = 0; // each lane an address of its own
  in.counts.atomics = 160, in.counts.l2_hits = 40;
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
  CHECK_NEAR(loaded[0], 5, 1e-9);
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
  in.by_machine = true;
  in.executed.uniform_constants =
      5; // those at uniform registers have to wait for their line, too; operands do not
  MachineWork uniform = {.warps_per_block = 1};
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &uniform);
  CHECK_NEAR(uniform.constant_turns, far.constant_turns / 2, 1e-9);
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

TEST(a_wait_is_as_long_as_the_slowest_of_its_loads) {
  AuditInst in = load_inst(100, 400);
  SolEmuFlight flight = {.loads = 100, .waits = 100};
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 132).clocks, far_clocks(), 1e-12);
  in.counts.dram_read /= 2; // half of the sectors were in L2
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 132).clocks, (far_clocks() + l2_clocks()) / 2, 1e-12);
  flight.waits = 50; // two together: a quarter of the waits find both in L2
  AuditWaits w = audit_waits(h200(), &in, 1, &flight, 132);
  CHECK_NEAR(w.per_load, 0.5, 0);
  CHECK_NEAR(w.clocks, 0.25 * l2_clocks() + 0.75 * far_clocks(), 1e-12);
  in.counts.l2_requests = 3200; // lanes at 32 lines: the last request leaves later than the first
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 132).clocks - w.clocks, 31 / h200()->l2_scattered_rate,
             1e-9);
}

// One block runs on one SM, and finds what that SM read before in the half of L2 next to it.
TEST(an_sm_that_is_alone_waits_less) {
  AuditInst in = load_inst(100, 400);
  SolEmuFlight flight = {.loads = 100, .waits = 100};
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 1).clocks, far_clocks() * h200()->alone_dram_share, 1e-12);
  in.counts.dram_read = 0;
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 1).clocks, l2_clocks() * h200()->alone_l2_share, 1e-12);
  CHECK_NEAR(audit_waits(h200(), &in, 1, &flight, 2).clocks, l2_clocks(), 1e-12);
  SolDevice other = *h200()->device;
  other.id = "another";
  CHECK_NEAR(machine_model(&other).alone_l2_share, 1, 0); // its latency is that of a chase already
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
  CHECK_NEAR(w.call_clocks, 10 * h200()->print_clocks, 1e-6);
  CHECK_NEAR(w.atomic_clocks, 10 * h200()->print_turn_clocks, 1e-6);
  in.prints = false;
  in.allocates = true;
  w = (MachineWork){.warps_per_block = 1};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.call_clocks, 10 * h200()->heap_clocks + 310 * h200()->heap_lane_clocks, 1e-6);
  double turns = 10 * h200()->heap_turn_clocks + 320 * h200()->heap_turn_lane_clocks;
  CHECK_NEAR(w.atomic_clocks, turns, 1e-6);
  w = (MachineWork){.warps_per_block = 2, .blocks = 4}; // eight warps: so many calls are their first ones
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.atomic_clocks, turns + 8 * h200()->heap_first_clocks, 1e-6);
  in.text = "call free, (param0);";
  w = (MachineWork){.warps_per_block = 2, .blocks = 4};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.atomic_clocks, turns + 8 * h200()->heap_last_clocks, 1e-6);
}

// A packet of one lane takes as long of every kind; several lanes of a compare-and-swap, or of doubles, take longer.
TEST(packets_of_several_lanes_take_longer) {
  static const struct {
    const char *text;
    uint32_t lanes, width;
    bool real;
  } rows[] = {{"atom.global.add.u32", 100, 4, false},
              {"atom.global.cas.b32", 100, 4, false},
              {"atom.global.cas.b32", 400, 4, false},
              {"atom.global.add.f64", 100, 8, true},
              {"atom.global.add.f64", 400, 8, true}};
  const double clocks[] = {h200()->atomic_packet, h200()->atomic_packet,
                           h200()->atomic_packet * h200()->atomic_swap_packet, h200()->atomic_packet,
                           h200()->atomic_double_packet};
  for (size_t i = 0; i < SOL_COUNT(rows); i++) {
    AuditInst in = {.text = rows[i].text,
                    .kind = SOL_EMU_KIND_GLOBAL_ATOMIC,
                    .width = rows[i].width,
                    .real = rows[i].real,
                    .counts = {.executions = 50, .atomics = rows[i].lanes, .l2_hits = 100},
                    .pattern = {.queue_packets = 100}};
    CHECK_NEAR(audit_atomic_clocks(h200(), &in), 100 * clocks[i], 1e-9);
  }
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
  in.pattern.same = 100; // no two at one address: its wavefronts are loads and swaps
  w = (MachineWork){.warps_per_block = 8};
  audit_demand(h200(), &in, &waits, 1, &w);
  CHECK_NEAR(w.shared_wavefronts, 100 * h200()->shared_swap_passes, 1e-9);
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

// A store whose lanes index different words of local memory writes sectors in part: it takes longer than others that do.
TEST(scattered_stores_to_local_memory_take_longer) {
  AuditInst in = {
      .text = "",
      .kind = SOL_EMU_KIND_GLOBAL_STORE,
      .counts = {.executions = 10, .requests = 10, .lines = 320, .l2_writes = 320, .l2_packets = 640}};
  MachineWork others = {.warps_per_block = 1}, scattered = others, whole = others;
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &others);
  in.kind = SOL_EMU_KIND_LOCAL_STORE;
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &scattered);
  in.counts.l2_packets = 320;
  audit_demand(h200(), &in, &(AuditWaits){0}, 1, &whole);
  CHECK_NEAR(others.l2_packets, 640, 1e-9);
  CHECK_NEAR(scattered.l2_packets, 640 * h200()->local_apart, 1e-9);
  CHECK_NEAR(whole.l2_packets, 320, 1e-9);
}

CHECK_MAIN
