// position += velocity * dt
#include "kernels/particles/particles.h"
#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"

enum {
#define PARTICLES(name) KERNEL_##name,
#include "kernels/particles/particles.def"
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define PARTICLES(name) #name,
#include "kernels/particles/particles.def"
};

static const char *const option_names[] = {"arrays", "structures"};

static bool make(const OpsCase *c, void *args) {
  SolParticles *a = args;
  *a = (SolParticles){.n = c->dim[0], .dt = 0.01f, .structures = c->option};
  if (c->pad && !a->structures) a->stride = a->n + c->pad;
  bool other = (c->out_dtype && c->out_dtype != SOL_FP32) || c->weight_dtype || c->id_dtype;
  return c->dtype == SOL_FP32 && !other && !(c->pad && a->structures);
}

static int views(const void *args, OpsView *v) {
  const SolParticles *a = args;
  v[0] = OPS_VIEW(SolParticles, position, SOL_FP32, OPS_INOUT, .rows = a->structures ? a->n : 3,
                  .cols = a->structures ? 6 : a->n, .stride = a->structures ? 0 : a->stride);
  if (a->structures) return 1;
  v[1] = OPS_VIEW(SolParticles, velocity, SOL_FP32, OPS_IN, .rows = 3, .cols = a->n, .stride = a->stride);
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolParticles *a = args;
  if (a->structures && a->velocity)
    return sol_fail(err, SOL_ERR_ARGUMENT, "velocity must be NULL for an array of structures");
  if (a->structures && a->stride)
    return sol_fail(err, SOL_ERR_ARGUMENT, "stride must be 0 for an array of structures");
  return SOL_OK;
}

static void cpu_arrays(const void *args, int64_t begin, int64_t end) {
  const SolParticles *a = args;
  int64_t stride = ops_stride(a->stride, a->n);
  for (int axis = 0; axis < 3; axis++) {
    float *restrict position = a->position + axis * stride;
    const float *restrict velocity = a->velocity + axis * stride;
    for (int64_t i = begin; i < end; i++) position[i] += velocity[i] * a->dt;
  }
}

static void cpu_structures(const void *args, int64_t begin, int64_t end) {
  const SolParticles *a = args;
  for (int64_t i = begin; i < end; i++)
    for (int axis = 0; axis < 3; axis++) a->position[i * 6 + axis] += a->position[i * 6 + 3 + axis] * a->dt;
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolParticles *a = args;
  cpu_parallel(ctx, a->n, a->n, a->structures ? cpu_structures : cpu_arrays, a);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolParticles *a = args;
  ParticlesParams p = {.position = a->position,
                       .velocity = a->velocity,
                       .stride = ops_stride(a->stride, a->n),
                       .n = (uint64_t)a->n,
                       .dt = a->dt};
  OpsLaunch l = {.block = 256, .early = true, .params = &p, .bytes = sizeof p};
  uint64_t threads;
  if (!a->structures) {
    l.kernel = KERNEL_sol_particles_arrays;
    p.flat = p.stride == a->n;
    p.spread = elementwise_spread(a->position, 3, a->n, p.stride, 4, 4, p.flat, 0);
    threads = p.spread.chunks;
  } else if (elementwise_aligned(a->position, 0, 16)) {
    l.kernel = KERNEL_sol_particles_structures;
    uint64_t vectors = p.n / 2 * 3 + p.n % 2; // the last of an odd number takes one thread
    threads = (vectors + PARTICLES_LANES - 1) / PARTICLES_LANES * 32;
  } else {
    l.kernel = KERNEL_sol_particles_structures_narrow;
    threads = p.n * 3;
  }
  ops_grid(l.grid, threads, l.block);
  return ops_launch(ctx, &ops_particles, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolParticles *a = args;
  for (int64_t i = 0; i < a->n; i++)
    for (int axis = 0; axis < 3; axis++) {
      if (a->structures)
        at[0][i * 6 + axis] += at[0][i * 6 + 3 + axis] * (double)a->dt;
      else
        at[0][axis * a->n + i] += at[1][axis * a->n + i] * (double)a->dt;
    }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolParticles *a = args;
  *op = (SolOpArgs){.dim = {a->n}, .dtype = SOL_FP32};
}

static const int64_t shapes[][4] = {{1}, {2}, {3}, {19}, {20}, {21}, {31}, {128}, {769}, {4096}, {5125}, {0}};
static const int64_t bench[][4] = {{1 << 20}, {1 << 24}};

const OpsDef ops_particles = {
    .name = "particles",
    OPS_ARGS(SolParticles, "N"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    .slack = 2,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("particles", kernel_names),
};
