// Where the code of a rung is. The sources of the ladders' kernels are embedded in the tool, so that it can
// show them wherever it is installed.
#ifndef SOL_LADDER_SOURCE_H
#define SOL_LADDER_SOURCE_H

#include "ladder/ladder.h"

typedef struct LadderText {
  const char *path, *text; // from the root of the tree: "kernels/transpose/rungs.cu"
} LadderText;
extern const LadderText ladder_sources[];
extern const int ladder_source_count;

typedef struct LadderSource {
  const char *path;
  int line;         // of the kernel, or of the macro that makes it; 0: not found, and text is NULL
  const char *text; // with the comment before it
  size_t length;
} LadderSource;
// false: the ladder's file is not embedded. kernel: NULL where it is not known.
bool ladder_source(const Ladder *ladder, const char *kernel, LadderSource *out);

#endif
