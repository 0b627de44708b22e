// What ordinary programs do with lists, graphs, tables and text: rows of unequal length, searches, queues, clusters.
#include "kinds.cuh"

__global__ void rows_of_csr(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
  int r = self();
  if (r >= rows) return;
  float s = 0;
  for (int k = start[r]; k < start[r + 1]; k++) s += value[k] * x[column[k]];
  y[r] = s;
}
__global__ void rows_of_csr_by_warps(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
  int r = self() / 32, lane = threadIdx.x % 32;
  if (r >= rows) return;
  float s = 0;
  for (int k = start[r] + lane; k < start[r + 1]; k += 32) s += value[k] * x[column[k]];
  for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0u, s, d);
  if (lane == 0) y[r] = s;
}
__global__ void rows_of_ell(const int *column, const float *value, const float *x, float *y, int rows, int width) {
  int r = self();
  float s = 0;
  for (int k = 0; k < width; k++) s += value[k * rows + r] * x[column[k * rows + r]];
  y[r] = s;
}
__global__ void visit_level(const int *start, const int *column, int *level, int now, int *more, int nodes) {
  int v = self();
  if (v >= nodes || level[v] != now) return;
  for (int k = start[v]; k < start[v + 1]; k++)
    if (level[column[k]] < 0) level[column[k]] = now + 1, *more = 1;
}
__global__ void visit_queue(const int *start, const int *column, int *seen, const int *queue, int count, int *next, int *length) {
  int i = self();
  if (i >= count) return;
  int v = queue[i];
  for (int k = start[v]; k < start[v + 1]; k++)
    if (atomicExch(&seen[column[k]], 1) == 0) next[atomicAdd(length, 1)] = column[k];
}
__global__ void rank_push(const int *start, const int *column, const float *rank, float *next, int nodes) {
  int v = self();
  if (v >= nodes) return;
  float mine = rank[v] / (start[v + 1] - start[v] + 1);
  for (int k = start[v]; k < start[v + 1]; k++) atomicAdd(&next[column[k]], mine);
}
__global__ void triangles(const int *start, const int *column, int *count, int nodes) { // merges two sorted lists
  int v = self(), found = 0;
  if (v >= nodes) return;
  for (int k = start[v]; k < start[v + 1]; k++) {
    int i = start[v], j = start[column[k]], ei = start[v + 1], ej = start[column[k] + 1];
    while (i < ei && j < ej) {
      int a = column[i], b = column[j];
      found += a == b, i += a <= b, j += b <= a;
    }
  }
  count[v] = found;
}
__global__ void nearest_centre(const float *points, const float *centres, int *of, int n, int dims, int k) {
  int i = self();
  float best = 1e30f;
  int which = 0;
  for (int c = 0; c < k; c++) {
    float d = 0;
    for (int j = 0; j < dims; j++) {
      float e = points[j * n + i] - centres[c * dims + j];
      d += e * e;
    }
    if (d < best) best = d, which = c;
  }
  of[i] = which;
}
__global__ void add_to_centres(const float *points, const int *of, float *sums, int *counts, int n, int dims) {
  int i = self(), c = of[i];
  for (int j = 0; j < dims; j++) atomicAdd(&sums[c * dims + j], points[j * n + i]);
  atomicAdd(&counts[c], 1);
}
__global__ void probe_table(const uint32_t *keys, const uint32_t *table, uint32_t mask, int *found) {
  int i = self();
  uint32_t key = keys[i], at = mix(key) & mask;
  int tries = 0;
  while (table[at] != key && table[at] != 0 && tries < 64) at = (at + 1) & mask, tries++;
  found[i] = tries;
}
__global__ void walk_tree(const int *left, const float *pivot, const float *x, int *leaf, int depth) {
  int i = self(), node = 0;
  float v = x[i];
  for (int d = 0; d < depth; d++) node = left[node] + (v > pivot[node]);
  leaf[i] = node;
}
__global__ void walk_stack(const float *low, const float *high, const float *x, int *hits, int nodes) { // ranges in an implicit tree
  int i = self(), stack[24], top = 0, found = 0;
  float v = x[i];
  stack[top++] = 0;
  while (top > 0) {
    int node = stack[--top];
    if (v < low[node] || v > high[node]) continue;
    if (2 * node + 2 >= nodes)
      found++;
    else
      stack[top++] = 2 * node + 1, stack[top++] = 2 * node + 2;
  }
  hits[i] = found;
}
__global__ void find_text(const char *text, const char *word, int length, int *first) {
  int i = self(), k = 0;
  while (k < length && text[i + k] == word[k]) k++;
  if (k == length) atomicMin(first, i);
}
__global__ void automaton(const uint8_t *text, const uint8_t *next, int *state, int each) { // a piece of text a thread
  int i = self(), s = 0;
  for (int k = 0; k < each; k++) s = next[s * 16 + text[i * each + k] % 16];
  state[i] = s;
}
__global__ void edit_distance(const uint8_t *a, const uint8_t *b, int *out, int length) { // a pair a thread, a row in local memory
  int i = self(), row[33];
  for (int k = 0; k <= 32; k++) row[k] = k;
  for (int y = 0; y < length; y++) {
    int diagonal = row[0], c = a[i * length + y];
    row[0] = y + 1;
    for (int x = 0; x < length; x++) {
      int v = min(min(row[x] + 1, row[x + 1] + 1), diagonal + (b[i * length + x] != c));
      diagonal = row[x + 1], row[x + 1] = v;
    }
  }
  out[i] = row[length];
}
__global__ void union_find(int *parent, const int *a, const int *b) {
  int i = self(), x = a[i], y = b[i];
  for (int tries = 0; tries < 32; tries++) {
    while (parent[x] != x) x = parent[x];
    while (parent[y] != y) y = parent[y];
    if (x == y) return;
    int low = min(x, y), high = max(x, y);
    if (atomicCAS(&parent[high], high, low) == high) return;
  }
}
__global__ void nearest_eight(const float *x, const float *y, float *out, int n) { // insertion into a short sorted list
  float best[8];
  for (int k = 0; k < 8; k++) best[k] = 1e30f;
  float px = x[self()], py = y[self()];
  for (int i = 0; i < n; i++) {
    float dx = x[i] - px, dy = y[i] - py, d = dx * dx + dy * dy;
    if (d < best[7]) {
      int k = 7;
      while (k > 0 && best[k - 1] > d) best[k] = best[k - 1], k--;
      best[k] = d;
    }
  }
  float s = 0;
  for (int k = 0; k < 8; k++) s += best[k];
  out[self()] = s;
}
__global__ void keep_some(const int *in, int *out, int *count, int n) { // ballots, one addition a warp
  int lane = threadIdx.x % 32;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) {
    int v = in[i];
    unsigned who = __ballot_sync(~0u, v % 3 == 0);
    int base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(who));
    base = __shfl_sync(~0u, base, 0);
    if (v % 3 == 0) out[base + __popc(who & ((1u << lane) - 1))] = v;
  }
}
__global__ void count_digits(const uint32_t *keys, int *counts, int shift, int each) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < each; k++) atomicAdd(&bins[keys[(blockIdx.x * each + k) * 256 + threadIdx.x] >> shift & 255], 1);
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}
__global__ void move_digits(const uint32_t *keys, const int *place, uint32_t *out) { // to where a table says
  int i = self();
  out[place[i]] = keys[i];
}
__global__ void merge_paths(const int *a, const int *b, int *out, int n) { // a binary search, then eight merged a thread
  int i = self() * 8, low = max(0, i - n), high = min(i, n);
  while (low < high) {
    int m = (low + high) / 2;
    if (a[m] < b[i - 1 - m])
      low = m + 1;
    else
      high = m;
  }
  int x = low, y = i - low;
  for (int k = 0; k < 8; k++) {
    bool first = y >= n || (x < n && a[x] <= b[y]);
    out[i + k] = first ? a[x++] : b[y++];
  }
}
__global__ void queens(int *out, int n) { // a board a thread, a stack of bits
  int i = self(), rows[12], at = 2, found = 0, columns = 0;
  int first = i % n, second = i / n % n;
  if (first == second || first == second + 1 || second == first + 1) return;
  int cols = 1 << first | 1 << second, d1 = (1 << first) << 2 | (1 << second) << 1, d2 = (1 << first) >> 2 | (1 << second) >> 1;
  int c[12], l[12], r[12];
  c[2] = cols, l[2] = d1, r[2] = d2, rows[2] = ~(cols | d1 | d2) & ((1 << n) - 1);
  while (at >= 2) {
    int free_ = rows[at];
    if (free_ == 0) {
      at--;
      continue;
    }
    int bit = free_ & -free_;
    rows[at] ^= bit;
    if (at == n - 1) {
      found++;
      continue;
    }
    c[at + 1] = c[at] | bit, l[at + 1] = (l[at] | bit) << 1, r[at + 1] = (r[at] | bit) >> 1, at++;
    rows[at] = ~(c[at] | l[at] | r[at]) & ((1 << n) - 1);
  }
  out[i] = found + columns;
}

int main() {
  const int rows = 1 << 17;
  int *host = new int[rows + 1], total = 0;
  for (int r = 0; r < rows; r++) { // 8 at the median, some of hundreds
    host[r] = total;
    uint32_t h = mix(r);
    total += h % 64 == 0 ? 128 + h / 64 % 128 : 4 + h / 64 % 8;
  }
  host[rows] = total;
  int *start = array<int>(rows + 1);
  cudaMemcpy(start, host, (rows + 1) * 4, cudaMemcpyHostToDevice);
  int *column = filled<int>(total, rows), *out = array<int>(1 << 22), *level = array<int>(rows), *counts = array<int>(1 << 20);
  float *value = filled<float>(total, 100), *x = filled<float>(1 << 22, 100000), *y = array<float>(1 << 22);
  LAUNCH(rows_of_csr, rows / 256, 256, start, column, value, x, y, rows);
  LAUNCH(rows_of_csr_by_warps, rows / 8, 256, start, column, value, x, y, rows);
  LAUNCH(rows_of_ell, rows / 256, 256, column, value, x, y, rows, 8);
  for (int time = 0; time < TIMES; time++) {
    cudaMemset(level, 255, rows * 4), cudaMemset(level, 0, 40000 * 4);
    visit_level<<<rows / 256, 256>>>(start, column, level, 0, counts, rows);
  }
  int *queue = filled<int>(1 << 15, rows, 7);
  for (int time = 0; time < TIMES; time++) {
    cudaMemset(level, 0, rows * 4), cudaMemset(counts, 0, 4);
    visit_queue<<<(1 << 15) / 256, 256>>>(start, column, level, queue, 1 << 15, out, counts);
  }
  LAUNCH(rank_push, rows / 256, 256, start, column, x, y, rows);
  LAUNCH(triangles, 32, 128, start, column, out, 4096);
  LAUNCH(nearest_centre, 264, 256, x, x + (1 << 21), out, 264 * 256, 16, 12);
  int *of = filled<int>(264 * 256, 16);
  LAUNCH(add_to_centres, 264, 256, x, of, y, counts, 264 * 256, 4);
  uint32_t *table = filled<uint32_t>(1 << 20, 1 << 21, 5), *keys = filled<uint32_t>(1 << 21, 1 << 30, 9);
  LAUNCH(probe_table, 2048, 256, keys, table, (1 << 20) - 1, out);
  int *tree = new int[1 << 17];
  for (int i = 0; i < 1 << 17; i++) tree[i] = i < (1 << 16) - 1 ? 2 * i + 1 : 0;
  int *left = array<int>(1 << 17);
  cudaMemcpy(left, tree, 4 << 17, cudaMemcpyHostToDevice);
  LAUNCH(walk_tree, 1056, 256, left, x, x + (1 << 20), out, 16);
  float *low = new float[4096], *high = new float[4096], *dl = array<float>(4096), *dh = array<float>(4096);
  for (int i = 0; i < 4096; i++) {
    int depth = 31 - __builtin_clz(i + 1), at = i + 1 - (1 << depth);
    low[i] = 100000.0f * at / (1 << depth) - 60, high[i] = 100000.0f * (at + 1) / (1 << depth) + 60;
  }
  cudaMemcpy(dl, low, 4096 * 4, cudaMemcpyHostToDevice), cudaMemcpy(dh, high, 4096 * 4, cudaMemcpyHostToDevice);
  LAUNCH(walk_stack, 264, 128, dl, dh, x, out, 4095);
  char *text = filled<char>(1 << 22, 3), *word = filled<char>(16, 3);
  LAUNCH(find_text, (1 << 22) / 256 - 1, 256, text, word, 12, counts);
  uint8_t *next = filled<uint8_t>(1024, 64);
  LAUNCH(automaton, 256, 128, (uint8_t *)text, next, out, 100);
  LAUNCH(edit_distance, 132, 64, (uint8_t *)text, (uint8_t *)text + 1000000, out, 32);
  for (int time = 0; time < TIMES; time++) {
    int *parents = new int[rows];
    for (int i = 0; i < rows; i++) parents[i] = i;
    cudaMemcpy(level, parents, rows * 4, cudaMemcpyHostToDevice);
    delete[] parents;
    union_find<<<rows / 2 / 256, 256>>>(level, column, column + 200000);
  }
  LAUNCH(nearest_eight, 132, 128, x, x + 100000, y, 1000);
  for (int time = 0; time < TIMES; time++) {
    cudaMemset(counts, 0, 4);
    keep_some<<<528, 256>>>((int *)keys, out, counts, 1 << 20);
  }
  LAUNCH(count_digits, 528, 256, keys, counts, 8, 15);
  int *places = new int[1 << 20], *place = array<int>(1 << 20);
  for (int i = 0; i < 1 << 20; i++) places[i] = (i % 256) * 4096 + i / 256;
  cudaMemcpy(place, places, 4 << 20, cudaMemcpyHostToDevice);
  LAUNCH(move_digits, 4096, 256, keys, place, (uint32_t *)out);
  int *sorted = new int[1 << 20];
  for (int i = 0; i < 1 << 20; i++) sorted[i] = i * 2 + (int)(mix(i) & 1);
  int *sa = array<int>(1 << 20);
  cudaMemcpy(sa, sorted, 4 << 20, cudaMemcpyHostToDevice);
  LAUNCH(merge_paths, 512, 256, sa, sa + (1 << 19), out, 1 << 19);
  LAUNCH(queens, 2, 72, out, 10);
  return done();
}
