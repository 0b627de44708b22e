// PTX from any bytes (src/ptx): parse, decode, link, and walk whatever comes out. A form feed starts another
// source.
#include <stdlib.h>

#include "../ptx_walk.h"
#include "fuzz.h"

enum { MAX_SOURCES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolPtxSource sources[MAX_SOURCES];
  int count = 0;
  size_t from = 0;
  for (size_t i = 0; i <= size && count < MAX_SOURCES; i++)
    if (i == size || (data[i] == '\f' && count < MAX_SOURCES - 1)) {
      sources[count++] = (SolPtxSource){"fuzz", (const char *)data + from, i - from};
      from = i + 1;
    }
  SolPtxModule *module = NULL;
  SolError err = {0};
  SolStatus status = sol_ptx_load(sources, count, &module, &err);
  if (status) {
    MUST(!module && err.status == status && err.message[0]);
    MUST(err.line >= 1 && err.column >= 1 && err.offset >= 0 && (size_t)err.offset <= size);
    return 0;
  }
  MUST(module);
  PtxWalk walk;
  const char *wrong = ptx_walk(&walk, module);
  if (wrong) fprintf(stderr, "%s\n", wrong);
  MUST(!wrong);
  sol_ptx_free(module);
  return 0;
}
