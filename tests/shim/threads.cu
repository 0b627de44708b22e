// Many threads, each with its own stream and errors; a child process; an exit without cleaning up.
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.h"

__global__ void add(int *x, int by) {
  atomicAdd(x, by);
}

static void work(int id, int *results) {
  cudaStream_t s;
  int *x, h = -1;
  if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)) return;
  if (cudaMallocAsync(&x, sizeof(int), s)) return;
  cudaMemsetAsync(x, 0, sizeof(int), s);
  for (int i = 0; i < 20; i++) add<<<1, 32, 0, s>>>(x, id);
  cudaMemcpyAsync(&h, x, sizeof h, cudaMemcpyDeviceToHost, s);
  if (cudaStreamSynchronize(s)) return;
  cudaFreeAsync(x, s);
  if (id % 2) { // errors belong to the thread that made them
    cudaMemcpy(nullptr, &h, 4, cudaMemcpyHostToDevice);
    if (cudaPeekAtLastError() != cudaErrorInvalidValue) return;
  } else if (cudaPeekAtLastError() != cudaSuccess)
    return;
  results[id] = h;
}

int main() {
  const int count = 12;
  int results[count] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; i++) threads.emplace_back(work, i, results);
  for (auto &t : threads) t.join();
  for (int i = 0; i < count; i++) CHECK(results[i] == i * 20 * 32);
  OK(cudaGetLastError());

  int *x, h = 0;
  OK(cudaMalloc(&x, 4));
  OK(cudaMemset(x, 0, 4));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    add<<<1, 32>>>(x, 1);
    int seen = 0;
    cudaError_t e = cudaMemcpy(&seen, x, 4, cudaMemcpyDeviceToHost);
    _exit(e == cudaSuccess && seen == 32 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost));
  CHECK(h == 0); // the child had its own copy
  if (failures) return 1;
  exit(0);
}
