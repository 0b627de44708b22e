// The library's version.
#ifndef SOL_VERSION_H
#define SOL_VERSION_H

#include "sol/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOL_VERSION "0.2.10"
// Of the library that is linked; SOL_VERSION is that of the headers.
SOL_API const char *sol_version(void);

#ifdef __cplusplus
}
#endif
#endif
