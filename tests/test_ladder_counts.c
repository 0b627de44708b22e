// What the ladders' texts say of sectors, wavefronts, atomics and launches, held against exact counts at
// sizes that leave no rest.
#include "check.h"
#include "ladder/ladder_run.h"

typedef struct Climb {
  const Ladder *ladder;
  LadderSession session;
  LadderRun run;
  bool open;
} Climb;

// false: the tool was built without nvcc, or something failed and has been reported.
static bool climb_open(Climb *c, const Ladder *ladder, int64_t a, int64_t b, int64_t d) {
  *c = (Climb){.ladder = ladder};
  LadderOptions o = {.backend = SOL_BACKEND_EMU};
  LadderCase size = {.dim = {a, b, d}, .dtype = ladder->dtypes[0]};
  SolError err = {0};
  if (!ladder_image_count) return false;
  if (!CHECK_MSG(!sol_device_find("h200", &o.device, &err), "%s", err.message)) return false;
  if (!CHECK_MSG(!ladder_session_open(&c->session, &o, &err), "%s", err.message)) return false;
  c->open = CHECK_MSG(!ladder_open(&c->run, &c->session, ladder, &size, &err), "%s", err.message);
  return c->open;
}

static void climb_close(Climb *c) {
  if (c->open) ladder_close(&c->run);
  if (c->session.ctx) ladder_session_close(&c->session);
}

static LadderFigures go(Climb *c, const char *rung) {
  LadderFigures f = {0};
  int i = ladder_rung(c->ladder, rung, NULL);
  if (CHECK_MSG(i >= 0, "no rung %s", rung))
    CHECK_MSG(!ladder_go(&c->run, &c->ladder->rungs[i], &f), "%s: %s", rung, f.message);
  return f;
}

TEST(bias_relu_scale) {
  enum { M = 64, N = 256, WARPS = M * N / 32 };
  Climb c;
  if (climb_open(&c, &ladder_bias_relu_scale, M, N, 0)) {
    LadderFigures three = go(&c, "three"), fused = go(&c, "fused"), vectors = go(&c, "vectorised");
    CHECK_INT(three.launches, 3);
    CHECK_INT(fused.launches, 1);
    CHECK_INT(three.counts.store_requests, 3 * WARPS);
    CHECK_INT(three.counts.load_requests, 4 * WARPS); // the bias once
    CHECK_INT(fused.counts.load_requests, 2 * WARPS);
    CHECK_INT(fused.counts.store_requests, WARPS);
    CHECK_INT(vectors.counts.load_requests * 4, fused.counts.load_requests);
    CHECK_INT(vectors.counts.store_requests * 4, fused.counts.store_requests);
    CHECK_INT(ladder_sectors(&vectors.counts), ladder_sectors(&fused.counts));
    LadderFigures graph = go(&c, "three-graph"), stream = go(&c, "one-stream");
    CHECK(three.us > graph.us && stream.us > fused.us &&
          stream.us < three.us); // launches cost less in graphs
  }
  climb_close(&c);
}

TEST(reduce) {
  enum { N = 1 << 16 };
  Climb c;
  if (climb_open(&c, &ladder_reduce, N, 0, 0)) {
    LadderFigures atomics = go(&c, "atomics"), near = go(&c, "interleaved"), far = go(&c, "sequential");
    LadderFigures shuffles = go(&c, "shuffles"), vectors = go(&c, "vectorised"), one = go(&c, "one-pass");
    CHECK_INT(atomics.counts.atomic_requests, N / 32);
    CHECK_INT(near.launches, 2);
    CHECK_INT(far.counts.wavefronts, far.counts.shared_requests); // no two lanes in a bank
    CHECK(near.counts.wavefronts > 3 * far.counts.wavefronts);
    CHECK(shuffles.counts.wavefronts * 4 < far.counts.wavefronts);
    CHECK_INT(vectors.launches, 2);
    CHECK_INT(vectors.counts.load_requests, N / 128 + 1); // and the blocks' sums
    CHECK_INT(one.launches, 1);
    CHECK_INT(one.counts.atomic_requests, N / 4096);
  }
  climb_close(&c);
}

TEST(histogram) {
  enum { N = 1 << 15, BINS = 64 };
  Climb c;
  if (climb_open(&c, &ladder_histogram, N, BINS, 0)) {
    LadderFigures global = go(&c, "global"), shared = go(&c, "shared"), library = go(&c, "library");
    CHECK_INT(global.counts.atomic_requests, N / 32);
    CHECK_INT(shared.counts.atomic_requests, N / 512 * (BINS / 32)); // blocks of 512 threads
    CHECK_INT(shared.counts.load_requests, N / 32);
    CHECK_INT(library.counts.load_requests, N / 128);
    CHECK_INT(global.launches, 2); // counts are cleared
    CHECK_INT(library.launches, 2);
  }
  climb_close(&c);
}

TEST(a_skewed_histogram_queues_for_one_word) {
  enum { N = 1 << 18, BINS = 256 };
  double us[2] = {0};
  const Ladder *const two[2] = {&ladder_histogram, &ladder_histogram_skewed};
  for (int i = 0; i < 2; i++) {
    Climb c;
    if (climb_open(&c, two[i], N, BINS, 0)) us[i] = go(&c, "global").us;
    climb_close(&c);
  }
  if (ladder_image_count) CHECK_MSG(us[1] > 2 * us[0], "%g us, and %g when skewed", us[0], us[1]);
}

TEST(stencil) {
  enum { M = 128, N = 256, WARPS = M * N / 32 };
  Climb c;
  if (climb_open(&c, &ladder_stencil, M, N, 0)) {
    LadderFigures global = go(&c, "global"), tile = go(&c, "tile"), registers = go(&c, "registers");
    LadderFigures library = go(&c, "library");
    CHECK(global.counts.load_requests > 16 * WARPS && global.counts.load_requests <= 17 * WARPS);
    CHECK(tile.counts.load_requests < 3 * WARPS);
    CHECK(tile.counts.wavefronts > 17 * WARPS && registers.counts.wavefronts < 13 * WARPS);
    CHECK_INT(tile.counts.wavefronts, tile.counts.shared_requests);
    CHECK_INT(registers.counts.wavefronts, registers.counts.shared_requests);
    CHECK_INT(tile.counts.store_sectors, WARPS * 4);
    // The library's vectors leave as vectors: nvcc once made four stores of each, 16 sectors for every one of
    // them.
    CHECK_INT(library.counts.store_requests, WARPS / 4);
    CHECK_INT(library.counts.store_sectors, WARPS * 4);
  }
  climb_close(&c);
}

TEST(particles) {
  enum { N = 1 << 12, WARPS = N / 32 };
  Climb c;
  if (climb_open(&c, &ladder_particles, N, 0, 0)) {
    LadderFigures structures = go(&c, "structures"), whole = go(&c, "whole-structures");
    LadderFigures arrays = go(&c, "arrays"), vectors = go(&c, "vectorised");
    CHECK_INT(structures.counts.load_sectors, 24 * structures.counts.load_requests);
    CHECK_INT(structures.counts.store_sectors, 24 * structures.counts.store_requests);
    CHECK_INT(whole.counts.store_sectors, N * 6 / 8); // velocities, too
    CHECK_INT(arrays.counts.load_sectors, 4 * arrays.counts.load_requests);
    CHECK_INT(arrays.counts.load_requests, 6 * WARPS);
    CHECK_INT(arrays.counts.store_sectors, N * 3 / 8);
    CHECK_INT(vectors.counts.load_requests * 4, arrays.counts.load_requests);
    CHECK_INT(ladder_sectors(&vectors.counts), ladder_sectors(&arrays.counts));
  }
  climb_close(&c);
}

TEST(gather) {
  enum { M = 1 << 10, N = 16, ROWS = 2 * M, WORDS = M * N, WARPS = WORDS / 32 };
  Climb c;
  if (climb_open(&c, &ladder_gather, M, N, ROWS)) {
    LadderFigures scattered = go(&c, "scattered"), sorted = go(&c, "sorted"), runs = go(&c, "runs");
    LadderFigures library = go(&c, "library");
    CHECK(scattered.counts.load_sectors > 30 * WARPS); // nearly one a word, and the ids
    CHECK_INT(sorted.counts.load_sectors, 8 * WARPS);
    CHECK_INT(runs.counts.load_sectors, 5 * WARPS); // two ids of a warp lie in one sector
    CHECK_INT(runs.counts.load_requests, sorted.counts.load_requests);
    CHECK_INT(library.counts.store_requests, WARPS / 4);
    CHECK_INT(library.counts.store_sectors, 4 * WARPS);
  }
  climb_close(&c);
}

CHECK_MAIN
