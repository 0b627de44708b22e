// Calls an entry point of the driver that the emulator does not have, before any other, and goes on. Its argument is another
// name of the driver's library.
#include <dlfcn.h>
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };

int main(int argc, char **argv) {
  void *library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
  int (*entry)(void) = library ? (int (*)(void))dlsym(library, "cuMulticastCreate") : NULL;
  int got = entry ? entry() + entry() : 0;
  if (got == 2 * NOT_SUPPORTED) return 0;
  printf("cuMulticastCreate: %d\n", got);
  return 1;
}
