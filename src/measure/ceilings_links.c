// Links between the GPUs of one machine, from one process: a driver for each GPU, and for NCCL a thread for each,
// which is how NCCL wants it. Times are the host's, over enough copies or sums that a call's own cost is small; for the
// smallest sum it is what is measured.
#include "base/error.h"
#include "base/threads.h"
#include "measure/ceilings.h"
#include "measure/stats.h"
#include "sol/collective.h"

enum { MOST_GPUS = 16, ROUNDS = 11, WARM = 2, COPIES = 16, SUMS = 8, SMALL_SUMS = 500 };

typedef struct LinkRun {
  int count;
  uint64_t bytes; // of each buffer
  SolDriver *gpus[MOST_GPUS];
  uint64_t buffers[MOST_GPUS];
  SolStream streams[MOST_GPUS];
  SolNcclId id;
  SolStatus ended[MOST_GPUS]; // of each rank
  SolError errors[MOST_GPUS];
  Ceilings *out;
} LinkRun;

static void keep_samples(LinkRun *r, Ceiling which, double *samples) {
  Stats s = stats_of(samples, ROUNDS);
  r->out->values[which] = s.median;
  r->out->spreads[which] = s.spread;
}

// ---- copies ----

// The first half of each sender's buffer goes to the second half of the other's.
static SolStatus send_all(LinkRun *r, int senders, SolError *err) {
  SolStatus status = SOL_OK;
  for (int i = 0; i < COPIES * senders && !status; i++) {
    int from = i % senders, to = 1 - from;
    status = sol_driver_send(r->gpus[from], r->buffers[from], r->gpus[to], r->buffers[to] + r->bytes / 2,
                             r->bytes / 2, r->streams[from], err);
  }
  for (int i = 0; i < senders && !status; i++) status = sol_driver_sync(r->gpus[i], err);
  return status;
}

static SolStatus measure_copies(LinkRun *r, int senders, Ceiling which, SolError *err) {
  double samples[ROUNDS];
  SolStatus status = SOL_OK;
  for (int i = -WARM; i < ROUNDS && !status; i++) {
    double start = sol_thread_clock();
    status = send_all(r, senders, err);
    double bytes = (double)r->bytes / 2 * COPIES * senders;
    if (i >= 0) samples[i] = bytes / (sol_thread_clock() - start);
  }
  if (!status) keep_samples(r, which, samples);
  return status;
}

// ---- NCCL ----

// Seconds of one sum, by every rank in step with the others.
static SolStatus time_sums(LinkRun *r, const SolTransport *t, int64_t elements, int sums, double *samples) {
  SolStatus status = SOL_OK;
  for (int i = -WARM; i < ROUNDS && !status; i++) {
    double start = sol_thread_clock();
    for (int k = 0; k < sums && !status; k++)
      status = t->all_reduce(t->state, (void *)(uintptr_t)r->buffers[t->rank], elements, SOL_FP32,
                             r->streams[t->rank]);
    if (!status) status = sol_driver_sync(r->gpus[t->rank], &r->errors[t->rank]);
    if (i >= 0) samples[i] = (sol_thread_clock() - start) / sums;
  }
  return status;
}

// Every byte of a ring's sum goes round twice, less what each GPU starts and ends with: the bytes that a GPU sends.
static SolStatus measure_sums(LinkRun *r, const SolTransport *t) {
  double samples[ROUNDS], sent = 2.0 * (r->count - 1) / r->count * (double)r->bytes;
  SolStatus status = time_sums(r, t, (int64_t)(r->bytes / sizeof(float)), SUMS, samples);
  for (int i = 0; i < ROUNDS && !status; i++) samples[i] = sent / samples[i];
  if (!status && !t->rank) keep_samples(r, CEILING_nccl_sum, samples);
  if (!status) status = time_sums(r, t, 1, SMALL_SUMS, samples);
  for (int i = 0; i < ROUNDS && !status; i++) samples[i] *= 1e6;
  if (!status && !t->rank) keep_samples(r, CEILING_nccl_sum_us, samples);
  if (status && !r->errors[t->rank].status)
    sol_fail(&r->errors[t->rank], status, "NCCL's sum over %d GPUs failed", r->count);
  return status;
}

static void be_rank(void *ctx, int rank) {
  LinkRun *r = ctx;
  SolTransport t;
  bool entered = sol_driver_enter(r->gpus[rank]);
  r->ended[rank] = sol_transport_nccl(&r->id, rank, r->count, &t, &r->errors[rank]);
  if (!r->ended[rank]) {
    r->ended[rank] = measure_sums(r, &t);
    sol_transport_close(&t);
  }
  sol_driver_leave(r->gpus[rank], entered);
}

// Every rank needs a thread: they wait for each other.
static SolStatus measure_nccl(LinkRun *r, SolError *err) {
  SolStatus status = sol_nccl_id(&r->id, err);
  if (status) return status;
  SolPool *pool = sol_pool_create(r->count);
  if (!pool || sol_pool_count(pool) < r->count)
    status = sol_fail(err, SOL_ERR_NO_SPACE, "no %d threads for NCCL's ranks", r->count);
  else
    sol_pool_run(pool, be_rank, r);
  sol_pool_destroy(pool);
  for (int i = 0; i < r->count && !status; i++)
    if ((status = r->ended[i]) && err) *err = r->errors[i];
  return status;
}

// ---- all ----

static SolStatus open_gpu(LinkRun *r, int i, SolError *err) {
  SolDriverOptions options = {.backend = SOL_BACKEND_CUDA, .gpu = i + 1};
  SolStatus status = sol_driver_open(&options, &r->gpus[i], err);
  if (!status) status = sol_driver_alloc(r->gpus[i], r->bytes, "link", &r->buffers[i], err);
  if (!status) status = sol_driver_fill(r->gpus[i], r->buffers[i], 0x3c, r->bytes, err);
  if (!status) status = sol_driver_stream_open(r->gpus[i], &r->streams[i], err);
  return status;
}

static void close_gpu(LinkRun *r, int i) {
  if (!r->gpus[i]) return;
  if (r->streams[i]) sol_driver_stream_close(r->gpus[i], r->streams[i]);
  if (r->buffers[i]) sol_driver_free(r->gpus[i], r->buffers[i], NULL);
  sol_driver_close(r->gpus[i]);
}

static SolStatus open_all(LinkRun *r, SolError *err) {
  SolDriverInfo info;
  SolStatus status = open_gpu(r, 0, err);
  if (!status) status = sol_driver_info(r->gpus[0], &info, err);
  if (status) return status;
  r->count = info.gpus < MOST_GPUS ? info.gpus : MOST_GPUS;
  if (r->count < 2) return sol_fail(err, SOL_ERR_UNSUPPORTED, "one GPU is visible");
  for (int i = 1; i < r->count && !status; i++) status = open_gpu(r, i, err);
  for (int i = 0; i < 2 && !status; i++) sol_driver_reach(r->gpus[i], r->gpus[1 - i], NULL);
  return status;
}

SolStatus ceilings_measure_links(uint64_t bytes, Ceilings *out, SolError *err) {
  LinkRun r = {.bytes = bytes ? bytes : 256ull << 20, .out = out};
  SolStatus status = open_all(&r, err);
  if (!status) {
    out->gpus = r.count;
    status = measure_copies(&r, 1, CEILING_link_send, err);
  }
  if (!status) status = measure_copies(&r, 2, CEILING_link_both, err);
  if (!status) status = measure_nccl(&r, err);
  for (int i = 0; i < MOST_GPUS; i++) close_gpu(&r, i);
  return status;
}
