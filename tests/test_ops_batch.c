// A row's result is the same bits whatever rows are beside it: every operation on rows runs on many, and then
// on single rows and ranges of the same memory.
#include "check.h"
#include "slices.h"

enum { ROWS = 5 };

// Neighbours take part in a stencil.
static bool is_by_rows(const OpsDef *def) {
  return strcmp(def->name, "stencil") != 0;
}

// Puts the tensors of rows first..first+count-1 into args. false: this operation's tensors cannot be cut so.
static bool part(const Trial *t, const OpsCase *c, int64_t first, int64_t count, unsigned char *args) {
  OpsView v[OPS_MAX_VIEWS];
  memcpy(args, t->args, sizeof t->args);
  slice_set(t->def, c, 0, count, args);
  if (slice_views(t->def, args, v) != t->count) return false;
  bool cut = false;
  for (int k = 0; k < t->count; k++) {
    const OpsView *whole = &t->view[k];
    if (whole->scratch) continue;
    SliceAxis axis = slice_axis(whole, &v[k], c->dim[0], count);
    if (axis == SLICE_MIXED || (axis == SLICE_COLS && whole->rows > 1)) return false;
    if (axis != SLICE_NONE && v[k].stride != whole->stride && axis != SLICE_COLS) return false;
    bool scattered = !strcmp(t->def->name, "kv_append"); // its rows go where the slots say
    if (axis == SLICE_NONE && whole->role != OPS_IN && !whole->optional && !scattered) return false; // sums
    if (axis != SLICE_NONE && (whole->role != OPS_IN || scattered)) cut = true;
    const char *at = whole->at;
    if (at) at += first * slice_step(whole, axis) * (int64_t)slice_size(whole);
    if (whole->fill == OPS_FILL_ORDER) at = NULL; // of all rows; without one they come in their own
    memcpy(args + whole->field, &at, sizeof at);
  }
  return cut;
}

static SolStatus restore(Trial *t, SolError *err) {
  SolStatus status = SOL_OK;
  for (int k = 0; k < t->count && !status; k++)
    if (t->memory[k]) status = sol_context_write(t->ctx, t->memory[k], t->host[k], t->bytes[k], err);
  return status;
}

static SolStatus read_all(Trial *t, unsigned char *const *to, SolError *err) {
  SolStatus status = SOL_OK;
  for (int k = 0; k < t->count && !status; k++)
    if (t->memory[k]) status = sol_context_read(t->ctx, to[k], t->memory[k], t->bytes[k], err);
  return status;
}

// Runs the pieces one after the other over restored memory; all of it must come out as the whole run's.
static bool pieces_agree(Trial *t, const OpsCase *c, int64_t length, SolError *err) {
  unsigned char *whole[OPS_MAX_VIEWS] = {0}, *now[OPS_MAX_VIEWS] = {0}, args[512];
  bool same = true;
  const int count = t->count;
  for (int k = 0; k < count; k++) whole[k] = malloc(t->bytes[k] + 1), now[k] = malloc(t->bytes[k] + 1);
  SolStatus status = read_all(t, whole, err);
  if (!status) status = restore(t, err);
  for (int64_t first = 0; first < c->dim[0] && !status; first += length) {
    int64_t rows = first + length > c->dim[0] ? c->dim[0] - first : length;
    if (!part(t, c, first, rows, args)) status = SOL_ERR_UNSUPPORTED;
    if (!status) status = ops_call(t->ctx, t->def, args, NULL);
    if (status && status != SOL_ERR_UNSUPPORTED) *err = *sol_last_error();
  }
  if (!status) status = sol_context_sync(t->ctx, err);
  if (!status) status = read_all(t, now, err);
  for (int k = 0; k < count; k++) {
    if (!status && t->memory[k] && !t->view[k].scratch && memcmp(whole[k], now[k], t->bytes[k]) != 0) {
      same = false;
      snprintf(err->message, sizeof err->message, "%s differs", t->view[k].name);
    }
    free(whole[k]);
    free(now[k]);
  }
  return !status && same;
}

// The emulator under a sanitizer is slow; long rows take the same code as short ones, more often, and so do pieces of several rows
// and the other options of a shape.
enum {
  LONGEST = CHECK_SANITIZED ? 2100 : INT32_MAX,
  LENGTHS = CHECK_SANITIZED ? ROWS : 2,
  EVERY = CHECK_SANITIZED ? 7 : 1 // no multiple of the types
};

static void try_case(SolContext *ctx, const OpsDef *def, const OpsCase *c, int *ran) {
  Trial t;
  SolError err = {0};
  SolStatus status = trial_open(&t, ctx, def, c, &(TrialOptions){.seed = 7}, &err);
  unsigned char args[512];
  if (!status && part(&t, c, 0, 1, args)) {
    ++*ran;
    status = trial_run(&t, &err);
    CHECK_MSG(!status, "%s: %s", def->name, err.message);
    for (int64_t length = 1; length < c->dim[0] && !status; length += LENGTHS)
      if (!CHECK_MSG(pieces_agree(&t, c, length, &err),
                     "%s on %s, rows of %lldx%lldx%lld %s, option %d, %lld at a time: %s", def->name,
                     sol_backend_name(sol_context_backend(ctx)), (long long)c->dim[1], (long long)c->dim[2],
                     (long long)c->dim[3], sol_dtype_name(c->dtype), c->option, (long long)length,
                     err.message))
        break;
  }
  trial_close(&t);
}

static void try_op(SolContext *ctx, const OpsDef *def) {
  static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  bool emu = sol_context_backend(ctx) == SOL_BACKEND_EMU;
  int ran = 0;
  for (int s = 0; s < def->shape_count; s++)
    for (int o = 0; o < (def->options ? def->options : 1); o++)
      for (int pad = 0; pad < (emu ? 1 : 2); pad++) {
        OpsCase c = {.dtype = types[(s + o) % 3], .option = o, .pad = pad * 3};
        memcpy(c.dim, def->shapes[s], sizeof c.dim);
        if (!c.dim[0] || (!c.dim[1] && strchr(def->shape, 'x'))) continue;
        if (emu && (c.dim[1] > LONGEST || (s + o) % EVERY)) continue;
        c.dim[0] = ROWS;
        bool wide = c.dim[1] * (c.dim[2] > 1 ? c.dim[2] : 1) > 70000;
        if (wide && emu) c.dim[0] = 2; // they take their time there
        try_case(ctx, def, &c, &ran);
      }
  printf("%-5s %-16s %4d cases%s\n", sol_backend_name(sol_context_backend(ctx)), def->name, ran,
         ran ? "" : " (not by rows)");
}

enum { MANY = !CHECK_SANITIZED }; // takes minutes there

// So many rows that the norms take the kernels for many, in pieces that take those for few, and for one.
static void try_many(SolContext *ctx) {
  static const OpsDef *const defs[] = {&ops_rmsnorm, &ops_add_rmsnorm, &ops_embed_rmsnorm, &ops_layernorm};
  static const int64_t columns[] = {516, 2056, 4104};
  for (size_t i = 0; i < SOL_COUNT(defs); i++)
    for (size_t n = 0; n < SOL_COUNT(columns); n++) {
      OpsCase c = {.dtype = SOL_FP32, .dim = {4 * ctx->sms + 1, columns[n]}};
      Trial t;
      SolError err = {0};
      SolStatus status = trial_open(&t, ctx, defs[i], &c, &(TrialOptions){.seed = 7}, &err);
      if (!status) status = trial_run(&t, &err);
      CHECK_MSG(!status && pieces_agree(&t, &c, 4 * ctx->sms, &err), "%s, many rows of %lld: %s",
                defs[i]->name, (long long)columns[n], err.message);
      trial_close(&t);
    }
}

// Rows that start anywhere: on a GPU of one SM a block, or a cluster, has several of them one after another; of few it has one each.
static void try_several(SolContext *ctx) {
  static const int64_t columns[] = {1501, 20001};
  int sms = ctx->sms;
  ctx->sms = 1;
  for (size_t n = 0; n < SOL_COUNT(columns); n++) {
    OpsCase c = {.dtype = n % 2 ? SOL_FP16 : SOL_BF16, .dim = {37, columns[n]}};
    Trial t;
    SolError err = {0};
    SolStatus status = trial_open(&t, ctx, &ops_layernorm, &c, &(TrialOptions){.seed = 7}, &err);
    if (!status) status = trial_run(&t, &err);
    CHECK_MSG(!status && pieces_agree(&t, &c, 3, &err), "layernorm, several rows of %lld a block: %s",
              (long long)columns[n], err.message);
    trial_close(&t);
  }
  ctx->sms = sms;
}

static void try_small_rows(SolContext *ctx, const OpsDef *def, int64_t rows, int64_t columns, SolDtype dtype,
                           int option, int pad) {
  OpsCase c = {.dtype = dtype, .dim = {rows, columns}, .option = option, .pad = pad};
  Trial t;
  SolError err = {0};
  SolStatus status = trial_open(&t, ctx, def, &c, &(TrialOptions){.seed = 7}, &err);
  unsigned char args[512];
  bool runs = !status && part(&t, &c, 0, 1, args);
  if (runs) status = trial_run(&t, &err);
  CHECK_MSG(!runs || (!status && pieces_agree(&t, &c, rows == 70 ? 7 : rows / 5 + 1, &err)),
            "%s, small, rows of %lld %s, option %d, %d apart: %s", def->name, (long long)columns,
            sol_dtype_name(dtype), option, pad, err.message);
  trial_close(&t);
}

// Small tensors have kernels of their own: on a GPU of one SM the whole is not small, and its pieces are.
static void try_small(SolContext *ctx) {
  static const OpsDef *const norms[] = {&ops_rmsnorm, &ops_add_rmsnorm, &ops_embed_rmsnorm, &ops_layernorm};
  static const OpsDef *const others[] = {&ops_silu_mul, &ops_bias_relu_scale, &ops_bias_gelu,
                                         &ops_scale_columns, &ops_embedding};
  static const OpsDef *const softmaxes[] = {&ops_softmax, &ops_log_softmax};
  static const SolDtype types[] = {SOL_FP32, SOL_FP16, SOL_BF16};
  static const int64_t columns[] = {1, 2, 5, 8, 13, 15, 17, 33, 50, 131, 197, 333, 586, 1001};
  int sms = ctx->sms;
  ctx->sms = 1;
  for (size_t n = 0; n < SOL_COUNT(columns); n++)
    for (size_t i = 0; i < SOL_COUNT(norms); i++)
      for (size_t d = 0; d < SOL_COUNT(types); d++)
        for (int o = 0; o < norms[i]->options; o++)
          for (int pad = 0; pad < 7; pad += 3) {
            int64_t c = columns[n], rows = c <= 16 ? (14 << 10) / (c * c * (d ? 2 : 4)) + 40 : 70;
            if ((n + i + d + (size_t)o + (size_t)pad) % 2 || (c == 1 && pad)) continue;
            try_small_rows(ctx, norms[i], rows, c, types[d], o, pad);
          }
  for (size_t n = 0; n < SOL_COUNT(columns) && columns[n] < 200; n++)
    for (size_t i = 0; i < SOL_COUNT(softmaxes); i++)
      for (size_t d = 0; d < SOL_COUNT(types); d++)
        for (int pad = 0; pad < 4; pad += 3) {
          int64_t words = d ? columns[n] / 2 + 1 : columns[n],
                  lanes = words < 32 ? words : 32; // of a row of few
          try_small_rows(ctx, softmaxes[i], 1024 / lanes + 40, columns[n], types[d], 0, pad);
        }
  for (size_t n = 0; n < SOL_COUNT(columns); n++)
    for (size_t i = 0; i < SOL_COUNT(others); i++)
      try_small_rows(ctx, others[i], 1300 / columns[n] + 3, columns[n], types[(n + i) % 3], 0, n % 2 ? 3 : 0);
  ctx->sms = sms;
}

static void try_backend(SolBackend backend) {
  SolContext *ctx = NULL;
  if (backend == SOL_BACKEND_EMU && !ops_image_count) SKIP("built without nvcc: no kernels");
  if (!CHECK_INT(sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, NULL), SOL_OK)) return;
  for (int op = 0; op < OPS_COUNT; op++)
    if (is_by_rows(ops_defs[op])) try_op(ctx, ops_defs[op]);
  if (MANY && backend != SOL_BACKEND_CPU) try_many(ctx), try_several(ctx), try_small(ctx);
  sol_context_destroy(ctx);
}

TEST(cpu) {
  try_backend(SOL_BACKEND_CPU);
}

TEST(emu) {
  try_backend(SOL_BACKEND_EMU);
}

TEST(cuda) { // where there is a GPU
  SolContext *ctx = NULL;
  if (sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CUDA}, &ctx, NULL)) SKIP("no GPU");
  sol_context_destroy(ctx);
  try_backend(SOL_BACKEND_CUDA);
}

CHECK_MAIN
