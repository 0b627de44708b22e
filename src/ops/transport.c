// Transports: NCCL and MPI, both loaded at run time. NCCL's functions are declared by hand, from its stable C API
// (nccl.h of 2.x): the library builds without its headers.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "sol/collective.h"

typedef struct Nccl {
  void *library, *comm;
  int (*get_id)(SolNcclId *);
  int (*init_rank)(void **, int, SolNcclId, int);
  int (*destroy)(void *);
  int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
  int (*all_gather)(const void *, void *, size_t, int, void *, void *);
  const char *(*error_string)(int);
} Nccl;

enum { NCCL_UINT8 = 1, NCCL_FP16 = 6, NCCL_FP32 = 7, NCCL_BF16 = 9, NCCL_SUM = 0 };

static bool entry(void *library, const char *name, void *function, size_t size) {
  void *address = dlsym(library, name);
  memcpy(function, &address, size);
  return address != NULL;
}
#define ENTRY(n, field, name) entry((n)->library, name, &(n)->field, sizeof(n)->field)

static SolStatus load_nccl(Nccl *n, SolError *err) {
  const char *given = getenv("SOL_NCCL");
  n->library = dlopen(given && *given ? given : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!n->library) {
    sol_fail(err, SOL_ERR_UNSUPPORTED, "NCCL is not here (libnccl.so.2)");
    sol_hint(err, "install it, or name it in SOL_NCCL");
    return SOL_ERR_UNSUPPORTED;
  }
  if (ENTRY(n, get_id, "ncclGetUniqueId") && ENTRY(n, init_rank, "ncclCommInitRank") &&
      ENTRY(n, destroy, "ncclCommDestroy") && ENTRY(n, all_reduce, "ncclAllReduce") &&
      ENTRY(n, all_gather, "ncclAllGather") && ENTRY(n, error_string, "ncclGetErrorString"))
    return SOL_OK;
  return sol_fail(err, SOL_ERR_UNSUPPORTED, "this NCCL lacks functions of its version 2");
}

static SolStatus nccl_failed(const Nccl *n, int result, const char *what, SolError *err) {
  return result ? sol_fail(err, SOL_ERR_IO, "NCCL: %s: %.160s", what, n->error_string(result)) : SOL_OK;
}

SolStatus sol_nccl_id(SolNcclId *out, SolError *err) {
  Nccl n = {0};
  if (!out) return sol_fail(err, SOL_ERR_ARGUMENT, "out must not be NULL");
  SolStatus status = load_nccl(&n, err);
  // The library stays loaded: the id belongs to a thread of it.
  return status ? status : nccl_failed(&n, n.get_id(out), "an id", err);
}

static SolStatus nccl_all_reduce(void *state, void *data, int64_t count, SolDtype dtype, SolStream stream) {
  Nccl *n = state;
  int type = dtype == SOL_FP32   ? NCCL_FP32
             : dtype == SOL_FP16 ? NCCL_FP16
             : dtype == SOL_BF16 ? NCCL_BF16
                                 : -1;
  if (type < 0) return SOL_ERR_UNSUPPORTED;
  return n->all_reduce(data, data, (size_t)count, type, NCCL_SUM, n->comm, stream) ? SOL_ERR_IO : SOL_OK;
}

static SolStatus nccl_all_gather(void *state, const void *mine, void *all, size_t bytes, SolStream stream) {
  Nccl *n = state;
  return n->all_gather(mine, all, bytes, NCCL_UINT8, n->comm, stream) ? SOL_ERR_IO : SOL_OK;
}

static void nccl_close(void *state) {
  Nccl *n = state;
  if (n->comm) n->destroy(n->comm);
  if (n->library) dlclose(n->library);
  sol_heap_free(n);
}

SolStatus sol_transport_nccl(const SolNcclId *id, int rank, int size, SolTransport *out, SolError *err) {
  if (!id || !out || size < 1 || rank < 0 || rank >= size)
    return sol_fail(err, SOL_ERR_ARGUMENT, "id and out must not be NULL, and rank %d one of %d", rank, size);
  Nccl *n = sol_heap_alloc(sizeof *n);
  if (!n) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *n = (Nccl){0};
  SolStatus status = load_nccl(n, err);
  if (!status) status = nccl_failed(n, n->init_rank(&n->comm, size, *id, rank), "joining the others", err);
  if (status)
    nccl_close(n);
  else
    *out = (SolTransport){rank, size, SOL_BACKEND_CUDA, n, nccl_all_reduce, nccl_all_gather, nccl_close};
  return status;
}

SolStatus sol_transport_mpi(const char *library, SolTransport *out, SolError *err) {
  SolStatus (*start)(SolTransport *) = NULL;
  if (!out) return sol_fail(err, SOL_ERR_ARGUMENT, "out must not be NULL");
  // Open MPI loads its own parts, which look for its names among all that are loaded.
  void *loaded = dlopen(library && *library ? library : "libsolfleet.so", RTLD_NOW | RTLD_GLOBAL);
  if (!loaded || !entry(loaded, "sol_fleet_transport", &start, sizeof start)) {
    sol_fail(err, SOL_ERR_UNSUPPORTED, "libsolfleet.so cannot be loaded: it is built where MPI is found");
    return SOL_ERR_UNSUPPORTED;
  }
  return start(out) ? sol_fail(err, SOL_ERR_IO, "MPI could not be started") : SOL_OK;
}

void sol_transport_close(SolTransport *t) {
  if (t && t->close) t->close(t->state);
  if (t) *t = (SolTransport){0};
}
