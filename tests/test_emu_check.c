// SOL_EMU_CHECK_INIT where others write a block's shared memory: blocks of its cluster, copies, atomics.
#include "emu_body.h"

typedef struct Case {
  const char *ptx, *finding; // NULL: none
} Case;

// Two blocks of a cluster. %r20: own tile's word of this thread, %r21: the same word in the other block,
// %r22: the other's rank.
#define PAIR                                                                                                 \
  "mov.u32 %r20, tile; mad.lo.u32 %r20, %t, 16, %r20; mov.u32 %r22, %cluster_ctarank; xor.b32 %r22, %r22, "  \
  "1;\n"                                                                                                     \
  "mapa.shared::cluster.u32 %r21, %r20, %r22;\n"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define READ "ld.shared.u32 %r1, [%r20]; st.global.u32 [%out], %r1;\n"
// An mbarrier behind the tile's words, of one arrival and 512 bytes.
#define BARRIER                                                                                              \
  "mov.u32 %r10, tile; setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%r10+2048], 1;\n"              \
  "fence.mbarrier_init.release.cluster;\n" MEET                                                              \
  "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r10+2048], 512;\n"
#define WAIT "wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r10+2048], 0; @!%p2 bra wait;\n"

static void check_all(const Case *cases, size_t count) {
  static uint8_t in[1024], out[1024];
  for (size_t k = 0; k < count; k++) {
    Ran r = run_body(&(Body){.ptx = cases[k].ptx,
                             .blocks = 2,
                             .cluster = 2,
                             .in = in,
                             .in_bytes = sizeof in,
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 4,
                             .checks = SOL_EMU_CHECK_INIT,
                             .keep_going = true});
    if (!cases[k].finding)
      body_ok(&r, cases[k].ptx);
    else if (CHECK_MSG(!r.status && r.findings == 1, "%s: %u findings: %s%s", cases[k].ptx, r.findings,
                       r.err.message, r.findings ? r.finding.message : "")) {
      CHECK_INT(r.finding.kind, SOL_EMU_UNINITIALISED);
      CHECK_HAS(r.finding.message, cases[k].finding);
    }
  }
}

TEST(written_by_another_block_of_the_cluster) {
  static const Case cases[] = {
      {PAIR MEET READ, "read of 4 bytes at 0x0 of shared memory"},
      {PAIR "st.shared::cluster.u32 [%r21], %t;" MEET READ, NULL},
      {PAIR "st.shared::cluster.u32 [%r21+4], %t;" MEET READ, "never written"}, // the word beside it
      // Half of the lanes; the other half reads what nobody wrote.
      {PAIR "setp.lt.u32 %p3, %t, 16; @%p3 st.shared::cluster.u32 [%r21], %t;" MEET READ,
       "at 0x100 of shared"},
      // As a generic address, and as an atomic on what its owner wrote, or did not.
      {PAIR "cvt.u64.u32 %rd1, %r21; cvta.shared.u64 %rd1, %rd1; st.u32 [%rd1], %t;" MEET READ, NULL},
      {PAIR "st.shared.u32 [%r20], %t;" MEET "red.shared::cluster.add.u32 [%r21], 1;" MEET READ, NULL},
      {PAIR "red.shared::cluster.add.u32 [%r21], 1;" MEET READ, "of the cluster, which were never written"},
      // Read by another block.
      {PAIR "st.shared.u32 [%r20], %t;" MEET
            "ld.shared::cluster.u32 %r1, [%r21]; st.global.u32 [%out], %r1;" MEET,
       NULL},
      {PAIR MEET "ld.shared::cluster.u32 %r1, [%r21]; st.global.u32 [%out], %r1;" MEET,
       "of the shared memory of block 0 of the cluster"},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

TEST(volatile_accesses) {
  static const Case cases[] = {
      {PAIR "st.volatile.shared.u32 [%r20], %t;" READ, NULL},
      {PAIR "st.relaxed.cluster.shared::cluster.u32 [%r21], %t;" MEET READ, NULL},
      {PAIR "ld.volatile.shared.u32 %r1, [%r20];", "never written"},
      {PAIR "ld.volatile.shared.u32 %r1, [%r20]; ld.volatile.shared.u32 %r1, [%r20];", "never written"},
  };
  check_all(cases, 3);
  // A load does not make it written: the second one finds it too.
  Ran r = run_body(&(Body){
      .ptx = cases[3].ptx, .blocks = 2, .cluster = 2, .checks = SOL_EMU_CHECK_INIT, .keep_going = true});
  CHECK_INT(r.findings, 2);
  CHECK_INT(r.finding.kind, SOL_EMU_UNINITIALISED);
  CHECK_INT(r.finding.times, 64);
}

TEST(written_by_copies) {
  static const Case cases[] = {
      // 512 bytes: all the words of the tile, into the own block, into the other's, into both.
      {PAIR BARRIER
       "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%base], 512, "
       "[%r10+2048];\n" WAIT READ,
       NULL},
      {PAIR BARRIER
       "mapa.shared::cluster.u32 %r11, %r10, %r22; add.u32 %r12, %r11, 2048;\n"
       "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%base], 512, "
       "[%r12];\n" WAIT READ MEET,
       NULL},
      {PAIR BARRIER
       "mov.u16 %h1, 3; setp.eq.and.u32 %p3, %r22, 1, %p1;\n"
       "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r10], "
       "[%base], 512, [%r10+2048], %h1;\n" WAIT READ MEET,
       NULL},
      // 256 of them, twice.
      {PAIR BARRIER
       "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%base], 256, "
       "[%r10+2048];\n"
       "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%base], 256, "
       "[%r10+2048];\n" WAIT READ,
       "at 0x100 of shared"},
      // From one block's shared memory to the other's: what the source never wrote is found there.
      {PAIR "st.shared.v4.u32 [%r20], {%t,%t,%t,%t};" BARRIER
            "mapa.shared::cluster.u32 %r11, %r10, %r22; add.u32 %r12, %r11, 2048; add.u32 %r11, %r11, 1024;\n"
            "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r10], "
            "512, [%r12];\n" WAIT "ld.shared.u32 %r1, [%r20+1024]; st.global.u32 [%out], %r1;\n" MEET,
       NULL},
      {PAIR BARRIER
       "mapa.shared::cluster.u32 %r11, %r10, %r22; add.u32 %r12, %r11, 2048; add.u32 %r11, %r11, 1024;\n"
       "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r10], 512, "
       "[%r12];\n" WAIT MEET,
       "read of 512 bytes at 0x0 of shared memory"},
      // Zeros; and a store that arrives at the barrier.
      {PAIR "mov.u64 %rd1, 512; setp.eq.u32 %p1, %t, 0; mov.u32 %r10, tile; @%p1 st.bulk.weak.shared::cta "
            "[%r10], %rd1, 0; bar.sync 0;\n" READ,
       NULL},
      {PAIR BARRIER "add.u32 %r12, %r10, 2048; mapa.shared::cluster.u32 %r12, %r12, %r22;\n"
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r21], "
                    "{%t,%t,%t,%t}, [%r12];\n" WAIT READ MEET,
       NULL},
  };
  check_all(cases, sizeof cases / sizeof *cases);
}

// Bulk copies to and from global memory, of which the launch's own buffer starts unwritten.
TEST(bulk_copies_and_global_memory) {
  static const char to_global[] =
      "mov.u32 %r10, tile; mad.lo.u32 %r20, %t, 16, %r10; st.shared.v4.u32 [%r20], {%t,%t,%t,%t}; bar.sync "
      "0;\n"
      "setp.eq.u32 %p1, %t, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%x], [%r10], 512;\n"
      "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0; bar.sync 0;\n"
      "mad.wide.u32 %rd1, %t, 16, %x; ld.global.u32 %r1, [%rd1]; st.global.u32 [%out], %r1;\n";
  static const char from_global[] =
      BARRIER "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%x], 512, "
              "[%r10+2048];\n" WAIT;
  for (int k = 0; k < 2; k++) {
    SolEmu *emu = NULL;
    SolError err = {0};
    uint64_t own = 0;
    uint32_t out[32] = {0};
    CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1, .track_init = true}, &emu, &err) &&
          !sol_emu_alloc(emu, 512, "own", &own, &err));
    Ran r = run_body(&(Body){.ptx = k ? from_global : to_global,
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 4,
                             .cluster = 1,
                             .x = own,
                             .checks = SOL_EMU_CHECK_INIT,
                             .keep_going = true,
                             .emu = emu});
    if (!k)
      body_ok(&r, to_global);
    else if (CHECK_MSG(r.findings == 1, "%u findings: %s%s", r.findings, r.err.message, r.finding.message))
      CHECK_HAS(r.finding.message, "read of 512 bytes at");
    sol_emu_destroy(emu);
  }
}

// One warp; %r20: this thread's word of the tile, %r21: that of the lane 31 - lane.
#define WORDS                                                                                                \
  "mov.u32 %r20, tile; mad.lo.u32 %r21, %t, -4, %r20; add.u32 %r21, %r21, 124; mad.lo.u32 %r20, %t, 4, %r20;\n"
#define SYNC_WARP "bar.warp.sync 0xffffffff;\n"
#define SWAP      "ld.shared.u32 %r1, [%r21]; st.global.u32 [%out], %r1;\n"

TEST(races_between_lanes_of_a_warp) {
  static const struct {
    const char *ptx, *finding; // NULL: none
    unsigned checks;
  } cases[] = {
      {WORDS "st.shared.u32 [%r20], %t;" SWAP, "wrote at", SOL_EMU_CHECK_RACE},
      {WORDS "st.shared.u32 [%r20], %t;" SYNC_WARP SWAP, NULL, SOL_EMU_CHECK_RACE},
      {WORDS "st.shared.u32 [%r20], %t; bar.sync 0;" SWAP, NULL, SOL_EMU_CHECK_RACE},
      // A write after others' reads; after their own.
      {WORDS "st.shared.u32 [%r20], %t;" SYNC_WARP SWAP "st.shared.u32 [%r20], %t;", "read at",
       SOL_EMU_CHECK_RACE},
      {WORDS "st.shared.u32 [%r20], %t;" SYNC_WARP SWAP SYNC_WARP "st.shared.u32 [%r20], %t;", NULL,
       SOL_EMU_CHECK_RACE},
      {WORDS "st.shared.u32 [%r20], %t; ld.shared.u32 %r1, [%r20]; st.shared.u32 [%r20], %r1;", NULL,
       SOL_EMU_CHECK_RACE},
      // Atomics and volatile accesses do not race with each other.
      {WORDS "st.shared.u32 [%r20], %t;" SYNC_WARP
             "red.shared.add.u32 [tile], 1; red.shared.add.u32 [tile], 1;",
       NULL, SOL_EMU_CHECK_RACE},
      {WORDS "st.volatile.shared.u32 [%r20], %t; ld.volatile.shared.u32 %r1, [%r21];", NULL,
       SOL_EMU_CHECK_RACE},
      // One address: one value, and several.
      {WORDS "st.shared.u32 [tile], 7;", NULL, SOL_EMU_CHECK_RACE},
      {WORDS "st.shared.u32 [tile], %t;", "lanes 0 and 1 of the warp write different values",
       SOL_EMU_CHECK_RACE},
      // Masks that leave out the caller.
      {"redux.sync.add.s32 %r1, %t, 0x7fffffff;", "leaves out the calling lanes 0x80000000",
       SOL_EMU_CHECK_SYNC},
      {"redux.sync.add.s32 %r1, %t, 0xffffffff;", NULL, SOL_EMU_CHECK_SYNC},
      {"vote.sync.ballot.b32 %r1, 1, 0xfffffffe;", "leaves out the calling lanes 0x00000001",
       SOL_EMU_CHECK_SYNC},
      {"shfl.sync.idx.b32 %r1, %t, 4, 31, 0xffff;", "leaves out the calling lanes 0xffff0000",
       SOL_EMU_CHECK_SYNC},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    static uint8_t out[1024];
    Ran r = run_body(&(Body){.ptx = cases[k].ptx,
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 4,
                             .checks = cases[k].checks,
                             .keep_going = true});
    if (!cases[k].finding)
      CHECK_MSG(!r.status && !r.findings, "%s: %s%s", cases[k].ptx, r.err.message, r.finding.message);
    else if (CHECK_MSG(!r.status && r.findings > 0, "%s: no finding %s", cases[k].ptx, r.err.message))
      CHECK_HAS(r.finding.message, cases[k].finding);
  }
}

CHECK_MAIN
