// The table of constants, and the time model's assumptions, one by one. Constants are read from the model.
#include <math.h>

#include "machine/work.h"

#include "check.h"
#include "mem/l2.h"

static const SolDevice *gpu(const char *name) {
  const SolDevice *d = NULL;
  if (sol_device_find(name, &d, NULL)) abort();
  return d;
}

static MachineTime time_of(const MachineWork *w) {
  MachineTime t = {0};
  MachineModel model = machine_model(gpu("h200"));
  CHECK_INT(machine_time(&model, w, &t, NULL), SOL_OK);
  return t;
}

// A launch that fills an H200; what it demands is the caller's.
static MachineWork full(void) {
  return (MachineWork){.launches = 1, .blocks = 132 * 8, .warps_per_block = 8, .blocks_per_sm = 8};
}

static MachineModel h200(void) {
  return machine_model(gpu("h200"));
}
static double copy_rate(void) {
  MachineModel model = h200();
  return machine_copy_rate(&model);
}
static double clock_rate(void) {
  return gpu("h200")->boost_clock.value;
}
static double latency(void) { // of L2: what a launch costs holds it already
  return gpu("h200")->l2_latency.value;
}

// What the table of sets is summed up as in the list of constants; none is larger than src/mem has room for.
TEST(sets_of_l2_are_as_uneven_as_the_constant_says) {
  double sum = 0, squares = 0;
  for (int i = 0; i < MACHINE_L2_SETS; i++) {
    sum += machine_l2_sets[i];
    squares += (machine_l2_sets[i] - 100.0) * (machine_l2_sets[i] - 100.0);
    CHECK(machine_l2_sets[i] <= SOL_SET_MOST);
  }
  CHECK_INT(MACHINE_L2_SETS, SOL_SET_KINDS);
  CHECK_INT(sum, 100 * MACHINE_L2_SETS);
  CHECK_NEAR(sqrt(squares / MACHINE_L2_SETS) / 100, h200().l2_set_spread, 0.01);
}

TEST(time_is_launches_plus_the_busiest_with_waiting_at_a_right_angle) {
  MachineWork w = full();
  double launch = gpu("h200")->launch_us.value * 1e-6;
  CHECK_NEAR(time_of(&w).total, launch + time_of(&w).seconds[MACHINE_BLOCKS], 1e-12);
  CHECK_INT(time_of(&w).bound, MACHINE_LAUNCH);
  w.dram_read = 1e9;
  w.l2_reads = 1e6; // less than DRAM takes: it changes nothing
  CHECK_NEAR(time_of(&w).total, launch + 1e9 / copy_rate(), 1e-6);
  CHECK_INT(time_of(&w).bound, MACHINE_DRAM);
  w.load_wait_clocks = 1e9;
  MachineTime t = time_of(&w);
  CHECK_NEAR(t.total - launch, sqrt(pow(t.seconds[MACHINE_DRAM], 2) + pow(t.seconds[MACHINE_LATENCY], 2)),
             1e-6);
}

// 48 KiB in flight per SM are what it takes to saturate an H200, by measurement: 97% there, 71% at a quarter.
TEST(bytes_in_flight_decide_the_bandwidth) {
  for (int i = 0; i < 2; i++) {
    double in_flight = i ? 48 * 1024 : 12.6 * 1024, warps = 64; // of an SM
    MachineWork w = {.launches = 1, .blocks = 132, .warps_per_block = 64, .blocks_per_sm = 1};
    w.dram_read = in_flight * 132 * 1000; // each round brings what is in flight
    w.load_waits = 132 * 1000 * warps;    // and waits once
    w.load_wait_clocks = w.load_waits * gpu("h200")->mem_latency.value;
    MachineTime t = time_of(&w);
    double share = t.seconds[MACHINE_DRAM] / (t.total - t.seconds[MACHINE_LAUNCH]);
    CHECK_MSG(i ? share > 0.95 && share < 0.99 : share > 0.66 && share < 0.76, "%d: %.3f of the bandwidth", i,
              share);
  }
}

TEST(dram_takes_reads_and_writes_alike_and_light_is_a_copy) {
  MachineWork a = full(), b = full();
  a.dram_read = 2e9;
  b.dram_read = b.dram_write = 1e9;
  CHECK_NEAR(time_of(&a).total, time_of(&b).total, 1e-12);
  MachineModel model = h200();
  b.dram_scattered = 6e8; // of the 1e9 that are read
  CHECK_NEAR(time_of(&b).seconds[MACHINE_DRAM], (1.4e9 + 6e8 / model.scatter_share) / copy_rate(), 1e-9);
  CHECK_NEAR(machine_light(&model, 2e9, 1, 0), time_of(&a).total, 1e-6);
  CHECK_NEAR(machine_light(&model, 0, 3, 2),
             (gpu("h200")->launch_us.value + 2 * gpu("h200")->graph_launch_us.value) * 1e-6, 1e-12);
}

TEST(l2_gives_all_sms_its_bandwidth_and_one_its_fill_rate) {
  MachineWork w = full();
  w.l2_reads = 1e9;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 32e9 / gpu("h200")->l2_bandwidth.value, 1e-9);
  w.blocks = 1; // all of it through one SM
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 32e9 / h200().l2_few_bytes / clock_rate(), 1e-9);
}

TEST(requests_to_read_and_to_write_overlap) {
  MachineWork w = full();
  w.l2_requests = 132 * h200().l2_read_rate * 3e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 3e6 / clock_rate(), 1e-9);
  w.l2_packets = 132 * h200().l2_packet_rate * 4e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 5e6 / clock_rate(), 1e-9);
  w.l2_requests = 0;
  w.blocks = 1; // L2's own limit, whoever writes
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 4e6 / clock_rate(), 1e-9);
}

TEST(what_is_taken_one_by_one_keeps_an_sm_busy) {
  MachineWork w = full();
  w.constant_turns = 132e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], h200().constant_clocks * 1e6 / clock_rate(), 1e-9);
  w.match_turns = 264e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 2 * h200().match_clocks * 1e6 / clock_rate(), 1e-9);
}

TEST(blocks_and_clusters_are_started_one_after_another) {
  MachineWork w = full();
  w.blocks = 8e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_BLOCKS], 8e6 * h200().start_clocks / clock_rate(), 1e-9);
  w.blocks_per_cluster = 2;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_BLOCKS],
             (8e6 + 4e6 * h200().cluster_starts) * h200().start_clocks / clock_rate(), 1e-9);
}

TEST(a_last_wave_is_no_faster_than_its_sms) {
  MachineWork w = full();
  w.blocks_per_sm = 1;
  w.blocks = 132;
  w.dram_read = 132e6;
  w.l2_reads = w.dram_read / 32;
  double full_wave = time_of(&w).seconds[MACHINE_DRAM];
  CHECK_NEAR(full_wave, 132e6 / copy_rate(), 1e-9);
  w.blocks = 133;
  w.dram_read += 1e6;
  w.l2_reads = w.dram_read / 32;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_DRAM], full_wave + 1e6 / h200().l2_fill_bytes / clock_rate(), 1e-9);
}

TEST(resources_that_are_alike_get_in_each_others_way) {
  MachineWork w = full();
  w.dram_read = copy_rate();
  double alone = time_of(&w).total;
  w.l1_wavefronts = 132 * clock_rate();
  CHECK_NEAR(time_of(&w).total / alone, sqrt(sqrt(2)), 1e-3);
}

TEST(l1_and_shared_memory_share_a_pipe) {
  MachineWork w = full();
  w.l1_wavefronts = 132e6;
  w.shared_wavefronts = 264e6;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 3e6 / clock_rate(), 1e-9);
  CHECK_INT(time_of(&w).bound, MACHINE_L1);
}

TEST(pipes_have_their_rates) {
  MachineModel m = h200();
  double clocks = 132 * clock_rate();
  const struct {
    size_t field;
    double per_clock; // warp instructions of an SM
  } pipes[] = {{offsetof(MachineWork, issues), m.issue_rate},
               {offsetof(MachineWork, integer), m.integer_rate},
               {offsetof(MachineWork, special), m.special_rate},
               {offsetof(MachineWork, convert), m.convert_rate},
               {offsetof(MachineWork, fp32), m.device->peak_fp32.value / 64 / clocks},
               {offsetof(MachineWork, fp64), m.device->peak_fp64.value / 64 / clocks}};
  for (size_t i = 0; i < SOL_COUNT(pipes); i++) {
    MachineWork w = full();
    const double warps = 132e6;
    memcpy((char *)&w + pipes[i].field, &warps, sizeof warps);
    CHECK_NEAR(time_of(&w).seconds[MACHINE_ISSUE], 1e6 / pipes[i].per_clock / clock_rate(), 1e-9);
  }
  MachineWork w = full();
  w.tensor_flops = gpu("h200")->peak_fp16.value * h200().tensor_share;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_TENSOR], 1, 1e-9);
}

// Of a replayed block the busiest unit counts, and then what it lives longer, as far as no other block is there.
TEST(what_a_replayed_block_waits_comes_after_what_is_busy) {
  MachineWork w = full();
  w.blocks = 132, w.blocks_per_sm = 1;
  w.tensor_flops = gpu("h200")->peak_fp16.value * h200().tensor_share; // a second
  w.replayed = 1, w.exposed = clock_rate() / 2;
  MachineTime one = time_of(&w);
  CHECK(one.replayed);
  CHECK_NEAR(one.seconds[MACHINE_LATENCY], 0.5, 1e-9);
  CHECK_NEAR(one.total, 1.5, 1e-4);
  w.l1_wavefronts =
      132 * clock_rate() * 0.9; // less than the tensor cores take: the replay has how they overlap
  CHECK_NEAR(time_of(&w).total, 1.5, 1e-4);
  w.blocks = 264, w.blocks_per_sm = 2; // each waits while the other works
  CHECK_NEAR(time_of(&w).total, 1, 1e-4);
  w.exposed = clock_rate();
  CHECK_NEAR(time_of(&w).total, 1.5, 1e-4);
}

TEST(bulk_copies_have_a_rate_of_their_own) {
  MachineWork w = full();
  w.blocks = 8, w.blocks_per_sm = 1; // L2 as a whole is not the bound
  w.l2_reads = 1e6, w.l2_requests = 0;
  double loads = time_of(&w).seconds[MACHINE_L2];
  w.l2_bulk = 1e6;
  CHECK_NEAR(loads / time_of(&w).seconds[MACHINE_L2], h200().bulk_fill_bytes / h200().l2_few_bytes, 1e-9);
}

TEST(the_busiest_sm_decides_and_dram_is_everybodys) {
  MachineWork w = full();
  w.l1_wavefronts = w.dram_read = 133e6;
  w.blocks = 133; // one SM has two
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 2e6 / clock_rate(), 1e-9);
  CHECK_NEAR(time_of(&w).seconds[MACHINE_DRAM], 133e6 / copy_rate(), 1e-9);
  w.blocks = 66; // half of the SMs
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 133e6 / 66 / clock_rate(), 1e-9);
}

TEST(uneven_blocks_keep_one_sm_busy_and_end_late) {
  MachineWork w = full();
  w.l1_wavefronts = 132e6;
  w.load_wait_clocks = w.blocks * w.warps_per_block * 10000;
  MachineTime even = time_of(&w);
  w.busiest = 3;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 3 * even.seconds[MACHINE_L1], 1e-9);
  CHECK_NEAR(time_of(&w).seconds[MACHINE_LATENCY], even.seconds[MACHINE_LATENCY], 1e-12);
  w.busiest = 1;
  w.longest = 2;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], even.seconds[MACHINE_L1], 1e-12);
  CHECK(time_of(&w).seconds[MACHINE_LATENCY] > 1.9 * even.seconds[MACHINE_LATENCY]);
}

// A place that is taken by one block after another costs their starts and ends, however much longer than others some of them are.
TEST(starts_and_ends_between_waves_are_alike) {
  MachineWork w = full();
  w.blocks = 132 * 8 * 4;
  w.load_wait_clocks = w.blocks * w.warps_per_block * 10000;
  w.longest = 3;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_LATENCY],
             (3 * 4 * 10000 + 3 * h200().block_clocks - latency()) / clock_rate(), 1e-9);
}

TEST(warps_wait_together_and_waves_one_after_another) {
  MachineWork w = full();
  w.blocks = 132 * 8;
  double warps = w.blocks * w.warps_per_block;
  w.load_wait_clocks = warps * 10000;
  double one = time_of(&w).seconds[MACHINE_LATENCY];
  CHECK_NEAR(one, (10000 - latency()) / clock_rate(), 1e-9); // the launch's figure has waited for L2 already
  w.chain = 3;                                               // some warps work while others wait
  CHECK_NEAR(time_of(&w).seconds[MACHINE_LATENCY], (30000 - latency()) / clock_rate(), 1e-9);
  w.chain = 1;
  w.blocks *= 2;
  w.load_wait_clocks *= 2;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_LATENCY], (20000 + h200().block_clocks - latency()) / clock_rate(),
             1e-9);
  CHECK_NEAR(time_of(&w).waves, 2, 1e-12);
  w = full();
  warps = w.blocks * w.warps_per_block;
  w.barriers = w.shared_waits = w.issues = 100 * warps;
  MachineModel m = h200();
  CHECK_NEAR(
      time_of(&w).seconds[MACHINE_LATENCY],
      ((machine_barrier(&m, w.warps_per_block) + gpu("h200")->smem_latency.value + m.issue_clocks) * 100 -
       latency()) /
          clock_rate(),
      1e-9);
}

TEST(launches_of_a_graph_cost_less) {
  MachineWork w = full();
  w.launches = 10;
  double blocks = time_of(&w).seconds[MACHINE_BLOCKS];
  double stream = gpu("h200")->launch_us.value * 1e-6, graph = gpu("h200")->graph_launch_us.value * 1e-6;
  CHECK_NEAR(time_of(&w).total, 10 * stream + blocks, 1e-9);
  w.graph_launches = 10;
  CHECK_NEAR(time_of(&w).total, 10 * graph + blocks, 1e-9);
  w.early_launches = 10;
  CHECK_NEAR(time_of(&w).total, 10 * graph * h200().early_share + blocks, 1e-9);
}

TEST(atomics_to_one_address_are_serialised) {
  MachineWork w = full();
  w.atomic_clocks = clock_rate();
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS], 1, 1e-9);
  CHECK_INT(time_of(&w).bound, MACHINE_ATOMICS);
}

TEST(atomics_at_the_end_of_one_wave_come_behind_the_rest) {
  MachineWork w = full();
  w.blocks = 132 * w.blocks_per_sm;
  w.dram_read = copy_rate(); // a second
  w.atomic_clocks = clock_rate() / 2;
  double beside = time_of(&w).total;
  w.atomic_end_clocks = w.atomic_clocks;
  double behind = time_of(&w).total, launch = time_of(&w).seconds[MACHINE_LAUNCH];
  CHECK_NEAR(behind - launch, 1.5 - 0.5 * h200().end_overlap, 1e-3);
  w.blocks *= 2; // blocks of the second wave start while others are at their atomics
  CHECK_NEAR(time_of(&w).total, beside, 1e-3);
}

// The lanes that contend are no more than are resident; those that come more seldom than one succeeds do not.
TEST(swaps_of_one_word_wait_for_all_that_try) {
  MachineModel m = h200();
  MachineWork w = full(), few = full();
  few.swaps = 100;
  CHECK_NEAR(time_of(&few).seconds[MACHINE_ATOMICS], 100 * m.swap_clocks / clock_rate(), 1e-12);
  w.blocks = 8,
  w.swaps = w.swap_lanes = 2048; // the probe's lanes, each of which adds once: 2.39 million clocks
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate(), 2.39e6, 0.05e6);
  w.swaps = w.swap_lanes = 4096; // twice: the second half with all lanes there
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate(), 2.39e6 + 2048 * 2048 * m.swap_turn_clocks,
             0.05e6);
  MachineWork wide = full(); // lanes that fill the GPU, at 1024 words: what limits them is L2
  wide.swap_lanes = wide.swap_sectors = 1056 * 256, wide.swaps = 264;
  double turn = 1024 / m.l2_atomic_rate / 132, first = m.swap_clocks / turn;
  CHECK_NEAR(time_of(&wide).seconds[MACHINE_ATOMICS] * clock_rate(),
             first * m.swap_clocks + (264.0 * 264 - first * first) / 2 * turn, 1);
  wide.swap_queue = 1e6, wide.swap_words = 1024; // or one slice of it: each lane tries 132 times
  CHECK_NEAR(time_of(&wide).seconds[MACHINE_ATOMICS] * clock_rate(),
             1e6 * 132 * m.swap_turn_clocks / m.atomic_int_clocks, 1);
  wide.swap_active = wide.swap_lanes; // one lane of each warp: no more than so many wait for a word
  wide.swap_queue = 0;
  CHECK_NEAR(time_of(&wide).seconds[MACHINE_ATOMICS] * clock_rate(), 264 * m.swap_clocks, 1);
  few.held_clocks = 200 * m.swap_clocks; // a lock that each has twice as long
  CHECK_NEAR(time_of(&few).seconds[MACHINE_ATOMICS], 200 * m.swap_clocks / clock_rate(), 1e-12);
  w.dram_read = 8192 * m.swap_clocks / clock_rate() * copy_rate();
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS], 4096 * m.swap_clocks / clock_rate(), 1e-9);
}

// Lanes that swap only what is better: all that are resident try, but no more than so many swaps that succeeded tell of.
TEST(swaps_behind_a_test_are_tried_by_all_that_are_resident) {
  MachineModel m = h200();
  MachineWork w = full();
  double resident = w.blocks_per_sm * w.warps_per_block * 32 * 132;
  w.blocks *= 4;
  w.swaps = w.swap_lanes = 14, w.swap_guarded = 4 * resident;
  w.swap_guard_clocks = w.swap_guarded * m.atomic_int_clocks;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate(),
             14 * m.swap_clocks + m.guarded_tries * resident * m.atomic_int_clocks, 1);
  w.launches = 3, w.swap_launches = 1; // two more that find nothing to do
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate(),
             14 * m.swap_clocks + m.guarded_tries * resident * m.atomic_int_clocks, 1);
  w.launches = 1;
  w.swaps = w.swap_lanes = 1; // one succeeded: there were hardly more than twenty
  double tries = (time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate() - m.swap_clocks) / m.atomic_int_clocks;
  CHECK(tries > 2 && tries < 50);
  w.swaps = w.swap_lanes =
      1e5; // in the order in which they ran all were better: of lanes in no order few are
  double clocks =
      time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate() - m.guarded_tries * resident * m.atomic_int_clocks;
  CHECK(clocks > 4 * log(resident) * m.swap_clocks && clocks < 4 * (2 + log(resident)) * m.swap_clocks);
  w.swaps = w.swap_lanes = 14; // waves that are long, of which few come before the word is changed
  w.dram_read = 4 * 15 * m.swap_clocks / clock_rate() * copy_rate();
  tries = (time_of(&w).seconds[MACHINE_ATOMICS] * clock_rate() - 14 * m.swap_clocks) / m.atomic_int_clocks;
  CHECK_NEAR(tries, m.guarded_tries * resident * (1 + log(15) / 2) / 15, 0.01 * resident);
  w.swaps = w.swap_lanes = 0; // nothing was better
  CHECK_NEAR(time_of(&w).seconds[MACHINE_ATOMICS], 0, 0);
}

// In each launch, however much else there is to do; beyond what an SM keeps of it, the waits have it.
TEST(code_is_fetched_for_the_first_time_in_every_launch) {
  MachineModel m = h200();
  MachineWork w = full();
  w.launches = 3;
  w.dram_read = copy_rate();
  double without = time_of(&w).total, each = m.cold_clocks / clock_rate();
  w.code = 3 * 1000;
  CHECK_NEAR(time_of(&w).total - without, 3000 * each, 1e-9);
  w.code = 3 * 100000;
  CHECK_NEAR(time_of(&w).total - without, 3 * m.code_bytes / 16 * each, 1e-9);
  w.replayed = 1;
  without = time_of(&w).total;
  w.code = 0;
  CHECK_NEAR(time_of(&w).total, without, 0);
}

TEST(managed_pages_move_beside_nothing_else) {
  MachineModel m = h200();
  MachineWork w = full();
  w.dram_read = copy_rate();
  double without = time_of(&w).total;
  w.page_launches = 1, w.page_bytes = 1000 * 65536.0, w.pages = 16000, w.page_blocks = 32;
  CHECK_NEAR(time_of(&w).total - without,
             (m.page_first_us + 1000 * m.page_group_us + 16000 * m.page_us + 32 * m.page_block_us) * 1e-6,
             1e-9);
}

TEST(l2_serves_so_many_sectors_of_atomics) {
  MachineWork w = full();
  w.l2_atomics = h200().l2_atomic_rate * 132 * clock_rate();
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], 1, 1e-9);
  CHECK_INT(time_of(&w).bound, MACHINE_L2);
  w.l2_atomic_lanes = 8 * w.l2_atomics; // the probe's whole sectors: 38.6 G/s
  CHECK_NEAR(w.l2_atomics / time_of(&w).seconds[MACHINE_L2], 38.6e9, 0.5e9);
}

// The probe's adds of 32 lanes on one word: 82 G/s.
TEST(lanes_on_one_word_are_served_one_after_another) {
  MachineWork w = full();
  w.l2_atomics = 1e6, w.l2_atomic_lanes = 32e6, w.l2_atomic_alike = 31e6;
  CHECK_NEAR(32e6 / time_of(&w).seconds[MACHINE_L2], 82e9, 5e9);
  w.l2_atomic_alike = 0;
  CHECK(32e6 / time_of(&w).seconds[MACHINE_L2] > 300e9);
}

TEST(scattered_reads_use_all_of_l2) {
  MachineModel m = h200();
  MachineWork w = full();
  w.l2_requests = 1e8;
  double strided = time_of(&w).seconds[MACHINE_L2];
  w.l2_scattered = 1e8;
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L2], strided * m.l2_read_rate / m.l2_scattered_rate, 1e-12);
}

TEST(mapped_memory_of_the_host_is_as_fast_as_the_link) {
  MachineModel m = h200();
  MachineWork w = full();
  w.host_read = m.host_bandwidth * m.host_share, w.host_write = w.host_read / 2; // both directions at once
  CHECK_NEAR(time_of(&w).total, 1, 1e-4);
  w.host_write = 2 * w.host_read;
  CHECK_NEAR(time_of(&w).total, 2, 1e-4);
}

TEST(atomics_on_the_hosts_memory_take_turns) {
  MachineModel m = h200();
  MachineWork w = full();
  w.host_atomics = clock_rate() / m.host_atomic_clocks;
  CHECK_NEAR(time_of(&w).total, 1, 1e-4);
}

TEST(textures_are_sampled_four_lanes_a_clock) {
  MachineWork w = full();
  w.texture_lanes = 4 * 132 * clock_rate();
  CHECK_NEAR(time_of(&w).seconds[MACHINE_L1], 1, 1e-9);
}

// One warp a scheduler: its issue slots are in its own path. With more warps they come beside it.
TEST(a_warp_alone_does_not_wait_for_its_own_slots) {
  MachineWork w = {.launches = 1, .blocks = 132, .warps_per_block = 4, .blocks_per_sm = 1, .stall = 1};
  w.issues = 132 * 4 * 1e8;
  MachineTime t = time_of(&w);
  CHECK_NEAR(t.seconds[MACHINE_ISSUE], t.seconds[MACHINE_LATENCY], 1e-5);
  CHECK_NEAR(t.total, t.seconds[MACHINE_LAUNCH] + t.seconds[MACHINE_LATENCY], 1e-5);
  w.warps_per_block = 8, w.issues *= 2, w.stall = 2;
  t = time_of(&w);
  CHECK_NEAR(t.total, t.seconds[MACHINE_LAUNCH] + t.seconds[MACHINE_LATENCY] * __builtin_sqrt(2), 1e-5);
}

TEST(what_ptxas_spills_goes_to_dram_where_l1_is_too_small) {
  MachineModel model = h200();
  double fit = model.spill_bytes / 1000; // bytes a thread with a thousand of them resident
  MachineWork w = machine_spills(&model, fit, 1000, 1000);
  CHECK_NEAR(w.issues, 2 * fit / 4 * 1000, 0);
  CHECK_NEAR(w.l2_writes, fit * 1000, 0);
  CHECK_NEAR(w.dram_read + w.dram_write, 0, 0);
  w = machine_spills(&model, 2 * fit, 1000, 1000);
  CHECK_NEAR(w.dram_write, 2 * fit * 32 * 1000 * 0.5, 1e-9);
}

TEST(what_is_unknown_of_a_gpu_is_left_out_and_said) {
  SolDevice d = *gpu("h200");
  MachineTime t;
  MachineWork w = full();
  w.l2_reads = w.load_wait_clocks = 1e9;
  d.l2_bandwidth.source = d.mem_latency.source = NULL;
  MachineModel model = machine_model(&d);
  CHECK_INT(machine_time(&model, &w, &t, NULL), SOL_OK);
  CHECK_INT(t.left_out, 1 << MACHINE_L2 | 1 << MACHINE_LATENCY);
  d.mem_bandwidth.source = NULL;
  SolError err = {0};
  CHECK_INT(machine_time(&model, &w, &t, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "memory bandwidth");
  for (int i = 0; i < sol_device_count(); i++) { // every GPU of the table has what it takes
    model = machine_model(sol_device_at(i));
    CHECK_MSG(machine_time(&model, &w, &t, &err) == SOL_OK, "%s: %s", sol_device_at(i)->id, err.message);
  }
}

// ---- the table ----

static MachineConstant constant(const char *device, const char *name) {
  MachineConstant c = {0};
  for (int i = 0; machine_constant(gpu(device), i, &c); i++)
    if (!strcmp(c.name, name)) return c;
  CHECK_MSG(false, "no constant %s", name);
  return c;
}

TEST(every_constant_has_a_value_and_a_source_on_every_gpu) {
  for (int d = 0; d < sol_device_count(); d++) {
    const SolDevice *device = sol_device_at(d);
    MachineTally t = machine_tally(device);
    MachineConstant c;
    int n = 0;
    for (; machine_constant(device, n, &c); n++) {
      CHECK_MSG(c.value > 0 && c.source && *c.source, "%s: %s", device->id, c.name);
      CHECK_MSG(c.basis != MACHINE_MEASURED || !c.from, "%s: %s", device->id, c.name);
    }
    CHECK_INT(n, t.all);
    CHECK_INT(t.of[MACHINE_PUBLISHED] + t.of[MACHINE_MEASURED] + t.of[MACHINE_COMPILER] +
                  t.of[MACHINE_ASSUMED],
              t.all);
  }
}

TEST(what_was_measured_on_another_gpu_is_assumed_from_it) {
  MachineConstant here = constant("h200", "fence_clocks"), there = constant("a100", "fence_clocks");
  CHECK(here.basis == MACHINE_MEASURED && !here.from);
  CHECK(there.basis == MACHINE_ASSUMED);
  CHECK_STR(there.from, "h200");
  CHECK_NEAR(there.value, here.value, 0);
  CHECK_INT(constant("h100", "fence_clocks").basis, MACHINE_ASSUMED); // the same architecture is another GPU
  CHECK(machine_tally(gpu("h200")).of[MACHINE_MEASURED] > 25);
  CHECK_INT(machine_tally(gpu("l4")).of[MACHINE_MEASURED], 0);
}

TEST(what_is_published_for_another_capability_is_assumed_from_it) {
  CHECK_INT(constant("a100", "special_rate").basis, MACHINE_PUBLISHED);
  CHECK_INT(constant("b200", "special_rate").basis, MACHINE_ASSUMED);
  CHECK_STR(constant("b200", "special_rate").from, "sm_90");
  CHECK_INT(constant("rtx5090", "integer_rate").basis, MACHINE_PUBLISHED);
  CHECK_NEAR(constant("l4", "convert_rate").value * 4, constant("h200", "convert_rate").value, 0);
  CHECK_NEAR(constant("b200", "convert_rate").value, constant("h200", "convert_rate").value, 0);
}

TEST(the_compilers_hold_for_every_gpu) {
  CHECK_INT(constant("l4", "guard_loads").basis, MACHINE_COMPILER);
  CHECK_STR(constant("l4", "guard_loads").from, "ptxas of CUDA 13");
}

TEST(what_nobody_measured_is_assumed_on_the_h200_too) {
  MachineConstant c = constant("h200", "issue_clocks");
  CHECK(c.basis == MACHINE_ASSUMED && !c.from && *c.source);
}

// ---- launches ----

// A kernel's own duration holds its start and end; what else a launch costs lies between kernels.
TEST(a_launch_is_a_gap_and_a_kernels_start) {
  MachineWork w = full();
  MachineModel m = h200();
  double stream = m.device->launch_us.value, graph = m.device->graph_launch_us.value;
  w.launches = 4;
  w.dram_read = 1e9;
  MachineTime t = time_of(&w);
  CHECK_NEAR(t.gap, 4 * (stream - m.kernel_start_us) * 1e-6, 1e-12);
  double busy = t.total - t.seconds[MACHINE_LAUNCH];
  CHECK_NEAR(t.total - t.gap, busy + 4 * m.kernel_start_us * 1e-6, 1e-12);
  w.graph_launches = 4;
  CHECK_NEAR(time_of(&w).gap, 4 * (graph - m.kernel_start_us) * 1e-6, 1e-12);
  w.early_launches = 4; // the start overlaps with the predecessor's end: no gap at all
  CHECK_NEAR(time_of(&w).gap, 0, 0);
}

CHECK_MAIN
