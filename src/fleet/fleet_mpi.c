// libsolfleet.so: the only file that is compiled against MPI.
#include <mpi.h>
#include <unistd.h>

#include "fleet/fleet_link.h"
#include "sol/collective.h"

enum { TAG = 7, MOST_COUNT = 1 << 30 };

static void send_piece(int to, const void *piece, size_t length) {
  MPI_Send(piece, (int)length, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static size_t receive_piece(int *from, void *piece) {
  int there = 0, length = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status);
  if (!there) return 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  if (length > FLEET_PIECE) length = FLEET_PIECE;
  MPI_Recv(piece, length, MPI_BYTE, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  *from = status.MPI_SOURCE;
  return (size_t)length;
}

static void close_link(bool all_there) {
  if (all_there) MPI_Finalize();
}

__attribute__((visibility("default"))) const FleetLink *sol_fleet_open(void) {
  static FleetLink link = {.send = send_piece, .receive = receive_piece, .close = close_link};
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &link.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &link.size);
  return &link;
}

// ---- a transport for operations on cpu (sol/collective.h) ----

// MPI counts in int: long tensors go in parts.
static SolStatus sum_floats(void *state, void *data, int64_t count, SolDtype dtype, SolStream stream) {
  (void)state, (void)stream;
  if (dtype != SOL_FP32) return SOL_ERR_UNSUPPORTED;
  for (int64_t at = 0; at < count; at += MOST_COUNT) {
    int part = (int)(count - at < MOST_COUNT ? count - at : MOST_COUNT);
    if (MPI_Allreduce(MPI_IN_PLACE, (float *)data + at, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD))
      return SOL_ERR_IO;
  }
  return SOL_OK;
}

static SolStatus gather_bytes(void *state, const void *mine, void *all, size_t bytes, SolStream stream) {
  (void)stream;
  const char *place = (const char *)all + (size_t)((const FleetLink *)state)->rank * bytes;
  if (bytes > MOST_COUNT) return SOL_ERR_RANGE;
  const void *from = mine == place ? MPI_IN_PLACE : mine;
  return MPI_Allgather(from, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) ? SOL_ERR_IO
                                                                                              : SOL_OK;
}

static void close_transport(void *state) {
  (void)state;
  close_link(true);
}

__attribute__((visibility("default"))) SolStatus sol_fleet_transport(SolTransport *out) {
  const FleetLink *link = sol_fleet_open();
  if (!link) return SOL_ERR_IO;
  *out = (SolTransport){link->rank, link->size,   SOL_BACKEND_CPU, (void *)link,
                        sum_floats, gather_bytes, close_transport};
  return SOL_OK;
}
