// Moving particles: what the layout of the data decides.
#include "base/port.h"
#include "kernels/particles/rungs.h"
#include "ladder/ladder.h"

enum { PARTICLES, BUFFERS, THREADS = 256, LINE = 32, STRUCTURES = 0, ARRAYS = 1 }; // the last two: rung.x
static const float dt = 0.01f;

// From array to array: whole lines.
static int64_t stride_of(const LadderCase *c) {
  return (c->dim[0] + LINE - 1) / LINE * LINE;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[PARTICLES] =
      (LadderBuffer){.name = "particles", .dtype = SOL_FP32, .count = 6 * stride_of(c), .role = OPS_INOUT};
  return BUFFERS;
}

// Positions in and out, velocities in.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 9.0 * 4 * (double)c->dim[0];
}

// How far from element k its velocity is; 0: it is no position and stays as it is.
static int64_t velocity_of(const LadderHost *h, int64_t k) {
  int64_t stride = stride_of(h->c), n = h->c->dim[0];
  if (h->rung->x == STRUCTURES) return k < 6 * n && k % 6 < 3 ? 3 : 0;
  return k < 3 * stride && k % stride < n ? 3 * stride : 0;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  for (int64_t k = first; k < first + count; k++) {
    int64_t away = velocity_of(h, k);
    *out = h->value(h, buffer, k);
    if (away) *out += h->value(h, buffer, k + away) * (double)dt;
    out++;
  }
}

static SolStatus launch(const LadderCall *call, const char *kernel, uint64_t each, SolError *err) {
  ParticlesRung p = {.particles = ladder_at(call, PARTICLES),
                     .n = (uint64_t)call->c.dim[0],
                     .stride = (uint64_t)stride_of(&call->c),
                     .dt = dt};
  LadderGrid grid = {.block = {THREADS}};
  ops_grid(grid.grid, (p.n + each - 1) / each, THREADS);
  return ladder_launch(call, kernel, &grid, &p, sizeof p, err);
}

static SolStatus structures(const LadderCall *call, SolError *err) {
  return launch(call, "particles_rung_structures", 1, err);
}
static SolStatus arrays(const LadderCall *call, SolError *err) {
  return launch(call, "particles_rung_arrays", 1, err);
}
static SolStatus vectorised(const LadderCall *call, SolError *err) {
  return launch(call, "particles_rung_vectorised", 4, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  float *at = ladder_at(call, PARTICLES);
  SolParticles a = {.position = at, .n = call->c.dim[0], .dt = dt, .structures = 1};
  if (call->rung->x == ARRAYS)
    a.velocity = at + 3 * stride_of(&call->c), a.stride = stride_of(&call->c), a.structures = 0;
  return ladder_op(call, &ops_particles, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "structures",
     .change = "an array of structures {x y z vx vy vz}, a thread a particle, field by field",
     .why = "The lanes of a warp read the same field of neighbouring particles, 24 bytes apart: each of six "
            "loads touches every sector of the warp's particles. The L1 cache turns most of them into hits, "
            "at the price of six passes over it. And sectors that hold a position hold velocities, too: all "
            "of them are written back.",
     .go = structures,
     .x = STRUCTURES},
    {.name = "whole-structures",
     .change = "sol_particles on the same layout: lanes take vectors of 16 bytes, neighbours swap velocities",
     .why = "Two particles are three vectors. Read and written whole they are perfectly coalesced; shuffles "
            "bring each position its velocity. The layout still makes every velocity go back to memory.",
     .story = LADDER_FASTER,
     .go = library,
     .x = STRUCTURES},
    {.name = "arrays",
     .change = "a structure of arrays, a thread a particle: all x in a row, all y, and so on",
     .why =
         "Neighbouring lanes read neighbouring words with no trick at all, and velocities lie by themselves "
         "and are never written: a quarter of the bytes of the structures is gone.",
     .story = LADDER_FASTER,
     .go = arrays,
     .x = ARRAYS},
    {.name = "vectorised",
     .change = "four particles a thread, 16 bytes an access",
     .why =
         "A quarter of the instructions for the same sectors. Six loads are under way in each thread either "
         "way, now of four times the bytes; there was little left to gain.",
     .story = LADDER_SAME,
     .go = vectorised,
     .x = ARRAYS},
    {.name = "library",
     .change = "sol_particles on arrays: one vector of one axis a thread",
     .why = "Three times as many threads with a third of the work; the same bytes at the speed of memory.",
     .story = LADDER_SAME,
     .go = library,
     .x = ARRAYS},
};

const Ladder ladder_particles = {
    .name = "particles",
    .title = "Moving particles: structures or arrays",
    .about = "position += velocity * dt in three dimensions. The arithmetic is one line; what it costs is "
             "decided by where the six numbers of a particle lie. Side by side, as one would write it for a "
             "CPU, a warp's access to one field is spread over six times its size. In an array for each "
             "field the same access is one line.",
    .module = "particles_rungs",
    .shape = "N",
    .size = {1 << 22},
    .small = {5003},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    LADDER_OWN_JOB,
    .slack = 2,
};
