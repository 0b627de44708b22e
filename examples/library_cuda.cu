// The kernel library in a plain CUDA program: the runtime's own memory and streams, calls captured into a
// graph, the graph replayed and timed. Sol works in the CUDA context that the program has made.
//
//   nvcc examples/library_cuda.cu $(pkg-config --cflags --libs sol) -o library_cuda && ./library_cuda
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <sol/sol.h>

enum { ROWS = 8192, WIDTH = 4096, LAYERS = 8, REPLAYS = 20, NO_GPU = 77 };

#define CUDA(call)                                                                                           \
  do {                                                                                                       \
    cudaError_t result = (call);                                                                             \
    if (result != cudaSuccess) {                                                                             \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result));                                        \
      return 1;                                                                                              \
    }                                                                                                        \
  } while (0)

static int fail(const char *what, const SolError *err) {
  fprintf(stderr, "%s: %s %s\n", what, err->message, err->hint);
  return 1;
}

__global__ void fill(__nv_bfloat16 *x, size_t count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = __float2bfloat16((float)((i * 2654435761u) % 2048) / 1024.0f - 1.0f);
}

int main() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || !gpus) {
    printf("no GPU on this machine\n");
    return NO_GPU;
  }
  size_t count = (size_t)ROWS * WIDTH, bytes = count * sizeof(__nv_bfloat16);
  __nv_bfloat16 *x, *y, *residual, *weight;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc((void **)&x, bytes));
  CUDA(cudaMalloc((void **)&y, bytes));
  CUDA(cudaMalloc((void **)&residual, bytes));
  CUDA(cudaMalloc((void **)&weight, WIDTH * sizeof *weight));
  fill<<<(unsigned)(count / 256), 256, 0, stream>>>(x, count);
  fill<<<WIDTH / 256, 256, 0, stream>>>(weight, WIDTH);
  CUDA(cudaMemsetAsync(residual, 0, bytes, stream));
  CUDA(cudaGetLastError());

  // The context is made after CUDA has been used: it takes the one that is current. All kernels load now.
  SolContextOptions options;
  memset(&options, 0, sizeof options);
  options.backend = SOL_BACKEND_CUDA;
  SolContext *ctx;
  SolError err;
  if (sol_context_create(&options, &ctx, &err)) return fail("context", &err);

  SolAddRmsnorm norm;
  memset(&norm, 0, sizeof norm);
  norm.y = y, norm.x = x, norm.residual = residual, norm.weight = weight; // the residual is updated in place
  norm.m = ROWS, norm.n = WIDTH, norm.dtype = SOL_BF16, norm.eps = 1e-6f;

  // Calls neither allocate nor wait, so they can be captured.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < LAYERS; i++)
    if (sol_add_rmsnorm(ctx, &norm, stream)) return fail("add_rmsnorm", sol_last_error());
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));

  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaGraphLaunch(exec, stream)); // warm-up; residual = LAYERS * x
  CUDA(cudaStreamSynchronize(stream));
  __nv_bfloat16 first_x, first_residual;
  CUDA(cudaMemcpy(&first_x, x, sizeof first_x, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(&first_residual, residual, sizeof first_residual, cudaMemcpyDeviceToHost));
  CUDA(cudaEventRecord(begin, stream));
  for (int i = 0; i < REPLAYS; i++) CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaEventRecord(end, stream));
  CUDA(cudaEventSynchronize(end));
  float ms = 0;
  CUDA(cudaEventElapsedTime(&ms, begin, end));

  SolCost cost;
  if (sol_add_rmsnorm_cost(&norm, &cost, &err)) return fail("cost", &err);
  double us = (double)ms * 1e3 / REPLAYS / LAYERS, moved = cost.bytes_read + cost.bytes_written;
  printf("add_rmsnorm of %d x %d bf16: %.1f us a call, %.0f GB/s\n", ROWS, WIDTH, us, moved / us / 1e3);
  float got = __bfloat162float(first_residual), want = LAYERS * __bfloat162float(first_x);
  printf("residual[0] is %g after %d layers of %g\n", got, LAYERS, __bfloat162float(first_x));

  sol_context_destroy(ctx);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaFree(x));
  CUDA(cudaFree(y));
  CUDA(cudaFree(residual));
  CUDA(cudaFree(weight));
  return got > want - 0.05f * (1 + want * want) && got < want + 0.05f * (1 + want * want) ? 0 : 1;
}
