// Parameters, bytes by dtype and the cache of every preset, against their published configs.
#include "model_check.h"

typedef struct Golden {
  const char *name;
  double params, layers, cached; // values that one token leaves in one layer's cache
} Golden;

#define GOLDEN(name, params, layers, heads, dim) {name, params, layers, 2.0 * (heads) * (dim)},
#define LATENT(name, params, layers, rank, rope) {name, params, layers, (rank) + (rope)},
#define CHECKPOINT(name, bytes)
static const Golden golden[] = {
#include "model_golden.def"
};
#undef GOLDEN
#undef LATENT
#undef CHECKPOINT

enum { COUNT = sizeof golden / sizeof golden[0] };

TEST(every_preset_is_listed) {
  CHECK_INT(COUNT, sol_model_preset_count());
  for (int i = 0; i < COUNT; i++) CHECK_STR(golden[i].name, sol_model_preset(i)->name);
}

static SolModelReport stored(const Golden *g, SolDtype weights, SolDtype kv) {
  return run_preset(
      "b200", g->name,
      (SolModelRun){.phase = SOL_PHASE_DECODE, .context = 1000, .weight_dtype = weights, .kv_dtype = kv});
}

TEST(parameters_bytes_and_cache) {
  static const struct {
    SolDtype dtype;
    double bytes;
  } types[] = {{SOL_BF16, 2}, {SOL_FP16, 2}, {SOL_FP8, 1}, {SOL_FP4, 0.5}};
  for (int i = 0; i < COUNT; i++) {
    const Golden *g = &golden[i];
    SolModelConfig c = find(g->name);
    CHECK_MSG(weights(&c).params == g->params, "%s: %.0f parameters", g->name, weights(&c).params);
    CHECK_MSG((double)c.layers == g->layers, "%s: %lld layers", g->name, (long long)c.layers);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
      SolModelReport r = stored(g, types[t].dtype, types[t].dtype);
      double want = g->params * types[t].bytes, cache = g->layers * ceil(g->cached * types[t].bytes);
      // Each tensor ends on a whole byte: of 4-bit weights some take half a byte more.
      CHECK_MSG(fabs(r.weight_bytes - want) < 16, "%s in %s: %.0f bytes, not %.0f", g->name,
                sol_dtype_name(types[t].dtype), r.weight_bytes, want);
      CHECK_MSG(r.kv_bytes_per_token == cache, "%s in %s: %.0f bytes of cache, not %.0f", g->name,
                sol_dtype_name(types[t].dtype), r.kv_bytes_per_token, cache);
      if (!c.sliding_window)
        CHECK_MSG(r.kv_bytes == 1001 * cache, "%s: %.0f bytes in the cache", g->name, r.kv_bytes);
    }
  }
}

// By default the types of the checkpoint: 16 bits, but for those listed and for DeepSeek-V3's fp8.
TEST(checkpoints) {
  for (int i = 0; i < COUNT; i++) {
    SolModelConfig c = find(golden[i].name);
    if (c.weight_dtype) continue;
    SolModelReport r = stored(&golden[i], SOL_DTYPE_DEFAULT, SOL_DTYPE_DEFAULT);
    CHECK_MSG(r.weight_bytes == 2 * golden[i].params, "%s: %.0f bytes", golden[i].name, r.weight_bytes);
  }
#define GOLDEN(...)
#define LATENT(...)
#define CHECKPOINT(name, bytes)                                                                              \
  CHECK_NEAR(run_preset("h200", name, (SolModelRun){0}).weight_bytes, bytes, 1e-12);
#include "model_golden.def"
}

CHECK_MAIN
