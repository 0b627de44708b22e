// Messages between ranks, of any length, cut into pieces that MPI sends at once. A rank that dies in the middle of one
// leaves an unfinished message, which nobody sees.
#ifndef SOL_FLEET_WIRE_H
#define SOL_FLEET_WIRE_H

#include "fleet/fleet.h"

typedef enum FleetKind {
  FLEET_HELLO = 'H',  // host and process of a rank
  FLEET_JOB = 'J',    // to run
  FLEET_RESULT = 'R', // of one
  FLEET_BEAT = 'B',   // I am there
  FLEET_STOP = 'S'    // nothing is left; with a text: a rank has died
} FleetKind;

typedef struct FleetInbox {
  SolBuffer *parts; // one for each rank
  bool *whole;      // it was handed out: the next piece starts another
  int size;
} FleetInbox;

bool fleet_inbox_open(FleetInbox *box, int size);
void fleet_inbox_close(FleetInbox *box);

void fleet_say(const FleetLink *link, int to, FleetKind kind, const char *text, size_t length);
// A message that is whole: of whom, and its text, which stays until the next of that rank. false: there is none.
// *heard: any piece came from *from, of a message that is not whole yet.
bool fleet_hear(const FleetLink *link, FleetInbox *box, int *from, bool *heard, FleetKind *kind,
                SolBuffer **text);

void fleet_write_result(int job, const FleetResult *result, SolBuffer *out);
bool fleet_read_result(const SolBuffer *text, int *job, FleetResult *out);

#endif
