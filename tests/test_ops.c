// Every operation of the library, in every type, at every shape of its list, on cpu and emu (and cuda where
// there is a GPU), against its double-precision reference. test_ops [OP...] [--backend cpu|emu|cuda] runs a
// part; --small takes two types of each shape, aligned and not, for tools that slow it down; --device ID emulates that GPU.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "measure/trial.h"

typedef struct Variation {
  const char *name;
  TrialOptions options;
  int64_t pad;
  bool mixed_out, wide_weight, wide_ids;
} Variation;

static const Variation variations[] = {
    {"plain", {0}, 0, false, false, false},
    {"misaligned", {.misalign = 1}, 0, false, false, false},
    {"strided", {0}, 3, false, true, false},
    {"strided by vectors", {0}, 8, false, false, true},
    {"special values", {.specials = true}, 0, false, false, false},
    {"in place", {.in_place = true}, 0, false, false, false},
    {"in place, misaligned, strided", {.in_place = true, .misalign = 3}, 5, false, true, true},
    {"other output type", {0}, 0, true, false, false},
    {"bad ids", {.bad_ids = true}, 0, false, false, false},
    {"without what is optional", {.without_optional = true}, 0, true, true, true},
};
static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};

static int passed, failed, skipped;
static bool small = CHECK_SANITIZED;                           // the whole takes many minutes there
static const double most = CHECK_SANITIZED ? 16384 : INFINITY; // elements of a shape
enum { SMALL_TYPES = CHECK_SANITIZED ? 1 : 2 };                // of a shape, by turns

static bool in_small(int shape, size_t type, size_t variation) {
  return (type + (size_t)shape) % 3 < SMALL_TYPES &&
         (variations[variation].options.in_place ? variations[variation].pad : variation == 0);
}

static double elements(const int64_t dim[4]) {
  double n = 1;
  for (int i = 0; i < 4; i++) n *= dim[i] > 0 ? (double)dim[i] : 1;
  return n;
}

// The emulator is slow, and so is the reference: of the shapes that are no tiny ones each takes every second, fifth or
// fifteenth of the types and variations by turns, the larger the fewer, and the plain one. A GPU's check takes all.
static bool in_turn(SolBackend backend, const int64_t dim[4], int shape, size_t type, int option,
                    size_t variation) {
  enum { TINY = 64, LARGE_EMU = 8192, LARGE_CPU = 65536, LARGEST = 1 << 16 };
  bool large = dim[0] * dim[1] > (backend == SOL_BACKEND_EMU ? LARGE_EMU : LARGE_CPU),
       largest = elements(dim) > LARGEST;
  if (backend == SOL_BACKEND_CUDA || elements(dim) <= TINY) return true;
  if (largest && (type + variation + (size_t)shape) % 3) return false;
  if (!option && !variation) return true;
  return large || largest ? (variation + (size_t)shape + (size_t)option) % 5 == 0
                          : (type + variation + (size_t)shape + (size_t)option) % 2 == 0;
}

static void say_case(const OpsDef *def, SolContext *ctx, const OpsCase *c, const char *variation,
                     const SolError *err) {
  printf("%s on %s, %lldx%lldx%lldx%lld %s -> %s, option %d, %s: %s %s\n", def->name,
         sol_backend_name(sol_context_backend(ctx)), (long long)c->dim[0], (long long)c->dim[1],
         (long long)c->dim[2], (long long)c->dim[3], sol_dtype_name(c->dtype), sol_dtype_name(c->out_dtype),
         c->option, variation, err->message, err->hint);
}

// false: it failed, and said so.
static bool try_case(SolContext *ctx, const OpsDef *def, const OpsCase *c, const Variation *v, int *ran) {
  Trial t;
  SolError err = {0};
  TrialOptions options = v->options;
  options.seed = (uint64_t)c->dim[0] * 7919 + (uint64_t)c->dim[1];
  SolStatus status = trial_open(&t, ctx, def, c, &options, &err);
  bool none = status == SOL_ERR_NOT_FOUND;
  if (!status) status = trial_run(&t, &err);
  if (!status) status = trial_check(&t, NULL, &err);
  trial_close(&t);
  if (none) return true;
  *ran += 1;
  if (status) say_case(def, ctx, c, v->name, &err);
  return !status;
}

// Small tensors have kernels of their own; on a GPU of one SM most of the shapes are not small.
static bool asks_how_small(const OpsDef *def) {
  static const OpsDef *const those[] = {&ops_rmsnorm,         &ops_add_rmsnorm,   &ops_embed_rmsnorm,
                                        &ops_layernorm,       &ops_embedding,     &ops_gather,
                                        &ops_bias_relu_scale, &ops_scale_columns, &ops_bias_gelu,
                                        &ops_silu_mul,        &ops_copy};
  for (size_t i = 0; i < sizeof those / sizeof *those; i++)
    if (def == those[i]) return true;
  return false;
}

static void try_op(SolContext *ctx, const OpsDef *def) {
  int sms = ctx->sms;
  int ran = 0, bad = 0, options = def->options ? def->options : 1;
  for (int s = 0; s < def->shape_count; s++)
    for (size_t d = 0; d < sizeof types / sizeof *types; d++)
      for (int o = 0; o < options; o++)
        for (size_t k = 0; k < sizeof variations / sizeof *variations && bad < 5; k++) {
          const Variation *v = &variations[k];
          if (small && !in_small(s, d, k)) continue;
          if (elements(def->shapes[s]) > most) continue;
          if (!in_turn(sol_context_backend(ctx), def->shapes[s], s, d, o, k)) continue;
          OpsCase c = {.dtype = types[d], .pad = v->pad, .option = o};
          memcpy(c.dim, def->shapes[s], sizeof c.dim);
          if (v->mixed_out) c.out_dtype = types[(d + 1 + (size_t)s % 2) % 3];
          if (v->wide_weight) c.weight_dtype = SOL_FP32;
          if (v->wide_ids) c.id_dtype = SOL_INT64;
          ctx->sms = asks_how_small(def) && (s + o) % 2 ? 1 : sms;
          if (!try_case(ctx, def, &c, v, &ran)) bad++;
        }
  ctx->sms = sms;
  if (!ran) printf("%s: no case ran\n", def->name);
  if (bad || !ran)
    failed++;
  else
    passed++;
  printf("%-5s %-16s %5d cases  %s\n", sol_backend_name(sol_context_backend(ctx)), def->name, ran,
         bad ? "FAILED" : "ok");
}

int main(int argc, char **argv) {
  SolBackend only = SOL_BACKEND_AUTO;
  const SolDevice *device = NULL;
  int named = 0;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--backend") && i + 1 < argc) {
      if (sol_backend_find(argv[++i], &only, NULL)) return printf("no such backend\n"), 2;
      argv[i] = argv[i - 1] = "";
    } else if (!strcmp(argv[i], "--device") && i + 1 < argc) {
      if (sol_device_find(argv[++i], &device, NULL)) return printf("no such device\n"), 2;
      only = SOL_BACKEND_EMU, argv[i] = argv[i - 1] = "";
    } else if (!strcmp(argv[i], "--small"))
      small = true;
    else
      named++;
  }
  for (SolBackend b = SOL_BACKEND_CPU; b <= SOL_BACKEND_CUDA; b++) {
    if (only && b != only) continue;
    SolContext *ctx;
    SolError err;
    if (sol_context_create(&(SolContextOptions){.backend = b, .device = device}, &ctx, &err)) {
      bool may = b == SOL_BACKEND_CUDA && only != b;
      printf("%s: %s: %s\n", may ? "skipped" : "FAIL", sol_backend_name(b), err.message);
      may ? (skipped += named ? named : OPS_COUNT) : failed++;
      continue;
    }
    ctx->checks = SOL_EMU_CHECK_SYNC | SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_INIT;
    for (int op = 0; op < OPS_COUNT; op++) {
      bool wanted = !named;
      for (int i = 1; i < argc; i++) wanted |= !strcmp(argv[i], ops_defs[op]->name);
      bool runs = b != SOL_BACKEND_EMU || ops_image_count;
      if (wanted && !runs) printf("skipped: %s on emu: built without nvcc\n", ops_defs[op]->name), skipped++;
      if (wanted && runs) try_op(ctx, ops_defs[op]);
    }
    sol_context_destroy(ctx);
  }
  return check_end(passed, failed, skipped);
}
