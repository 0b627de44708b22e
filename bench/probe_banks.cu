// Launches one warp per case of shared-memory addresses, for bench/probe_mem.sh, as probe_mem.cu does: every
// line printed is one launch, "kind,bytes per lane,mask,index of each lane". Usage: probe_banks
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                                           \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_ != cudaSuccess)                                                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(1);                   \
  } while (0)

static float *sink;

struct Case {
  int width;
  unsigned mask;
  unsigned short index[32];
};
extern "C" __global__ void shared_case(Case c, unsigned *sink) {
  extern __shared__ __align__(16) char bytes_here[];
  unsigned at = (unsigned)__cvta_generic_to_shared(bytes_here) + c.index[threadIdx.x] * (unsigned)c.width,
           a = 0, b = 0, d = 0, e = 0;
  if (c.mask >> threadIdx.x & 1) {
    if (c.width == 1) asm volatile("{.reg .u32 t; ld.shared.u8 %0, [%1];}" : "=r"(a) : "r"(at) : "memory");
    if (c.width == 2)
      asm volatile("{.reg .u16 t; ld.shared.u16 t, [%1]; cvt.u32.u16 %0, t;}" : "=r"(a) : "r"(at) : "memory");
    if (c.width == 4) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at) : "memory");
    if (c.width == 8)
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
    if (c.width == 16)
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(d), "=r"(e)
                   : "r"(at)
                   : "memory");
  }
  __syncwarp();
  if (c.mask >> threadIdx.x & 1) {
    if (c.width == 1) asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(a + 1) : "memory");
    if (c.width == 2)
      asm volatile("{.reg .u16 t; cvt.u16.u32 t, %1; st.shared.u16 [%0], t;}" ::"r"(at), "r"(a + 1)
                   : "memory");
    if (c.width == 4) asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(a + 1) : "memory");
    if (c.width == 8)
      asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(a + 1), "r"(b) : "memory");
    if (c.width == 16)
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a + 1), "r"(b), "r"(d), "r"(e)
                   : "memory");
  }
  if (a + b + d + e == 12345) *sink = a;
}
// what: 0 an increment, 1 an addition of any value, 2 a compare-and-swap, 3 an addition that returns, 4 of
// float
extern "C" __global__ void shared_atomic(Case c, int what, unsigned value, unsigned *sink) {
  extern __shared__ __align__(16) char bytes_here[];
  unsigned at = (unsigned)__cvta_generic_to_shared(bytes_here) + c.index[threadIdx.x] * 4u;
  if (what == 1) value += threadIdx.x;
  unsigned old = 0;
  if (c.mask >> threadIdx.x & 1) {
    if (what == 0) asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
    if (what == 1) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
    if (what == 2)
      asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(old)
                   : "r"(at), "r"(value), "r"(value + 1)
                   : "memory");
    if (what == 3)
      asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(value) : "memory");
    if (what == 4) asm volatile("red.shared.add.f32 [%0], %1;" ::"r"(at), "f"(1.5f) : "memory");
  }
  if (old == 12345) *sink = old;
}

static uint32_t seed = 12345;
static uint32_t draw(uint32_t n) {
  seed = seed * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)(seed >> 8) * n) >> 24);
}
// Lanes that differ only in the bits of `merge` share an address, drawn from `range` elements.
static void draw_case(Case *c, unsigned merge, unsigned range) {
  unsigned short by_group[32];
  for (int a = 0; a < 32; a++) by_group[a] = (unsigned short)draw(range);
  for (unsigned a = 0; a < 32; a++) c->index[a] = by_group[a & ~merge];
}
static void run_case(const Case *c, int atomic, const char *kind) {
  static const char *atomics[] = {"", "inc", "add", "cas", "atom", "addf"};
  if (atomic) kind = atomics[atomic];
  if (atomic)
    shared_atomic<<<1, 32, 32768>>>(*c, atomic - 1, 7u, (unsigned *)sink);
  else
    shared_case<<<1, 32, 32768>>>(*c, (unsigned *)sink);
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  printf("%s,%d,%08x,", kind, c->width, c->mask);
  for (int a = 0; a < 32; a++) printf("%d%s", c->index[a], a < 31 ? " " : "\n");
}
int main(void) {
  MUST(cudaMalloc(&sink, 4096));
  static const int widths[] = {1, 2, 4, 8, 16};
  static const unsigned masks[] = {0xffffffffu, 0xffffu, 0xffff0000u, 0x55555555u, 0x0f0f0f0fu,
                                   0x33333333u, 0xffu,   1u,          0x80000001u, 0x00ff00ffu};
  static const unsigned merges[] = {0, 1, 2, 3, 4, 8, 16, 5, 6, 7, 12, 17, 18, 24};
  Case c;
  for (int w : widths)
    for (unsigned m : masks) {
      c.width = w, c.mask = m;
      for (int a = 0; a < 32; a++) c.index[a] = (unsigned short)a;
      run_case(&c, 0, "mask");
    }
  for (int w : widths)
    for (unsigned m : merges)
      for (int full = 0; full < (w >= 8 ? 3 : 1); full++) {
        static const unsigned ranges[] = {1024, 64, 16};
        c.width = w, c.mask = full == 2 ? draw(1u << 24) * 256u + draw(256) : 0xffffffffu;
        if (!c.mask) c.mask = 1;
        draw_case(&c, m, ranges[full]);
        run_case(&c, 0, "draw");
      }
  // One lane pair breaks the pattern; one inactive lane hides the break.
  for (int w = 8; w <= 16; w *= 2)
    for (int k = 0; k < 16; k++) {
      c.width = w, c.mask = 0xffffffffu;
      for (unsigned a = 0; a < 32; a++) c.index[a] = (unsigned short)(a / 2);
      unsigned lane = draw(32);
      c.index[lane] = 40;
      if (k & 1) c.mask &= ~(1u << lane);
      if (k & 2) c.mask &= ~(1u << (lane ^ 1));
      run_case(&c, 0, "break");
    }
  c.width = 4;
  for (int k = 0; k < 16; k++) {
    c.mask = k & 1 ? draw(1u << 24) * 256u + draw(256) : 0xffffffffu;
    if (!c.mask) c.mask = 1;
    if (k < 12)
      draw_case(&c, merges[k % 14], k < 6 ? 1024 : 16);
    else
      for (int a = 0; a < 32; a++) c.index[a] = (unsigned short)(a * (k - 11) % 1024 / (k & 1 ? 2 : 1));
    for (int what = 1; what <= 5; what++) run_case(&c, what, 0);
  }
  return 0;
}
