// Pools of threads: work that all do, work that they share, and what a forked process does about its parent's.
#define _GNU_SOURCE
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "emu/emu.h"

enum { WORKERS = 4, PARTS = 1000 };
typedef struct Job {
  uint32_t next, done[PARTS], ran[WORKERS];
} Job;

static void each(void *ctx, int worker) {
  Job *job = ctx;
  job->ran[worker]++;
}
static void take_parts(void *ctx, int worker) {
  Job *job = ctx;
  job->ran[worker]++;
  for (uint32_t i; (i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < PARTS;) job->done[i]++;
}

TEST(all_run_or_share) {
  static Job job;
  SolPool *pool = sol_pool_create(WORKERS);
  if (!CHECK(pool && sol_pool_usable(pool))) return;
  for (int round = 0; round < 200; round++) {
    memset(&job, 0, sizeof job);
    sol_pool_share(pool, round % WORKERS + 1, take_parts, &job);
    for (int i = 0; i < PARTS; i++) CHECK_INT(job.done[i], 1);
    CHECK_INT(job.ran[0], 1);
    for (int w = 1; w < WORKERS; w++) CHECK(job.ran[w] <= (w <= round % WORKERS));
    memset(&job, 0, sizeof job);
    sol_pool_run(pool, each, &job);
    for (int w = 0; w < sol_pool_count(pool); w++) CHECK_INT(job.ran[w], 1);
  }
  sol_pool_destroy(pool);
}

// ---- launches ----

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 y, .param .u32 rounds) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p;\n"
    "  ld.param.u64 %rd1, [y]; ld.param.u32 %r1, [rounds]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
    "  mov.u32 %r4, %tid.x; mad.lo.u32 %r4, %r2, %r3, %r4; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd1, %rd1, %rd2;\n"
    "  ld.global.u32 %r5, [%rd1];\n"
    "again: add.u32 %r5, %r5, 1; sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;\n"
    "  st.global.u32 [%rd1], %r5; ret;\n}\n";

enum { BLOCKS = 64, THREADS = 64 };
typedef struct Rig {
  SolEmu *emu;
  SolEmuModule *module;
  uint64_t y;
} Rig;

static bool launch(Rig *r, uint32_t rounds, uint32_t expected) {
  static uint32_t y[BLOCKS * THREADS];
  SolError err = {0};
  SolEmuResult result = {0};
  struct {
    uint64_t y;
    uint32_t rounds;
  } args = {r->y, rounds};
  SolEmuLaunch l = {.kernel = sol_emu_kernel(r->module, "add"),
                    .grid = {BLOCKS, 1, 1},
                    .block = {THREADS, 1, 1},
                    .params = &args,
                    .param_bytes = 12};
  bool fine = !sol_emu_launch(r->emu, &l, &result, &err) && !sol_emu_read(r->emu, y, r->y, sizeof y, &err) &&
              result.blocks == BLOCKS;
  for (int i = 0; i < BLOCKS * THREADS; i++) fine = fine && y[i] == expected;
  sol_emu_result_free(&result);
  return fine;
}

// Long launches and brief ones, before and after a fork.
TEST(a_forked_process_has_workers_of_its_own) {
  Rig r = {0};
  SolError err = {0};
  SolPtxSource source = {"threads", text, sizeof text - 1};
  if (!CHECK(!sol_emu_create(&(SolEmuMachine){.workers = WORKERS}, &r.emu, &err) &&
             !sol_emu_load(r.emu, &source, 1, &r.module, &err) &&
             !sol_emu_alloc(r.emu, 4 * BLOCKS * THREADS, "y", &r.y, &err)))
    return;
  CHECK(launch(&r, 500, 500) && launch(&r, 1, 501) && launch(&r, 1, 502) && launch(&r, 500, 1002));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    bool fine = launch(&r, 500, 1502) && launch(&r, 1, 1503) && launch(&r, 500, 2003);
    sol_emu_destroy(r.emu);
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(launch(&r, 500, 1502));
  sol_emu_destroy(r.emu);
}

CHECK_MAIN
