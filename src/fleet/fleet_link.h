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
  // Ends this rank's part; `all_there`: no rank has died, so that MPI can wait for everybody.
  void (*close)(bool all_there);
} FleetLink;

// The name that libsolfleet.so exports. NULL where MPI could not start.
typedef const FleetLink *FleetOpen(void);
#define FLEET_OPEN "sol_fleet_open"

#endif
