#include "emu/core/state.h"

void emu_use_large_pages(void *memory, size_t bytes) {
  (void)memory, (void)bytes;
}
