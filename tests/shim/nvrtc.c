// Compiles a kernel with NVRTC at run time and launches it through the driver's interface; with an argument from what NVRTC
// gives as machine code.
#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };
static const char source[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] += a * x[i];\n"
    "}\n";

static void check(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "%s: %d\n", what, result);
  exit(1);
}
#define CHECK(call) check((int)(call), #call)

static char *compile(int machine) {
  nvrtcProgram program;
  size_t size;
  const char *options[] = {machine ? "--gpu-architecture=sm_90" : "--gpu-architecture=compute_90",
                           "-lineinfo"};
  CHECK(nvrtcCreateProgram(&program, source, "saxpy.cu", 0, NULL, NULL));
  CHECK(nvrtcCompileProgram(program, 2, options));
  CHECK(machine ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  char *image = malloc(size);
  CHECK(machine ? nvrtcGetCUBIN(program, image) : nvrtcGetPTX(program, image));
  CHECK(nvrtcDestroyProgram(&program));
  return image;
}

int main(int argc, char **argv) {
  (void)argv;
  static float x[COUNT], y[COUNT];
  CUcontext context;
  CUmodule module;
  CUfunction saxpy;
  CUdeviceptr dx, dy;
  float a = 2;
  int n = COUNT;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  char *image = compile(argc > 1);
  CHECK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
  free(image);
  CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
  for (int i = 0; i < n; i++) x[i] = (float)i, y[i] = 1;
  CHECK(cuMemAlloc(&dx, sizeof x));
  CHECK(cuMemAlloc(&dy, sizeof y));
  CHECK(cuMemcpyHtoD(dx, x, sizeof x));
  CHECK(cuMemcpyHtoD(dy, y, sizeof y));
  void *params[] = {&a, &dx, &dy, &n};
  CHECK(cuLaunchKernel(saxpy, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
  CHECK(cuMemcpyDtoH(y, dy, sizeof y));
  for (int i = 0; i < n; i++)
    if (y[i] != 2 * (float)i + 1) return fprintf(stderr, "%d: %g\n", i, (double)y[i]), 1;
  CHECK(cuModuleUnload(module));
  puts("right");
  return 0;
}
