// How ranks reach each other: what libsolfleet.so, which is linked with MPI, offers to the tool. Messages are short
// (FLEET_PIECE bytes at most), so that MPI sends each at once and none waits for a rank that has died.
#ifndef SOL_FLEET_LINK_H
#define SOL_FLEET_LINK_H

#include <stdbool.h>
#include <stddef.h>

enum { FLEET_PIECE = 3072 };

typedef struct FleetLink {
  int rank, size;
  void (*send)(int to, const void *piece, size_t length);
  // A piece that has arrived, of whichever rank, and its length; 0: none has.
  size_t (*receive)(int *from, void *piece);
  // Sum over all ranks, in place, in the order of the ranks; and everybody's `count` floats, one rank's after the other's.
  void (*all_reduce)(float *values, size_t count);
  void (*all_gather)(const float *mine, size_t count, float *all);
  // Ends this rank's part; `all_there`: no rank has died, so that MPI can wait for everybody.
  void (*close)(bool all_there);
} FleetLink;

// The name that libsolfleet.so exports. NULL where MPI could not start.
typedef const FleetLink *FleetOpen(void);
#define FLEET_OPEN "sol_fleet_open"

#endif
