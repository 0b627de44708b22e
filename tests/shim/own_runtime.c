// A program with functions of the CUDA runtime's names in it, as one that nvcc linked has them, with one that no
// release knows, a short one with a neighbour, and one of its own. Where src/redirect does its work none of the
// runtime's is ever entered.
#include <stdint.h>
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };
static volatile int entered = 77; // which no compiler foresees
#define HIDDEN __attribute__((visibility("hidden"), noinline))

int cudaCheckMine(void);
int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *memory);
int cudaSomethingNewer(int a, int b);
int cudaGetLastError(void);
int neighbour(void);
void **__cudaRegisterFatBinary(void *wrapper);

// Linkers put this section before the others.
__attribute__((section(".text.unlikely"))) HIDDEN int cudaCheckMine(void) {
  return 5;
}

HIDDEN int cudaMalloc(void **out, size_t bytes) {
  *out = (void *)(uintptr_t)bytes;
  return entered;
}

HIDDEN int cudaSomethingNewer(int a, int b) {
  return entered + a - b;
}

// The shortest that has room for a jump, and what follows at once.
__asm__(".text\n.globl cudaGetLastError\n.hidden cudaGetLastError\n.type cudaGetLastError, %function\n"
        ".globl neighbour\n.hidden neighbour\n.type neighbour, %function\n"
#if defined(__aarch64__)
        "cudaGetLastError: ret\n.size cudaGetLastError, 4\n"
        "neighbour: mov w0, 42\nret\n.size neighbour, 8\n"
#else
        "cudaGetLastError: nop\nnop\nnop\nnop\nret\n.size cudaGetLastError, 5\n"
        "neighbour: movl $42, %eax\nret\n.size neighbour, 6\n"
#endif
);

HIDDEN int cudaFree(void *memory) {
  return memory ? entered : entered + 1;
}

HIDDEN void **__cudaRegisterFatBinary(void *wrapper) {
  return entered ? wrapper : NULL;
}

static int wrong(const char *what, int value) {
  printf("%s: %d\n", what, value);
  return 1;
}

int main(void) {
  void *memory = NULL;
  int failed = 0, got;
  if ((got = cudaMalloc(&memory, 64)) != 0 || !memory || (uintptr_t)memory == 64)
    failed |= wrong("cudaMalloc", got);
  if ((got = cudaFree(memory)) != 0) failed |= wrong("cudaFree", got);
  if ((got = cudaSomethingNewer(2, 1)) != NOT_SUPPORTED) failed |= wrong("cudaSomethingNewer", got);
  if ((got = cudaGetLastError()) != NOT_SUPPORTED) failed |= wrong("cudaGetLastError", got);
  if ((got = neighbour()) != 42) failed |= wrong("neighbour", got);
  if ((got = cudaCheckMine()) != 5) failed |= wrong("cudaCheckMine", got);
  return failed;
}
