// Several units of PTX in one image, as linkers that keep PTX hand them on: each after the byte SOL_UNIT_MARK, the whole
// ended by a NUL. A single unit is its own image, without a mark.
#ifndef SOL_IMAGE_UNITS_H
#define SOL_IMAGE_UNITS_H

#include "base/buffer.h"
#include "sol/status.h"

enum { SOL_UNIT_MARK = 1 };

typedef struct SolUnits { // starts as {0}; freed with sol_buffer_free(&units.text)
  SolBuffer text;
  unsigned count;
} SolUnits;

// A text, with or without NULs at its end. SOL_ERR_SYNTAX: it is none.
SolStatus sol_units_add(SolUnits *units, const char *ptx, size_t length);
// The PTX in a fat binary that runs on `cc` (90).
SolStatus sol_units_add_fat(SolUnits *units, const void *data, size_t size, int cc, SolError *err);
// The image, with its NUL, which lives as long as the units; NULL: there are none.
const char *sol_units_image(const SolUnits *units, size_t *size);

#endif
