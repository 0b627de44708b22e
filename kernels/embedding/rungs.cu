// The rungs of the embedding ladder: src/ladder/ladder_embedding.c describes them.
#include "embedding/rungs.h"

#include "common.cuh"

// A thread copies a row: neighbouring lanes are a whole row apart.
KERNEL embedding_naive(const __grid_constant__ EmbeddingRung p) {
  int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= p.m) return;
  int64_t id = p.ids[row];
  for (int64_t c = 0; c < p.n; c++) p.y[row * p.n + c] = p.table[id * p.n + c];
}

// A thread copies an element: neighbouring lanes have neighbouring ones.
KERNEL embedding_coalesced(const __grid_constant__ EmbeddingRung p) {
  int64_t row = blockIdx.x / p.blocks;
  int64_t c = (int64_t)(blockIdx.x % p.blocks) * EMBED_THREADS + threadIdx.x;
  if (c < p.n) p.y[row * p.n + c] = p.table[(int64_t)p.ids[row] * p.n + c];
}

// 16 bytes an access, by a cast where the access is; both loads are in flight before the first store.
KERNEL embedding_vectors(const __grid_constant__ EmbeddingRung p) {
  int64_t row = blockIdx.x / p.blocks;
  int64_t c = (int64_t)(blockIdx.x % p.blocks) * (2 * 4 * EMBED_THREADS) + 4 * threadIdx.x;
  const int64_t next = 4 * EMBED_THREADS; // the other vector: as far on as the block is wide
  const float *from = p.table + (int64_t)p.ids[row] * p.n;
  float *to = p.y + row * p.n;
  float4 a, b;
  if (c < p.n) a = *(const float4 *)(from + c);
  if (c + next < p.n) b = *(const float4 *)(from + c + next);
  if (c < p.n) *(float4 *)(to + c) = a;
  if (c + next < p.n) *(float4 *)(to + c + next) = b;
}

// The parameters are float4 pointers already; a thread copies one vector.
KERNEL embedding_pointers(float4 *y, const float4 *table, const int32_t *ids, int64_t vectors, uint32_t blocks) {
  int64_t row = blockIdx.x / blocks;
  int64_t c = (int64_t)(blockIdx.x % blocks) * EMBED_THREADS + threadIdx.x;
  if (c < vectors) y[row * vectors + c] = table[(int64_t)ids[row] * vectors + c];
}

// A thread copies four neighbouring elements, one by one, in an unrolled loop: lanes are four elements apart.
KERNEL embedding_unrolled(const __grid_constant__ EmbeddingRung p) {
  int64_t row = blockIdx.x / p.blocks;
  int64_t first = ((int64_t)(blockIdx.x % p.blocks) * EMBED_THREADS + threadIdx.x) * EMBED_PER_THREAD;
  const float *from = p.table + (int64_t)p.ids[row] * p.n;
  float *to = p.y + row * p.n;
#pragma unroll
  for (int k = 0; k < EMBED_PER_THREAD; k++)
    if (first + k < p.n) to[first + k] = from[first + k];
}

// An element a thread again; it goes to shared memory, waits for the block, and is read back.
KERNEL embedding_staged(const __grid_constant__ EmbeddingRung p) {
  __shared__ float stage[EMBED_THREADS];
  int64_t row = blockIdx.x / p.blocks;
  int64_t c = (int64_t)(blockIdx.x % p.blocks) * EMBED_THREADS + threadIdx.x;
  if (c < p.n) stage[threadIdx.x] = p.table[(int64_t)p.ids[row] * p.n + c];
  __syncthreads();
  if (c < p.n) p.y[row * p.n + c] = stage[threadIdx.x];
}

#if __CUDA_ARCH__ >= 800
// cp.async copies the vector to shared memory without registers; it is waited for, and read back all the same.
KERNEL embedding_async(const __grid_constant__ EmbeddingRung p) {
  __shared__ float4 stage[EMBED_THREADS];
  int64_t row = blockIdx.x / p.blocks;
  int64_t c = 4 * ((int64_t)(blockIdx.x % p.blocks) * EMBED_THREADS + threadIdx.x);
  if (c < p.n)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(&stage[threadIdx.x])),
                 "l"(p.table + (int64_t)p.ids[row] * p.n + c)
                 : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  if (c < p.n) *(float4 *)(p.y + row * p.n + c) = stage[threadIdx.x];
}
#endif
