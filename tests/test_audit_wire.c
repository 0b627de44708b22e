// Launches between processes (src/audit/audit_wire.c): what is written reads back, and what is not ours is refused.
#include "audit/audit_wire.h"

#include "check.h"

TEST(a_launch_survives_the_wire) {
  AuditInst in = {.file = "a.cu",
                  .line = 7,
                  .text = "ld.global.f32 %f1, [%rd1];",
                  .place = 3,
                  .kind = SOL_EMU_KIND_GLOBAL_LOAD,
                  .unit = SOL_EMU_CLASS_MEMORY,
                  .is_load = true,
                  .counts = {.executions = 1000, .lanes = 32000, .sectors = 32000, .dram_write = 1ull << 40}};
  in.pattern =
      (SolEmuPattern){.width = 4, .seen = 9, .stride = -4096, .stride_times = 8, .step = 4, .zeros = 2};
  in.pattern.example =
      (SolEmuExample){.block = 77, .mask = 0x80000003, .sectors = 3, .lane = {4, [31] = UINT32_MAX}};
  in.flops = 0.5;
  in.waits = in.follows = in.real = in.read_only = in.indexing = in.bulk = in.tensor = true;
  in.inlined = "k.cu:3 > block.cuh:9";
  in.base = UINT64_C(1) << 32 | 5;
  in.ptx_line = 42;
  in.executed = (AuditExecuted){.issues = 1250.5, .fp32 = 3, .spills = 2};
  in.offset = -16;
  AuditTouch t[] = {{.address = 0x7f0000001000, .bytes = 1 << 20, .label = "", .read = 1e6, .written = 5e5}};
  AuditFault faults[] = {{.message = "quote \" and \n line",
                          .kind = "race",
                          .file = "k.cu",
                          .line = 9,
                          .function = UINT32_MAX,
                          .inst = 4,
                          .block = {1, 2, 3},
                          .thread = {4, 5, 6},
                          .address = UINT64_C(0xa0000001000),
                          .bytes = 8,
                          .times = 77}};
  AuditLaunch l = {.name = "_Z3addPf",
                   .grid = {132, 1, 1},
                   .block = {256, 1, 1},
                   .blocks = 132,
                   .flight = {.loads = 10, .waits = 2.5},
                   .chain = {.issues = 7, .far_waits = 1.25, .barriers = 3, .store_fences = 2},
                   .left_dirty = 11,
                   .dirty_limit = 12,
                   .earlier_read = 13,
                   .earlier = {.found = {[1] = 14, [SOL_OLDEST] = 15}, .written = {[2] = 16}},
                   .insts = &in,
                   .inst_count = 1,
                   .touches = t,
                   .touch_count = 1};
  SolEmuEvent events[] = {
      {.inst = 2, .token = 1, .count = 4096, .issues = 9, .waits = 0.5f, .step = SOL_EMU_STEP_COPY},
      {.inst = 3, .token = 2, .count = 1, .step = SOL_EMU_STEP_ARRIVE, .detail = 3}}; // the cluster's
  SolEmuTrace trace = {.events = events,
                       .ends = (const uint32_t[]){1, 2},
                       .warps = 2,
                       .warps_per_block = 1,
                       .tokens = 2,
                       .block = 66,
                       .cut = true};
  l.trace = &trace;
  l.faults = faults;
  l.fault_count = 1;
  l.graph = true;
  l.machine = true;
  l.registers_from = AUDIT_FROM_EMULATOR;
  l.end = SOL_EMU_TIME_LIMIT;
  AuditSent told = {0};
  AuditReader reader = {0};
  for (int round = 0; round < 2; round++) { // the second time the instruction is known
    SolBuffer line = {0};
    AuditMessage heard;
    SolError err = {0};
    audit_write_launch(&l, 5, &told, &line);
    CHECK(line.length && line.text[line.length - 1] == '\n' && !memchr(line.text, '\n', line.length - 1));
    if (CHECK_MSG(!audit_read_line(&reader, line.text, line.length, &heard, &err), "%s", err.message)) {
      const AuditLaunch *h = &heard.launch;
      CHECK_STR(h->name, l.name);
      CHECK(h->grid[0] == 132 && h->block[0] == 256 && h->blocks == 132 && h->graph && h->end == l.end);
      CHECK_INT(h->registers_from, AUDIT_FROM_EMULATOR);
      if (CHECK_INT(h->inst_count, 1)) {
        const AuditInst *got = &h->insts[0];
        CHECK_STR(got->text, in.text);
        CHECK_STR(got->file, in.file);
        CHECK(memcmp(&got->counts, &in.counts, sizeof in.counts) == 0);
        CHECK(got->pattern.stride == -4096 && got->pattern.step == 4 && got->pattern.zeros == 2);
        CHECK(memcmp(&got->pattern.example, &in.pattern.example, sizeof in.pattern.example) == 0);
        CHECK(got->by_machine && got->ptx_line == 42 && got->executed.issues == 1250.5 &&
              got->executed.spills == 2);
        CHECK(got->indexing && got->bulk && got->tensor);
        CHECK_STR(got->inlined, in.inlined);
        CHECK(got->real && got->read_only && got->base == in.base && got->offset == -16);
        CHECK(got->waits && got->follows && got->is_load && !got->barrier && got->flops == 0.5 &&
              got->line == 7);
      }
      if (CHECK(h->trace != NULL)) {
        const SolEmuTrace *got = h->trace;
        CHECK(got->warps == 2 && got->warps_per_block == 1 && got->tokens == 2 && got->block == 66 &&
              got->cut);
        CHECK(got->ends[0] == 1 && got->ends[1] == 2 && memcmp(got->events, events, sizeof events) == 0);
      }
      CHECK(h->touch_count == 1 && h->touches[0].address == 0x7f0000001000 && h->touches[0].written == 5e5);
      if (CHECK_INT(h->fault_count, 1)) {
        const AuditFault *f = &h->faults[0];
        CHECK_STR(f->message, faults[0].message);
        CHECK_STR(f->kind, "race");
        CHECK_STR(f->file, "k.cu");
        CHECK(f->line == 9 && f->function == UINT32_MAX && f->inst == 4 && f->times == 77 && f->bytes == 8);
        CHECK(f->block[2] == 3 && f->thread[2] == 6 && f->address == UINT64_C(0xa0000001000));
      }
      CHECK_NEAR(h->flight.waits, 2.5, 0);
      CHECK(memcmp(&h->chain, &l.chain, sizeof l.chain) == 0);
      CHECK(h->left_dirty == 11 && h->dirty_limit == 12 && h->earlier_read == 13);
      CHECK(memcmp(&h->earlier, &l.earlier, sizeof l.earlier) == 0);
    }
    if (round) CHECK(line.length < 900);
    for (size_t cut = 0; cut < line.length - 1; cut += 7) // cut anywhere, it is refused and nothing breaks
      CHECK(audit_read_line(&reader, line.text, cut, &heard, NULL) != SOL_OK);
    sol_buffer_free(&line);
  }
  audit_sent_free(&told);
  audit_reader_free(&reader);
}

TEST(the_text_of_a_module_survives_the_wire) {
  static const char text[] = ".version 9.0\n\t// \"quoted\" \\ text\n.target sm_90\n";
  SolBuffer line = {0};
  AuditReader reader = {0};
  AuditMessage heard;
  audit_write_module(7, text, &line);
  CHECK(line.length && line.text[line.length - 1] == '\n' && !memchr(line.text, '\n', line.length - 1));
  CHECK(!audit_read_line(&reader, line.text, line.length, &heard, NULL));
  CHECK(heard.kind == AUDIT_LINE_MODULE && heard.unit == 7);
  CHECK_STR(heard.ptx, text);
  static const char bad[] = "{\"module\":7,\"ptx\":3}";
  CHECK(audit_read_line(&reader, bad, sizeof bad - 1, &heard, NULL) != SOL_OK);
  audit_reader_free(&reader);
  sol_buffer_free(&line);
}

TEST(a_launch_that_is_not_counted_is_billed_by_its_key) {
  AuditProgram p;
  const SolDevice *device;
  AuditReader reader = {0};
  AuditSent told = {0};
  AuditMessage heard;
  SolBuffer line = {0}, again = {0};
  AuditInst in = {.text = "ld", .file = "a.cu", .line = 1, .counts = {.executions = 8, .lanes = 256}};
  AuditLaunch l = {
      .name = "k", .grid = {8, 1, 1}, .block = {32, 1, 1}, .blocks = 8, .insts = &in, .inst_count = 1};
  CHECK(!sol_device_find("h200", &device, NULL) && !audit_start(&p, device, NULL));
  l.key = UINT64_C(123456) << 20 | 7;
  audit_write_launch(&l, 1, &told, &line);
  audit_write_again(&(AuditAgain){.key = l.key, .graph = true, .unlike = true}, &again);
  CHECK(!audit_read_line(&reader, again.text, again.length, &heard, NULL));
  CHECK_INT(audit_add_again(&p, &heard.again, NULL), SOL_ERR_NOT_FOUND); // nothing has this key yet
  CHECK(!audit_read_line(&reader, line.text, line.length, &heard, NULL) && heard.launch.key == l.key);
  CHECK(!audit_add(&p, &heard.launch, NULL));
  for (int i = 0; i < 3; i++) {
    CHECK(!audit_read_line(&reader, again.text, again.length, &heard, NULL) &&
          heard.kind == AUDIT_LINE_AGAIN);
    CHECK(heard.again.key == l.key && heard.again.graph && heard.again.unlike);
    CHECK(!audit_add_again(&p, &heard.again, NULL));
  }
  const AuditKernel *k = &p.kernels[0];
  CHECK(k->launches == 4 && k->counted == 1 && k->unlike == 3 && k->graph_launches == 3);
  CHECK(k->total.executions == 32 && k->total.lanes == 1024);
  again.length = 0; // one that was counted, and found to be the same
  audit_write_again(&(AuditAgain){.key = l.key, .counted = true}, &again);
  CHECK(!audit_read_line(&reader, again.text, again.length, &heard, NULL) && heard.again.counted);
  CHECK(!audit_add_again(&p, &heard.again, NULL) && k->launches == 5 && k->counted == 2 && k->unlike == 3);
  static const char bad[] = "{\"again\":1,\"graph\":\"x\",\"unlike\":0}";
  CHECK(audit_read_line(&reader, bad, sizeof bad - 1, &heard, NULL) != SOL_OK);
  audit_free(&p);
  audit_sent_free(&told);
  audit_reader_free(&reader);
  sol_buffer_free(&line);
  sol_buffer_free(&again);
}

TEST(what_is_missing_survives_the_wire) {
  AuditReader reader = {0};
  AuditMessage heard;
  SolBuffer line = {0};
  audit_write_missing("kernels of \"lib\".so", &line);
  CHECK_INT(audit_read_line(&reader, line.text, line.length, &heard, NULL), SOL_OK);
  CHECK_INT(heard.kind, AUDIT_LINE_MISSING);
  CHECK_STR(heard.missing, "kernels of \"lib\".so");
  CHECK_INT(audit_read_line(&reader, "{\"missing\":3}", 13, &heard, NULL), SOL_ERR_SYNTAX);
  audit_reader_free(&reader);
  sol_buffer_free(&line);
}

TEST(progress_survives_the_wire) {
  SolEmuProgress progress = {.kernel = "_Z5scalePfi", .done = 0.25, .instructions = 123456789012};
  AuditReader reader = {0};
  AuditMessage heard;
  SolBuffer line = {0};
  audit_write_progress(&progress, &line);
  CHECK(line.text[line.length - 1] == '\n');
  CHECK_INT(audit_read_line(&reader, line.text, line.length - 1, &heard, NULL), SOL_OK);
  CHECK_INT(heard.kind, AUDIT_LINE_PROGRESS);
  CHECK_STR(heard.progress.kernel, "_Z5scalePfi");
  CHECK(heard.progress.done == 0.25 && heard.progress.instructions == 123456789012);
  CHECK_INT(audit_read_line(&reader, "{\"progress\":0.5}", 16, &heard, NULL), SOL_ERR_SYNTAX);
  audit_reader_free(&reader);
  sol_buffer_free(&line);
}

TEST(lines_that_are_none_are_refused) {
  static const char *const lines[] = {
      "",
      "[]",
      "{}",
      "{\"launch\":1}",
      "{\"outside\":0}",
      "{\"launch\":1,\"name\":\"k\",\"unit\":1,\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[0,0,0],"
      "\"numbers\":[],"
      "\"new\":[],\"insts\":[[0,1,[],[]]],\"touches\":[],\"faults\":[]}",
      "{\"launch\":1,\"name\":\"k\",\"unit\":1,\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[0,0,0],"
      "\"numbers\":[],"
      "\"new\":[[1e9,1,1,0,0,\"f\",\"t\"]],\"insts\":[],\"touches\":[],\"faults\":[]}",
      "{\"launch\":1,\"name\":\"k\",\"unit\":1,\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[0,0,0],"
      "\"numbers\":[],"
      "\"new\":[[0,1,1,0,0,\"f\",\"t\"]],\"insts\":[[0,99,[],[]]],\"touches\":[],\"faults\":[]}",
      "{\"launch\":1,\"name\":\"k\",\"unit\":1,\"grid\":[1,1,1],\"block\":[1,1,1],\"cluster\":[0,0,0],"
      "\"numbers\":[],"
      "\"new\":[[0,1,1,0,0,\"f\",\"t\"]],\"insts\":[[0,1,[],[-1]]],\"touches\":[],\"faults\":[]}"};
  AuditReader reader = {0};
  for (size_t i = 0; i < SOL_COUNT(lines); i++) {
    AuditMessage heard;
    CHECK_MSG(audit_read_line(&reader, lines[i], strlen(lines[i]), &heard, NULL) == SOL_ERR_SYNTAX, "%s",
              lines[i]);
  }
  AuditMessage heard;
  const char *good = "{\"outside\":1,\"address\":4096,\"bytes\":16}";
  CHECK_INT(audit_read_line(&reader, good, strlen(good), &heard, NULL), SOL_OK);
  CHECK(heard.kind == AUDIT_LINE_OUTSIDE && heard.what == AUDIT_OUTSIDE_READ && heard.address == 4096);
  audit_reader_free(&reader);
}

static SolStatus read_text(AuditReader *reader, const char *text, AuditMessage *heard) {
  SolError err = {0};
  return audit_read_line(reader, text, strlen(text), heard, &err);
}

TEST(a_library_call_survives_the_wire) {
  AuditLibraryCall c = {
      .name = "cublasGemmEx", .read = 1e9, .written = 4096, .flops = 2e12, .dtype = SOL_BF16, .tensor = true};
  AuditReader reader = {0};
  AuditMessage heard;
  SolBuffer line = {0};
  audit_write_library(&c, &line);
  if (CHECK(line.text && !read_text(&reader, line.text, &heard)) &&
      CHECK_INT(heard.kind, AUDIT_LINE_LIBRARY)) {
    CHECK_STR(heard.library.name, c.name);
    CHECK(heard.library.read == 1e9 && heard.library.written == 4096 && heard.library.flops == 2e12);
    CHECK(heard.library.dtype == SOL_BF16 && heard.library.tensor);
  }
  CHECK(read_text(&reader, "{\"library\":\"x\",\"numbers\":[1,2,3,99,0]}", &heard));
  CHECK(read_text(&reader, "{\"library\":\"x\",\"numbers\":[-1,2,3,1,0]}", &heard));
  CHECK(read_text(&reader, "{\"library\":3,\"numbers\":[1,2,3,1,0]}", &heard));
  sol_buffer_free(&line);
  audit_reader_free(&reader);
}

// Each call takes the longer of its bytes and its FLOPs, and a launch; rows are by function and dtype.
TEST(library_calls_are_summed_at_their_roof) {
  const SolDevice *device;
  AuditProgram p;
  if (!CHECK(!sol_device_find("h100-sxm", &device, NULL) && !audit_start(&p, device, NULL))) return;
  AuditLibraryCall small = {.name = "a", .read = 3e9, .flops = 1, .dtype = SOL_FP32};
  AuditLibraryCall large = {.name = "a", .read = 4, .flops = 1e15, .dtype = SOL_FP16, .tensor = true};
  for (int i = 0; i < 2; i++) CHECK(!audit_library(&p, &small, NULL));
  CHECK(!audit_library(&p, &large, NULL));
  if (CHECK_INT(p.call_count, 2)) {
    double launch = machine_light(&p.machine, 0, 1, 0);
    CHECK(p.calls[0].times == 2 && p.calls[0].read == 6e9 && p.calls[0].memory > p.calls[0].compute);
    CHECK_NEAR(p.calls[0].seconds, 6e9 / machine_copy_rate(&p.machine) + 2 * launch, 1e-12);
    CHECK_NEAR(p.calls[1].seconds, 1e15 / device->peak_fp16.value + launch, 1e-9);
  }
  audit_free(&p);
}

CHECK_MAIN
