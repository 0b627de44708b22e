#include "sol/sol.h"

const char *sol_version(void) { return SOL_VERSION; }
