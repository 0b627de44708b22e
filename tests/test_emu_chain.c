// The longest chain of a block (src/emu/watch/chain.c): one warp's work between barriers, and the waits on the way.
#include "observe_rig.h"

#include "machine/machine.h"

enum { HEAD = 8, RET = 1 }; // instructions of observe_rig.h

static SolEmuChain chain_of(const Job *job) {
  Seen s;
  see(job, &s);
  SolEmuChain c = s.r.chain;
  done(&s);
  return c;
}

static void check(const char *what, double is, double should) {
  CHECK_MSG(fabs(is - should) < 1e-9, "%s: %g, not %g", what, is, should);
}

#define LOOP(times, body)                                                                                    \
  "mov.u32 %r1, 0;\nagain: " body "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, " #times "; @%p1 bra again;\n"

// Four warps of which the last works 100 turns while the others wait at the barrier: the chain is its.
TEST(the_warp_that_works_is_the_chain) {
  SolEmuChain c = chain_of(
      &(Job){.threads = 128,
             .blocks = 8,
             .body = "setp.lt.u32 %p2, %t, 96; @%p2 bra rest;\n" LOOP(100, "") "rest: bar.sync 0;\n"});
  check("issues", c.issues, 8 * (HEAD + 2 + 1 + 300 + 1 + RET));
  check("barriers", c.barriers, 8);
  check("waits", c.l1_waits + c.far_waits + c.shared_waits, 0);
}

// Each warp has its turn, one after the other: four times the work, though each does it once.
TEST(turns_between_barriers_add_up) {
  SolEmuChain c = chain_of(&(Job){.threads = 128,
                                  .body = "shr.u32 %r3, %t, 5; mov.u32 %r2, 0;\n"
                                          "turn: setp.ne.u32 %p2, %r2, %r3; @%p2 bra rest;\n" LOOP(
                                              50, "") "rest: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 "
                                                      "%p3, %r2, 4; @%p3 bra turn;\n"});
  check("issues", c.issues, 16 * (HEAD + 2 + 4 * (2 + 1 + 150 + 1 + 3) + RET));
  check("barriers", c.barriers, 16 * 4);
}

// Warps that do not meet do not wait for each other: the longest alone counts, and nothing of the others.
TEST(without_a_barrier_the_longest_counts) {
  SolEmuChain c = chain_of(
      &(Job){.threads = 64, .body = "setp.lt.u32 %p2, %t, 32; @%p2 bra rest;\n" LOOP(10, "") "rest:\n"});
  check("issues", c.issues, 16 * (HEAD + 2 + 1 + 30 + RET));
  check("barriers", c.barriers, 0);
}

// The first of two warps arrives and goes on; the second waits for it. What the first does afterwards is not
// on the second's way.
TEST(who_arrives_is_waited_for_and_waits_for_nobody) {
  static const char body[] = "setp.ge.u32 %p2, %t, 32; @%p2 bra second;\n" LOOP(
      10, "") "bar.arrive 1, 64;\nmov.u32 %r1, 0;\nmore: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 "
              "bra more;\nret;\nsecond: bar.sync 1, 64;\n";
  SolEmuChain c = chain_of(&(Job){.threads = 64, .body = body});
  // First: 2 + 31 + arrive + 1 + 9 + ret and no barrier; second: 2 + 31 + arrive, a barrier's 30 clocks, ret.
  check("issues", c.issues, 16 * (HEAD + 2 + 31 + 1 + RET));
  check("barriers", c.barriers, 16);
}

// Both blocks of a cluster go on with the chain of the one that came last, also where the other had arrived
// long before it waits.
TEST(blocks_of_a_cluster_wait_for_each_other) {
  static const char body[] = "mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p2, %r5, 0; @%p2 bra rest;\n" LOOP(
      100, "") "rest: barrier.cluster.arrive; barrier.cluster.wait;\n";
  SolEmuChain c = chain_of(&(Job){.threads = 32, .cluster = 2, .body = body});
  // Of rank 0: all of it; of rank 1: what rank 0 had done when it arrived, then the wait's return.
  double to_arrive = HEAD + 3 + 1 + 300 + 1;
  check("issues", c.issues, 8 * (2 * to_arrive + 1 + RET + RET));
  check("barriers", c.barriers, 0);
  check("cluster_barriers", c.cluster_barriers, 16);
}

// Block 0 works and sets a flag, for which block 1 polls: its chain is block 0's, then what it does itself. Polls in vain are
// counted a few times, however long they take.
TEST(blocks_that_poll_wait_for_the_one_that_writes) {
  static const char body[] = "mov.u32 %r5, 1; setp.ne.u32 %p2, %b, 1; @%p2 bra wait;\n" LOOP(
      5000, "") "st.volatile.global.u32 [%out], %r5; bra end;\n"
                "wait: ld.volatile.global.u32 %r2, [%out]; setp.eq.u32 %p3, %r2, 0; @%p3 bra wait;\nend:\n";
  Seen s;
  run(&(Job){.threads = 32, .blocks = 2, .body = body}, &s);
  double writes = HEAD + 3 + 1 + 15000 + 1;
  CHECK_INT(s.r.end, SOL_EMU_DONE);
  CHECK_MSG(s.r.chain.issues >= 2 * writes && s.r.chain.issues < 2 * writes + 20, "%g", s.r.chain.issues);
  uint64_t polls = inst(&s, "ld.volatile", 0)->counts.executions;
  CHECK_MSG(polls >= 1 && polls <= 4, "%llu", (unsigned long long)polls);
  done(&s);
}

// The same through shared memory, from warp to warp: it is seen later than it was stored.
TEST(warps_that_poll_shared_memory_wait_for_the_one_that_writes) {
  static const char body[] =
      "mov.u32 %r5, 1; mov.u32 %r6, tile; setp.lt.u32 %p2, %t, 32; @%p2 bra wait;\n" LOOP(
          5000,
          "") "st.volatile.shared.u32 [%r6], %r5; bra end;\n"
              "wait: ld.volatile.shared.u32 %r2, [%r6]; setp.eq.u32 %p3, %r2, 0; @%p3 bra wait;\nend:\n";
  Seen s;
  run(&(Job){.threads = 64, .blocks = 1, .body = body}, &s);
  const SolEmuMachine *m = sol_emu_machine(s.emu);
  CHECK_INT(s.r.end, SOL_EMU_DONE);
  CHECK(s.r.chain.issues >= 15000);
  CHECK_NEAR(s.r.chain.sleeps, m->hand_near_clocks + 2 * m->hand_near_warp_clocks, 0);
  done(&s);
}

// The same with a barrier in the loop, where other warps of the block have work; and with a count of tries, if they sleep.
TEST(polls_between_barriers_and_sleeps_are_no_work) {
  static const char *const bodies[] = {
      "setp.ne.u32 %p2, %b, 1; mov.u32 %r5, 1; @%p2 bra wait;\n" LOOP(
          5000,
          "") "st.volatile.global.u32 [%out], %r5; bra end;\n"
              "wait: ld.volatile.global.u32 %r2, [%out]; bar.sync 0; setp.eq.u32 %p3, %r2, 0; @%p3 bra wait;\nend:\n",
      "setp.ne.u32 %p2, %b, 1; mov.u32 %r5, 1; @%p2 bra wait;\n" LOOP(
          5000,
          "") "st.volatile.global.u32 [%out], %r5; bra end;\n"
              "wait: nanosleep.u32 100; add.u32 %r6, %r6, 1; ld.volatile.global.u32 %r2, [%out]; setp.eq.u32 %p3, %r2, 0; "
              "@%p3 bra wait;\nend:\n"};
  for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
    Seen s;
    run(&(Job){.threads = 64, .blocks = 2, .body = bodies[k]}, &s);
    CHECK_INT(s.r.end, SOL_EMU_DONE);
    uint64_t polls = inst(&s, "ld.volatile", 0)->counts.executions;
    CHECK_MSG(polls >= 2 && polls <= 8, "%s: %llu", bodies[k], (unsigned long long)polls);
    done(&s);
  }
}

// A loop that waits behind another volatile load: the polls in vain are found all the same.
TEST(polls_behind_another_volatile_load_are_no_work) {
  static const char body[] =
      "ld.volatile.global.u32 %r7, [%in]; mov.u32 %r5, 1; setp.ne.u32 %p2, %b, 1; @%p2 bra wait;\n" LOOP(
          5000,
          "") "st.volatile.global.u32 [%out], %r5; bra end;\n"
              "wait: ld.volatile.global.u32 %r2, [%out]; setp.eq.u32 %p3, %r2, 0; @%p3 bra wait;\nend:\n";
  Seen s;
  run(&(Job){.threads = 32, .blocks = 2, .body = body}, &s);
  uint64_t polls = inst(&s, "ld.volatile", 1)->counts.executions;
  CHECK_MSG(polls >= 1 && polls <= 8, "%llu", (unsigned long long)polls);
  done(&s);
}

// Blocks take items of 300 instructions from a counter: each its share, not the first one all of them.
TEST(blocks_take_their_work_as_they_come) {
  static const char body[] =
      "take: atom.global.add.u32 %r2, [%out], 1; setp.ge.u32 %p2, %r2, 160; @%p2 bra end;\n" LOOP(
          100, "") "bra take;\nend:\n";
  Seen s;
  run(&(Job){.threads = 1, .blocks = 16, .body = body}, &s);
  CHECK_INT(s.r.end, SOL_EMU_DONE);
  CHECK_MSG(s.r.balance.longest < 1.5, "%g", s.r.balance.longest);
  done(&s);
}

// A barrier by hand: blocks add one and poll until all have. Many meet later than two: the last one's poll may have just missed it.
TEST(many_that_meet_wait_longer_than_two) {
  static const char body[] =
      "mov.u32 %r3, 0;\nnext: add.u32 %r3, %r3, %n; red.global.add.u32 [%out], 1;\n"
      "wait: ld.volatile.global.u32 %r2, [%out]; setp.lt.u32 %p1, %r2, %r3; @%p1 bra wait;\n"
      "mul.lo.u32 %r4, %n, 10; setp.lt.u32 %p2, %r3, %r4; @%p2 bra next;\n";
  double waits[2];
  for (int k = 0; k < 2; k++) {
    uint32_t blocks = k ? 8 : 2;
    Seen s;
    run(&(Job){.threads = 1, .blocks = blocks, .body = body, .n = blocks}, &s);
    CHECK_INT(s.r.end, SOL_EMU_DONE);
    waits[k] = s.r.chain.far_waits / blocks / 10; // of a block and a round
    done(&s);
  }
  CHECK_MSG(waits[0] >= 1 && waits[0] < 2, "%g", waits[0]);
  CHECK_MSG(waits[1] > waits[0] + 1 && waits[1] < waits[0] + 2, "%g and %g", waits[0], waits[1]);
}

// Volatile loads that go through memory are no spinning: each is waited for, four turns of the loop together.
TEST(volatile_loads_of_many_words_are_work) {
  SolEmuChain c = chain_of(&(Job){
      .threads = 1,
      .blocks = 1,
      .body = "mov.u64 %rd2, %in;\n" LOOP(
          500, "ld.volatile.global.u32 %r2, [%rd2]; add.u32 %r3, %r3, %r2; add.u64 %rd2, %rd2, 4;\n")});
  CHECK_MSG(c.far_waits + c.l1_waits > 490 / 4.0, "%g", c.far_waits + c.l1_waits);
}

// A warp sleeps as long as the lane that sleeps longest, each time, rounded up to a power of two of nanoseconds.
TEST(sleeping_takes_time) {
  const double clock = 1.755e9;
  SolEmuChain c =
      chain_of(&(Job){.threads = 32,
                      .blocks = 4,
                      .body = "mul.lo.u32 %r1, %l, 100; nanosleep.u32 %r1; nanosleep.u32 500;\n"});
  CHECK_NEAR(c.sleeps, 4 * (4096e-9 + 512e-9) * clock, 16);
}

// A loop that reads one address again and again, and counts, does work.
TEST(repeated_loads_with_a_count_are_work) {
  Seen s;
  run(&(Job){.threads = 32, .blocks = 1, .body = LOOP(1000, "ld.volatile.global.u32 %r2, [%in];")}, &s);
  CHECK_INT(inst(&s, "ld.volatile", 0)->counts.executions, 1000);
  done(&s);
}

// Lanes of float atomics at one address of shared memory take turns, those of all warps of the block; at addresses of their own
// the warps do not wait for each other.
TEST(float_atomics_on_one_address_take_turns) {
  static const char body[] =
      "mov.u32 %r2, tile; shr.u32 %r3, %t, 5; mul.lo.u32 %r3, %r3, %n; add.u32 %r2, %r2, %r3;\n"
      "mov.f32 %f1, 0f3f800000; atom.shared.add.f32 %f2, [%r2], %f1; bar.sync 0;\n";
  const SolDevice *device = NULL;
  if (sol_device_find("h200", &device, NULL)) exit(1);
  MachineModel m = machine_model(device);
  double shared = device->smem_latency.value;
  for (uint32_t apart = 0; apart <= 128; apart += 128) {
    SolEmuChain c = chain_of(&(Job){.threads = 256, .body = body, .n = apart});
    double own = 32 * m.shared_swap_clocks, all = 256 * m.shared_contended_clocks, turns = apart ? own : all;
    double is = (c.shared_waits / 16 - 1 / m.near_in_flight) * shared;
    CHECK_MSG(fabs(is - turns) < 0.02 * turns, "%u apart: %g, not %g", apart, is, turns);
  }
}

// A fence waits; for stores on their way, too, which no barrier does. Those of shared memory, and of the
// block's scope alone, do not. To arrive at a cluster's barrier is a fence unless it is relaxed.
TEST(fences_wait) {
  static const struct {
    const char *body;
    double fences, store_fences, cluster_barriers;
  } cases[] = {
      {"membar.gl;", 1, 0, 0},
      {"fence.acq_rel.gpu; fence.sc.sys;", 2, 0, 0},
      {"membar.cta; fence.acq_rel.cta;", 0, 0, 0},
      {OWN "st.global.f32 [%rd3], %f1; membar.gl; membar.gl;", 2, 1, 0},
      {OWN "st.global.f32 [%rd3], %f1; bar.sync 0; membar.gl;", 1, 1, 0},
      {"mov.u32 %r1, tile; st.shared.u32 [%r1], %r1; membar.gl;", 1, 0, 0},
      {"barrier.cluster.arrive; barrier.cluster.wait;", 1, 0, 1},
      {OWN "st.global.f32 [%rd3], %f1; barrier.cluster.arrive.release; barrier.cluster.wait;", 1, 1, 1},
      {OWN "st.global.f32 [%rd3], %f1; barrier.cluster.arrive.relaxed; barrier.cluster.wait;", 0, 0, 1},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    SolEmuChain c = chain_of(&(Job){.blocks = 4, .threads = 32, .cluster = 2, .body = cases[k].body});
    CHECK_MSG(fabs(c.fences - 4 * cases[k].fences) + fabs(c.store_fences - 4 * cases[k].store_fences) +
                      fabs(c.cluster_barriers - 4 * cases[k].cluster_barriers) <
                  1e-9,
              "%s: %g, %g and %g", cases[k].body, c.fences / 4, c.store_fences / 4, c.cluster_barriers / 4);
  }
}

// Each block reads its own word through the cluster's window, then its neighbour's.
TEST(shared_memory_of_others_is_waited_for) {
  static const char body[] =
      "mov.u32 %r2, tile; st.shared.u32 [%r2], %t; barrier.cluster.arrive.relaxed; barrier.cluster.wait; "
      "mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, WHOSE; mapa.shared::cluster.u32 %r3, %r2, %r5; "
      "cvt.u64.u32 %rd1, %r3; cvta.shared::cluster.u64 %rd1, %rd1; ld.u32 %r4, [%rd1]; add.u32 %r4, %r4, 1; "
      "barrier.cluster.arrive.relaxed; barrier.cluster.wait;";
  for (int other = 0; other < 2; other++) {
    char text[sizeof body];
    memcpy(text, body, sizeof body);
    memcpy(strstr(text, "WHOSE"), other ? "1    " : "0    ", 5); // NOLINT: in the middle of a text
    SolEmuChain c = chain_of(&(Job){.blocks = 4, .threads = 32, .cluster = 2, .body = text});
    check("others'", c.other_waits, other ? 4 : 0);
    check("own", c.shared_waits, other ? 0 : 1);
  }
}

// A wait goes beyond L1 the first time a line is asked for, and not the second; loads in flight together are
// one wait, beyond L1 if one of them is.
TEST(waits_by_where_loads_are_answered) {
  static const struct {
    const char *body;
    double l1, far, shared; // of a block of one warp
  } cases[] = {
      {OWN "ld.global.f32 %f1, [%rd2]; add.f32 %f2, %f1, %f1;", 0, 1, 0},
      {OWN "ld.global.f32 %f1, [%rd2]; add.f32 %f2, %f1, %f1; bar.warp.sync -1; st.global.f32 [%rd3], %f2; "
           "ld.global.f32 %f1, [%rd2]; add.f32 %f2, %f1, %f1;",
       1, 1, 0},
      {OWN "ld.global.f32 %f1, [%rd2]; ld.global.f32 %f2, [%rd2+4096]; add.f32 %f3, %f1, %f2;", 0, 1, 0},
      {OWN LOOP(10, "ld.global.f32 %f1, [%rd2]; add.f32 %f9, %f9, %f1; "), 2.25, 0.25,
       0}, // four turns together
      {OWN LOOP(10, "ld.global.cg.f32 %f1, [%rd2]; add.f32 %f9, %f9, %f1; "), 0, 2.5, 0}, // L2's
      {OWN LOOP(10, "atom.global.add.u32 %r4, [%rd2], 1; add.u32 %r5, %r5, %r4; "), 0, 10, 0},
      {OWN LOOP(10, "red.global.add.u32 [%rd2], 1; "), 0, 0, 0},
      // On the side of a branch that no warp takes: nothing is on its way.
      {OWN "setp.eq.u32 %p1, %n, 1; @!%p1 bra over; ld.global.f32 %f1, [%rd2]; over: add.f32 %f2, %f1, %f1;",
       0, 0, 0},
      // Under guards that none or one of which the warp has: a wait where what they computed is needed.
      {OWN
       "setp.eq.u32 %p1, %n, 0; @%p1 bra x; ld.global.f32 %f1, [%rd2]; add.f32 %f9, %f9, %f1;\nx: "
       "@!%p1 bra y; ld.global.f32 %f1, [%rd2+4096]; add.f32 %f9, %f9, %f1;\ny: st.global.f32 [%rd3], %f9;",
       0, 1, 0},
      {OWN
       "setp.eq.u32 %p1, %n, 0; @%p1 bra x; ld.global.f32 %f1, [%rd2]; add.f32 %f9, %f9, %f1;\nx: "
       "@%p1 bra y; ld.global.f32 %f1, [%rd2+4096]; add.f32 %f9, %f9, %f1;\ny: st.global.f32 [%rd3], %f9;",
       0, 0, 0},
      {"mov.u32 %r2, tile;\n" LOOP(8, "ld.shared.u32 %r3, [%r2]; "), 0, 0, 2},
      {"mov.u32 %r2, tile;\n" LOOP(8, "st.shared.u32 [%r2], %r2; "), 0, 0, 0},
      {LOOP(5, "shfl.sync.bfly.b32 %r2, %r2, 1, 31, -1; "), 0, 0, 5},
      // Two groups stay open: a third of a wait.
      {OWN "mov.u32 %r2, tile; cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.commit_group; "
           "cp.async.wait_group 2;",
       0, 1. / 3, 0},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    SolEmuChain c = chain_of(&(Job){.blocks = 4, .threads = 32, .body = cases[k].body});
    CHECK_MSG(fabs(c.l1_waits - 4 * cases[k].l1) + fabs(c.far_waits - 4 * cases[k].far) +
                      fabs(c.shared_waits - 4 * cases[k].shared) <
                  1e-9,
              "%s: %g, %g and %g", cases[k].body, c.l1_waits / 4, c.far_waits / 4, c.shared_waits / 4);
  }
}

// Local memory: four loads are a wait.
TEST(waits_for_local_memory) {
  SolEmuChain c = chain_of(
      &(Job){.blocks = 1,
             .threads = 32,
             .body = ".local .align 4 .b8 own[64]; mov.u32 %r2, own; st.local.u32 [%r2], %r2;\n" LOOP(
                 8, "ld.local.u32 %r3, [%r2]; ")});
  check("near", c.l1_waits, 2);
  check("far", c.far_waits, 0);
}

// One warp polls until the other has arrived: the polls that find nothing are not waits.
TEST(polls_of_an_mbarrier) {
  static const char body[] =
      "mov.u32 %r2, tile; setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;\n"
      "setp.lt.u32 %p2, %t, 32; @%p2 bra first;\n"
      "poll: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra poll; ret;\n"
      "first: setp.ne.u32 %p4, %t, 0;\n" LOOP(10000, "") "@!%p4 mbarrier.arrive.shared.b64 _, [%r2];\n";
  SolEmuChain c = chain_of(&(Job){.threads = 64, .blocks = 1, .body = body});
  CHECK_MSG(c.shared_waits <= 1 && c.far_waits == 0, "%g and %g", c.shared_waits, c.far_waits);
}

// Launches add up, and what a sample of the blocks did is that of those alone.
TEST(chains_of_launches_add_up) {
  SolEmuChain one = chain_of(&(Job){.body = OWN LOOP(10, "")});
  SolEmuChain two = chain_of(&(Job){.body = OWN LOOP(10, ""), .launches = 2});
  SolEmuChain part = chain_of(&(Job){.body = OWN LOOP(10, ""), .waves = 1});
  check("two", two.issues, 2 * one.issues);
  check("half", part.issues, one.issues / 2); // 8 of 16 blocks: 4 SMs hold 2
}

CHECK_MAIN
