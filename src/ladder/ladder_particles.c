// Moving particles: array of structures against structure of arrays.
#include "kernels/particles/rungs.h"
#include "ladder/ladder_jobs.h"

enum { PARTICLES, BUFFERS, THREADS = 256, LINE = 32, STRUCTURES = 0, ARRAYS = 1 }; // the last two: rung.x
static const float dt = 0.01f;

// From one array to the next: whole cache lines.
static int64_t stride_of(const LadderCase *c) {
  return ladder_ceil_div(c->dim[0], LINE) * LINE;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[PARTICLES] = ladder_input(c, "particles", 6 * stride_of(c));
  b[PARTICLES].role = OPS_INOUT;
  return BUFFERS;
}

// Positions are read and written, velocities read.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 9.0 * 4 * (double)c->dim[0];
}

// How far from element k its velocity is; 0: k is not a position, and stays as it is.
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

// each: particles of a thread.
static SolStatus go(const LadderCall *call, SolError *err) {
  ParticlesRung p = {.particles = ladder_at(call, PARTICLES),
                     .n = (uint64_t)call->c.dim[0],
                     .stride = (uint64_t)stride_of(&call->c),
                     .dt = dt};
  LadderGrid grid = ladder_threads((uint64_t)ladder_ceil_div(call->c.dim[0], call->rung->each), THREADS);
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
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
     .change = "an array of structures {x y z vx vy vz}, one thread per particle, field by field",
     .why = "The lanes of a warp read the same field of neighbouring particles, 24 bytes apart: each of "
            "the six loads touches every sector of the warp's particles. Most of them hit L1, which is "
            "read six times over. And sectors that hold a position also hold velocities: all of them "
            "are written back.",
     .kernel = "particles_rung_structures",
     .each = 1,
     .x = STRUCTURES},
    {.name = "whole-structures",
     .change = "sol_particles on the same layout: lanes load vectors of 16 bytes, neighbouring lanes "
               "exchange velocities",
     .why = "Two particles are three vectors. Read and written whole, they are perfectly coalesced; "
            "shuffles give each position its velocity. With this layout every velocity is still written "
            "back to memory.",
     .story = LADDER_FASTER,
     .go = library,
     .x = STRUCTURES},
    {.name = "arrays",
     .change = "a structure of arrays, one thread per particle: an array of all x, one of all y, and so "
               "on",
     .why = "Neighbouring lanes read neighbouring words, and velocities are in arrays of their own that "
            "are never written: a quarter of the bytes of the structures is gone.",
     .story = LADDER_FASTER,
     .kernel = "particles_rung_arrays",
     .each = 1,
     .x = ARRAYS},
    {.name = "vectorised",
     .change = "four particles per thread, 16 bytes per access",
     .why = "A quarter of the instructions for the same sectors. Each thread has six loads in flight as "
            "before, now of four times the bytes; little remained to be gained.",
     .story = LADDER_SAME,
     .kernel = "particles_rung_vectorised",
     .each = 4,
     .x = ARRAYS},
    {.name = "library",
     .change = "sol_particles on arrays: one vector of one axis per thread",
     .why = "Three times as many threads with a third of the work each; the same bytes at the speed of "
            "memory.",
     .story = LADDER_SAME,
     .go = library,
     .x = ARRAYS},
};

const Ladder ladder_particles = {
    .name = "particles",
    .title = "Moving particles: structures or arrays",
    .about = "position += velocity * dt in three dimensions. The arithmetic is one line; the cost is "
             "decided by where the six numbers of a particle are stored. Next to each other, as one "
             "would write it for a CPU, the accesses of a warp to one field are spread over six times "
             "their size. In an array per field, the same access is one cache line.",
    .module = "particles_rungs",
    .shape = "N",
    .size = {1 << 22},
    .small = {5003},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .go = go,
    LADDER_OWN_JOB,
    .slack = 2,
};
