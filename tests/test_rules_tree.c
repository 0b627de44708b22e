// The rule about trees in shared memory, on made-up kernels of 1056 blocks of 256 threads: what is one, and what only has barriers too.
#include "rules_rig.h"

// TURNS: wavefronts of an access, as of values of 16 bytes, so that it is not starting the blocks that binds.
enum { BLOCKS = 1056, THREADS = 256, LEVELS = 8, TURNS = 4 };

static AuditInst *add_step(Rig *rig, SolEmuKind kind, uint64_t executions, uint64_t lanes) {
  AuditInst *in = add_shared(rig, kind, "st.shared.f32 [%r1], %f1;", 1, 4, 4);
  in->counts = (SolEmuCounts){.executions = executions,
                              .lanes = lanes,
                              .shared_requests = executions,
                              .wavefronts = TURNS * executions,
                              .wavefronts_ideal = TURNS * executions};
  return in;
}

static void add_barriers(Rig *rig, uint64_t of_a_warp) {
  AuditInst *in =
      add_step(rig, SOL_EMU_KIND_OTHER, of_a_warp * BLOCKS * LEVELS, of_a_warp * BLOCKS * THREADS);
  in->barrier = true, in->width = 0;
}

// Threads of a block that store, warps that do, and barriers: of one tree, of a scan whose steps all threads take part in, of a sort.
TEST(a_tree_stores_one_value_less_than_threads) {
  static const struct {
    const char *what;
    uint64_t lanes, executions, barriers;
    bool tree;
  } cases[] = {
      {"neighbours first", 255, 47, 8, true},     {"halves first", 255, 12, 8, true},
      {"two barriers a step", 255, 12, 16, true}, {"two trees", 510, 24, 16, true},
      {"one guarded store", 255, 8, 1, false},    {"a scan", 1793, 60, 16, false},
      {"both sweeps", 765, 141, 16, false},       {"a sort", 255, 47, 72, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig rig;
    rig_start(&rig);
    add_step(&rig, SOL_EMU_KIND_SHARED_STORE, (uint64_t)BLOCKS * LEVELS,
             (uint64_t)BLOCKS * THREADS); // every thread's value
    add_step(&rig, SOL_EMU_KIND_SHARED_STORE, BLOCKS * cases[i].executions, BLOCKS * cases[i].lanes)->line =
        14;
    add_barriers(&rig, cases[i].barriers);
    const AuditFinding *f = find(rig_finish(&rig), "tree");
    CHECK_MSG((f != NULL) == cases[i].tree, "%s", cases[i].what);
    if (f) {
      CHECK_INT(f->line, 14);
      CHECK_HAS(f->message, "8 steps");
    }
    audit_free(&rig.program);
  }
}

// The same where the compiler unrolled the loop: a store of each step, of which the first fill their warps.
TEST(an_unrolled_tree_is_one) {
  Rig rig;
  rig_start(&rig);
  for (uint64_t lanes = 128; lanes > 2; lanes /= 2)
    add_step(&rig, SOL_EMU_KIND_SHARED_STORE, (lanes + 31) / 32 * BLOCKS, lanes * BLOCKS);
  add_step(&rig, SOL_EMU_KIND_SHARED_STORE, BLOCKS * 2, BLOCKS * 3); // the last two
  add_barriers(&rig, LEVELS);
  CHECK(finds(&rig, "tree"));
  audit_free(&rig.program);
}

CHECK_MAIN
