#include "sol/version.h"

const char *sol_version(void) {
  return SOL_VERSION;
}
