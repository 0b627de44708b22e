// A file that lines are added to while the program runs, which may close every descriptor, put another file
// under the number, fork or change its folder. Nothing is ever written to a file that is not the one that was
// opened.
#ifndef SOL_SHIM_CHANNEL_H
#define SOL_SHIM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct ShimChannel {
  const char *name; // the variable that asked for it
  char *path;       // where it can be opened again; NULL: nowhere
  int file;
  dev_t device;
  ino_t inode;
  bool told; // that it is lost
} ShimChannel;

// As the environment variable names it. False: none is wanted, or it cannot be had, which it says.
bool shim_channel_open(ShimChannel *channel, const char *variable);
void shim_channel_write(ShimChannel *channel, const char *text, size_t length);

#endif
