// PTX as it is embedded: the numbers of registers and labels are differences from the number that such a name had last. Kernels of a
// module are variants of one another, and so their texts repeat; what zstd packs them into is half as large.
#ifndef SOL_IMAGE_NUMBERS_H
#define SOL_IMAGE_NUMBERS_H

#include "base/port.h"

// Each returns the bytes of the result, without a NUL; to: NULL to count them. Numbers with leading zeros or beyond 32 bits do not
// come back: who packs compares.
size_t sol_numbers_pack(const char *text, size_t size, char *to);
bool sol_numbers_packed(const char *text, size_t size);
size_t sol_numbers_unpack(const char *packed, size_t size, char *to); // of what sol_numbers_packed says so

#endif
