// libcudart.so.12 on the emulator: the structures and signatures of CUDA 12, over the same device as libcudart.so.13.
#define _GNU_SOURCE
#include "check.h"

#if __has_include(<cuda_runtime_api.h>)
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

// As CUDA 12's headers have them; those of CUDA 13 are in the way of others.
typedef struct Pointer12 {
  int type, device;
  void *device_pointer, *host_pointer;
} Pointer12;
static void *of12, *of13;

enum { PROP12 = 1032, PROP12_CLOCK = 348, PROP12_SMS = 388, MARK = 0x5a };

static void *find(void *library, const char *name) {
  void *found = dlsym(library, name);
  CHECK_MSG(found, "no %s", name);
  return found;
}
#define CALL(library, name, types) ((int(*) types)find(library, name))

TEST(properties) {
  unsigned char room[PROP12 + 64];
  int sms, clock;
  memset(room, MARK, sizeof room);
  CHECK(CALL(of12, "cudaGetDeviceProperties_v2", (void *, int))(room, 0) == 0);
  memcpy(&sms, room + PROP12_SMS, sizeof sms);
  memcpy(&clock, room + PROP12_CLOCK, sizeof clock);
  CHECK(sms == 132);
  CHECK(clock == 1980000);
  for (size_t i = PROP12; i < sizeof room; i++) CHECK(room[i] == MARK);
  CHECK(CALL(of12, "cudaGetDeviceProperties_v2", (void *, int))(NULL, 0) == 1);
  CHECK(CALL(of12, "cudaGetDeviceProperties_v2", (void *, int))(room, 1) == 101);
}

TEST(memory) {
  void *device = NULL, *managed = NULL;
  struct {
    Pointer12 a;
    unsigned char after[64];
  } at;
  memset(&at, MARK, sizeof at);
  CHECK(CALL(of12, "cudaMalloc", (void **, size_t))(&device, 100) == 0);
  CHECK(CALL(of12, "cudaPointerGetAttributes", (void *, const void *))(&at, device) == 0);
  CHECK(at.a.type == 2 && at.a.device == 0 && at.a.device_pointer == device);
  for (size_t i = 0; i < sizeof at.after; i++) CHECK(at.after[i] == MARK);
  CHECK(CALL(of13, "cudaFree", (void *))(device) == 0); // one device under both names
  CHECK(CALL(of12, "cudaFree", (void *))(device) == 1);
  CHECK(CALL(of12, "cudaMallocManaged", (void **, size_t, unsigned))(&managed, 4096, 1) == 0);
  CHECK(CALL(of12, "cudaMemPrefetchAsync", (const void *, size_t, int, void *))(managed, 4096, 0, NULL) == 0);
  CHECK(CALL(of12, "cudaMemPrefetchAsync", (const void *, size_t, int, void *))(managed, 4096, -1, NULL) ==
        0);
  CHECK(CALL(of12, "cudaMemPrefetchAsync", (const void *, size_t, int, void *))(managed, 4096, 3, NULL) ==
        101);
  CHECK(CALL(of12, "cudaMemAdvise", (const void *, size_t, int, int))(managed, 4096, 1, 0) == 0);
  CHECK(CALL(of12, "cudaFree", (void *))(managed) == 0);
}

TEST(graphs) {
  void *graph = NULL, *nodes[2] = {0}, *from[4], *to[4];
  size_t count = 4;
  CHECK(CALL(of12, "cudaGraphCreate", (void **, unsigned))(&graph, 0) == 0);
  for (int i = 0; i < 2; i++)
    CHECK(CALL(of12, "cudaGraphAddEmptyNode", (void **, void *, void **, size_t))(&nodes[i], graph, NULL,
                                                                                  0) == 0);
  CHECK(CALL(of12, "cudaGraphAddDependencies", (void *, void **, void **, size_t))(graph, nodes, nodes + 1,
                                                                                   1) == 0);
  CHECK(CALL(of12, "cudaGraphGetEdges", (void *, void **, void **, size_t *))(graph, from, to, &count) == 0);
  CHECK(count == 1 && from[0] == nodes[0] && to[0] == nodes[1]);
  count = 4;
  CHECK(CALL(of12, "cudaGraphNodeGetDependencies", (void *, void **, size_t *))(nodes[1], from, &count) == 0);
  CHECK(count == 1 && from[0] == nodes[0]);
  CHECK(CALL(of12, "cudaGraphDestroy", (void *))(graph) == 0);
}

TEST(names) {
  int version = 0;
  CHECK(CALL(of12, "cudaRuntimeGetVersion", (int *))(&version) == 0 && version == 12090);
  CHECK(CALL(of12, "cudaThreadSynchronize", (void))() == 0);
  CHECK(dlvsym(of12, "cudaMalloc", "libcudart.so.12"));
  CHECK(CALL(of12, "cudaLaunchCooperativeKernelMultiDevice", (void *, unsigned, unsigned))(NULL, 0, 0) ==
        801);
}

int main(int argc, char **argv) {
  char path[4096];
  const char *sol = getenv("SOL") ? getenv("SOL") : "build/sol";
  snprintf(path, sizeof path, "%.*s/shim/libcudart.so.12", (int)(strrchr(sol, '/') - sol), sol);
  of12 = dlopen(path, RTLD_NOW);
  of13 = of12 ? dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (!of13) {
    printf("%s\n", dlerror());
    return access(path, F_OK) ? 77 : 1;
  }
  return check_main(argc, argv);
}
#else
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
