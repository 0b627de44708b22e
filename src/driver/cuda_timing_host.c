// Timing on a real GPU: calls recorded into a graph, the graph replayed between events.
#include "driver/cuda.h"

static SolStatus stream_open_cuda(void *state, SolStream *out, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->stream_create(out, STREAM_NON_BLOCKING);
  cuda_leave(c, entered);
  return cuda_check(c, result, "a stream", err);
}

static void stream_close_cuda(void *state, SolStream stream) {
  Cuda *c = state;
  if (c->lost) return;
  bool entered = cuda_enter(c);
  c->stream_destroy(stream);
  cuda_leave(c, entered);
}

static SolStatus record_cuda(void *state, SolStream stream, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->capture_begin(stream, CAPTURE_RELAXED);
  cuda_leave(c, entered);
  return cuda_check(c, result, "recording", err);
}

static SolStatus recorded_cuda(void *state, SolStream stream, SolDriverGraph **out, SolError *err) {
  Cuda *c = state;
  void *graph = NULL, *exec = NULL;
  bool entered = cuda_enter(c);
  SolStatus status = cuda_check(c, c->capture_end(stream, &graph), "recording", err);
  if (!status && out) status = cuda_check(c, c->graph_instantiate(&exec, graph, 0), "making a graph", err);
  if (graph) c->graph_destroy(graph);
  cuda_leave(c, entered);
  if (!status && out) *out = exec;
  return status;
}

static void graph_free_cuda(void *state, SolDriverGraph *graph) {
  Cuda *c = state;
  if (c->lost) return;
  bool entered = cuda_enter(c);
  c->graph_exec_destroy(graph);
  cuda_leave(c, entered);
}

// All rounds are enqueued at once: the GPU never waits for the host between two events.
static CuResult enqueue_rounds(Cuda *c, SolDriverGraph *const *graphs, int count, int warm, int rounds,
                               SolStream stream, void **event) {
  CuResult result = 0;
  for (int i = 0; i < warm && !result; i++) result = c->graph_launch(graphs[i % count], stream);
  for (int i = 0; i <= rounds && !result; i++) {
    result = c->event_record(event[i], stream);
    if (!result && i < rounds) result = c->graph_launch(graphs[(warm + i) % count], stream);
  }
  CuResult ended = c->stream_sync(stream);
  return result ? result : ended;
}

static SolStatus replay_cuda(void *state, SolDriverGraph *const *graphs, int count, int warm, int rounds,
                             SolStream stream, double *seconds, SolError *err) {
  Cuda *c = state;
  void *event[SOL_MAX_ROUNDS + 1] = {0};
  bool entered = cuda_enter(c);
  SolStatus status = SOL_OK;
  for (int i = 0; i <= rounds && !status; i++)
    status = cuda_check(c, c->event_create(&event[i], 0), "an event", err);
  // What was filled and copied on the default stream must have ended: this stream does not wait for it.
  if (!status) status = cuda_check(c, c->context_sync(), "preparing", err);
  if (!status)
    status =
        cuda_check(c, enqueue_rounds(c, graphs, count, warm, rounds, stream, event), "running a graph", err);
  for (int i = 0; i < rounds && !status; i++) {
    float ms = 0;
    status = cuda_check(c, c->event_elapsed(&ms, event[i], event[i + 1]), "timing", err);
    seconds[i] = (double)ms / 1e3;
  }
  for (int i = 0; i <= rounds; i++)
    if (event[i] && !c->lost) c->event_destroy(event[i]);
  cuda_leave(c, entered);
  return status;
}

static SolStatus fill_cuda(void *state, uint64_t at, int byte, uint64_t bytes, SolError *err) {
  Cuda *c = state;
  bool entered = cuda_enter(c);
  CuResult result = c->mem_set(at, (unsigned char)byte, (size_t)bytes, NULL);
  cuda_leave(c, entered);
  return cuda_check(c, result, "filling GPU memory", err);
}

const SolDriverTiming sol_driver_cuda_timing = {
    .stream_open = stream_open_cuda,
    .stream_close = stream_close_cuda,
    .record = record_cuda,
    .recorded = recorded_cuda,
    .graph_free = graph_free_cuda,
    .replay = replay_cuda,
    .fill = fill_cuda,
};
