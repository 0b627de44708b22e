// An NCCL of two ranks that hold the same: a sum is twice the value, what is gathered is there twice. It refuses what the
// real one would: another id, a wrong rank, types that it was not asked for.
#include <stddef.h>
#include <string.h>

typedef struct ncclUniqueId {
  char bytes[128];
} ncclUniqueId;

enum { OK = 0, BAD = 4, SIZE = 2 };
static const char secret[] = "an id of the fake NCCL";

#define EXPORT __attribute__((visibility("default")))
EXPORT int ncclGetUniqueId(ncclUniqueId *out) {
  memset(out, 7, sizeof *out);
  memcpy(out->bytes, secret, sizeof secret);
  return OK;
}

EXPORT int ncclCommInitRank(void **comm, int size, ncclUniqueId id, int rank) {
  static char it;
  if (memcmp(id.bytes, secret, sizeof secret) != 0 || id.bytes[127] != 7 || size != SIZE || rank < 0 ||
      rank >= size)
    return BAD;
  *comm = &it;
  return OK;
}

EXPORT int ncclCommDestroy(void *comm) {
  return comm ? OK : BAD;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
                         void *stream) {
  (void)stream;
  if (type != 7 || op != 0 || !comm) return BAD; // ncclFloat32, ncclSum
  for (size_t i = 0; i < count; i++) ((float *)to)[i] = SIZE * ((const float *)from)[i];
  return OK;
}

EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
  (void)stream;
  if (type != 1 || !comm) return BAD; // ncclUint8
  for (size_t i = 0; i < SIZE; i++) memmove((char *)to + i * count, from, count);
  return OK;
}

EXPORT const char *ncclGetErrorString(int result) {
  return result ? "invalid argument" : "no error";
}
