// Rows of 32 floats, picked by index, after a header of 4 bytes: each row spans 5 sectors instead
// of 4.
#include "check.h"

enum { VOCABULARY = 1 << 19, TOKENS = 1 << 17, WIDTH = 32, HEADER = 1 };

__global__ void embed(float *out, const float *table, const int *token) {
  int i = blockIdx.x * blockDim.y + threadIdx.y; // one warp a token
  out[(size_t)i * WIDTH + threadIdx.x] = table[HEADER + (size_t)token[i] * WIDTH + threadIdx.x];
}

int main(void) {
  size_t n = (size_t)VOCABULARY * WIDTH + HEADER, m = (size_t)TOKENS * WIDTH;
  float *h = random_floats(n), *table = (float *)to_device(h, n * sizeof *h);
  int *tokens = (int *)host_room(TOKENS * sizeof *tokens);
  unsigned state = 2;
  for (int i = 0; i < TOKENS; i++) tokens[i] = (int)(random_below_2_24(&state) % VOCABULARY);
  int *token = (int *)to_device(tokens, TOKENS * sizeof *token);
  float *out = (float *)device_room(m * sizeof *out);
  embed<<<TOKENS / 8, dim3(WIDTH, 8)>>>(out, table, token);
  float *r = (float *)to_host(out, m * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < m; i++) wrong += r[i] != h[HEADER + (size_t)tokens[i / WIDTH] * WIDTH + i % WIDTH];
  return verdict(wrong, m);
}
