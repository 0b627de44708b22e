// Libraries that compute on the host: their calls run in stream order, are captured, timed and reported.
#include "shim/shim_library.h"

#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "shim/shim.h"

typedef struct Job {
  const char *name;
  cudaStream_t stream;
  ShimLibraryWork *work;
  bool bad;
  max_align_t arguments[];
} Job;

// With the lock held.
static double account(const Job *job, const ShimLibraryCost *cost) {
  AuditLibraryCall call = {.name = job->name,
                           .read = cost->read,
                           .written = cost->written,
                           .flops = cost->flops,
                           .dtype = cost->dtype,
                           .tensor = cost->tensor};
  for (int i = 0; i < SHIM_LIBRARY_USES && cost->uses[i].bytes; i++) {
    const ShimLibraryUse *use = &cost->uses[i];
    shim_observe_memory(use->wrote, use->at, use->bytes);
    shim_use_l2(use->wrote ? SOL_L2_WRITES : SOL_L2_READS, use->at, use->bytes);
  }
  shim_observe_library(&call);
  if (!sol_known(shim.device->mem_bandwidth)) return shim_launch_seconds();
  MachineModel model = machine_model(shim.device);
  return audit_library_seconds(&model, &call);
}

// As a host function of a stream or a graph, with the lock released.
static void run_job(void *data) {
  Job *job = data;
  ShimLibraryCost cost = {0};
  job->bad = !job->work(job->arguments, &cost);
  shim_lock();
  double seconds = job->bad ? 0 : account(job, &cost);
  ShimStream *s = shim_stream(job->stream);
  if (s) s->time += seconds;
  shim_leave(cudaSuccess);
}

static Job *make_job(const char *name, void *stream, ShimLibraryWork *work, const void *arguments,
                     size_t bytes) {
  Job *job = calloc(1, sizeof *job + bytes);
  if (!job) return NULL;
  *job = (Job){.name = name, .stream = stream, .work = work};
  memcpy(job->arguments, arguments, bytes);
  return job;
}

static ShimLibraryResult submit(Job *job, bool *captured) {
  ShimStream *s = shim_stream(job->stream);
  if (!s) return SHIM_LIBRARY_NO_STREAM;
  *captured = s->capture != NULL;
  ShimWork work = {.type = cudaGraphNodeTypeHost, .host = {run_job, job}};
  cudaError_t error = shim_submit(job->stream, &work);
  return error ? SHIM_LIBRARY_NO_STREAM : job->bad ? SHIM_LIBRARY_BAD_MEMORY : SHIM_LIBRARY_DONE;
}

ShimLibraryResult __cudaSolLibraryCall(const char *name, void *stream, ShimLibraryWork *work,
                                       const void *arguments, size_t bytes) {
  bool captured = false;
  Job *job = make_job(name, stream, work, arguments, bytes);
  if (!job) return SHIM_LIBRARY_NO_MEMORY;
  cudaError_t error = shim_enter();
  ShimLibraryResult result = error ? SHIM_LIBRARY_NO_DEVICE : submit(job, &captured);
  shim_leave(cudaSuccess);
  if (!captured || result) free(job); // a graph keeps it: copies of graphs share it
  return result;
}

static void *find(const void *pointer, size_t bytes, bool *is_device) {
  SolEmuRange range;
  uint64_t address = shim_address(pointer);
  bool known = sol_emu_range(shim.emu, address, &range);
  *is_device = known || sol_emu_owns(shim.emu, address);
  if (!known || bytes > range.bytes - (address - range.address)) return NULL;
  return range.mapped ? shim_pointer(address) : sol_emu_host(shim.emu, address, bytes);
}

void *__cudaSolLibraryMemory(const char *name, const void *pointer, size_t bytes) {
  bool device = false;
  void *at = shim_enter() ? NULL : find(pointer, bytes, &device);
  if (!at)
    shim_note("%s: [%p, +%zu) %s", name, pointer, bytes,
              device ? "goes beyond its allocation" : "is not allocated device memory");
  shim_leave(cudaSuccess);
  return at;
}

void *__cudaSolLibraryEither(const void *pointer, size_t bytes) {
  bool device = false;
  void *at = shim_enter() ? NULL : find(pointer, bytes, &device);
  if (!at && !device) at = shim_pointer(shim_address(pointer));
  shim_leave(cudaSuccess);
  return at;
}

void __cudaSolLibraryMissing(const char *name, char *warned) {
  shim_missing(name, warned);
}
