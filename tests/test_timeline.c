// From a kernel that copies and multiplies to its timeline: the emulator's trace, the wire, the bill, text and JSON.
#include <stdio.h>

#include "audit/audit_wire.h"
#include "audit_ptx.h"
#include "report/report_audit.h"

// Thread 0 copies 8 steps of 4 KiB into a ring of so many stages, warps 4 to 7 multiply them.
static void pipeline_ptx(char *out, size_t cap, int stages) {
  static const char text[] =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
      ".shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 full[4];\n.shared .align 8 .b64 empty[4];\n"
      ".reg .pred %%p<9>;\n.reg .f32 %%f<9>;\n.reg .b32 %%r<19>;\n.reg .b64 %%rd<9>;\n"
      "ld.param.u64 %%rd1, [a];\nmov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, full;\nmov.u32 %%r3, empty;\nmov.u32 %%r4, tile;\n"
      "setp.ne.u32 %%p1, %%r1, 0;\n@%%p1 bra made;\nmov.u32 %%r5, 0;\n"
      "init: shl.b32 %%r6, %%r5, 3;\nadd.u32 %%r7, %%r2, %%r6;\nadd.u32 %%r8, %%r3, %%r6;\n"
      "mbarrier.init.shared.b64 [%%r7], 1;\nmbarrier.init.shared.b64 [%%r8], 128;\n"
      "add.u32 %%r5, %%r5, 1;\nsetp.lt.u32 %%p2, %%r5, 4;\n@%%p2 bra init;\n"
      "made: bar.sync 0;\nmov.u32 %%r5, 0;\nsetp.ge.u32 %%p3, %%r1, 128;\n@%%p3 bra use;\n@%%p1 bra over;\n"
      "make: rem.u32 %%r6, %%r5, %d;\ndiv.u32 %%r9, %%r5, %d;\nand.b32 %%r9, %%r9, 1;\nxor.b32 %%r10, %%r9, 1;\n"
      "shl.b32 %%r11, %%r6, 3;\nadd.u32 %%r7, %%r2, %%r11;\nadd.u32 %%r8, %%r3, %%r11;\nshl.b32 %%r12, %%r6, 12;\nadd.u32 %%r12, %%r4, %%r12;\n"
      "vacant: mbarrier.try_wait.parity.shared.b64 %%p4, [%%r8], %%r10;\n@!%%p4 bra vacant;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %%rd2, [%%r7], 4096;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r12], [%%rd1], 4096, [%%r7];\n"
      "add.u32 %%r5, %%r5, 1;\nsetp.lt.u32 %%p5, %%r5, 8;\n@%%p5 bra make;\nbra over;\n"
      "use: rem.u32 %%r6, %%r5, %d;\ndiv.u32 %%r9, %%r5, %d;\nand.b32 %%r9, %%r9, 1;\n"
      "shl.b32 %%r11, %%r6, 3;\nadd.u32 %%r7, %%r2, %%r11;\nadd.u32 %%r8, %%r3, %%r11;\nshl.b32 %%r12, %%r6, 12;\nadd.u32 %%r12, %%r4, %%r12;\n"
      "shr.u32 %%r12, %%r12, 4;\ncvt.u64.u32 %%rd3, %%r12;\n"
      "arrived: mbarrier.try_wait.parity.shared.b64 %%p6, [%%r7], %%r9;\n@!%%p6 bra arrived;\nwgmma.fence.sync.aligned;\n"
      "mov.u32 %%r13, 0;\n"
      "turn: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%%f1,%%f2,%%f3,%%f4}, %%rd3, %%rd3, 1, 1, 1, 0, 0;\n"
      "add.u32 %%r13, %%r13, 1;\nsetp.lt.u32 %%p7, %%r13, 64;\n@%%p7 bra turn;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmbarrier.arrive.shared.b64 %%rd4, [%%r8];\n"
      "add.u32 %%r5, %%r5, 1;\nsetp.lt.u32 %%p8, %%r5, 8;\n@%%p8 bra use;\n"
      "over: ret;\n}\n";
  snprintf(out, cap, text, stages, stages, stages, stages);
}

static void bill_pipeline(Billed *b, int stages) {
  char text[8192];
  pipeline_ptx(text, sizeof text, stages);
  bill_module(b, text, 4, 256);
}

TEST(more_stages_hide_more_of_the_copies) {
  Billed one, four;
  bill_pipeline(&one, 1), bill_pipeline(&four, 4);
  const MachineTimeline *a = one.kernel->slowest->timeline, *b = four.kernel->slowest->timeline;
  if (!CHECK(a && b)) return;
  CHECK_MSG(b->clocks < 0.8 * a->clocks, "%g and %g", a->clocks, b->clocks);
  CHECK(b->overlap > a->overlap && b->hidden > a->hidden && a->hidden < 0.1);
  CHECK_INT(b->role_count, 3);
  CHECK(b->roles[0].copies && !b->roles[0].multiplies && !b->roles[1].copies && b->roles[2].multiplies);
  CHECK(b->roles[2].first == 4 && b->roles[2].warps == 4);
  CHECK_INT(four.kernel->slowest->timeline_block, 2);
  // The replay is part of the time.
  CHECK(one.kernel->time.replayed && four.kernel->time.replayed);
  CHECK_MSG(one.kernel->time.total > four.kernel->time.total, "%g and %g", one.kernel->time.total,
            four.kernel->time.total);
  CHECK_NEAR(one.kernel->work.exposed, a->exposed, 1e-6);
  bill_free(&one), bill_free(&four);
}

TEST(kernels_without_tensor_cores_are_timed_by_their_waits) {
  Billed b;
  bill_ptx(&b, "ld.global.f32 %f1, [%rd4];\nadd.f32 %f1, %f1, %f1;\nst.global.f32 [%rd5], %f1;\n", 132, 128);
  CHECK(b.kernel->slowest->timeline && b.kernel->slowest->timeline->clocks > 0);
  CHECK(!b.kernel->time.replayed);
  CHECK(b.kernel->slowest->timeline->roles[0].share[MACHINE_FOR_MEMORY] > 0.5);
  bill_free(&b);
}

static char *render(const AuditProgram *p, AuditTimelineView view, bool json, bool colour) {
  SolArena arena = {0};
  SolBuffer out = {0};
  Fact *root = facts_root(&arena, FACT_OBJECT);
  report_audit_facts(root, p, &(AuditView){.top = 10, .timeline = view});
  CHECK(json ? facts_render_json(root, &out)
             : facts_render_text(root, &(TextStyle){.width = 100, .colour = colour}, &out));
  sol_arena_free(&arena);
  return out.text;
}

TEST(text_and_json_show_it_where_it_is_asked_for) {
  Billed b;
  bill_pipeline(&b, 4);
  char *none = render(&b.program, AUDIT_NO_TIMELINE, false, false),
       *no_json = render(&b.program, AUDIT_NO_TIMELINE, true, false),
       *text = render(&b.program, AUDIT_TIMELINE_SHOWN, false, false),
       *colours = render(&b.program, AUDIT_TIMELINE_SHOWN, false, true),
       *kept = render(&b.program, AUDIT_TIMELINE_KEPT, false, false),
       *json = render(&b.program, AUDIT_TIMELINE_KEPT, true, false);
  CHECK(!strstr(none, "Timeline") && !strstr(kept, "Timeline") && !strstr(no_json, "timeline"));
  CHECK(strstr(text, "Timeline of block 2") && strstr(text, "warps 4-7 ") &&
        strstr(text, "tensor cores   |"));
  CHECK(strstr(text, "waits for copies, k.ptx:"));
  CHECK(!strstr(text, "\033[3") && strstr(colours, "\033[35m"));
  CHECK(strstr(json, "\"timeline\"") && strstr(json, "\"unit\": \"tensor\"") &&
        strstr(json, "\"first_warp\": 4"));
  free(none), free(no_json), free(text), free(colours), free(kept), free(json);
  bill_free(&b);
}

// ---- the wire ----

static const SolEmuEvent events[] = {
    {.step = SOL_EMU_STEP_COPY, .token = 3, .count = 4096, .issues = 7, .waits = 0.25f, .inst = 9},
    {.step = SOL_EMU_STEP_WAIT, .token = 3, .detail = 1}};
static const uint32_t ends[] = {1, 2};

static SolStatus over_the_wire(const SolEmuTrace *t, AuditReader *reader, AuditMessage *heard) {
  AuditInst in = {.file = "a.cu", .text = "ret;", .counts.executions = 1};
  AuditLaunch l = {
      .name = "k", .grid = {1, 1, 1}, .block = {64, 1, 1}, .trace = t, .insts = &in, .inst_count = 1};
  AuditSent told = {0};
  SolBuffer line = {0};
  audit_write_launch(&l, 1, &told, &line);
  SolStatus status = audit_read_line(reader, line.text, line.length, heard, NULL);
  sol_buffer_free(&line);
  audit_sent_free(&told);
  return status;
}

TEST(a_trace_survives_the_wire) {
  SolEmuTrace t = {.events = (SolEmuEvent *)events,
                   .ends = ends,
                   .warps = 2,
                   .warps_per_block = 1,
                   .tokens = 3,
                   .block = 66,
                   .cut = true};
  AuditReader reader = {0};
  AuditMessage heard;
  CHECK_INT(over_the_wire(&t, &reader, &heard), SOL_OK);
  const SolEmuTrace *got = heard.launch.trace;
  if (CHECK(got != NULL)) {
    CHECK(got->warps == 2 && got->warps_per_block == 1 && got->tokens == 3 && got->block == 66 && got->cut);
    CHECK(got->ends[0] == 1 && got->ends[1] == 2);
    for (int i = 0; i < 2; i++) {
      const SolEmuEvent *e = &got->events[i];
      CHECK(e->step == events[i].step && e->token == events[i].token && e->count == events[i].count &&
            e->inst == events[i].inst);
      CHECK(e->issues == events[i].issues && e->waits == events[i].waits && e->detail == events[i].detail);
    }
  }
  audit_reader_free(&reader);
}

TEST(a_forged_trace_is_refused) {
  SolEmuTrace good = {
      .events = (SolEmuEvent *)events, .ends = ends, .warps = 2, .warps_per_block = 1, .tokens = 3};
  SolEmuTrace tokens = good, blocks = good, order = good;
  const uint32_t back[] = {2, 1};
  tokens.tokens = 2; // an event has 3
  blocks.warps_per_block = 0;
  order.ends = back;
  const SolEmuTrace *bad[] = {&tokens, &blocks, &order};
  for (size_t i = 0; i < SOL_COUNT(bad); i++) {
    AuditReader reader = {0};
    AuditMessage heard;
    CHECK_INT(over_the_wire(bad[i], &reader, &heard), SOL_ERR_SYNTAX);
    audit_reader_free(&reader);
  }
}

CHECK_MAIN
