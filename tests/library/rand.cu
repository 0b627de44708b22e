// cuRAND's stand-in: its host generators against those of curand_kernel.h, which the emulator runs.
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

enum { LANES = 4096, THREADS = 64, DRAWS = 3, SEED = 1234567 };
static const unsigned long long seed = SEED * 0x100000001ull;
static int wrong, checks;
static void expect(bool fine, const char *what) {
  checks++;
  if (!fine && wrong++ < 20) printf("wrong: %s\n", what);
}
#define OK(call) expect((call) == CURAND_STATUS_SUCCESS, #call)

// Every 64th lane: its first draws, and of fresh states a uniform number, a double and a pair of normal ones.
template <class State> __global__ void draws(unsigned *bits, float *uniform, double *wide, float *normal, unsigned long long s) {
  unsigned lane = threadIdx.x * (LANES / THREADS);
  State state, first;
  curand_init(s, lane, 0, &first);
  state = first;
  for (int i = 0; i < DRAWS; i++) bits[i * THREADS + threadIdx.x] = curand(&state);
  state = first;
  uniform[threadIdx.x] = curand_uniform(&state);
  state = first;
  wide[threadIdx.x] = curand_uniform_double(&state);
  state = first;
  float2 pair = curand_normal2(&state);
  normal[threadIdx.x * 2] = pair.x, normal[threadIdx.x * 2 + 1] = pair.y;
}

template <class T> std::vector<T> back(const T *from, size_t n) {
  std::vector<T> out(n);
  cudaMemcpy(out.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost);
  return out;
}

struct Memory {
  unsigned *bits;
  float *uniform, *normal;
  double *wide;
  Memory() {
    cudaMalloc(&bits, LANES * DRAWS * 4), cudaMalloc(&uniform, LANES * 4), cudaMalloc(&normal, LANES * 8);
    cudaMalloc(&wide, LANES * 8);
  }
};

static curandGenerator_t fresh(curandRngType_t type) {
  curandGenerator_t g = nullptr;
  OK(curandCreateGenerator(&g, type));
  OK(curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_LEGACY)); // of XORWOW the default, too
  OK(curandSetPseudoRandomGeneratorSeed(g, seed));
  return g;
}

template <class State> void compare(curandRngType_t type, const char *name) {
  Memory device, host;
  draws<State><<<1, THREADS>>>(device.bits, device.uniform, device.wide, device.normal, seed);
  curandGenerator_t g = fresh(type), again;
  OK(curandGenerate(g, host.bits, LANES * DRAWS));
  auto bits = back(host.bits, LANES * DRAWS), wanted = back(device.bits, THREADS * DRAWS);
  bool same = true;
  for (int i = 0; i < DRAWS; i++)
    for (int t = 0; t < THREADS; t++) same &= bits[i * LANES + t * (LANES / THREADS)] == wanted[i * THREADS + t];
  expect(same, name);
  again = fresh(type);
  OK(curandGenerateUniform(again, host.uniform, LANES));
  curandDestroyGenerator(again), again = fresh(type);
  OK(curandGenerateUniformDouble(again, host.wide, LANES));
  curandDestroyGenerator(again), again = fresh(type);
  OK(curandGenerateNormal(again, host.normal, LANES * 2, 0, 1));
  auto u = back(host.uniform, LANES), uw = back(device.uniform, THREADS);
  auto n = back(host.normal, LANES * 2), nw = back(device.normal, THREADS * 2);
  auto d = back(host.wide, LANES), dw = back(device.wide, THREADS);
  for (int t = 0; t < THREADS; t++) {
    int at = t * (LANES / THREADS);
    expect(u[at] == uw[t], "a uniform float");
    expect(d[at] == dw[t], "a uniform double");
    for (int k = 0; k < 2; k++) expect(std::fabs(n[at * 2 + k] - nw[t * 2 + k]) < 1e-5, "a normal float");
  }
  // An offset skips results.
  curandDestroyGenerator(again), again = fresh(type);
  OK(curandSetGeneratorOffset(again, 5000));
  OK(curandGenerate(again, host.bits, 100));
  auto later = back(host.bits, 100);
  expect(!memcmp(later.data(), &bits[5000], 400), "an offset");
  curandDestroyGenerator(again), curandDestroyGenerator(g);
}

// Lanes of Philox take turns of four.
__global__ void philox(unsigned *bits, unsigned long long s) {
  curandStatePhilox4_32_10_t state;
  curand_init(s, threadIdx.x, 0, &state);
  for (int i = 0; i < 4; i++) bits[threadIdx.x * 4 + i] = curand(&state);
}

static void compare_philox() {
  Memory device, host;
  philox<<<1, 75>>>(device.bits, seed);
  curandGenerator_t g = fresh(CURAND_RNG_PSEUDO_PHILOX4_32_10);
  OK(curandGenerate(g, host.bits, 101));
  OK(curandGenerate(g, host.bits + 101, 199));
  expect(back(host.bits, 300) == back(device.bits, 300), "Philox, also in two calls");
  curandDestroyGenerator(g);
}

static void distributions() {
  Memory m;
  curandGenerator_t g = fresh(CURAND_RNG_PSEUDO_DEFAULT);
  for (double mean : {0.5, 20.0, 900.0}) {
    double sum = 0, square = 0;
    OK(curandGeneratePoisson(g, m.bits, LANES, mean));
    for (unsigned x : back(m.bits, LANES)) sum += x, square += (double)x * x;
    double average = sum / LANES, variance = square / LANES - average * average;
    expect(std::fabs(average - mean) < 6 * std::sqrt(mean / LANES), "Poisson's mean");
    expect(std::fabs(variance / mean - 1) < 0.2, "Poisson's variance");
  }
  OK(curandGenerateLogNormal(g, m.normal, LANES, 1, 0.25f));
  double logs = 0;
  for (float x : back(m.normal, LANES)) logs += std::log(x);
  expect(std::fabs(logs / LANES - 1) < 0.05, "the mean of the logarithms");
  expect(curandGenerateNormal(g, m.normal, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE, "normal ones come in pairs");
  expect(curandGenerate(g, m.bits, LANES * DRAWS + 1) == CURAND_STATUS_LAUNCH_FAILURE, "past the end");
  expect(curandGenerate(nullptr, m.bits, 1) == CURAND_STATUS_NOT_INITIALIZED, "no generator");
  std::vector<float> here(10);
  curandGenerator_t on_host;
  OK(curandCreateGeneratorHost(&on_host, CURAND_RNG_PSEUDO_XORWOW));
  OK(curandGenerateUniform(on_host, here.data(), 10));
  expect(here[0] > 0 && here[0] <= 1 && here[0] != here[1], "numbers for the host");
  curandDestroyGenerator(on_host), curandDestroyGenerator(g);
}

int main() {
  compare<curandStateXORWOW_t>(CURAND_RNG_PSEUDO_XORWOW, "XORWOW");
  compare<curandStateMRG32k3a_t>(CURAND_RNG_PSEUDO_MRG32K3A, "MRG32k3a");
  compare_philox();
  distributions();
  printf("%d checks, %d wrong\n", checks, wrong);
  return wrong != 0;
}
