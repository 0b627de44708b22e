// Filling in a SolError. Each call returns the status, so that a failing function ends `return
// sol_fail(...)`.
#ifndef SOL_BASE_ERROR_H
#define SOL_BASE_ERROR_H

#include "base/port.h"
#include "sol/status.h"

SolStatus sol_fail(SolError *err, SolStatus status, const char *format, ...) SOL_PRINTF(3, 4);
#ifdef __clang_analyzer__ // which cannot see that it returns its argument
#define sol_fail(err, status, ...) (sol_fail(err, status, __VA_ARGS__), status)
#endif
// At a place in a text: offset, line and column are filled in.
SolStatus sol_fail_at(SolError *err, SolStatus status, const char *text, size_t length, size_t offset,
                      const char *format, ...) SOL_PRINTF(6, 7);
// Says what to do about the failure already noted.
void sol_hint(SolError *err, const char *format, ...) SOL_PRINTF(2, 3);

// The i-th of a list of names; ctx is the caller's.
typedef const char *SolNameAt(const void *ctx, int i);
// Fails with "unknown KIND 'name'", and a hint that offers the nearest of the names.
SolStatus sol_fail_unknown(SolError *err, const char *kind, const char *name, SolNameAt *name_at,
                           const void *ctx, int count);

#endif
