// Arguments that no operation may take: every one must answer with a status and a message that names what is
// wrong, and must leave memory as it was. All of it works on the definitions alone: which bytes of the
// argument structure are sizes, strides and types is found by making two cases and comparing them.
#include "check.h"
#include "measure/trial.h"

enum { WORDS = 512 / 8, HALVES = 512 / 4 };

typedef struct Subject {
  SolContext *ctx;
  const OpsDef *def;
  Trial trial;
  unsigned char args[512];     // good ones, pointers included
  OpsView view[OPS_MAX_VIEWS]; // of just these: which tensors are written may depend on which are there
  int sizes, strides, types;
  int size_at[WORDS], stride_at[WORDS], type_at[HALVES];
  const char *type_name[HALVES];
} Subject;

static int rank_of(const OpsDef *def) {
  int rank = 1;
  for (const char *c = def->shape; *c; c++) rank += *c == 'x';
  return rank;
}

// A small case with every tensor there, sizes apart from each other where the operation allows it.
static bool find_case(const OpsDef *def, OpsCase *out) {
  static const int64_t liked[][4] = {
      {3, 5, 7, 11}, {3, 4, 8, 8}, {6, 4, 8, 2}, {4, 16, 8, 8}, {5, 32, 64, 128}};
  unsigned char args[512];
  for (size_t i = 0; i < SOL_COUNT(liked); i++) {
    *out = (OpsCase){.dtype = SOL_BF16};
    for (int k = 0; k < rank_of(def) && k < 4; k++) out->dim[k] = liked[i][k];
    if (def->make(out, args)) return true;
    out->dtype = SOL_FP32; // some have no other
    if (def->make(out, args)) return true;
  }
  for (int s = 0; s < def->shape_count; s++) {
    memcpy(out->dim, def->shapes[s], sizeof out->dim);
    bool whole = true;
    for (int k = 0; k < rank_of(def) && k < 4; k++) whole &= out->dim[k] > 0;
    if (whole && def->make(out, args)) return true;
  }
  return false;
}

static int64_t word(const unsigned char *args, int at) {
  int64_t w;
  memcpy(&w, args + at, sizeof w);
  return w;
}

static int32_t half(const unsigned char *args, int at) {
  int32_t h;
  memcpy(&h, args + at, sizeof h);
  return h;
}

static void find_fields(Subject *s, const OpsCase *good) {
  const OpsDef *def = s->def;
  int bytes = (int)def->args_bytes;
  unsigned char a[512] = {0}, b[512] = {0};
  CHECK(def->make(good, a));
  // Sizes: the words that hold a dimension and follow it.
  for (int k = 0; k < rank_of(def) && k < 4; k++) {
    OpsCase other = *good;
    other.dim[k] *= 2;
    if (!def->make(&other, b)) continue;
    for (int at = 0; at + 8 <= bytes; at += 8)
      if (word(a, at) == good->dim[k] && word(b, at) == other.dim[k]) s->size_at[s->sizes++] = at;
  }
  // Strides: what padding turns from 0 (or dense) into something else.
  OpsCase padded = *good;
  padded.pad = 3;
  if (def->make(&padded, b))
    for (int at = 0; at + 8 <= bytes; at += 8)
      if (word(a, at) != word(b, at)) s->stride_at[s->strides++] = at;
  struct {
    const char *name;
    OpsCase other;
  } types[] = {{"dtype", *good}, {"out_dtype", *good}, {"weight_dtype", *good}, {"id_dtype", *good}};
  types[0].other.dtype = SOL_FP16;
  types[1].other.out_dtype = SOL_FP32;
  types[2].other.weight_dtype = SOL_FP32;
  types[3].other.id_dtype = SOL_INT64;
  for (size_t i = 0; i < SOL_COUNT(types); i++) {
    if (!def->make(&types[i].other, b)) continue;
    for (int at = 0; at + 4 <= bytes; at += 4)
      if (half(a, at) != half(b, at)) {
        s->type_name[s->types] = types[i].name;
        s->type_at[s->types++] = at;
      }
  }
}

static bool open_subject(Subject *s, SolContext *ctx, const OpsDef *def) {
  *s = (Subject){.ctx = ctx, .def = def};
  OpsCase good;
  SolError err = {0};
  if (!CHECK_MSG(find_case(def, &good), "%s: no case to start from", def->name)) return false;
  SolStatus status = trial_open(&s->trial, ctx, def, &good, NULL, &err);
  if (!status) status = trial_run(&s->trial, &err); // good as it stands
  if (!CHECK_MSG(!status, "%s: %s", def->name, err.message)) return trial_close(&s->trial), false;
  memcpy(s->args, s->trial.args, sizeof s->args);
  CHECK_INT(def->views(s->args, s->view), s->trial.count);
  find_fields(s, &good);
  return true;
}

static void reset_memory(Subject *s) {
  for (int k = 0; k < s->trial.count; k++)
    if (s->trial.memory[k])
      CHECK_INT(sol_context_write(s->ctx, s->trial.memory[k], s->trial.host[k], s->trial.bytes[k], NULL), 0);
}

// Calls with what args holds; the status must be an error of the arguments, and memory must not have changed.
static bool refused(Subject *s, const unsigned char *args, const char *part, const char *what) {
  static unsigned char now[1 << 20];
  SolStatus status = ops_call(s->ctx, s->def, args, NULL);
  const char *message = sol_last_error()->message;
  bool ok = CHECK_MSG(status == SOL_ERR_ARGUMENT || status == SOL_ERR_RANGE, "%s: %s: status %s",
                      s->def->name, what, sol_status_name(status));
  if (ok && part)
    ok = CHECK_MSG(strstr(message, part), "%s: %s: '%s' does not say %s", s->def->name, what, message, part);
  if (ok)
    ok = CHECK_MSG(strstr(message, s->def->name), "%s: %s: '%s' does not name the operation", s->def->name,
                   what, message);
  for (int k = 0; k < s->trial.count; k++) {
    if (!s->trial.memory[k] || s->trial.bytes[k] > sizeof now) continue;
    CHECK_INT(sol_context_read(s->ctx, now, s->trial.memory[k], s->trial.bytes[k], NULL), 0);
    ok &= CHECK_MSG(!memcmp(now, s->trial.host[k], s->trial.bytes[k]), "%s: %s: %s was written", s->def->name,
                    what, s->trial.view[k].name);
  }
  if (!ok) reset_memory(s);
  return ok;
}

static void set_pointer(unsigned char *args, const OpsView *v, const void *at) {
  memcpy(args + v->field, &at, sizeof at);
}

static void try_pointers(Subject *s) {
  unsigned char args[512];
  char what[128];
  for (int k = 0; k < s->trial.count; k++) {
    const OpsView *v = &s->view[k];
    if (!v->at) continue;
    int size = sol_dtype_bits(v->dtype) / 8;
    if (!v->optional) {
      memcpy(args, s->args, sizeof args);
      set_pointer(args, v, NULL);
      snprintf(what, sizeof what, "%s NULL", v->name);
      refused(s, args, v->name, what);
    }
    if (size > 1) {
      memcpy(args, s->args, sizeof args);
      set_pointer(args, v, (const char *)v->at + 1);
      snprintf(what, sizeof what, "%s misaligned", v->name);
      refused(s, args, v->name, what);
    }
    memcpy(args, s->args, sizeof args);
    set_pointer(args, v, (const void *)(UINTPTR_MAX - (uintptr_t)size + 1)); // aligned, no room behind it
    snprintf(what, sizeof what, "%s at the end of memory", v->name);
    if (v->rows * v->cols > 1) refused(s, args, v->name, what);
  }
}

// An output moved onto another tensor: exactly where that is not allowed, and one element beside it.
static void try_overlaps(Subject *s) {
  unsigned char args[512];
  char what[128];
  for (int k = 0; k < s->trial.count; k++)
    for (int other = 0; other < s->trial.count; other++) {
      const OpsView *v = &s->view[k], *o = &s->view[other];
      if (k == other || v->role == OPS_IN || !v->at || !o->at) continue;
      int size = sol_dtype_bits(v->dtype) / 8;
      for (int step = 0; step < 2; step++) {
        if (!step && (v->alias == other + 1 || o->alias == k + 1)) continue;
        uintptr_t at = ((uintptr_t)o->at + (uintptr_t)size - 1) / (uintptr_t)size * (uintptr_t)size;
        at += (uintptr_t)(step * size);
        int64_t width = o->rows * o->cols * (sol_dtype_bits(o->dtype) / 8);
        if ((int64_t)(at - (uintptr_t)o->at) >= width) continue; // a tensor of one element
        memcpy(args, s->args, sizeof args);
        set_pointer(args, v, (const void *)at);
        snprintf(what, sizeof what, "%s over %s, %d off", v->name, o->name, step);
        bool one = sol_context_backend(s->ctx) == SOL_BACKEND_CPU; // elsewhere it may leave its allocation
        refused(s, args, one ? "overlap" : v->name, what);
      }
    }
}

static void try_sizes(Subject *s) {
  static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 62, INT64_MAX / 2 - 1};
  unsigned char args[512];
  char what[128];
  CHECK_MSG(s->sizes >= rank_of(s->def) - 1 && s->sizes > 0, "%s: %d size fields found", s->def->name,
            s->sizes);
  for (int i = 0; i < s->sizes + s->strides; i++) {
    bool stride = i >= s->sizes;
    int at = stride ? s->stride_at[i - s->sizes] : s->size_at[i];
    for (size_t k = 0; k < SOL_COUNT(bad); k++) {
      memcpy(args, s->args, sizeof args);
      memcpy(args + at, &bad[k], sizeof bad[k]);
      snprintf(what, sizeof what, "%s at byte %d is %lld", stride ? "stride" : "size", at, (long long)bad[k]);
      refused(s, args, NULL, what);
    }
  }
}

// Whether the header lets this operation have the type there.
static bool takes(const OpsDef *def, const char *field, int type) {
  bool real = type == SOL_FP32 || type == SOL_FP16 || type == SOL_BF16;
  static const char *const movers[] = {"copy", "transpose", "gather", "kv_append"};
  bool any = false;
  for (size_t i = 0; i < SOL_COUNT(movers); i++) any |= !strcmp(def->name, movers[i]);
  if (!strcmp(def->name, "cast"))
    return (type == 0 && strcmp(field, "dtype") != 0) ||
           (sol_dtype_bits((SolDtype)type) >= 8 && type != SOL_TF32);
  if (!strcmp(field, "id_dtype")) return type == 0 || type == SOL_INT32 || type == SOL_INT64;
  if (!strcmp(field, "weight_dtype")) return type == 0 || type == SOL_FP32 || type == SOL_BF16;
  if (!strcmp(field, "dtype")) {
    if (any) return sol_dtype_bits((SolDtype)type) >= 8;
    return real || (type == SOL_INT32 && !strcmp(def->name, "histogram")) ||
           (type == SOL_FP8 && !strcmp(def->name, "gemm"));
  }
  bool fp8 =
      !strcmp(def->name, "rmsnorm") || !strcmp(def->name, "silu_mul") || !strcmp(def->name, "kv_append");
  bool byte = !strcmp(def->name, "gated_mul") && (type == SOL_FP8 || type == SOL_INT8);
  return type == 0 || real || (fp8 && type == SOL_FP8) || byte;
}

static void try_types(Subject *s) {
  unsigned char args[512];
  char what[128];
  for (int i = 0; i < s->types; i++)
    for (int type = -1; type <= SOL_DTYPE_COUNT + 1; type++) {
      if (takes(s->def, s->type_name[i], type)) continue;
      memcpy(args, s->args, sizeof args);
      memcpy(args + s->type_at[i], &type, sizeof type);
      snprintf(what, sizeof what, "%s %d (%s)", s->type_name[i], type, sol_dtype_name((SolDtype)type));
      refused(s, args, NULL, what);
    }
}

static void try_places(Subject *s) { // emu: memory that is not the emulator's, or no longer
  unsigned char args[512];
  char what[128];
  static double host[1 << 16];
  void *freed = NULL;
  CHECK_INT(sol_context_alloc(s->ctx, sizeof host, &freed, NULL), SOL_OK);
  CHECK_INT(sol_context_free(s->ctx, freed, NULL), SOL_OK);
  for (int k = 0; k < s->trial.count; k++) {
    const OpsView *v = &s->view[k];
    if (!v->at) continue;
    const void *places[] = {
        host, freed, (const char *)s->trial.memory[s->trial.shares[k]] + s->trial.bytes[s->trial.shares[k]]};
    const char *names[] = {"on the host", "freed", "past its allocation"};
    for (size_t i = 0; i < SOL_COUNT(places); i++) {
      memcpy(args, s->args, sizeof args);
      set_pointer(args, v, places[i]);
      snprintf(what, sizeof what, "%s %s", v->name, names[i]);
      refused(s, args, v->name, what);
    }
  }
}

// Dimensions of zero: no crash, and nothing outside the outputs is touched; most are no-ops.
static void try_empty(SolContext *ctx, const OpsDef *def) {
  for (int k = 0; k < rank_of(def) && k < 4; k++) {
    OpsCase c;
    if (!find_case(def, &c)) return;
    c.dim[k] = 0;
    Trial t;
    SolError err = {0};
    SolStatus status = trial_open(&t, ctx, def, &c, NULL, &err);
    bool none = status == SOL_ERR_NOT_FOUND;
    if (!status) {
      status = trial_run(&t, &err);
      bool declined = status == SOL_ERR_ARGUMENT; // "N at least 1"
      bool nothing = false;                       // no output: a reference need not look at the rest
      for (int i = 0; i < t.count; i++) nothing |= t.view[i].role != OPS_IN && !t.view[i].at;
      if (!status && !nothing) status = trial_check(&t, NULL, &err);
      CHECK_MSG(!status || declined, "%s with dimension %d of 0: %s", def->name, k, err.message);
    } else
      CHECK_MSG(none, "%s with dimension %d of 0: %s", def->name, k, err.message);
    trial_close(&t);
  }
}

static void try_backend(SolBackend backend) {
  SolContext *ctx = NULL;
  SolError err = {0};
  if (backend == SOL_BACKEND_EMU && !ops_image_count) SKIP("built without nvcc: no kernels");
  SolStatus status = sol_context_create(&(SolContextOptions){.backend = backend}, &ctx, &err);
  if (!CHECK_MSG(!status, "%s", err.message)) return;
  for (int op = 0; op < OPS_COUNT; op++) {
    static Subject s;
    try_empty(ctx, ops_defs[op]);
    if (!open_subject(&s, ctx, ops_defs[op])) continue;
    reset_memory(&s);
    CHECK_INT(ops_call(NULL, s.def, s.args, NULL), SOL_ERR_ARGUMENT);
    CHECK_INT(ops_call(ctx, s.def, NULL, NULL), SOL_ERR_ARGUMENT);
    try_pointers(&s);
    try_overlaps(&s);
    try_sizes(&s);
    try_types(&s);
    if (backend == SOL_BACKEND_EMU) try_places(&s);
    trial_close(&s.trial);
  }
  sol_context_destroy(ctx);
}

TEST(cpu) {
  try_backend(SOL_BACKEND_CPU);
}

TEST(emu) {
  try_backend(SOL_BACKEND_EMU);
}

// Columns of one wide tensor are not an overlap; rows that cross are.
TEST(side_by_side) {
  SolContext *ctx = NULL;
  if (!CHECK_INT(sol_context_create(&(SolContextOptions){.backend = SOL_BACKEND_CPU}, &ctx, NULL), SOL_OK))
    return;
  float wide[4][8];
  for (int i = 0; i < 32; i++) wide[i / 8][i % 8] = (float)i;
  SolCopy a = {.y = &wide[0][4], .x = wide, .m = 4, .n = 4, .y_stride = 8, .x_stride = 8, .dtype = SOL_FP32};
  CHECK_INT(sol_copy(ctx, &a, NULL), SOL_OK);
  for (int i = 0; i < 16; i++) CHECK_INT(wide[i / 4][4 + i % 4], i / 4 * 8 + i % 4);
  a.x = &wide[0][4], a.y = wide; // the output before the input
  CHECK_INT(sol_copy(ctx, &a, NULL), SOL_OK);
  a.n = 5; // one column is both
  a.m = 3;
  CHECK_INT(sol_copy(ctx, &a, NULL), SOL_ERR_ARGUMENT);
  CHECK_HAS(sol_last_error()->message, "y overlaps x");
  a.n = 4, a.y_stride = 7; // rows of different steps cross somewhere
  CHECK_INT(sol_copy(ctx, &a, NULL), SOL_ERR_ARGUMENT);
  a = (SolCopy){.y = wide, .x = wide, .m = 4, .n = 8, .dtype = SOL_FP32}; // in place, where copy has no such
  CHECK_INT(sol_copy(ctx, &a, NULL), SOL_ERR_ARGUMENT);
  sol_context_destroy(ctx);
}

TEST(costs_count_what_is_given) {
  SolCost with, without;
  float rows[6];
  SolEmbedRmsnorm a = {.m = 2, .n = 3, .vocab = 9, .dtype = SOL_FP32};
  CHECK_INT(sol_embed_rmsnorm_cost(&a, &without, NULL), SOL_OK);
  a.embedded = rows;
  CHECK_INT(sol_embed_rmsnorm_cost(&a, &with, NULL), SOL_OK);
  CHECK_NEAR(with.bytes_written - without.bytes_written, sizeof rows, 0);
  CHECK_NEAR(with.bytes_read, without.bytes_read, 0);
}

TEST(costs_refuse_too) {
  SolCost cost;
  SolError err;
  SolCopy a = {.m = 4, .n = 4, .dtype = SOL_FP4};
  CHECK_INT(sol_copy_cost(&a, &cost, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_copy_cost(NULL, &cost, &err), SOL_ERR_ARGUMENT);
  a.dtype = SOL_BF16;
  CHECK_INT(sol_copy_cost(&a, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_copy_cost(&a, &cost, &err), SOL_OK);
  CHECK_NEAR(cost.bytes_read + cost.bytes_written, 64, 0);
  a.m = -1;
  CHECK(sol_copy_cost(&a, &cost, &err) != SOL_OK);
}

CHECK_MAIN
