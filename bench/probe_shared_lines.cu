// Reads down columns of a matrix that L2 holds: of 1024 rows of 2 KiB each warp reads 32 at a time, a word of each, so that each request is one of 32 lines.
// SHARE blocks, on as many SMs, read the same column (word), columns of the same sector (sector), of the same line (line), or none does (own).
// nvcc -O3 -arch=sm_90a -o probe_shared_lines bench/probe_shared_lines.cu && ./probe_shared_lines > out.json
#include <cstdio>

enum { ROWS = 1024, PARTS = 36, COLUMNS = 512, TURNS = 4 };

// apart: words between the columns of blocks that share; group: of so many blocks; the groups are `step` words apart.
__global__ void __launch_bounds__(256) down(float *out, const float *in, int group, int apart, int step) {
  int column = (blockIdx.x / group * step + blockIdx.x % group * apart) % COLUMNS,
      first = blockIdx.x / group * step / COLUMNS * ROWS;
  float s = 0;
  for (int turn = 0; turn < TURNS; turn++)
#pragma unroll 4
    for (int r = threadIdx.x; r < ROWS; r += 256)
      s += in[(size_t)(first + r) * COLUMNS + (column + turn * 128) % COLUMNS];
  out[blockIdx.x * 256 + threadIdx.x] = s;
}
// Whole lines: SHARE blocks read the same `bytes`, a float a thread, `ahead` of them before they are waited for; none again.
template <int AHEAD>
__global__ void __launch_bounds__(256) along(float *out, const float *in, int group, int n) {
  float s = 0;
  in += (size_t)(blockIdx.x / group) * n;
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 256 * AHEAD)
#pragma unroll
    for (int k = 0; k < AHEAD; k++) s += __ldcg(&in[i + k * 256]);
  out[blockIdx.x * 256 + threadIdx.x] = s;
}
static const char *comma = "";
static void row(const char *what, float *out, const float *in, int blocks, int group, int apart, int step) {
  cudaEvent_t from, to;
  float ms, least = 1e9;
  cudaEventCreate(&from), cudaEventCreate(&to);
  for (int k = 0; k < 4; k++) {
    cudaEventRecord(from);
    down<<<blocks, 256>>>(out, in, group, apart, step);
    cudaEventRecord(to), cudaEventSynchronize(to), cudaEventElapsedTime(&ms, from, to);
    if (ms < least) least = ms;
  }
  int clock;
  cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
  double requests = (double)blocks * ROWS * TURNS;
  printf("%s{\"what\": \"%s\", \"blocks\": %d, \"share\": %d, \"us\": %.2f, \"lines a clock and SM\": %.3f}",
         comma, what, blocks, group, least * 1e3, requests / ((least * 1e3 - 3) * 1e-6 * clock * 1e3) / 132);
  comma = ",\n";
}

template <int AHEAD> static void line_row(float *out, const float *in, int group) {
  cudaEvent_t from, to;
  float ms, least = 1e9;
  const int blocks = 1056, n = 8192; // 32 KiB of a block, 33 MiB of all
  cudaEventCreate(&from), cudaEventCreate(&to);
  for (int k = 0; k < 4; k++) {
    cudaEventRecord(from);
    along<AHEAD><<<blocks, 256>>>(out, in, group, n);
    cudaEventRecord(to), cudaEventSynchronize(to), cudaEventElapsedTime(&ms, from, to);
    if (ms < least) least = ms;
  }
  printf("%s{\"what\": \"whole lines\", \"ahead\": %d, \"share\": %d, \"us\": %.2f, \"TB/s\": %.3f}", comma,
         AHEAD, group, least * 1e3, (double)blocks * n * 4 / ((least * 1e3 - 3) * 1e-6) * 1e-12);
  comma = ",\n";
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  float *in, *out;
  cudaMalloc(&in, (size_t)PARTS * ROWS * COLUMNS * 4), cudaMalloc(&out, 1 << 22),
      cudaMemset(in, 0, (size_t)PARTS * ROWS * COLUMNS * 4);
  printf("{\"gpu\": \"%s\", \"rows\": [\n", p.name);
  for (int blocks : {132, 528}) {
    row("own", out, in, blocks, 1, 0, blocks == 132 ? 32 : 8); // 528: a sector each
    for (int share : {2, 4, 8}) row("word", out, in, blocks, share, 0, 8);
    for (int share : {2, 4, 8}) row("sector", out, in, blocks, share, 1, 8);
    for (int share : {2, 4}) row("line", out, in, blocks, share, 8, 32);
    row("line and sector", out, in, blocks, 32, 1, 32);
    row("all", out, in, blocks, 132, 0, 8);
  }
  for (int share : {1, 2, 4, 8, 16, 32, 132, 1056}) line_row<4>(out, in, share), line_row<16>(out, in, share);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
