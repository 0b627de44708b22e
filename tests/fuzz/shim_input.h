// What fuzz_shim.c's calls take their arguments from: the input, the handles so far, and a program of three
// kernels.
#ifndef FUZZ_SHIM_INPUT_H
#define FUZZ_SHIM_INPUT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **handle, const char *stub, char *device_function, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *shadow, char *device_address, const char *name, int external,
                       size_t size, int constant, int global);

// ---- the program that calls ----

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .u32 total[4];\n"
    ".visible .entry bump(.param .u64 p, .param .u64 q, .param .u32 n) {\n"
    "  .reg .u64 %rd<5>; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;\n"
    "  mul.wide.u32 %rd3, %r2, %r1; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n"
    "  ld.u32 %r3, [%rd1]; add.u32 %r3, %r3, %r1; st.u32 [%rd2], %r3; ret;\n}\n"
    ".visible .entry texels(.param .u64 t, .param .u64 s, .param .u64 p) {\n"
    "  .reg .u64 %rd<4>; .reg .u32 %r<6>; .reg .f32 %f<6>;\n"
    "  ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [s]; ld.param.u64 %rd3, [p]; mov.u32 %r1, %tid.x;\n"
    "  cvt.rn.f32.u32 %f1, %r1; tex.2d.v4.f32.f32 {%f2,%f3,%f4,%f5}, [%rd1, {%f1,%f1}];\n"
    "  sust.b.2d.b32.trap [%rd2, {%r1,%r1}], {%r1}; st.global.f32 [%rd3], %f2; ret;\n}\n"
    ".visible .entry meet(.param .u64 p) {\n"
    "  .shared .align 4 .b32 s[64]; .reg .u64 %rd<3>; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 63; mul.lo.u32 %r2, %r1, 4;\n"
    "  mov.u32 %r3, s; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; bar.sync 0; ld.shared.u32 %r2, "
    "[%r3];\n"
    "  atom.global.add.u32 %r2, [%rd1], %r2; red.global.add.u32 [total], 1; ret;\n}\n";
static char stubs[3], total; // their addresses stand for functions and a variable of the host's
static const char *const kernels[] = {"bump", "texels", "meet"};

enum {
  SLOTS = 8,
  MOST_CLONES = 12,
  MOST_LIBRARIES = 32,
  MOST_DEPTH = 3,
  MOST_ALLOC = 1 << 16,
  HOST = 1 << 20
};
typedef enum Kind {
  DEVICE,
  MAPPED,
  STREAM,
  EVENT,
  GRAPH,
  NODE,
  EXEC,
  ARRAY,
  TEXTURE,
  SURFACE,
  POOL,
  OBJECT,
  LIBRARY,
  KERNEL,
  KINDS
} Kind;
typedef struct Fuzz {
  const uint8_t *at, *end;
  uint64_t slots[KINDS][SLOTS];
  int clones, depth;
} Fuzz;
static Fuzz f;
static uint8_t host[HOST], registered[4096];

// A call and its arguments: always as many bytes, so that a change of one leaves the calls after it as they
// are.
enum { SIZES = 6, BYTES = 16, RECORD = 1 + 2 * SIZES + BYTES };
typedef struct Draw {
  unsigned call, b[BYTES];
  size_t size[SIZES];
} Draw;

// Small, or one at which sums and products overflow.
static size_t any_size(unsigned b, unsigned more) {
  static const size_t far[] = {0,     SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2, (size_t)1 << 32, (size_t)1 << 31,
                               65536, 4096};
  return b < 200 ? b : b < 248 ? (size_t)(b - 200) * 37 + more : far[b - 248];
}

static bool draw(Draw *d) {
  uint8_t record[RECORD] = {0};
  size_t left = (size_t)(f.end - f.at), n = left < RECORD ? left : RECORD;
  memcpy(record, f.at, n);
  f.at += n;
  d->call = record[0];
  for (int i = 0; i < SIZES; i++) d->size[i] = any_size(record[1 + 2 * i], record[2 + 2 * i]);
  for (int i = 0; i < BYTES; i++) d->b[i] = record[1 + 2 * SIZES + i];
  return n > 0;
}

// A handle of the kind, mostly; of another kind, or made up.
static uint64_t handle(Kind kind, unsigned b) {
  if (b < 208) return f.slots[kind][b % SLOTS];
  return b < 240 ? f.slots[b % KINDS][b / 2 % SLOTS] : b % 16;
}
#define TAKE(type, kind, b) ((type)(uintptr_t)handle(kind, b))

// What is live, or stale, or was never there: an error at most.
static void destroy(Kind kind, uint64_t value) {
  void *p = (void *)(uintptr_t)value;
  switch (kind) {
  case DEVICE: cudaFree(p); break;
  case MAPPED:
    if (cudaFreeHost(p)) cudaFree(p);
    break;
  case STREAM: cudaStreamDestroy(p); break;
  case EVENT: cudaEventDestroy(p); break;
  case GRAPH: cudaGraphDestroy(p); break;
  case EXEC: cudaGraphExecDestroy(p); break;
  case ARRAY: cudaFreeArray(p); break;
  case TEXTURE: cudaDestroyTextureObject(value); break;
  case SURFACE: cudaDestroySurfaceObject(value); break;
  case POOL: cudaMemPoolDestroy(p); break;
  case OBJECT: cudaUserObjectRelease(p, 1); break;
  default: break;
  }
}

// In place of another, which goes: nothing piles up from input to input.
static void keep(Kind kind, unsigned b, const void *value) {
  uint64_t *slot = &f.slots[kind][b % SLOTS];
  if (*slot && *slot != (uint64_t)(uintptr_t)value) destroy(kind, *slot);
  *slot = (uint64_t)(uintptr_t)value;
}

// ---- from one input to the next ----

static void start(void) {
  static struct {
    unsigned magic, version;
    const void *data, *more;
  } wrapper = {0x466243b1u, 1, NULL, NULL};
  static uint64_t image_words[(80 + sizeof ptx + 7) / 8];
  uint8_t *image_bytes = (uint8_t *)image_words;
  if (wrapper.data) return;
  uint64_t text = (sizeof ptx + 7) / 8 * 8;
  const uint32_t head[] = {0xBA55ED50u, 0x00100001u, (uint32_t)(64 + text), 0};
  const uint32_t entry[] = {0x01010001u, 64, (uint32_t)text, 0, 0, 0, 0, 90};
  memcpy(image_bytes, head, sizeof head);
  memcpy(image_bytes + sizeof head, entry, sizeof entry);
  memcpy(image_bytes + 80, ptx, sizeof ptx);
  wrapper.data = image_words;
  setenv("SOL_WORKERS", "1", 1);
  void **binary = __cudaRegisterFatBinary(&wrapper);
  for (int i = 0; i < 3; i++)
    __cudaRegisterFunction(binary, &stubs[i], NULL, kernels[i], -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(binary, &total, NULL, "total", 0, 16, 0, 0);
#ifdef __GLIBC__
  FILE *nowhere = fopen("/dev/null", "w"); // what it has to say of each mistake
  if (nowhere) stderr = nowhere;
#endif
}

static void clean_up(void) {
  cudaGraph_t graph = NULL;
  f.at = f.end;
  cudaDeviceReset();
  if (!cudaStreamEndCapture(cudaStreamPerThread, &graph)) cudaGraphDestroy(graph);
  for (int k = KINDS - 1; k >= 0; k--)
    for (int i = 0; i < SLOTS; i++) destroy((Kind)k, f.slots[k][i]);
  for (int i = 0; i < 256; i++) cudaHostUnregister(registered + i * 8);
}

#endif
