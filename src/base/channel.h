// A file that lines are added to from inside another program, which may close every descriptor,
// put another file under the number, fork or change its folder. Nothing is ever written to a file that is not
// the one opened.
#ifndef SOL_BASE_CHANNEL_H
#define SOL_BASE_CHANNEL_H

#include "base/error.h"

typedef struct SolChannel {
  char *path; // where it can be opened again; NULL: nowhere
  int file;
  uint64_t device, inode;
} SolChannel;

SolStatus sol_channel_open(SolChannel *channel, const char *path, unsigned mode, SolError *err);
// SOL_ERR_IO: the program closed the descriptor, and the file cannot be opened again; a later line may find
// that it can.
SolStatus sol_channel_write(SolChannel *channel, const char *text, size_t length, SolError *err);

#endif
