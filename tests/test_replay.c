// The replay of a block, assumption by assumption. Costs are the test's own, so that times are known.
#include <math.h>

#include "machine/replay.h"

#include "check.h"

static const MachineCosts costs = {.issue = 2,
                                   .shared = 30,
                                   .l1 = 40,
                                   .far = 500,
                                   .others = 200,
                                   .barrier = 30,
                                   .cluster = 130,
                                   .fence = 300,
                                   .store_fence = 100,
                                   .copy = 600,
                                   .byte = 0.1,
                                   .loaded_byte = 0.2,
                                   .stored_byte = 0.1,
                                   .flop = 1,
                                   .tensor = 20,
                                   .wavefront = 1};

enum { MOST = 4096, MOST_TEST_WARPS = 16 };
typedef struct Script {
  MachineEvent events[MOST];
  uint32_t ends[MOST_TEST_WARPS], count, warps, tokens;
} Script;

static void add(Script *s, MachineEvent e) {
  s->events[s->count++] = e;
  if (e.token > s->tokens) s->tokens = e.token;
}
static void end_warp(Script *s) {
  s->ends[s->warps++] = s->count;
}
static MachineEvent issues(double n) {
  return (MachineEvent){.step = MACHINE_STEP_END, .issues = n};
}
static MachineEvent copies(uint32_t token, double bytes) {
  return (MachineEvent){.step = MACHINE_STEP_COPY, .token = token, .amount = bytes, .place = 1};
}
static MachineEvent multiplies(uint32_t token, double flops) {
  return (MachineEvent){.step = MACHINE_STEP_TENSOR, .token = token, .amount = flops, .place = 2};
}
static MachineEvent arrives(uint32_t token) {
  return (MachineEvent){.step = MACHINE_STEP_ARRIVE, .token = token, .place = 3};
}
static MachineEvent waits(uint32_t token, uint32_t place) {
  return (MachineEvent){.step = MACHINE_STEP_WAIT, .token = token, .place = place};
}

static MachineTimeline replay_of(const Script *s, uint32_t warps_per_block) {
  MachineTimeline t;
  MachineReplay r = {s->events, s->ends, s->warps, warps_per_block ? warps_per_block : s->warps,
                     s->tokens, costs};
  CHECK(machine_replay(&r, &t));
  return t;
}

TEST(warps_of_a_part_share_its_issue_slot) {
  Script one = {0}, apart = {0}, together = {0};
  add(&one, issues(100)), end_warp(&one);
  CHECK_NEAR(replay_of(&one, 0).clocks, 200, 1e-9);
  for (int w = 0; w < 4; w++) add(&apart, issues(100)), end_warp(&apart);
  CHECK_NEAR(replay_of(&apart, 0).clocks, 200, 1e-9);
  CHECK_NEAR(replay_of(&apart, 0).busy[MACHINE_CORES], 0.5, 0.01);
  for (int w = 0; w < 13; w++) { // four of part 0
    if (w % 4 == 0) add(&together, issues(100));
    end_warp(&together);
  }
  CHECK_NEAR(replay_of(&together, 0).clocks, 400, 1e-9);
}

TEST(a_copy_arrives_a_latency_after_its_bytes) {
  Script s = {0};
  add(&s, copies(1, 1000)), add(&s, copies(1, 1000)), add(&s, waits(1, 7)), end_warp(&s);
  MachineTimeline t = replay_of(&s, 0);
  CHECK_NEAR(t.clocks, 200 + costs.copy, 1e-9); // one after the other
  CHECK_NEAR(t.transfer, 200 / t.clocks, 1e-9);
  CHECK_NEAR(t.busy[MACHINE_COPIES], (200 + costs.copy) / t.clocks, 0.01);
  CHECK_INT(t.waits[0].place, 7);
  CHECK_INT(t.waits[0].what, MACHINE_FOR_COPY);
  CHECK_NEAR(t.waits[0].clocks, 200 + costs.copy, 1e-9);
  CHECK_NEAR(t.exposed, t.clocks - 200, 1e-9);
}

TEST(a_copy_to_several_blocks_completes_a_token_of_each) {
  Script s = {0};
  add(&s, copies(1, 1000)), add(&s, copies(2, 0)), end_warp(&s);
  add(&s, waits(2, 7)), end_warp(&s);
  add(&s, waits(1, 7)), end_warp(&s);
  CHECK_NEAR(replay_of(&s, 0).clocks, 100 + costs.copy, 1e-9);
}

TEST(sources_are_read_before_a_store_has_arrived) {
  Script s = {0};
  MachineEvent out = copies(1, 1000), wait = waits(1, 7);
  out.detail = MACHINE_OUT;
  wait.detail = MACHINE_SOURCES_READ;
  add(&s, out), add(&s, wait), end_warp(&s);
  CHECK_NEAR(replay_of(&s, 0).clocks, 100, 1e-9);
}

TEST(tensor_cores_execute_in_order_one_for_each_part) {
  Script same = {0}, other = {0}, sync = {0}, fed = {0};
  for (int w = 0; w < 5; w++) {
    if (w % 4 == 0) add(&same, multiplies((uint32_t)w + 1, 1000)), add(&same, waits((uint32_t)w + 1, 5));
    if (w < 2) add(&other, multiplies((uint32_t)w + 1, 1000)), add(&other, waits((uint32_t)w + 1, 5));
    end_warp(&same), end_warp(&other);
  }
  CHECK_NEAR(replay_of(&same, 0).clocks, 2000 + costs.tensor, 1e-9);
  CHECK_NEAR(replay_of(&other, 0).clocks, 1000 + costs.tensor, 1e-9);
  CHECK_INT(replay_of(&same, 0).waits[0].what, MACHINE_FOR_TENSOR);
  CHECK_NEAR(replay_of(&same, 0).busy[MACHINE_TENSORS], 0.25 * 2000 / replay_of(&same, 0).clocks, 0.01);
  add(&sync, multiplies(0, 1000)), add(&sync, multiplies(0, 1000)), end_warp(&sync);
  CHECK_NEAR(replay_of(&sync, 0).clocks, 1000, 1e-9); // the second is taken when the first is done
  MachineEvent e = multiplies(1, 1000);
  e.wavefronts = 500; // of four of them together
  add(&fed, e), add(&fed, waits(1, 5)), end_warp(&fed);
  CHECK_NEAR(replay_of(&fed, 0).clocks, 2000 + costs.tensor, 1e-9);
}

// A producer and a consumer with so many stages between them: tokens 2k are full, 2k + 1 empty again.
static MachineTimeline pipeline(uint32_t stages) {
  static Script s;
  enum { STEPS = 64 };
  s = (Script){0};
  for (uint32_t k = 1; k <= STEPS; k++) {
    if (k > stages) add(&s, waits(2 * (k - stages) + 1, 10));
    add(&s, copies(2 * k, 9000)); // 900 clocks
  }
  end_warp(&s);
  for (uint32_t k = 1; k <= STEPS; k++) {
    add(&s, waits(2 * k, 11)), add(&s, multiplies(1000 + k, 1000)), add(&s, waits(1000 + k, 12));
    add(&s, arrives(2 * k + 1));
  }
  end_warp(&s);
  return replay_of(&s, 0);
}

TEST(stages_hide_copies_behind_products) {
  MachineTimeline one = pipeline(1), four = pipeline(4);
  double step = 900 + costs.copy + 1000 + costs.tensor;
  CHECK_NEAR(one.clocks / (64 * (step + costs.barrier)), 1, 0.03); // one after another
  CHECK(one.hidden < 0.05);
  CHECK_NEAR(four.clocks / (64 * (1000 + costs.tensor)), 1, 0.1); // the product alone
  CHECK(four.hidden > 0.2 && four.exposed < 0.5 * one.exposed);
  CHECK_INT(four.role_count, 2);
  CHECK(four.roles[0].copies && !four.roles[0].multiplies && four.roles[1].multiplies);
  CHECK(one.roles[1].share[MACHINE_FOR_COPY] > 0.4 && four.roles[1].share[MACHINE_FOR_COPY] < 0.1);
  CHECK(four.roles[0].share[MACHINE_FOR_WARPS] > 0.5); // the producer waits until a stage is empty
}

TEST(states_add_up_and_pictures_have_their_shares) {
  MachineTimeline t = pipeline(4);
  double sum = 0, unit = 0;
  for (int k = 0; k < MACHINE_STATES; k++) sum += t.roles[1].share[k];
  CHECK_NEAR(sum, 1, 0.01); // the consumer lives to the end
  for (int b = 0; b < MACHINE_BUCKETS; b++) unit += (double)t.unit[MACHINE_TENSORS][b] / MACHINE_BUCKETS;
  CHECK_NEAR(unit, t.busy[MACHINE_TENSORS], 1e-3);
  for (uint32_t w = 1; w < t.wait_count; w++) CHECK(t.waits[w].clocks <= t.waits[w - 1].clocks);
}

TEST(loads_are_waited_for_and_fences_take_their_time) {
  Script s = {0}, fenced = {0}, near = {0};
  MachineEvent load = {.step = MACHINE_STEP_LOAD, .amount = 1000, .detail = MACHINE_BEYOND_L1},
               loaded = {.step = MACHINE_STEP_LOADED};
  add(&s, load), add(&s, loaded), end_warp(&s);
  CHECK_NEAR(replay_of(&s, 0).clocks, 200 + costs.far, 1e-9);
  load.detail = 0;
  add(&near, load), add(&near, loaded), end_warp(&near);
  CHECK_NEAR(replay_of(&near, 0).clocks, costs.l1, 1e-9);
  Script many = {0}; // loads of four warps pass L1 one after another
  load.wavefronts = 32;
  for (int w = 0; w < 4; w++) add(&many, load), add(&many, loaded), end_warp(&many);
  CHECK_NEAR(replay_of(&many, 0).clocks, 4 * 32 + costs.l1, 1e-9);
  add(&fenced, (MachineEvent){.step = MACHINE_STEP_FENCE, .amount = 1}), end_warp(&fenced);
  CHECK_NEAR(replay_of(&fenced, 0).clocks, costs.fence + costs.store_fence, 1e-9);
}

// A trace that was cut has waits whose other side is missing.
TEST(a_wait_that_nothing_ends_is_given_up) {
  Script s = {0};
  add(&s, waits(1, 5)), add(&s, issues(10)), end_warp(&s);
  add(&s, waits(2, 5)), add(&s, arrives(1)), end_warp(&s);
  add(&s, waits(1, 5)), add(&s, arrives(2)), end_warp(&s);
  CHECK(replay_of(&s, 0).clocks > 0);
  Script none = {0};
  end_warp(&none);
  CHECK_NEAR(replay_of(&none, 0).clocks, 0, 0);
}

TEST(each_block_of_a_cluster_has_an_sm_of_its_own) {
  Script s = {0};
  for (int b = 0; b < 2; b++)
    add(&s, multiplies((uint32_t)b + 1, 1000)), add(&s, waits((uint32_t)b + 1, 5)), end_warp(&s);
  CHECK_NEAR(replay_of(&s, 1).clocks, 1000 + costs.tensor, 1e-9);
  MachineEvent far = arrives(3);
  far.detail = MACHINE_AT_OTHERS;
  Script two = {0};
  add(&two, waits(3, 5)), end_warp(&two);
  add(&two, far), end_warp(&two);
  CHECK_NEAR(replay_of(&two, 1).clocks, costs.others + costs.barrier, 1e-9);
  two.events[1].detail = MACHINE_AT_CLUSTER;
  CHECK_NEAR(replay_of(&two, 1).clocks, costs.cluster, 1e-9);
}

TEST(the_first_tensor_copy_waits_for_its_descriptor) {
  Script s = {0};
  MachineEvent first = copies(1, 1000);
  first.late = 200;
  add(&s, first), add(&s, copies(1, 1000)), add(&s, waits(1, 7)), end_warp(&s);
  CHECK_NEAR(replay_of(&s, 0).clocks, 200 + 200 + costs.copy, 1e-9);
}

TEST(costs_are_the_models) {
  const SolDevice *d = NULL;
  CHECK_INT(sol_device_find("h200", &d, NULL), SOL_OK);
  MachineModel m = machine_model(d);
  MachineCosts all = machine_costs(&m, &(MachineServed){.far = 400, .dram = 0, .sms = 132, .stall = 2});
  MachineCosts few = machine_costs(&m, &(MachineServed){.far = 400, .dram = 0, .sms = 8, .stall = 2});
  MachineCosts dram = machine_costs(&m, &(MachineServed){.far = 400, .dram = 1, .sms = 132, .stall = 2});
  CHECK_NEAR(all.byte, 132 * d->boost_clock.value / d->l2_bandwidth.value, 1e-9);
  CHECK_NEAR(few.byte, 1 / m.bulk_fill_bytes, 1e-9);
  CHECK(dram.byte > 2 * all.byte);
  CHECK_NEAR(all.copy, 400 + m.tma_clocks, 1e-9);
  // m64n256k16 of four warps: 524288 FLOPs in 128 clocks of 1830 MHz
  CHECK_NEAR(all.flop * 524288 / 4, 128 * 1980.0 / 1830 / m.tensor_share, 1);
}

CHECK_MAIN
