// Operations between GPUs, or between processes on their CPUs. What carries the data is a transport: NCCL, which is
// loaded at run time, for contexts of cuda; MPI for contexts of cpu; or one of your own. Every rank makes the same calls in
// the same order. Tensors that are summed are dense. cuda: calls are queued on the stream, like all operations.
#ifndef SOL_COLLECTIVE_H
#define SOL_COLLECTIVE_H

#include "sol/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SolTransport {
  int rank, size;
  SolBackend backend; // of the contexts that it serves
  void *state;
  // Sums `count` elements over all ranks, in place. cpu: fp32 alone; the operations convert other types.
  SolStatus (*all_reduce)(void *state, void *data, int64_t count, SolDtype dtype, SolStream stream);
  // Every rank's `bytes`, one after the other, into `all`; `mine` may be its place there.
  SolStatus (*all_gather)(void *state, const void *mine, void *all, size_t bytes, SolStream stream);
  void (*close)(void *state); // NULL: nothing to close
} SolTransport;

// NCCL (libnccl.so.2, or $SOL_NCCL). One rank makes the id and gives it to the others by other means; then all call
// sol_transport_nccl, which waits for them, each with its GPU current.
typedef struct SolNcclId {
  char bytes[128];
} SolNcclId;
SOL_API SolStatus sol_nccl_id(SolNcclId *out, SolError *err);
SOL_API SolStatus sol_transport_nccl(const SolNcclId *id, int rank, int size, SolTransport *out,
                                     SolError *err);
// The ranks that mpirun has started, through libsolfleet.so (a path, or NULL: as the loader finds it).
SOL_API SolStatus sol_transport_mpi(const char *library, SolTransport *out, SolError *err);
SOL_API void sol_transport_close(SolTransport *transport);

// x becomes the sum of all ranks' x; then add_rmsnorm: sum, add and norm in one pass over what arrives.
SOL_API SolStatus sol_all_reduce_rmsnorm(SolContext *context, const SolTransport *transport,
                                         const SolAddRmsnorm *args, SolStream stream);
// A table whose rows are split: table has this rank's `vocab` rows, ids are those of the whole table less the number of
// rows before them. y is whole on every rank.
SOL_API SolStatus sol_embedding_sharded(SolContext *context, const SolTransport *transport,
                                        const SolEmbedding *args, SolStream stream);
// y (size, M, N) in out_dtype: every rank's x (M, N), converted before it is sent.
typedef struct SolAllGatherCast {
  void *y;
  const void *x;
  int64_t m, n;
  SolDtype dtype, out_dtype;
} SolAllGatherCast;
SOL_API SolStatus sol_all_gather_cast(SolContext *context, const SolTransport *transport,
                                      const SolAllGatherCast *args, SolStream stream);

#ifdef __cplusplus
}
#endif
#endif
