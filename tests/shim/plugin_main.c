#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  for (int round = 0; round < 3 && argc > 1; round++) {
    void *plugin = dlopen(argv[1], RTLD_NOW);
    int (*run)(int) = plugin ? (int (*)(int))dlsym(plugin, "plugin_run") : NULL;
    int got = run ? run(21) : 0;
    if (got != 42) return fprintf(stderr, "round %d: %d\n", round, got), 1;
    dlclose(plugin);
  }
  return argc < 2;
}
