// The trace of a block: which events have which tokens, whatever the order in which asynchronous operations complete.
#include "emu_body.h"

typedef struct Traced {
  SolEmuTrace trace;
  SolEmuResult result;
  SolEmu *emu;
} Traced;

static Traced trace_of(const char *ptx, uint32_t threads, uint32_t blocks, uint64_t order) {
  Traced t = {0};
  SolEmuModule *module = NULL;
  SolError err = {0};
  uint64_t in = 0, out = 0;
  char *text = body_text(&(Body){.ptx = ptx, .out_stride = 4});
  SolStatus status = sol_emu_create(&(SolEmuMachine){.workers = 2}, &t.emu, &err);
  if (!status) status = sol_emu_alloc(t.emu, 1 << 20, "in", &in, &err);
  if (!status) status = sol_emu_alloc(t.emu, 1 << 20, "out", &out, &err);
  if (!status) status = sol_emu_load(t.emu, &(SolPtxSource){"body", text, strlen(text)}, 1, &module, &err);
  uint64_t args[3] = {in, out, 0};
  SolEmuLaunch launch = {.kernel = status ? NULL : sol_emu_kernel(module, "k"),
                         .grid = {blocks, 1, 1},
                         .block = {threads, 1, 1},
                         .params = args,
                         .param_bytes = sizeof args,
                         .observe = true,
                         .async_order = order};
  if (!status) status = sol_emu_launch(t.emu, &launch, &t.result, &err);
  CHECK_MSG(!status && t.result.end == SOL_EMU_DONE, "status %d: %s%s", status, err.message,
            t.result.finding_count ? t.result.findings[0].message : "");
  t.trace = t.result.trace;
  free(text);
  return t;
}

static void drop(Traced *t) {
  sol_emu_result_free(&t->result);
  sol_emu_destroy(t->emu);
}

static const SolEmuEvent *first_of(const SolEmuTrace *t, uint32_t warp, SolEmuStep step, int skip) {
  for (uint32_t i = warp ? t->ends[warp - 1] : 0; i < t->ends[warp]; i++)
    if (t->events[i].step == step && skip-- == 0) return &t->events[i];
  static const SolEmuEvent none = {.token = UINT32_MAX};
  return &none;
}

// Thread 0 copies 256 bytes into `tile` twice, waiting in between until warp 1 has read them; warp 1 waits for each.
static const char twice[] =
    "mov.u32 %r1, tile;\nadd.u32 %r2, %r1, 1024;\nadd.u32 %r3, %r1, 1032;\n"
    "setp.ne.u32 %p1, %t, 0;\n@%p1 bra made;\n"
    "mbarrier.init.shared.b64 [%r2], 1;\nmbarrier.init.shared.b64 [%r3], 32;\n"
    "made: bar.sync 0;\nsetp.ge.u32 %p2, %t, 32;\n@%p2 bra reads;\n@%p1 bra over;\n"
    "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%base], 256, [%r2];\n"
    "empty: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;\n@!%p3 bra empty;\n"
    "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%base], 256, [%r2];\n"
    "bra over;\n"
    "reads: mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0;\n@!%p4 bra reads;\n"
    "mbarrier.arrive.shared.b64 %rd2, [%r3];\n"
    "again: mbarrier.try_wait.parity.shared.b64 %p5, [%r2], 1;\n@!%p5 bra again;\n"
    "over: ";

TEST(waits_have_the_tokens_of_what_they_wait_for) {
  for (uint64_t order = 0; order < 4; order++) {
    Traced t = trace_of(twice, 64, 4, order);
    const SolEmuTrace *r = &t.trace;
    CHECK_INT(r->warps, 2);
    CHECK_INT(r->block, 2); // the middle of the grid
    CHECK(!r->cut);
    uint32_t first = first_of(r, 0, SOL_EMU_STEP_COPY, 0)->token,
             second = first_of(r, 0, SOL_EMU_STEP_COPY, 1)->token,
             empty = first_of(r, 1, SOL_EMU_STEP_ARRIVE, 1)->token;
    CHECK_INT(first_of(r, 0, SOL_EMU_STEP_COPY, 0)->count, 256);
    CHECK(first && second && empty && first != second && empty != first && empty != second);
    CHECK_INT(first_of(r, 0, SOL_EMU_STEP_ARRIVE, 1)->token, first); // after the block's barrier: expect_tx
    CHECK_INT(first_of(r, 1, SOL_EMU_STEP_WAIT, 1)->token, first);
    CHECK_INT(first_of(r, 1, SOL_EMU_STEP_WAIT, 2)->token, second);
    CHECK_INT(first_of(r, 0, SOL_EMU_STEP_WAIT, 1)->token, empty);
    CHECK_INT(first_of(r, 1, SOL_EMU_STEP_ARRIVE, 1)->count, 32); // its lanes
    // bar.sync
    CHECK_INT(first_of(r, 0, SOL_EMU_STEP_ARRIVE, 0)->token, first_of(r, 1, SOL_EMU_STEP_WAIT, 0)->token);
    drop(&t);
  }
}

// However often a warp asks for a phase, it has waited once.
TEST(asking_again_is_not_counted) {
  Traced at_once = trace_of(twice, 64, 1, 0), late = trace_of(twice, 64, 1, 1);
  for (uint32_t w = 0; w < 2; w++)
    for (int k = 0; k < 3 - (w == 0); k++)
      CHECK_INT(first_of(&at_once.trace, w, SOL_EMU_STEP_WAIT, k)->issues,
                first_of(&late.trace, w, SOL_EMU_STEP_WAIT, k)->issues);
  CHECK_INT(at_once.trace.ends[1], late.trace.ends[1]);
  drop(&at_once), drop(&late);
}

TEST(groups_of_copies_and_loads) {
  static const char ptx[] = "mov.u32 %r1, tile;\nshl.b32 %r2, %t, 4;\nadd.u32 %r1, %r1, %r2;\n"
                            "cp.async.cg.shared.global [%r1], [%base], 16;\ncp.async.commit_group;\n"
                            "cp.async.cg.shared.global [%r1+512], [%base], 16;\ncp.async.commit_group;\n"
                            "cp.async.commit_group;\n" // an empty one
                            "cp.async.wait_group 2;\ncp.async.wait_group 0;\ncp.async.wait_all;\n"
                            "ld.global.u32 %r3, [%base];\nadd.u32 %r4, %r3, 1;\nst.global.u32 [%out], %r4;\n"
                            "ld.shared.u32 %r5, [%r1];\nmembar.gl;\n";
  Traced t = trace_of(ptx, 32, 1, 0);
  const SolEmuTrace *r = &t.trace;
  uint32_t first = first_of(r, 0, SOL_EMU_STEP_COPY, 0)->token,
           second = first_of(r, 0, SOL_EMU_STEP_COPY, 1)->token;
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_COPY, 0)->count, 512);
  CHECK(first != second);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_WAIT, 0)->token, first);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_WAIT, 1)->token, second);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_WAIT, 2)->token, second);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_LOAD, 0)->detail, 1);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_LOAD, 1)->token, UINT32_MAX); // shared memory is no event
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_LOADED, 0)->count, 1);
  CHECK_INT(first_of(r, 0, SOL_EMU_STEP_FENCE, 0)->count, 1); // behind a store
  CHECK(first_of(r, 0, SOL_EMU_STEP_FENCE, 0)->waits > 0);    // for shared memory
  drop(&t);
}

TEST(matrix_instructions_and_the_groups_of_wgmma) {
  static const char ptx[] =
      "mov.u32 %r9, tile;\nshr.u32 %r9, %r9, 4;\ncvt.u64.u32 %rd1, %r9;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};\n";
  Traced t = trace_of(ptx, 128, 1, 0);
  for (uint32_t w = 0; w < 4; w++) {
    const SolEmuEvent *a = first_of(&t.trace, w, SOL_EMU_STEP_TENSOR, 0),
                      *b = first_of(&t.trace, w, SOL_EMU_STEP_TENSOR, 1);
    CHECK(a->token && a->token == b->token && a->inst != b->inst);
    CHECK_INT(first_of(&t.trace, w, SOL_EMU_STEP_WAIT, 0)->token, a->token);
    CHECK_INT(first_of(&t.trace, w, SOL_EMU_STEP_TENSOR, 2)->token, 0);
    CHECK_INT(t.result.insts[a->inst].counts.executions, 4);
  }
  drop(&t);
}

TEST(a_long_life_is_cut) {
  static const char ptx[] =
      "mov.u32 %r1, 0;\nloop: bar.sync 0;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 40000;\n@%p1 bra loop;\n";
  Traced t = trace_of(ptx, 64, 1, 0);
  CHECK(t.trace.cut && t.trace.ends[1] > 100000 && t.trace.ends[1] <= 1 << 17);
  drop(&t);
}

CHECK_MAIN
