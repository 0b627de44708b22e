// The rules of `sol audit` on made-up kernels: what must be reported, what must not, and what the words say.
#include "rules_rig.h"

TEST(one_waste_one_finding) {
  // A load 4096 bytes from lane to lane is a column walk, and not uncoalesced, gathered or an AoS as well.
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
  const AuditKernel *k = rig_finish(&rig);
  const AuditFinding *f = find(k, "column_walk");
  if (CHECK(f)) {
    CHECK_HAS(f->message, "4096 bytes");
    CHECK_HAS(f->message, "32.0 sectors");
    CHECK_INT(f->line, 10);
    CHECK(f->gain > 3 && f->gain < 8); // an eighth of the bytes; launch and waits stay
  }
  CHECK(!find(k, "uncoalesced") && !find(k, "aos") && !find(k, "gather") && !find(k, "reread"));
  audit_free(&rig.program);
}

TEST(what_saves_too_little_of_the_whole_is_kept_apart) {
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
  CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
  rig.launch.name = "other";
  for (int i = 0; i < 200; i++) CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
  CHECK_INT(audit_finish(&rig.program, NULL), SOL_OK);
  const AuditKernel *rare = &rig.program.kernels[0], *often = &rig.program.kernels[1];
  CHECK(!rare->finding_count && find(often, "column_walk") && !often->small.rule);
  if (CHECK(rare->small.rule)) {
    CHECK(strcmp(rare->small.rule, "column_walk") == 0 && rare->small.gain > 3);
    CHECK_INT(rare->small.line, 10);
  }
  audit_free(&rig.program);
}

// A thread for each sparse row: no index is to blame, but who takes which element.
TEST(lanes_that_walk_rows_of_their_own_should_share_them) {
  for (int walk = 0; walk < 2; walk++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
    in->pattern.scattered = WARPS, in->pattern.strided = in->pattern.stride_times = 0, in->pattern.stride = 0;
    in->pattern.steps = in->pattern.step_times = WARPS - 1056 * 8;
    in->pattern.step = walk ? 4 : 1000;
    const AuditFinding *f = find(rig_finish(&rig), "gather");
    if (CHECK(f))
      CHECK_MSG((strstr(f->fix, "share a row") != NULL) == (walk == 1), "walk %d: %s", walk, f->fix);
    audit_free(&rig.program);
  }
}

// A thread for each row: where the row becomes one value a warp takes it, where each element is stored the indices are swapped.
TEST(rows_that_become_values_are_shared_by_a_warp) {
  for (int elements = 0; elements < 2; elements++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
    in->pattern.steps = in->pattern.step_times = WARPS - 1056 * 8, in->pattern.step = 4;
    if (elements) add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 32, 4096);
    const AuditFinding *f = find(rig_finish(&rig), "column_walk");
    if (CHECK(f))
      CHECK_MSG((strstr(f->fix, "share a row") != NULL) == !elements, "elements %d: %s", elements, f->fix);
    audit_free(&rig.program);
  }
}

TEST(a_transposition_needs_tiles) {
  for (int along = 0; along < 2; along++) {
    Rig rig;
    rig_start(&rig);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 32, 4096);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, along ? 4 : 32, along ? 4 : 4096);
    const AuditFinding *f = find(rig_finish(&rig), "column_walk");
    if (CHECK(f))
      CHECK_MSG((strstr(f->fix, "swap the two") != NULL) == !along, "along %d: %s", along, f->fix);
    audit_free(&rig.program);
  }
}

// Two float4 a thread, loaded in one line: no structure, whose fields would have lines of their own.
TEST(two_wide_accesses_of_a_thread_are_no_structure) {
  for (int fields = 0; fields < 2; fields++) {
    Rig rig;
    rig_start(&rig);
    for (int i = 0; i < 2; i++) {
      AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 32);
      in->width = in->pattern.width = 16, in->offset = 16 * i;
      in->line += (uint32_t)(fields * i);
      in->counts.sectors_ideal = (uint64_t)WARPS * 16, in->counts.bytes = (uint64_t)WARPS * 512;
      in->pattern.allocation = BUFFER;
    }
    rig.launch.touch_count = 1;
    const AuditFinding *f = find(rig_finish(&rig), "aos");
    if (CHECK(f))
      CHECK_MSG((strstr(f->fix, "adjacent threads") != NULL) == !fields, "fields %d: %s", fields, f->fix);
    audit_free(&rig.program);
  }
}

TEST(a_stride_that_varies_is_not_named) {
  for (int varies = 0; varies < 2; varies++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 16, 64);
    if (varies) in->pattern.stride_times /= 8;
    const AuditFinding *f = find(rig_finish(&rig), "uncoalesced");
    if (CHECK(f)) CHECK_MSG((strstr(f->message, "64 bytes apart") != NULL) == !varies, "%s", f->message);
    audit_free(&rig.program);
  }
}

TEST(load_and_store_of_a_line_are_one_finding) {
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 32, 4096);
  const AuditKernel *k = rig_finish(&rig);
  CHECK_INT(find_all(k, "column_walk"), 1);
  audit_free(&rig.program);
}

TEST(the_same_but_cached_is_not_worth_a_word) {
  // Three fields of a 12-byte structure: 12 sectors a request, but L1 has two thirds of them, and DRAM gives
  // each byte once: nothing to gain where DRAM is the limit.
  Rig rig;
  rig_start(&rig);
  for (int i = 0; i < 3; i++) {
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 12, 12);
    static const char *const texts[] = {"ld.global.f32 %f1, [%rd1];", "ld.global.f32 %f2, [%rd1+4];",
                                        "ld.global.f32 %f3, [%rd1+8];"};
    in->text = texts[i];
    in->pattern.allocation = BUFFER;
    if (i) in->counts.l1_hits = in->counts.sectors, in->counts.l1_misses = in->counts.l2_misses = 0;
    if (i) in->counts.dram_read = 0;
  }
  rig.launch.touch_count = 1;
  rig.touches[0].bytes *= 3, rig.touches[0].read *= 3, rig.touches[0].read_first *= 3,
      rig.touches[0].read_sectors *= 3;
  const AuditKernel *k = rig_finish(&rig);
  CHECK(!find(k, "aos") && !find(k, "uncoalesced") && !find(k, "column_walk"));
  audit_free(&rig.program);
}

TEST(fields_are_told_from_a_loop) {
  // Two fields of a 32-byte structure; then the same lanes walking through their 32 bytes in a loop.
  for (int loop = 0; loop < 2; loop++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *a = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 32);
    if (loop) a->pattern.step = 4, a->pattern.steps = a->pattern.step_times = WARPS / 8 * 7;
    rig.touches[0].read /= 4; // sparse: the other fields are nobody's
    if (!loop) {
      AuditInst *b = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 32);
      b->text = "ld.global.f32 %f2, [%rd1+8];";
      b->offset = 8;
      b->pattern.allocation = BUFFER;
      rig.launch.touch_count = 1;
    }
    const AuditKernel *k = rig_finish(&rig);
    CHECK_MSG(find(k, loop ? "uncoalesced" : "aos") && !find(k, loop ? "aos" : "uncoalesced"), "loop %d",
              loop);
    audit_free(&rig.program);
  }
}

// Two fields are loaded and one of them stored: one finding, whose gain is that of both.
TEST(a_store_of_a_field_belongs_to_the_structure) {
  Rig rig;
  rig_start(&rig);
  for (int i = 0; i < 3; i++) {
    AuditInst *in = add_access(&rig, i < 2 ? SOL_EMU_KIND_GLOBAL_LOAD : SOL_EMU_KIND_GLOBAL_STORE, 32, 32);
    in->offset = i % 2 * 12;
    in->line = i < 2 ? 10 : 11;
    in->pattern.allocation = BUFFER;
  }
  rig.launch.touch_count = 1;
  rig.touches[0].written = rig.touches[0].read / 2, rig.touches[0].written_sectors = rig.touches[0].read / 4;
  rig.touches[0].read_sectors = rig.touches[0].read / 4;
  const AuditKernel *k = rig_finish(&rig);
  const AuditFinding *f = find(k, "aos");
  CHECK(f && !find(k, "uncoalesced") && !find(k, "partial_write"));
  if (f) CHECK_MSG(f->gain > 2, "%g", f->gain);
  audit_free(&rig.program);
}

TEST(values_of_no_interest_are_not_called_fp16) {
  // All zero; a handful; one that does not fit. And all that fit: that is the finding.
  static const struct {
    uint64_t values, fits, zeros;
    bool found;
  } cases[] = {{1 << 20, 1 << 20, 1 << 20, false},
               {64, 64, 0, false},
               {1 << 20, (1 << 20) - 1, 0, false},
               {1 << 20, 1 << 20, 1 << 10, true}};
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    in->pattern.values = cases[i].values;
    in->pattern.as_fp16 = cases[i].fits;
    in->pattern.as_bf16 = cases[i].zeros;
    in->pattern.zeros = cases[i].zeros;
    const AuditFinding *f = find(rig_finish(&rig), "wide_type");
    CHECK_MSG((f != NULL) == cases[i].found, "case %zu", i);
    if (f) CHECK_HAS(f->message, "fp16");
    audit_free(&rig.program);
  }
}

TEST(a_finding_must_matter_to_the_program) {
  // A column walk of a hundredth of the work, beside a kernel that is fine and takes nearly all the time.
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
  in->counts.requests /= 1024, in->counts.sectors /= 1024, in->counts.sectors_ideal /= 1024;
  in->counts.lines /= 1024;
  in->counts.l1_misses /= 1024, in->counts.l2_misses /= 1024, in->counts.dram_read /= 1024;
  CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
  rig.launch.name = "other";
  rig.launch.inst_count = rig.launch.touch_count = 0;
  for (int i = 0; i < 3; i++) add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  for (int i = 0; i < 50; i++) CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
  CHECK_INT(audit_finish(&rig.program, NULL), SOL_OK);
  const AuditKernel *k = &rig.program.kernels[0];
  CHECK_STR(k->name, "k");
  CHECK(!find(k, "column_walk"));
  audit_free(&rig.program);
}

TEST(findings_come_in_order_of_what_they_save) {
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096)->line = 20;
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  in->pattern.values = in->pattern.as_fp16 = WARPS;
  const AuditKernel *k = rig_finish(&rig);
  CHECK(k->finding_count >= 2);
  uint32_t last = k->finding_count - 1;
  for (uint32_t i = 1; i < last; i++) CHECK(k->findings[i].saved <= k->findings[i - 1].saved);
  CHECK_STR(k->findings[last].rule, "wide_type"); // it rests on the data of this run
  CHECK_HAS(k->findings[last].assumes, "values of this run");
  for (uint32_t i = 0; i < k->finding_count; i++) {
    CHECK(k->findings[i].gain >= RULE_MIN_GAIN);
    CHECK_NEAR(k->time.total / (k->time.total - k->findings[i].saved), k->findings[i].gain, 1e-9);
  }
  audit_free(&rig.program);
}

TEST(what_ran_before_the_time_limit_counts) {
  // A program that repeats its kernel until --seconds are over: only a kernel of which no launch ended says
  // too little.
  for (int whole = 0; whole < 2; whole++) {
    Rig rig;
    rig_start(&rig);
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
    if (whole) CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
    rig.launch.end = SOL_EMU_TIME_LIMIT;
    CHECK_INT(finds(&rig, "column_walk"), whole);
    audit_free(&rig.program);
  }
}

// ---- one rule each ----

TEST(no_gain_beyond_each_byte_once) {
  // Neighbours of a stencil, not aligned; all but one find their sectors in the caches, and memory gives each
  // byte once already.
  Rig rig;
  rig_start(&rig);
  for (int i = 0; i < 3; i++) {
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, i ? 5 : 4, 4);
    in->pattern.allocation = BUFFER;
    in->pattern.misaligned = i ? in->pattern.seen : 0;
    in->counts.dram_read = i == 2 ? in->counts.bytes : 0;
    in->counts.l2_misses = in->counts.dram_read / 32;
    in->counts.l1_hits = in->counts.sectors - in->counts.l2_misses;
    in->counts.l1_misses = in->counts.l2_misses;
  }
  rig.launch.touch_count = 1;
  CHECK(!finds(&rig, "misaligned"));
  audit_free(&rig.program);
}

TEST(one_width_in_all_words) {
  // The widest elements say how many a thread can take at once, the commonest how wide that access is.
  Rig rig;
  rig_start(&rig);
  AuditInst *one = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  AuditInst *two = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 8, 8);
  two->width = two->pattern.width = 8;
  two->pattern.contiguous = two->pattern.seen;
  two->counts.executions /= 2, two->counts.requests /= 2, two->pattern.seen /= 2,
      two->pattern.contiguous /= 2;
  one->counts.executions *= 8, one->counts.requests *= 8, one->counts.lanes *= 8;
  const AuditFinding *f = find(rig_finish(&rig), "narrow");
  if (CHECK(f)) {
    CHECK_HAS(f->message, "2 of them could be one access of 8 bytes");
    CHECK_HAS(f->fix, "2 neighbouring elements with one access of 8 bytes (float2, uint2)");
  }
  audit_free(&rig.program);
}

TEST(a_search_cannot_be_unrolled) {
  // One load at a time on few warps: by equal steps, and to wherever the last value said.
  for (int chase = 0; chase < 2; chase++) {
    Rig rig;
    rig_start(&rig);
    rig.launch.grid[0] = 132, rig.launch.blocks = 132;
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 16, 16);
    in->width = in->pattern.width = 16;
    in->counts.sectors_ideal = in->counts.sectors;
    in->pattern.steps = WARPS - 132 * 8;
    in->pattern.step = 16 * 256 * 132;
    in->pattern.step_times = chase ? WARPS / 100 : in->pattern.steps;
    const AuditFinding *f = find(rig_finish(&rig), "in_flight");
    CHECK_MSG((f != NULL) == (chase == 0), "chase %d", chase);
    if (f) CHECK_HAS(f->fix, "#pragma unroll");
    audit_free(&rig.program);
  }
}

// Only a store in the loop of the load can be in its way.
TEST(pointers_are_to_be_restricted_where_a_store_is_in_the_loop) {
  for (int apart = 0; apart < 2; apart++) {
    Rig rig;
    rig_start(&rig);
    rig.launch.grid[0] = 132, rig.launch.blocks = 132;
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 16, 16);
    in->width = in->pattern.width = 16;
    in->counts.sectors_ideal = in->counts.sectors;
    in->pattern.steps = in->pattern.step_times = WARPS - 132 * 8;
    in->pattern.step = 16 * 256 * 132;
    AuditInst *between = add_shared(&rig, SOL_EMU_KIND_OTHER, "add.s32 %r1, %r1, 1;", 0, 0, 0);
    between->unit = SOL_EMU_CLASS_INT;
    between->counts =
        (SolEmuCounts){.executions = apart ? 132 * 8 : WARPS, .lanes = apart ? 132 * 256 : WARPS * 32};
    add_shared(&rig, SOL_EMU_KIND_GLOBAL_STORE, "st.global.f32 [%rd2], %f1;", 0, 4, 4)->counts.executions =
        WARPS;
    const AuditFinding *f = find(rig_finish(&rig), "in_flight");
    if (CHECK(f))
      CHECK_MSG((strstr(f->fix, "__restrict__") != NULL) == !apart, "apart %d: %s", apart, f->fix);
    audit_free(&rig.program);
  }
}

TEST(occupancy_advice_holds) {
  // What the fix says an SM would hold is what the calculator says.
  static const struct {
    int regs;
    uint64_t shared;
    const char *unit;
  } cases[] = {{255, 0, "registers"}, {32, 100 << 10, "shared memory"}};
  for (size_t i = 0; i < SOL_COUNT(cases); i++) {
    Rig rig;
    rig_start(&rig);
    rig.launch.registers = cases[i].regs;
    rig.launch.dynamic_shared = cases[i].shared;
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    const AuditFinding *f = find(rig_finish(&rig), "occupancy");
    double most = 0;
    int blocks = 0;
    if (!CHECK(f)) continue;
    CHECK_HAS(f->message, cases[i].unit);
    CHECK(sscanf(f->fix, "At %lf", &most) == 1);
    const char *holds = strstr(f->fix, "an SM holds ");
    if (CHECK(holds)) CHECK(sscanf(holds, "an SM holds %d", &blocks) == 1);
    SolKernelShape shape = {
        .threads = 256, .regs = i ? 32 : (int64_t)most, .smem = i ? (int64_t)(most * 1024) : 0};
    SolOccupancy o;
    CHECK_INT(sol_occupancy(rig.program.device, &shape, &o, NULL), SOL_OK);
    CHECK_INT(o.blocks_per_sm, blocks);
    audit_free(&rig.program);
  }
}

TEST(registers_that_were_guessed_limit_nothing) {
  Rig rig;
  rig_start(&rig);
  rig.launch.registers = 255;
  rig.launch.registers_from = AUDIT_FROM_EMULATOR;
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  CHECK(!finds(&rig, "occupancy"));
  audit_free(&rig.program);
}

TEST(a_last_wave_that_is_nearly_full_is_no_tail) {
  // One block an SM: 133 blocks leave 131 SMs waiting, 231 only 33.
  for (uint32_t blocks = 133; blocks <= 231; blocks += 98) {
    Rig rig;
    rig_start(&rig);
    rig.launch.grid[0] = blocks, rig.launch.blocks = blocks;
    rig.launch.dynamic_shared = 200 << 10;
    for (int i = 0; i < 4; i++)
      add_shared(&rig, SOL_EMU_KIND_SHARED_LOAD, "ld.shared.f32 %f1, [%r1];", 1, 4, 4);
    CHECK_MSG(finds(&rig, "tail") == (blocks == 133), "%u blocks", blocks);
    audit_free(&rig.program);
  }
}

TEST(launches_in_graphs_are_cheap_enough) {
  for (int graph = 0; graph < 2; graph++) {
    Rig rig;
    rig_start(&rig);
    rig.launch.grid[0] = 1, rig.launch.blocks = 1;
    rig.launch.graph = graph;
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    in->counts = (SolEmuCounts){
        .executions = 8, .lanes = 256, .requests = 8, .bytes = 1024, .sectors = 32, .sectors_ideal = 32};
    rig.touches[0].read = rig.touches[0].read_first = 1024;
    for (int i = 0; i < 20; i++) CHECK_INT(audit_add(&rig.program, &rig.launch, NULL), SOL_OK);
    CHECK_MSG(finds(&rig, "launch_bound") == (graph == 0), "graph %d", graph);
    audit_free(&rig.program);
  }
}

// ---- what is no fault ----

TEST(a_loop_that_waits_for_a_value_is_not_to_be_unrolled) {
  for (int64_t step = 0; step < 8; step += 4) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 1, 4);
    in->pattern.stride = 0, in->pattern.contiguous = 0, in->pattern.strided = 0, in->pattern.uniform = WARPS;
    in->pattern.step = step, in->pattern.steps = in->pattern.step_times = WARPS;
    in->counts.executions = in->counts.requests = WARPS * 8, in->counts.lanes = WARPS * 8 * 32;
    in->counts.dram_read = 32 << 10, rig.touches[0].read = rig.touches[0].read_first = 32 << 10;
    rig.launch.flight = (SolEmuFlight){.loads = WARPS * 8, .bytes = WARPS * 32, .waits = WARPS * 8};
    CHECK_MSG(finds(&rig, "in_flight") == (step != 0), "step %lld", (long long)step);
    audit_free(&rig.program);
  }
}

TEST(idle_lanes_and_arithmetic_need_no_wider_accesses) {
  for (int which = 0; which < 4; which++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    if (which == 1) in->counts.lanes /= 2;
    if (which == 3) rig.launch.blocks = rig.launch.grid[0] = WARPS; // of eight warps one comes there
    if (which == 2) {
      AuditInst *fma = add_shared(&rig, SOL_EMU_KIND_OTHER, "fma.rn.f32 %f1, %f1, %f1, %f1;", 0, 0, 0);
      fma->unit = SOL_EMU_CLASS_FLOAT;
      fma->counts = (SolEmuCounts){.executions = (uint64_t)WARPS * 512, .lanes = (uint64_t)WARPS * 512 * 32};
    }
    CHECK_MSG(finds(&rig, "narrow") == (which == 0), "case %d", which);
    audit_free(&rig.program);
  }
}

// One lane in 32 of a block reads the element left of its row: a column, but of the edge alone.
TEST(the_edge_of_a_tile_is_no_column_walk) {
  for (int edge = 0; edge < 2; edge++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *rows = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    AuditInst *column = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
    column->line = 11;
    column->pattern.allocation = rows->pattern.allocation;
    rig.launch.touch_count = 1;
    if (edge) column->counts.lanes /= 8, column->counts.bytes /= 8;
    CHECK_MSG(finds(&rig, "column_walk") == (edge == 0), "edge %d", edge);
    audit_free(&rig.program);
  }
}

// ---- small inputs ----

// The same column walk by 8 blocks: the grid stands apart, the walk is worth what it is on a full GPU.
TEST(a_small_input_is_priced_as_if_it_filled_the_gpu) {
  double gain[2] = {0};
  for (int small = 0; small < 2; small++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
    in->pattern.steps = 1;
    if (small) {
      uint64_t *counts = (uint64_t *)&in->counts;
      for (size_t i = 0; i < sizeof in->counts / sizeof *counts; i++) counts[i] /= 128;
      rig.touches[0].read = rig.touches[0].read_first /= 128, rig.touches[0].read_sectors /= 128;
      in->pattern.seen /= 128, in->pattern.strided /= 128, in->pattern.stride_times /= 128;
      rig.launch.grid[0] = 8, rig.launch.blocks = 8;
      rig.launch.flight = (SolEmuFlight){.loads = WARPS / 128.0, .bytes = WARPS, .waits = WARPS / 128.0};
    }
    const AuditKernel *k = rig_finish(&rig);
    const AuditFinding *walk = find(k, "column_walk"), *grid = find(k, "small_grid");
    CHECK((grid != NULL) == small);
    if (grid) CHECK(grid->at_this_size && grid > walk);
    if (CHECK(walk)) gain[small] = walk->gain, CHECK(walk->at_full_size == small && !walk->at_this_size);
    audit_free(&rig.program);
  }
  CHECK_MSG(gain[1] > 0.6 * gain[0], "%g, and on a full GPU %g", gain[1], gain[0]);
}

// ---- what reading bills against their sources showed (docs/audit-review.md) ----

// One atomic on one address would bind a full grid; by 8 blocks the walk costs most, and is told.
TEST(what_would_bind_a_full_grid_hides_no_waste) {
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 4096);
  AuditInst *atomic = add_access(&rig, SOL_EMU_KIND_GLOBAL_ATOMIC, 1, 4);
  in->pattern.steps = 1;
  in->counts.dram_read = in->counts.l2_misses = 0;
  in->counts.l1_misses = WARPS / 16, in->counts.l1_hits = in->counts.sectors - WARPS / 16;
  uint64_t n = 4096;
  atomic->counts =
      (SolEmuCounts){.executions = n, .lanes = n * 32, .requests = n, .sectors = n, .sectors_ideal = n};
  atomic->counts.atomics = atomic->pattern.same = atomic->pattern.hottest = n * 32;
  atomic->pattern.queue_lanes = n * 32, atomic->pattern.queue_packets = n;
  rig.launch.grid[0] = 8, rig.launch.blocks = 8;
  rig.launch.flight = (SolEmuFlight){.loads = WARPS, .bytes = WARPS * 128, .waits = WARPS / 16.0};
  const AuditKernel *k = rig_finish(&rig);
  const AuditFinding *f = find(k, "column_walk");
  if (CHECK(f)) CHECK_MSG(f->gain > 1.5 && !f->at_this_size, "%g", f->gain);
  audit_free(&rig.program);
}

// Blocks of one warp, each with an access: starting them is what takes the time, and no width of accesses helps.
TEST(many_small_blocks_are_to_be_larger) {
  for (uint32_t threads = 32; threads <= 256; threads *= 8) {
    Rig rig;
    rig_start(&rig);
    rig.launch.block[0] = threads;
    rig.launch.blocks = rig.launch.grid[0] = WARPS * 32 / threads;
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4)->counts.dram_read = 0;
    const AuditKernel *k = rig_finish(&rig);
    const AuditFinding *f = find(k, "tiny_blocks");
    CHECK_MSG((f != NULL) == (threads == 32), "threads %u, bound %d", threads, k->time.bound);
    if (f) CHECK_HAS(f->message, "131072 blocks of 32 threads");
    audit_free(&rig.program);
  }
}

// Of a grid with as many blocks as there are elements most do nothing; a warp that computes for long is not idle.
TEST(idle_blocks_are_named) {
  for (int which = 0; which < 3; which++) {
    Rig rig;
    rig_start(&rig);
    uint64_t blocks = which ? WARPS : WARPS / 8, n = blocks * 8;
    rig.launch.blocks = rig.launch.grid[0] = (uint32_t)blocks;
    add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
    AuditInst *in = add_shared(&rig, SOL_EMU_KIND_OTHER, "add.s32 %r1, %r1, 1;", 0, 0, 0);
    in->unit = SOL_EMU_CLASS_INT;
    in->counts =
        (SolEmuCounts){.executions = n * (which == 2 ? 100 : 4), .lanes = n * 32 * (which == 2 ? 100 : 4)};
    const AuditFinding *f = find(rig_finish(&rig), "tiny_blocks");
    CHECK_MSG((f != NULL) == (which == 1), "case %d", which);
    if (f) CHECK_HAS(f->message, "At most 12% of the warps of these 131072 blocks");
    if (f) CHECK_HAS(f->fix, "at most 16384 here");
    audit_free(&rig.program);
  }
}

TEST(all_of_a_small_structure_is_taken_at_once) {
  Rig rig;
  rig_start(&rig);
  add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 8, 8);
  AuditInst *b = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 8, 8);
  b->offset = 4;
  b->pattern.allocation = BUFFER;
  rig.launch.touch_count = 1;
  const AuditFinding *f = find(rig_finish(&rig), "aos");
  if (CHECK(f)) CHECK_HAS(f->fix, "float2");
  audit_free(&rig.program);
}

// Waiting warps of 8 blocks: loads in flight, not fewer threads with wider ones.
TEST(a_grid_that_leaves_sms_idle_needs_loads_in_flight) {
  Rig rig;
  rig_start(&rig);
  AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 4, 4);
  in->pattern.step = 4096, in->pattern.steps = in->pattern.step_times = WARPS;
  rig.launch.grid[0] = 8, rig.launch.blocks = 8;
  rig.launch.flight.loads = WARPS / 8.0; // most waits are for something else
  const AuditKernel *k = rig_finish(&rig);
  CHECK(!find(k, "narrow"));
  const AuditFinding *f = find(k, "in_flight");
  if (CHECK(f)) CHECK(!strstr(f->fix, "Issue 0") && !strstr(f->fix, "Issue 1 "));
  audit_free(&rig.program);
}

// An asynchronous copy of whole sectors, 16 bytes off a line: five lines where four would do.
TEST(asynchronous_copies_off_a_line) {
  for (int off = 0; off < 2; off++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 16, 16);
    in->width = in->pattern.width = 16;
    in->async = true;
    in->pattern.contiguous = WARPS;
    in->counts.bytes *= 4, in->counts.sectors_ideal *= 4;
    in->counts.lines = (uint64_t)WARPS * (off ? 5 : 4);
    in->counts.l1_hits = in->counts.l1_misses; // L1 binds
    in->counts.dram_read = in->counts.l1_misses = in->counts.l2_misses = 0;
    rig.touches[0].read = rig.touches[0].read_first = 1 << 20;
    rig.launch.flight.waits = WARPS / 64.0;
    CHECK_MSG(finds(&rig, "async_line") == (off == 1), "off %d", off);
    audit_free(&rig.program);
  }
}

// A sparse row a thread, whose loop was unrolled: what remains of it still steps by one element.
TEST(a_loop_over_short_rows_is_no_structure_though_it_was_unrolled) {
  for (int rest = 0; rest < 2; rest++) {
    Rig rig;
    rig_start(&rig);
    for (int i = 0; i < 3; i++) {
      AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_LOAD, 32, 56);
      in->width = in->pattern.width = 8, in->base = i < 2 ? 1 : 2, in->offset = i < 2 ? 8 * i : 0;
      in->pattern.allocation = BUFFER, in->pattern.stride_times -= WARPS / 32;
      if (i == 2 && rest) in->pattern.steps = in->pattern.step_times = WARPS, in->pattern.step = 8;
    }
    rig.launch.touch_count = 1;
    const AuditKernel *k = rig_finish(&rig);
    CHECK_MSG((find(k, "aos") != NULL) == !rest, "rest %d", rest);
    const AuditFinding *f = find(k, "uncoalesced");
    if (rest && CHECK(f)) CHECK_HAS(f->fix, "share a row");
    audit_free(&rig.program);
  }
}

// Bytes stored down the columns of an array, two thirds of which are left out.
TEST(a_walk_down_columns_that_leaves_some_out_is_one) {
  for (int all = 0; all < 2; all++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 32, 4096);
    in->width = in->pattern.width = 1, in->counts.bytes /= 4, in->counts.sectors_ideal /= 4;
    rig.touches[0].written = rig.touches[0].written_sectors * (all ? 11 : 1);
    const AuditKernel *k = rig_finish(&rig);
    CHECK_MSG((find(k, "column_walk") != NULL) == all, "all %d", all);
    CHECK_MSG((find(k, "uncoalesced") != NULL) == !all, "all %d", all);
    audit_free(&rig.program);
  }
}

// Lists of 256 numbers, a lane each, that are filled in part.
TEST(lanes_that_fill_lists_of_their_own_use_what_is_between) {
  for (int walks = 0; walks < 2; walks++) {
    Rig rig;
    rig_start(&rig);
    AuditInst *in = add_access(&rig, SOL_EMU_KIND_GLOBAL_STORE, 32, 1024);
    rig.touches[0].written /= 8;
    if (walks) in->pattern.steps = in->pattern.step_times = WARPS, in->pattern.step = 4;
    const AuditFinding *f = find(rig_finish(&rig), "uncoalesced");
    if (CHECK(f)) {
      CHECK_MSG((strstr(f->fix, "share a row") != NULL) == walks, "%s", f->fix);
      CHECK_MSG((strstr(f->fix, "never uses") != NULL) == !walks, "%s", f->fix);
    }
    audit_free(&rig.program);
  }
}

CHECK_MAIN
