// The arrays of a ladder: made on the host, written to the backend; outputs are poisoned before a rung runs
// and compared with the reference after it.
#include "base/error.h"
#include "base/heap.h"
#include "ladder/ladder_run.h"
#include "measure/trial.h"

enum {
  POISON = 0xA5,
  ALIGN = 256,
  BLOCK = 1000003, // elements that are generated; the rest are copies of them, each rotated
  CHECK_ALL = 4 << 20,
  UNIT = 1024,
  TERMS = 16, // of a sum, that take as long as another ladder's element
  MOST_SETS = 2048
};
static const double most_memory = 24e9; // bytes of all sets together: less than any GPU has that is timed

static size_t size_of(const LadderBuffer *b) {
  return (size_t)sol_dtype_bits(b->dtype) / 8;
}

static size_t bytes_of(const LadderBuffer *b) {
  return (size_t)b->count * size_of(b);
}

static bool is_ids(const LadderBuffer *b) {
  return b->fill >= OPS_FILL_IDS;
}

static void make_values(const LadderBuffer *b, uint64_t seed, char *to) {
  OpsView view = {.dtype = b->dtype, .role = b->role, .fill = b->fill, .limit = b->limit};
  int64_t block = is_ids(b) || b->count < BLOCK ? b->count : BLOCK, shift = 0;
  trial_values(&view, seed, to, block);
  size_t size = size_of(b);
  for (int64_t done = block; done < b->count;) {
    shift = (shift + 12289) % block;
    int64_t left = b->count - done, first = block - shift < left ? block - shift : left;
    int64_t second = shift < left - first ? shift : left - first;
    memcpy(to + (size_t)done * size, to + (size_t)shift * size, (size_t)first * size);
    memcpy(to + (size_t)(done + first) * size, to, (size_t)second * size);
    done += first + second;
  }
}

static uint64_t seed_of(int buffer, int set) {
  return 7919u * (uint64_t)(set + 1) + 1000003u * (uint64_t)buffer;
}

static SolStatus poison(LadderRun *run, uint64_t at, uint64_t bytes, SolError *err) {
  SolDriver *driver = run->session->ctx->driver;
  SolEmu *emu = sol_driver_emu(driver);
  static const unsigned char byte = POISON;
  return emu ? sol_emu_fill(emu, at, &byte, 1, bytes, err) : sol_driver_fill(driver, at, POISON, bytes, err);
}

// Set 0 holds what the host made. The others have ids of their own and the same values, rotated; the order of
// what a ladder makes itself may matter, so that is copied as it is.
static SolStatus fill_set(LadderRun *run, int k, int set, SolError *err) {
  const LadderBuffer *b = &run->buffer[k];
  SolDriver *driver = run->session->ctx->driver;
  uint64_t at = run->memory[k] + run->step[k] * (uint64_t)set, bytes = bytes_of(b);
  if (b->role == OPS_OUT) return poison(run, at, bytes, err);
  if (!set) return sol_driver_write(driver, at, run->host[k], bytes, err);
  if (b->make) return sol_driver_copy(driver, at, run->memory[k], bytes, err);
  if (!is_ids(b)) {
    uint64_t shift = bytes < 2 * ALIGN ? 0 : (uint64_t)set * 12289 * ALIGN % bytes / ALIGN * ALIGN;
    SolStatus status = sol_driver_copy(driver, at, run->memory[k] + shift, bytes - shift, err);
    return status ? status : sol_driver_copy(driver, at + bytes - shift, run->memory[k], shift, err);
  }
  char *ids = sol_heap_alloc(bytes);
  if (!ids) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  make_values(b, seed_of(k, set), ids);
  SolStatus status = sol_driver_write(driver, at, ids, bytes, err);
  sol_heap_free(ids);
  return status;
}

// As many sets as it takes for the first to be evicted from the caches before it is used again.
static int sets_wanted(const LadderRun *run) {
  if (run->session->options.backend != SOL_BACKEND_CUDA) return 1;
  double least = 1e300, each = 0;
  for (int i = 0; i < run->ladder->rung_count; i++) {
    double bytes = run->ladder->bytes(&run->c, &run->ladder->rungs[i]);
    if (bytes > 0 && bytes < least) least = bytes;
  }
  for (int k = 0; k < run->buffer_count; k++)
    if (!run->buffer[k].shared) each += (double)bytes_of(&run->buffer[k]);
  if (run->ladder->terms && each > 0) least = each; // not a matter of bytes, but each call reads all arrays
  double sets = run->session->timer.footprint / least, fit = each > 0 ? most_memory / each : 3;
  if (sets > fit) sets = fit;
  if (sets > MOST_SETS) sets = MOST_SETS;
  int most = run->session->most_sets ? run->session->most_sets : MOST_SETS,
      wanted = sets < 2 ? 3 : (int)sets + 1;
  return wanted > most ? most : wanted;
}

static SolStatus take_memory(LadderRun *run, int k, SolError *err) {
  LadderBuffer *b = &run->buffer[k];
  uint64_t bytes = bytes_of(b);
  if (b->role != OPS_OUT) {
    run->host[k] = sol_heap_alloc(bytes ? bytes : 1);
    if (!run->host[k])
      return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory: %s needs %.1f GB", b->name, (double)bytes / 1e9);
    if (b->make)
      b->make(&run->c, run->host[k], b->count);
    else
      make_values(b, seed_of(k, 0), run->host[k]);
  }
  int sets = b->shared ? 1 : run->sets;
  // A single set is exactly as long as its array: the emulator then finds every access beyond it.
  run->step[k] = b->shared ? 0 : (bytes + ALIGN - 1) / ALIGN * ALIGN;
  uint64_t all = sets > 1 ? run->step[k] * (uint64_t)sets : bytes;
  SolStatus status = sol_driver_alloc(run->session->ctx->driver, all, b->name, &run->memory[k], err);
  for (int set = 0; set < sets && !status; set++) status = fill_set(run, k, set, err);
  return status;
}

SolStatus ladder_data_open(LadderRun *run, SolError *err) {
  run->buffer_count = run->ladder->buffers(&run->c, run->buffer);
  run->sets = sets_wanted(run);
  SolStatus status = SOL_OK;
  for (int k = 0; k < run->buffer_count && !status; k++) status = take_memory(run, k, err);
  return status ? status : sol_driver_sync(run->session->ctx->driver, err);
}

void ladder_data_close(LadderRun *run) {
  for (int k = 0; k < run->buffer_count; k++) {
    if (run->memory[k]) sol_driver_free(run->session->ctx->driver, run->memory[k], NULL);
    sol_heap_free(run->host[k]);
  }
}

SolStatus ladder_data_reset(LadderRun *run, SolError *err) {
  SolStatus status = SOL_OK;
  for (int k = 0; k < run->buffer_count && !status; k++)
    if (run->buffer[k].role != OPS_IN) status = fill_set(run, k, 0, err);
  return status ? status : sol_driver_sync(run->session->ctx->driver, err);
}

LadderCall ladder_call(LadderRun *run, const LadderRung *rung, int set, SolStream stream) {
  LadderCall call = {.ladder = run->ladder,
                     .rung = rung,
                     .c = run->c,
                     .ctx = run->session->ctx,
                     .stream = stream,
                     .run = run};
  for (int k = 0; k < run->buffer_count; k++) call.at[k] = run->memory[k] + run->step[k] * (uint64_t)set;
  return call;
}

// ---- checking ----

static double value_of(const LadderHost *h, int buffer, int64_t index) {
  return trial_element(h->dtype[buffer], h->in[buffer], index);
}

static SolStatus check_unit(const LadderRun *run, const LadderHost *h, int k, const char *got, int64_t first,
                            int64_t count, double *want, double *worst, SolError *err) {
  const LadderBuffer *b = &run->buffer[k];
  run->ladder->expect(h, k, first, count, want);
  double largest = 0;
  for (int64_t i = 0; i < count; i++) {
    double size = want[i] < 0 ? -want[i] : want[i];
    if (__builtin_isfinite(size) && size > largest) largest = size;
  }
  for (int64_t i = 0; i < count; i++) {
    double have = trial_element(b->dtype, got, first + i);
    double share = trial_error(b->dtype, run->ladder->slack, have, want[i], largest);
    if (share > *worst) *worst = share;
    if (share > 1)
      return sol_fail(err, SOL_ERR_RANGE, "wrong result: %s[%lld] is %.9g, not %.9g", b->name,
                      (long long)(first + i), have, want[i]);
  }
  return SOL_OK;
}

// An element of a long sum counts as several.
static double ladder_terms(const Ladder *ladder, const LadderCase *c) {
  double terms = ladder->terms ? ladder->terms(c) / TERMS : 1;
  return terms > 1 ? terms : 1;
}

static SolStatus check_buffer(const LadderRun *run, const LadderHost *h, int k, double *worst,
                              SolError *err) {
  const LadderBuffer *b = &run->buffer[k];
  int64_t unit = run->ladder->unit ? run->ladder->unit(&run->c, k) : UNIT;
  if (unit < 1) unit = 1;
  int64_t units = (b->count + unit - 1) / unit,
          most = (int64_t)(CHECK_ALL / ladder_terms(run->ladder, &run->c));
  int64_t wanted = most / unit < 64 ? 64 : most / unit;
  if (wanted > units) wanted = units;
  char *got = sol_heap_alloc(bytes_of(b) ? bytes_of(b) : 1);
  double *want = sol_heap_alloc(sizeof *want * (size_t)(unit < b->count ? unit : b->count + 1));
  SolStatus status = got && want ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  if (!status) status = sol_driver_read(run->session->ctx->driver, got, run->memory[k], bytes_of(b), err);
  for (int64_t i = 0; i < wanted && !status; i++) { // the first, the last, and others evenly between
    int64_t at = wanted > 1 ? (int64_t)((double)i * (double)(units - 1) / (double)(wanted - 1)) : 0;
    if (i == wanted - 1) at = units - 1;
    int64_t first = at * unit, count = b->count - first < unit ? b->count - first : unit;
    status = check_unit(run, h, k, got, first, count, want, worst, err);
  }
  sol_heap_free(got);
  sol_heap_free(want);
  return status;
}

SolStatus ladder_data_check(LadderRun *run, const LadderRung *rung, double *worst, SolError *err) {
  LadderHost h = {.c = &run->c, .rung = rung, .value = value_of};
  for (int k = 0; k < run->buffer_count; k++) {
    h.in[k] = run->host[k];
    h.dtype[k] = run->buffer[k].dtype;
  }
  *worst = 0;
  SolStatus status = SOL_OK;
  for (int k = 0; k < run->buffer_count && !status; k++)
    if (run->buffer[k].role != OPS_IN && !run->buffer[k].scratch && run->buffer[k].count > 0)
      status = check_buffer(run, &h, k, worst, err);
  return status;
}
