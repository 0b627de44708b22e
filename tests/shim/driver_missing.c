// Calls an entry point of the driver that the emulator does not have, before any other, and goes on.
#include <dlfcn.h>
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };

int main(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*entry)(void) = library ? (int (*)(void))dlsym(library, "cuMulticastCreate") : NULL;
  int got = entry ? entry() + entry() : 0;
  if (got == 2 * NOT_SUPPORTED) return 0;
  printf("cuMulticastCreate: %d\n", got);
  return 1;
}
