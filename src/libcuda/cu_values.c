// Values in memory that streams write and wait for, one at a time or several in one call.
#include "libcuda/cu.h"

enum { MOST_OPERATIONS = 256 };

static cudaError_t submit(CUstream stream, ShimValueOp op, uint64_t address, uint64_t value, unsigned bytes) {
  if (address % bytes || !sol_emu_host(shim.emu, address, bytes)) return cudaErrorInvalidValue;
  ShimWork work = {.type = SHIM_NODE_VALUE,
                   .value = {.op = op, .address = address, .value = value, .bytes = (uint8_t)bytes}};
  return shim_submit(stream, &work);
}

static cudaError_t write(CUstream stream, uint64_t address, uint64_t value, unsigned bytes, unsigned flags) {
  if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return cudaErrorInvalidValue;
  return submit(stream, SHIM_VALUE_WRITE, address, value, bytes);
}

// A flush of what other devices have written changes nothing here.
static cudaError_t wait(CUstream stream, uint64_t address, uint64_t value, unsigned bytes, unsigned flags) {
  static const ShimValueOp ops[] = {[CU_STREAM_WAIT_VALUE_GEQ] = SHIM_VALUE_GEQ,
                                    [CU_STREAM_WAIT_VALUE_EQ] = SHIM_VALUE_EQ,
                                    [CU_STREAM_WAIT_VALUE_AND] = SHIM_VALUE_AND,
                                    [CU_STREAM_WAIT_VALUE_NOR] = SHIM_VALUE_NOR};
  flags &= ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
  if (flags >= SOL_COUNT(ops)) return cudaErrorInvalidValue;
  return submit(stream, ops[flags], address, value, bytes);
}

CU_LOCKED(CU_CONTEXT, cuStreamWriteValue32,
          (CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags),
          write(stream, to, value, 4, flags))
CU_LOCKED(CU_CONTEXT, cuStreamWriteValue64,
          (CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned flags),
          write(stream, to, value, 8, flags))
CU_LOCKED(CU_CONTEXT, cuStreamWaitValue32,
          (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags),
          wait(stream, at, value, 4, flags))
CU_LOCKED(CU_CONTEXT, cuStreamWaitValue64,
          (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags),
          wait(stream, at, value, 8, flags))

static cudaError_t one(CUstream stream, const CUstreamBatchMemOpParams *p) {
  switch (p->operation) {
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    return wait(stream, p->waitValue.address, p->waitValue.value, 4, p->waitValue.flags);
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    return wait(stream, p->waitValue.address, p->waitValue.value64, 8, p->waitValue.flags);
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    return write(stream, p->writeValue.address, p->writeValue.value, 4, p->writeValue.flags);
  case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    return write(stream, p->writeValue.address, p->writeValue.value64, 8, p->writeValue.flags);
  case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    return p->flushRemoteWrites.flags ? cudaErrorInvalidValue : cudaSuccess;
  case CU_STREAM_MEM_OP_BARRIER:
    return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? cudaErrorInvalidValue : cudaSuccess;
  default: return cudaErrorInvalidValue;
  }
}

static cudaError_t batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *list,
                         unsigned flags) {
  if (!list || !count || count > MOST_OPERATIONS || flags) return cudaErrorInvalidValue;
  cudaError_t error = shim_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  for (unsigned i = 0; i < count && !error; i++) error = one(stream, &list[i]);
  return error;
}
CU_LOCKED(CU_CONTEXT, cuStreamBatchMemOp,
          (CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags),
          batch(stream, count, list, flags))
