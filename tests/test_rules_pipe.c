// The rules about instructions that are serialised, idle or needless, on made-up kernels.
#include "rules_rig.h"

TEST(padding_is_named_in_elements) {
  Rig rig;
  rig_start(&rig);
  add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.v2.f32 {%f1, %f2}, [%r1];", 32, 256, 8);
  const AuditFinding *f = find(rig_finish(&rig), "bank_conflict");
  if (CHECK(f)) {
    CHECK_HAS(f->message, "32.0 wavefronts where 2.0");
    CHECK_HAS(f->fix, "by 8 bytes, to 264");
    CHECK_HAS(f->fix, "[33] instead of [32]");
    CHECK_HAS(f->fix, "r % 16");
  }
  audit_free(&rig.program);
}

// Rows of 17 elements already, walked from corner to corner.
TEST(a_diagonal_needs_a_column_more_than_its_rows_have) {
  Rig rig;
  rig_start(&rig);
  add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.u32 %r2, [%r1];", 16, -64, 4);
  const AuditFinding *f = find(rig_finish(&rig), "bank_conflict");
  if (CHECK(f)) {
    CHECK_HAS(f->fix, "so that they are 68 bytes apart");
    CHECK(!strstr(f->fix, "[17]"));
  }
  audit_free(&rig.program);
}

TEST(rows_that_conflict_in_banks_are_not_a_stride) {
  // 16 lanes of one row and 16 of the next, 4 bytes apart: padding each row by an element would not do.
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.f32 %f1, [%r1];", 16, 4, 4);
  in->pattern.rows = in->pattern.strided;
  const AuditFinding *f = find(rig_finish(&rig), "bank_conflict");
  if (CHECK(f)) {
    CHECK_HAS(f->fix, "parts of several rows");
    CHECK(!strstr(f->fix, "[2] in place of [1]"));
  }
  audit_free(&rig.program);
}

TEST(elements_of_a_thread_are_no_row) {
  // A thread's eight elements side by side, each loaded by itself: 32 bytes from lane to lane.
  Rig rig;
  rig_start(&rig);
  for (int i = 0; i < 8; i++)
    add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.f32 %f1, [%r1];", 4, 32, 4)->offset = 4 * i;
  const AuditFinding *f = find(rig_finish(&rig), "bank_conflict");
  if (CHECK(f)) CHECK_HAS(f->fix, "Each thread takes 32 bytes side by side");
  audit_free(&rig.program);
}

TEST(rows_of_ldmatrix_are_padded) {
  // Eight rows of 16 bytes, 32 bytes apart, then the eight beside them.
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD,
                             "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {...}, [%r1];", 8, 32, 16);
  in->pattern.rows = in->pattern.strided;
  const AuditFinding *f = find(rig_finish(&rig), "bank_conflict");
  if (CHECK(f)) CHECK_HAS(f->fix, "Pad rows by 16 bytes, to 48");
  audit_free(&rig.program);
}

TEST(values_for_others_are_no_detour) {
  // The load reads where its own thread wrote; then, one element further on.
  for (int other = 0; other < 2; other++) {
    Rig rig;
    rig_start(&rig);
    add_shared(&rig, SOL_EMU_KIND_SHARED_STORE, "st.shared.f32 [%r1], %f1;", 1, 4, 4);
    add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.f32 %f2, [%r1];", 1, 4, 4)->offset = other * 4;
    CHECK_MSG(finds(&rig, "shared_detour") == (other == 0), "other %d", other);
    audit_free(&rig.program);
  }
}

TEST(idle_lanes_of_short_blocks_are_not_divergence) {
  // Blocks of 48 threads have half a warp idle whatever they do; the same lanes in whole warps have parted.
  for (int parted = 0; parted < 2; parted++) {
    Rig rig;
    rig_start(&rig);
    rig.launch.block[0] = parted ? 64 : 48;
    AuditInst *branch = add_shared(&rig, SOL_EMU_KIND_OTHER, "@%p1 bra L;", 0, 0, 0);
    branch->branch = true;
    branch->counts = (SolEmuCounts){.executions = WARPS, .lanes = WARPS * 24, .divergent = 1};
    AuditInst *in = add_shared(&rig, SOL_EMU_KIND_OTHER, "fma.rn.f32 %f1, %f1, %f1, %f1;", 0, 0, 0);
    in->unit = SOL_EMU_CLASS_FLOAT;
    in->counts = (SolEmuCounts){.executions = (uint64_t)WARPS * 4096, .lanes = (uint64_t)WARPS * 4096 * 24};
    CHECK_MSG(finds(&rig, "divergence") == (parted == 1), "parted %d", parted);
    audit_free(&rig.program);
  }
}

TEST(spills_that_the_ptx_does_not_show) {
  for (int arrays = 0; arrays < 3; arrays++) { // the last is rounded up to the stack's steps of 8 bytes
    Rig rig;
    rig_start(&rig);
    rig.launch.stack_bytes = 512;
    rig.launch.local_array_bytes = arrays == 2 ? 508 : arrays ? 512 : 0;
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    const AuditFinding *f = find(rig_finish(&rig), "spill");
    CHECK_MSG((f != NULL) == (arrays == 0), "arrays %d", arrays);
    if (f) CHECK_HAS(f->message, "512 bytes a thread");
    audit_free(&rig.program);
  }
}

// Reducing large angles takes an array and a table of the math library: neither is the program's to index or to keep.
TEST(large_angles_are_told_from_spills) {
  for (int angles = 0; angles < 2; angles++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_LOCAL_LOAD, 16, 64);
    in->counts.l1_misses = in->counts.l2_misses = (uint64_t)WARPS * 16;
    rig.touches[0].label = angles ? "__cudart_i2opi_f" : "table";
    rig.launch.local_array_bytes = 28;
    const AuditFinding *f = find(rig_finish(&rig), "spill");
    if (CHECK(f)) CHECK_MSG((strstr(f->fix, "whole turns") != NULL) == (angles == 1), "%s", f->fix);
    audit_free(&rig.program);
  }
}

TEST(scattered_atomics_do_not_queue) {
  for (int same = 0; same < 2; same++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_ATOMIC, 32, 4096);
    in->counts.atomics = WARPS * 32;
    in->pattern.same = same ? WARPS * 32 : WARPS;
    in->pattern.hottest = same ? WARPS * 32 : 40;
    in->pattern.queue_lanes = same ? WARPS * 32 : 40;
    in->pattern.queue_packets = same ? WARPS : 40;
    CHECK_MSG(finds(&rig, "atomics") == (same == 1), "same %d", same);
    audit_free(&rig.program);
  }
}

// Those that come once a warp in the only wave are timed behind its work: combining them saves that time as well. Where they are swaps
// that are tried again, which stand apart in the time, those are to become fewer, too.
TEST(atomics_at_the_end_of_the_only_wave_are_a_finding) {
  for (int swaps = 0; swaps < 2; swaps++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_ATOMIC, 1, 0);
    uint64_t warps = 1056 * 8;
    in->counts.executions = in->counts.requests = in->counts.sectors = in->counts.l2_hits = warps;
    in->counts.l2_misses = in->counts.l2_writes = in->counts.dram_write = 0;
    in->counts.atomics = in->counts.lanes = in->pattern.same = in->pattern.hottest = in->pattern.queue_lanes =
        in->pattern.queue_packets = warps;
    if (swaps)
      in->text = "atom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;",
      in->pattern.swaps = in->pattern.swapped = warps;
    const AuditFinding *f = find(rig_finish(&rig), "atomics");
    if (CHECK(f)) CHECK(!strstr(f->message, "share an address")); // the compiler has combined those of a warp
    if (f && swaps) CHECK_MSG(f->gain > 4, "gain %g", f->gain);
    audit_free(&rig.program);
  }
}

// The lanes of a guarded branch are those that take it: a warp that goes on as one has none, and wastes nothing.
TEST(a_branch_that_nobody_takes_has_no_idle_lanes) {
  Rig rig;
  rig_start(&rig);
  for (int i = 0; i < 2; i++) {
    AuditInst *in = add_shared(&rig, SOL_EMU_KIND_OTHER, i ? "@%p2 bra L;" : "@%p1 bra M;", 0, 0, 0);
    in->branch = true, in->unit = SOL_EMU_CLASS_CONTROL;
    in->counts =
        (SolEmuCounts){.executions = (uint64_t)WARPS * 1024, .lanes = i ? 31 : 0, .divergent = (uint64_t)i};
  }
  CHECK(!finds(&rig, "divergence"));
  audit_free(&rig.program);
}

// So many lanes do the arithmetic of a loop.
static const AuditFinding *divergence_of(Rig *rig, uint64_t lanes) {
  rig_start(rig);
  for (int i = 0; i < 3;
       i++) { // a guard that nearly never diverges, arithmetic, and the loop's branch behind it
    AuditInst *in = add_shared(rig, SOL_EMU_KIND_OTHER, "@%p1 bra L;", 0, 0, 0);
    in->line = 10 + (uint32_t)i;
    in->branch = i != 1;
    uint64_t n = i ? (uint64_t)WARPS * 1024 : WARPS;
    in->unit = i == 1 ? SOL_EMU_CLASS_FLOAT : SOL_EMU_CLASS_CONTROL;
    in->counts = (SolEmuCounts){.executions = n,
                                .lanes = n * (i ? lanes : 32),
                                .divergent = i == 1 ? 0
                                             : i    ? n / 2
                                                    : 1};
  }
  return find(rig_finish(rig), "divergence");
}

TEST(divergence_is_told_at_the_branch_that_diverges) {
  for (uint64_t lanes = 1; lanes <= 8; lanes += 7) {
    Rig rig;
    const AuditFinding *f = divergence_of(&rig, lanes);
    if (CHECK(f)) {
      CHECK_INT(f->line, 12);
      CHECK_HAS(f->message, "50% of the branches");
      CHECK_MSG((strstr(f->fix, "One lane of a warp does this") != NULL) == (lanes == 1), "%s", f->fix);
    }
    audit_free(&rig.program);
  }
}

TEST(conflicts_of_one_layout_are_one_finding) {
  Rig rig;
  rig_start(&rig);
  add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.f32 %f1, [%r1];", 2, 8, 4)->line = 79;
  add_shared(&rig, SOL_EMU_KIND_SHARED_STORE, "st.shared.f32 [%r1], %f1;", 2, 8, 4)->line = 85;
  const AuditKernel *k = rig_finish(&rig);
  CHECK_INT(find_all(k, "bank_conflict"), 1);
  const AuditFinding *f = find(k, "bank_conflict");
  if (f) CHECK_HAS(f->fix, "its 8 bytes with one access");
  audit_free(&rig.program);
}

// What one lane does while its block waits, and a branch that hardly a lane takes.
TEST(branches_and_guards_are_no_work_of_one_lane) {
  for (int which = 0; which < 3; which++) {
    Rig rig;
    rig_start(&rig);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    AuditInst *in = add_shared(&rig, SOL_EMU_KIND_OTHER, "add.s32 %r1, %r1, 1;", 0, 0, 0);
    uint64_t n = 1056 * 20000;
    in->unit = SOL_EMU_CLASS_INT;
    in->branch = which == 1;
    in->counts = (SolEmuCounts){.executions = n, .lanes = which == 2 ? n / 10 : n};
    rig.launch.chain = (SolEmuChain){.issues = 1056 * 20000.0};
    CHECK_MSG(finds(&rig, "one_lane") == (which == 0), "case %d", which);
    audit_free(&rig.program);
  }
}

// Three sums over all threads in shared memory: one finding, which takes the turns of the lanes out of the waits as well.
static const AuditFinding *shared_sum(Rig *rig, bool real, uint64_t lanes) {
  rig_start(rig);
  for (int i = 0; i < 3; i++) {
    AuditInst *in =
        add_shared(rig, SOL_EMU_KIND_SHARED_ATOMIC, "atom.shared.add.f32 %f1, [%r1], %f2;", 2 * lanes, 0, 4);
    in->real = real, in->line += (uint32_t)i, in->pattern.same = in->counts.executions * lanes;
  }
  return find(rig_finish(rig), "atomics");
}

TEST(a_sum_by_shared_atomics_is_one_finding_with_its_waits) {
  Rig rig;
  const AuditFinding *f = shared_sum(&rig, true, 32);
  if (CHECK(f)) {
    CHECK_HAS(f->fix, "__shfl_down_sync");
    CHECK(f->gain > 4);
    CHECK_INT(find_all(&rig.program.kernels[0], "atomics"), 1);
  }
  audit_free(&rig.program);
}

TEST(lanes_of_one_address_are_combined_by_what_their_type_has) {
  for (int real = 0; real < 2; real++)
    for (int one = 0; one < 2; one++) {
      Rig rig;
      const AuditFinding *f = shared_sum(&rig, real, one ? 32 : 8);
      if (CHECK(f)) {
        CHECK_MSG((strstr(f->fix, "have one address") != NULL) == one, "%s", f->fix);
        CHECK_MSG((strstr(f->fix, "__reduce_add_sync") != NULL) == !real, "%s", f->fix);
      }
      audit_free(&rig.program);
    }
}

CHECK_MAIN
