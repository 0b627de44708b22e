// libsolfleet.so: the only file that is compiled against MPI.
#include <mpi.h>
#include <unistd.h>

#include "fleet/fleet_link.h"
#include "sol/status.h"

enum { TAG = 7 };

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

static void all_reduce(float *values, size_t count) {
  MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_gather(const float *mine, size_t count, float *all) {
  MPI_Allgather(mine, (int)count, MPI_FLOAT, all, (int)count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void close_link(bool all_there) {
  if (all_there) MPI_Finalize();
}

__attribute__((visibility("default"))) const FleetLink *sol_fleet_open(void) {
  static FleetLink link = {.send = send_piece,
                           .receive = receive_piece,
                           .all_reduce = all_reduce,
                           .all_gather = all_gather,
                           .close = close_link};
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &link.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &link.size);
  return &link;
}
