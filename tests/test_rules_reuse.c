// The rules about bytes that are moved more than once, on made-up kernels.
#include "rules_rig.h"

// Two kernels, the second reading what the first wrote. `mixes`: neither lets a thread's value alone;
// `scatters`: the second reads it in another order.
static bool round_trip(bool mixes, bool scatters) {
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 4, 4)->pattern.allocation = 4 * BUFFER;
  rig.touches[0].address = 4 * BUFFER;
  AuditInst *barrier = add_shared(&rig, SOL_EMU_KIND_OTHER, "bar.sync 0;", 0, 0, 0);
  barrier->barrier = true;
  barrier->counts = (SolEmuCounts){.executions = mixes ? WARPS : 0};
  CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
  rig.launch.name = "reader";
  rig.launch.inst_count = rig.launch.touch_count = 0;
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  in->pattern.allocation = rig.touches[0].address = 4 * BUFFER;
  if (scatters) in->pattern.contiguous = in->pattern.strided = 0, in->pattern.scattered = WARPS;
  rig.launch.inst_count = 2; // the barrier again
  rig_finish(&rig);
  CHECK_INT(rig.program.kernel_count, 2);
  const AuditFinding *f = find(&rig.program.kernels[1], "round_trip");
  bool found = f != NULL;
  if (f) CHECK(f->gain > 1.5);
  audit_free(&rig.program);
  return found;
}

TEST(what_cannot_be_fused_is_left_alone) {
  CHECK(round_trip(false, false));
  CHECK(!round_trip(true, false));
  CHECK(!round_trip(false, true));
}

TEST(two_operands_are_one_finding) {
  for (int walk = 0; walk < 2; walk++) {
    Rig rig;
    rig_start(&rig);
    for (uint32_t i = 0; i < 2; i++) {
      AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, walk ? 32 : 4, walk ? 4096 : 4);
      in->line = 10 + i;
      if (!walk) rig.touches[i].read = rig.touches[i].read_first /= 64, rig.touches[i].read_sectors /= 64;
    }
    rig.launch.flight = (SolEmuFlight){.loads = WARPS * 2, .bytes = WARPS * 256, .waits = WARPS / 8.0};
    const AuditKernel *k = rig_finish(&rig);
    uint32_t found = 0;
    for (uint32_t i = 0; i < k->finding_count; i++)
      found += strcmp(k->findings[i].rule, walk ? "column_walk" : "reread") == 0;
    CHECK_MSG(found == 1, "walk %d: %u, bound by %s", walk, found, machine_resource_name(k->time.bound));
    audit_free(&rig.program);
  }
}

// A sum kept in global memory; kernels whose blocks meet may read the bytes between two stores.
TEST(bytes_that_are_stored_again_and_again) {
  // Stored 64 times; once; 64 times and read, with barriers; 64 times, in passes; by all threads in the same 4 KiB.
  for (int which = 0; which < 5; which++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *store = add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 4, 4);
    AuditTouch *t = &rig.touches[0];
    if (which != 1) t->written /= 64, t->written_sectors /= 64, t->bytes /= 64;
    if (which == 2) {
      AuditInst *load = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
      AuditInst *barrier = add_shared(&rig, SOL_EMU_KIND_OTHER, "bar.sync 0;", 0, 0, 0);
      load->pattern.allocation = store->pattern.allocation;
      rig.launch.touch_count = 1, t->read = t->written;
      barrier->barrier = true, barrier->counts = (SolEmuCounts){.executions = WARPS};
    }
    if (which == 4) t->written = 4096, t->written_sectors = 128;
    if (which >= 3) store->pattern.step = 8, store->pattern.steps = store->pattern.step_times = WARPS - 64;
    const AuditFinding *f = find(rig_finish(&rig), "rewrite");
    CHECK_MSG((f != NULL) == (which == 0 || which >= 3), "case %d", which);
    if (f && which < 4) CHECK_HAS(f->message, "stored 64 times");
    if (f)
      CHECK_HAS(f->fix, which == 0 ? "in a register until" : which == 3 ? "shared memory" : "Many threads");
    audit_free(&rig.program);
  }
}

// A search that sets a flag: its loads wait for no store of the turn before, as those of a sum in global memory do.
TEST(a_flag_that_many_set_makes_no_load_wait) {
  double gains[2];
  for (int flag = 0; flag < 2; flag++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *store = add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 1, 4);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    rig.launch.grid[0] = 132, rig.launch.blocks = 132, rig.launch.flight.waits = WARPS * 8.0;
    AuditTouch *t = &rig.touches[0];
    t->written = flag ? 4 : 132 * 256 * 4, t->written_sectors = t->written / 32,
    t->bytes = (uint64_t)t->written;
    store->counts.dram_write = 0;
    const AuditFinding *f = find(rig_finish(&rig), "rewrite");
    gains[flag] = f ? f->gain : 1;
    audit_free(&rig.program);
  }
  CHECK_MSG(gains[0] > 1.5 && gains[1] < 1.2, "%g of a value, %g of a flag", gains[0], gains[1]);
}

// Windows that slide over an array start off a sector: that is no waste of its own, and they read the same bytes again.
TEST(a_sliding_window_reads_again) {
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 5, 4);
  in->pattern.misaligned = WARPS;
  AuditTouch *t = &rig.touches[0];
  t->read = t->read_first /= 64, t->read_sectors /= 64, t->bytes /= 64;
  in->counts.l2_hits = in->counts.l2_misses, in->counts.l2_misses = 0, in->counts.dram_read = 0;
  CHECK(finds(&rig, "reread"));
  audit_free(&rig.program);
}

TEST(what_many_launches_read_is_not_fused_into_them) {
  for (int times = 1; times < 20; times += 18) {
    Rig rig;
    rig_start(&rig);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 4, 4)->pattern.allocation = 4 * BUFFER;
    rig.touches[0].address = 4 * BUFFER;
    CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
    rig.launch.name = "reader";
    rig.launch.inst_count = rig.launch.touch_count = 0;
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4)->pattern.allocation = 4 * BUFFER;
    rig.touches[0].address = 4 * BUFFER;
    for (int i = 1; i < times; i++) CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
    rig_finish(&rig);
    CHECK_MSG((find(&rig.program.kernels[1], "round_trip") != NULL) == (times == 1), "%d times", times);
    audit_free(&rig.program);
  }
}

// Two kernels of which the second reads what the first wrote.
typedef enum Pair {
  ALIKE,
  SUM,    // and a few bytes that all of the first made
  SEARCH, // and an array of which each thread reads the elements of others
  FEW,    // the second has one block alone
  LONG    // the first has a block that takes long
} Pair;

static const AuditFinding *fuse(Rig *rig, Pair pair) {
  rig_start(rig);
  for (int reader = 0; reader < 2; reader++) {
    SolEmuKind kind = reader ? SOL_EMU_KIND_GLOBAL_LOAD : SOL_EMU_KIND_GLOBAL_STORE;
    if (reader) CHECK_INT(audit_add(&rig->program, &rig->launch, NULL), SOL_OK);
    rig->launch.name = reader ? "reader" : "writer";
    rig->launch.inst_count = rig->launch.touch_count = 0;
    add_access(rig, kind, 4, 4)->pattern.allocation = 4 * BUFFER;
    rig->touches[0].address = 4 * BUFFER;
    if (pair == SUM) {
      rig->touches[1] = (AuditTouch){.address = 8 * BUFFER, .bytes = 4, .label = "sum", .launches = 1};
      rig->touches[1].written = reader ? 0 : 4;
      rig->touches[1].read_first = rig->touches[1].read = reader ? 4 : 0;
      rig->launch.touch_count = 2;
    }
    if (pair == SEARCH) {
      add_access(rig, kind, 4, 4)->pattern.allocation = 8 * BUFFER;
      rig->touches[1].address = 8 * BUFFER, rig->touches[1].label = "table";
      if (reader) rig->insts[1].counts.bytes *= 8, rig->insts[1].counts.requests *= 8;
    }
    if (pair == LONG && !reader) add_access(rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    rig->launch.chain = (SolEmuChain){.issues = pair == LONG && !reader ? 1e8 : 0};
    if (reader && pair == FEW) rig->launch.grid[0] = 1, rig->launch.blocks = 1;
  }
  rig_finish(rig);
  return find(&rig->program.kernels[1], "round_trip");
}

TEST(kernels_are_fused_neither_over_a_result_of_all_nor_into_a_small_grid) {
  for (Pair pair = ALIKE; pair <= FEW; pair++) {
    Rig rig;
    CHECK_MSG((fuse(&rig, pair) != NULL) == (pair == ALIKE), "pair %d", pair);
    audit_free(&rig.program);
  }
}

TEST(fused_kernels_wait_for_the_longest_path_of_both) {
  Rig rig;
  const AuditFinding *f = fuse(&rig, LONG);
  CHECK(rig.program.kernels[0].time.total > 4 * rig.program.kernels[1].time.total);
  CHECK(!f || f->saved < 2 * rig.program.kernels[1].time.total);
  audit_free(&rig.program);
}

CHECK_MAIN
