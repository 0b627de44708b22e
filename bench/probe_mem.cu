// Launches one small kernel per question that the memory model asks of a real GPU: what DRAM moves, what L1
// keeps. It measures nothing itself: bench/probe_mem.sh runs it under ncu and joins the counters with the
// labels printed here, one line per launch, in launch order. Usage: probe_mem dram|l1
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define MUST(call)                                                                                           \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_ != cudaSuccess)                                                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(1);                   \
  } while (0)

namespace cg = cooperative_groups;
typedef unsigned long long u64;

// ---- DRAM and L2 ----
extern "C" __global__ void read_stride(const float *x, float *sink, u64 n, u64 stride, u64 offset) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = __ldcg(x + offset + i * stride);
  if (v == 12345.f) *sink = v;
}
// Rounds over n float4, all blocks in step; round r of a block reads what block + r * shift read before it.
extern "C" __global__ void read_rounds(const float4 *x, float *sink, u64 n, int rounds, int shift) {
  float s = 0;
  for (int r = 0; r < rounds; r++) {
    u64 block = (blockIdx.x + (u64)r * shift) % gridDim.x;
    for (u64 i = block * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
      s += __ldcg(x + i).x;
    cg::this_grid().sync();
  }
  if (s == 12345.f) *sink = s;
}
// One float of every 32-byte sector at `first`, then, all blocks in step, at `second` (both in floats).
extern "C" __global__ void read_pairs(const float *x, float *sink, u64 n, u64 stride, u64 first, u64 second,
                                      int shift) {
  float s = 0;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    s += __ldcg(x + first + i * stride);
  cg::this_grid().sync();
  u64 block = (blockIdx.x + shift) % gridDim.x;
  for (u64 i = block * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    s += __ldcg(x + second + i * stride);
  if (s == 12345.f) *sink = s;
}
extern "C" __global__ void write_stride(float *y, u64 n, u64 stride, u64 offset) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) y[offset + i * stride] = (float)i + 0.5f;
}
extern "C" __global__ void write4(float4 *y, u64 n) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) y[i] = make_float4((float)i, 1.f, 2.f, 3.f);
}
extern "C" __global__ void copy_stride(const float *x, float *y, u64 n, u64 stride, u64 offset) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) y[offset + i * stride] = 2 * x[offset + i * stride];
}
extern "C" __global__ void copy4(const float4 *x, float4 *y, u64 n) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = x[i];
    y[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  }
}
extern "C" __global__ void copy4_streaming(const float4 *x, float4 *y, u64 n) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = __ldcs(x + i);
    __stcs(y + i, make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w));
  }
}
extern "C" __global__ void add_stride(float *y, u64 n, u64 stride) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(y + i * stride, 1.f);
}
// Writes n floats at a stride, then, all blocks in step, reads them (read_offset 0) or their neighbours.
extern "C" __global__ void write_read(float *y, float *sink, u64 n, u64 stride, u64 read_offset, int shift) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    y[i * stride] = (float)i + 0.5f;
  cg::this_grid().sync();
  float s = 0;
  u64 block = (blockIdx.x + shift) % gridDim.x;
  for (u64 i = block * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    s += __ldcg(y + i * stride + read_offset);
  if (s == 12345.f) *sink = s;
}
// Writes n float4, then, all blocks in step, reads them: which written lines are still there?
extern "C" __global__ void write_read4(float4 *y, float *sink, u64 n, int shift) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    y[i] = make_float4((float)i, 1.f, 2.f, 3.f);
  cg::this_grid().sync();
  float s = 0;
  u64 block = (blockIdx.x + shift) % gridDim.x;
  for (u64 i = block * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    s += __ldcg(y + i).x;
  if (s == 12345.f) *sink = s;
}
// Writes n floats at a stride, then, all blocks in step, the floats at `second`: is a sector filled
// meanwhile?
extern "C" __global__ void write_write(float *y, u64 n, u64 stride, u64 second) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    y[i * stride] = (float)i + 0.5f;
  cg::this_grid().sync();
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
    y[i * stride + second] = (float)i + 1.5f;
}
// Rounds of writes over the same n floats at a stride.
extern "C" __global__ void write_rounds(float *y, u64 n, u64 stride, int rounds) {
  for (int r = 0; r < rounds; r++) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
      y[i * stride] = (float)(i + r) + 0.5f;
    cg::this_grid().sync();
  }
}

static float *X, *Y, *sink;
static const u64 MB = 1000000, MiB = 1 << 20;
static int resident = 132 * 4;

static unsigned grid_for(u64 n) {
  return (unsigned)((n + 255) / 256);
}
static void label(const char *format, u64 a, u64 b, u64 c, u64 d) {
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  printf(format, a, b, c, d);
  printf("\n");
}
static void together(void *kernel, void **args) {
  MUST(cudaLaunchCooperativeKernel(kernel, dim3(resident), dim3(512), args, 0, 0));
}

static void probe_dram(void) {
  MUST(cudaMalloc(&X, 1100 * MB));
  MUST(cudaMalloc(&Y, 1100 * MB));
  MUST(cudaMalloc(&sink, 4096));
  MUST(cudaMemset(X, 0x3f, 1100 * MB));
  MUST(cudaMemset(Y, 0x3f, 1100 * MB));
  u64 n = 4194304;
  for (int r = 0; r < 2; r++) {
    u64 strides[] = {1, 2, 4, 8, 16, 32, 64};
    for (u64 s : strides)
      copy_stride<<<grid_for(n), 256>>>(X, Y, n, s, 0), label("copy stride=%llu floats n=%llu", s, n, 0, 0);
    copy_stride<<<grid_for(n), 256>>>(X, Y, n, 1, 1), label("copy stride=1 offset=1 n=%llu", n, 0, 0, 0);
    u64 sizes[] = {8, 16, 24, 32, 40, 48, 64, 96, 128};
    for (u64 f : sizes)
      copy4<<<grid_for(f * MiB / 16), 256>>>((float4 *)X, (float4 *)Y, f * MiB / 16),
          label("copy4 MiB=%llu", f, 0, 0, 0);
  }
  copy4_streaming<<<grid_for(4 * MiB), 256>>>((float4 *)X, (float4 *)Y, 4 * MiB),
      label("copy4_streaming MiB=64", 0, 0, 0, 0);
  // Which bytes a read miss fetches.
  u64 read_strides[] = {8, 16, 24, 32, 48, 64, 128};
  for (u64 s : read_strides)
    for (u64 o = 0; o < 32 && o < s; o += 8)
      read_stride<<<grid_for(2 * MiB), 256>>>(X, sink, 2 * MiB, s, o),
          label("read stride=%llu offset=%llu n=2Mi", s, o, 0, 0);
  for (int shift = 0; shift < 134; shift += 133)
    for (u64 second = 0; second < 32; second += 8) {
      u64 m = 262144, stride = 32, first = 0;
      void *args[] = {&X, &sink, &m, &stride, &first, &second, &shift};
      together((void *)read_pairs, args),
          label("read_pairs lines=%llu first=0 second=%llu shift=%llu", m, second, (u64)shift, 0);
    }
  // What stays for a second round.
  u64 rounds_sizes[] = {8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 96, 128};
  for (int shift = 0; shift < 134; shift += 133)
    for (int rounds = 2; rounds <= 3; rounds++)
      for (u64 f : rounds_sizes) {
        u64 m = f * MiB / 16;
        void *args[] = {&X, &sink, &m, &rounds, &shift};
        together((void *)read_rounds, args),
            label("read_rounds MiB=%llu rounds=%llu shift=%llu", f, (u64)rounds, (u64)shift, 0);
      }
  // What is written back before the end.
  u64 write_sizes[] = {2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 128};
  for (u64 f : write_sizes)
    write4<<<grid_for(f * MiB / 16), 256>>>((float4 *)Y, f * MiB / 16), label("write4 MiB=%llu", f, 0, 0, 0);
  u64 write_strides[] = {1, 2, 4, 8, 16, 32};
  for (u64 s : write_strides)
    for (u64 f : write_sizes) {
      u64 m = f * MiB / 4 / s;
      write_stride<<<grid_for(m), 256>>>(Y, m, s, 0),
          label("write stride=%llu floats span MiB=%llu", s, f, 0, 0);
    }
  for (u64 m = MiB; m <= 4 * MiB; m *= 2) {
    add_stride<<<grid_for(m), 256>>>(Y, m, 1), label("atomic stride=1 n=%llu", m, 0, 0, 0);
    add_stride<<<grid_for(m), 256>>>(Y, m, 8), label("atomic stride=8 n=%llu", m, 0, 0, 0);
    add_stride<<<grid_for(m), 256>>>(Y, m, 32), label("atomic stride=32 n=%llu", m, 0, 0, 0);
  }
  for (int shift = 0; shift < 134; shift += 133)
    for (u64 off = 0; off < 17; off += off ? 7 : 1)
      for (u64 stride = 1; stride <= 32; stride *= 8) {
        u64 m = 262144;
        if (stride == 1 && off) continue;
        if (stride == 8 && off > 1) continue;
        void *args[] = {&Y, &sink, &m, &stride, &off, &shift};
        together((void *)write_read, args),
            label("write_read n=262144 stride=%llu read_offset=%llu shift=%llu", stride, off, (u64)shift, 0);
      }
  u64 offsets[] = {0, 1, 8, 16};
  for (u64 off : offsets) {
    u64 m = 131072, stride = 32;
    int shift = 0;
    void *args[] = {&Y, &sink, &m, &stride, &off, &shift};
    together((void *)write_read, args),
        label("write_read n=131072 stride=%llu read_offset=%llu shift=0", stride, off, 0, 0);
  }
  for (u64 f : rounds_sizes) {
    u64 m = f * MiB / 16;
    int shift = 0;
    void *args[] = {&Y, &sink, &m, &shift};
    together((void *)write_read4, args), label("write_read4 MiB=%llu", f, 0, 0, 0);
  }
  for (u64 m = 65536; m <= 1048576; m *= 4)
    for (u64 second = 0; second < 2; second++) {
      u64 stride = 8;
      void *args[] = {&Y, &m, &stride, &second};
      together((void *)write_write, args), label("write_write n=%llu stride=8 second=%llu", m, second, 0, 0);
    }
  for (int rounds = 1; rounds <= 4; rounds++)
    for (u64 m = 65536; m <= 262144; m *= 4) {
      u64 stride = 8;
      void *args[] = {&Y, &m, &stride, &rounds};
      together((void *)write_rounds, args),
          label("write_rounds n=%llu stride=8 rounds=%llu", m, (u64)rounds, 0, 0);
    }
}

// ---- L1 ----
// Every operation acts on the warp's 128 bytes at p, one float a lane; the second letter picks another line
// or sector.
#define OPS(X)                                                                                               \
  X("ld", LOAD("ld.global.ca.u32"), p)                                                                       \
  X("st", STORE("st.global.u32"), p)                                                                         \
  X("red", RED, p)                                                                                           \
  X("atom", ATOM, p)                                                                                         \
  X("ldcg", LOAD("ld.global.cg.u32"), p)                                                                     \
  X("ldcs", LOAD("ld.global.cs.u32"), p)                                                                     \
  X("ldlu", LOAD("ld.global.lu.u32"), p)                                                                     \
  X("ldcv", LOAD("ld.global.cv.u32"), p)                                                                     \
  X("ldvol", LOAD("ld.volatile.global.u32"), p)                                                              \
  X("ldnc", LOAD("ld.global.nc.u32"), p)                                                                     \
  X("ldrlx", LOAD("ld.relaxed.gpu.global.u32"), p)                                                           \
  X("ldrlxcta", LOAD("ld.relaxed.cta.global.u32"), p)                                                        \
  X("ldna", LOAD("ld.global.L1::no_allocate.u32"), p)                                                        \
  X("lddef", LOAD("ld.global.u32"), p)                                                                       \
  X("stcg", STORE("st.global.cg.u32"), p)                                                                    \
  X("stcs", STORE("st.global.cs.u32"), p)                                                                    \
  X("stwt", STORE("st.global.wt.u32"), p)                                                                    \
  X("stvol", STORE("st.volatile.global.u32"), p)                                                             \
  X("fence", asm volatile("fence.acq_rel.gpu;" ::: "memory"), p)                                             \
  X("ldacq", LOAD("ld.acquire.gpu.global.u32"), p)                                                           \
  X("half", LOAD_LOW(16), p)                                                                                 \
  X("sector", LOAD_LOW(8), p)                                                                                \
  X("st4", STORE_LOW(4), p)                                                                                  \
  X("ld4", LOAD_LOW(4), p)                                                                                   \
  X("fencecta", asm volatile("fence.acq_rel.cta;" ::: "memory"), p)                                          \
  X("membar", asm volatile("membar.gl;" ::: "memory"), p)                                                    \
  X("redhalf", if (threadIdx.x < 8) RED, p)
#define LOAD(text)  asm volatile(text " %0, [%1];" : "=r"(v) : "l"(p) : "memory")
#define STORE(text) asm volatile(text " [%0], %1;" ::"l"(p), "r"(v) : "memory")
#define RED         asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory")
#define ATOM        asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(v) : "l"(p), "r"(v) : "memory")
#define LOAD_LOW(k)                                                                                          \
  if (threadIdx.x < k) LOAD("ld.global.ca.u32")
#define STORE_LOW(k)                                                                                         \
  if (threadIdx.x < k) STORE("st.global.u32")

struct Sequence {
  int count, op[8];
};
static const char *op_names[] = {
#define X(name, code, p) name,
    OPS(X)
#undef X
};
extern "C" __global__ void l1_sequence(unsigned *x, Sequence s, unsigned zero) {
  unsigned *p = x + threadIdx.x, v = 1;
  for (int i = 0; i < s.count; i++) {
    int k = 0;
#define X(name, code, q)                                                                                     \
  if (s.op[i] == k++) {                                                                                      \
    code;                                                                                                    \
  }
    OPS(X)
#undef X
    p += v & zero;
    __nanosleep(4000);
    __syncwarp();
  }
}
extern "C" __global__ void l1_rounds(const float *x, float *sink, int bytes, int rounds) {
  extern __shared__ __align__(16) char bytes_here[];
  float t = 0;
  for (int r = 0; r < rounds; r++) {
    for (int i = (int)threadIdx.x; i < bytes / 4; i += (int)blockDim.x) {
      float v;
      asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
      t += v;
    }
    __syncthreads();
  }
  if (t == 12345.f) sink[0] = t + (float)bytes_here[0];
}
// Loads some bytes, stores to others, loads the first again: do stores take room?
extern "C" __global__ void l1_mixed(const float *x, float *y, float *sink, int bytes, int stored) {
  float t = 0;
  for (int r = 0; r < 2; r++) {
    for (int i = (int)threadIdx.x; i < bytes / 4; i += (int)blockDim.x) {
      float v;
      asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
      t += v;
    }
    __syncthreads();
    if (!r)
      for (int i = (int)threadIdx.x; i < stored / 4; i += (int)blockDim.x) y[i] = t;
    __syncthreads();
  }
  if (t == 12345.f) *sink = t;
}
// All warps load one line at nearly the same time.
extern "C" __global__ void l1_same(const float *x, float *sink) {
  float v;
  asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(x + threadIdx.x % 32));
  if (v == 12345.f) *sink = v;
}
extern "C" __global__ void local_rounds(float *sink, int words, int rounds) {
  volatile int a[64];
  int t = 0;
  for (int r = 0; r < rounds; r++) {
    for (int i = 0; i < words; i++) a[(i * 17) & 63] = i + r;
    __syncthreads();
    for (int i = 0; i < words; i++) t += a[(i * 17) & 63];
    __syncthreads();
  }
  if (t == 12345) *sink = (float)t;
}

static void probe_l1(void) {
  MUST(cudaMalloc(&X, 64 * MB));
  MUST(cudaMalloc(&sink, 4096));
  MUST(cudaMemset(X, 0, 64 * MB));
  static const char *sequences[] = {"ld ld",          "st ld",
                                    "ld st ld",       "st st ld",
                                    "ld red ld",      "ld atom ld",
                                    "atom ld",        "ldcg ldcg",
                                    "ldcg ld",        "ld ldcg",
                                    "ldcs ldcs",      "ldlu ldlu",
                                    "ld ldlu",        "ldlu ld",
                                    "ldcv ldcv",      "ld ldcv",
                                    "ld ldvol",       "ldvol ldvol",
                                    "ldvol ld",       "ldnc ldnc",
                                    "ld ldnc",        "ldnc ld",
                                    "ldnc st ldnc",   "ldrlx ldrlx",
                                    "ld ldrlx",       "ldrlxcta ldrlxcta",
                                    "ldna ldna",      "ld ldna",
                                    "lddef lddef",    "st st",
                                    "stcg ld",        "ld stcg ld",
                                    "ld stcs ld",     "stcs ld",
                                    "ld stwt ld",     "ld stvol ld",
                                    "ld fence ld",    "ldacq ld",
                                    "ld ldacq ld",    "half ld",
                                    "sector half ld", "st4 ld",
                                    "st4 ld ld",      "ld st4 ld",
                                    "ld ldcg ld",     "st4 ld4",
                                    "st4 ld4 ld4",    "st4 st ld",
                                    "ld ldcv ld",     "ld ldvol ld",
                                    "ld ldlu ld",     "ld ldlu ldlu",
                                    "ld ldna ld",     "ld ldrlx ld",
                                    "ld ldnc ld",     "ld fencecta ld",
                                    "ld membar ld",   "ld redhalf ld",
                                    "st redhalf ld",  "st ldcg ld",
                                    "st fence ld"};
  for (const char *text : sequences) {
    Sequence s = {};
    char copy[128];
    strcpy(copy, text);
    for (char *w = strtok(copy, " "); w; w = strtok(0, " "))
      for (int k = 0; k < (int)(sizeof op_names / sizeof *op_names); k++)
        if (!strcmp(w, op_names[k])) s.op[s.count++] = k;
    l1_sequence<<<1, 32>>>((unsigned *)X, s, 0);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    printf("l1 %s\n", text);
  }
  MUST(cudaFuncSetAttribute(l1_rounds, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  for (u64 smem = 0; smem <= 192; smem += 64)
    for (u64 k = 16; k <= 272; k += 16)
      l1_rounds<<<1, 1024, smem * 1024>>>(X, sink, (int)k * 1024, 3),
          label("l1_rounds KiB=%llu rounds=3 smem KiB=%llu", k, smem, 0, 0);
  for (u64 k = 0; k <= 320; k += 32)
    l1_mixed<<<1, 1024>>>(X, X + 1000000, sink, 128 * 1024, (int)k * 1024),
        label("l1_mixed load KiB=128 store KiB=%llu", k, 0, 0, 0);
  for (u64 w = 1; w <= 32; w *= 2)
    l1_same<<<1, 32 * (unsigned)w>>>(X, sink), label("l1_same warps=%llu", w, 0, 0, 0);
  for (u64 t = 32; t <= 1024; t *= 2)
    local_rounds<<<1, (unsigned)t>>>(sink, 64, 2),
        label("local_rounds threads=%llu words=64 rounds=2", t, 0, 0, 0);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  resident = sms * 4;
  if (!strcmp(argv[1], "dram")) probe_dram();
  if (!strcmp(argv[1], "l1")) probe_l1();
  return 0;
}
