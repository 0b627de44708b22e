// Status codes and error details. Every fallible function returns a SolStatus and takes an optional
// SolError last: pass one to learn what was wrong, where in the text, and what to do; pass NULL to ignore it.
#ifndef SOL_STATUS_H
#define SOL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(SOL_STATIC)
#define SOL_API __attribute__((visibility("default")))
#else
#define SOL_API
#endif

typedef enum SolStatus {
  SOL_OK = 0,
  SOL_ERR_ARGUMENT,    // a value that the function does not take
  SOL_ERR_NOT_FOUND,   // no such name; `hint` offers the nearest
  SOL_ERR_SYNTAX,      // a text could not be parsed; `offset`, `line`, `column` say where
  SOL_ERR_RANGE,       // a number or a product of sizes is too large to count exactly
  SOL_ERR_UNSUPPORTED, // understood, but this device or model cannot do it
  SOL_ERR_UNKNOWN,     // needs a figure that is not published for this device
  SOL_ERR_NO_SPACE,    // the caller's buffer is too small, or memory ran out
  SOL_ERR_IO           // a file could not be read or written
} SolStatus;

typedef struct SolError {
  SolStatus status;
  int64_t offset;       // byte offset into the parsed text; -1 where no text is concerned
  int32_t line, column; // 1-based; 0 where no text is concerned
  char message[256];    // what is wrong, one line, no full stop
  char hint[256];       // what to do about it; may be empty
} SolError;

// The constant's name without its prefix, in lower case: "not_found". Never NULL.
SOL_API const char *sol_status_name(SolStatus status);

#ifdef __cplusplus
}
#endif
#endif
