// The driver's interface: arrays, mipmaps, textures and surfaces, and memory that is mapped to reserved addresses.
#define _GNU_SOURCE
#if __has_include(<cuda.h>)
#include <dirent.h>

#include "libcuda_rig.h"

// Kernels read four channels at coordinates that stand in memory, and store them.
#define KERNEL(name, regs, body)                                                                             \
  ".visible .entry " name "(.param .u64 t, .param .u64 at, .param .u64 out) {\n"                             \
  ".reg .u64 %t, %a, %o; .reg .f32 %f<10>; .reg .b32 %r<5>; ld.param.u64 %t, [t]; ld.param.u64 %a, [at];\n"  \
  "ld.param.u64 %o, [out]; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%a];\n" regs body "\nret; }\n"
#define STORE "st.global.v4.f32 [%o], {%f5, %f6, %f7, %f8};"
#define TO    "{%f5, %f6, %f7, %f8}"
static const char references[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref plane;\n.global .surfref board;\n"
    ".visible .entry look(.param .u64 t, .param .u64 at, .param .u64 out) {\n"
    ".reg .u64 %a, %o, %p; .reg .f32 %f<10>; ld.param.u64 %a, [at]; ld.param.u64 %o, [out];\n"
    "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%a]; tex.2d.v4.f32.f32 " TO ", [plane, {%f1, %f2}]; " STORE
    " ret; }\n"
    ".visible .entry item(.param .u64 t, .param .u64 at, .param .u64 out) {\n"
    ".reg .u64 %a, %o; .reg .f32 %f<10>; .reg .b32 %r<4>; ld.param.u64 %a, [at]; ld.param.u64 %o, [out];\n"
    "ld.global.f32 %f1, [%a]; cvt.rni.s32.f32 %r1, %f1; tex.1d.v4.f32.s32 " TO ", [plane, {%r1}]; " STORE
    " ret; }\n"
    ".visible .entry put(.param .u64 t, .param .u64 at, .param .u64 out) {\n"
    ".reg .u64 %a; .reg .f32 %f; .reg .b32 %r<3>; ld.param.u64 %a, [at]; ld.global.f32 %f, [%a];\n"
    "mov.u32 %r1, 4; mov.u32 %r2, 0; sust.b.2d.b32.trap [board, {%r1, %r2}], {%f}; ret; }\n";
static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n" //
    KERNEL("flat", "", "tex.2d.v4.f32.f32 " TO ", [%t, {%f1, %f2}]; " STORE)
        KERNEL("row", "cvt.rni.s32.f32 %r1, %f1;", "tex.1d.v4.f32.s32 " TO ", [%t, {%r1}]; " STORE)
            KERNEL("cube", "", "tex.cube.v4.f32.f32 " TO ", [%t, {%f1, %f2, %f3, %f3}]; " STORE)
                KERNEL("cubes", "cvt.rni.s32.f32 %r1, %f4;",
                       "tex.acube.v4.f32.f32 " TO ", [%t, {%r1, %f1, %f2, %f3}]; " STORE)
                    KERNEL("level", "", "tex.level.2d.v4.f32.f32 " TO ", [%t, {%f1, %f2}], %f3; " STORE)
                        KERNEL("levels", "txq.num_mipmap_levels.b32 %r1, [%t];", "st.global.u32 [%o], %r1;")
                            KERNEL("integers", "",
                                   "tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%t, {%f1, %f2}]; "
                                   "st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};")
                                KERNEL("store", "mov.u32 %r1, 8; mov.u32 %r2, 1;",
                                       "sust.b.2d.b32.trap [%t, {%r1, %r2}], {%f1};")
                                    KERNEL("copy", "", "ld.global.f32 %f1, [%t]; st.global.f32 [%o], %f1;");

static CUmodule module;
static CUdeviceptr at, out;
static void open_module(void) {
  OK(CU(cuInit)(0));
  begin();
  OK(CU(cuModuleLoadData)(&module, ptx));
  OK(CU(cuMemAlloc)(&at, 16));
  OK(CU(cuMemAlloc)(&out, 16));
}

typedef union Texel {
  float f[4];
  unsigned u[4];
} Texel;
static Texel run(const char *kernel, unsigned long long object, float x, float y, float z, float w) {
  CUfunction function;
  float coordinates[4] = {x, y, z, w};
  void *params[] = {&object, &at, &out};
  Texel got = {{-1, -1, -1, -1}};
  OK(CU(cuMemcpyHtoD)(at, coordinates, sizeof coordinates));
  OK(CU(cuMemsetD32)(out, 0, 4));
  OK(CU(cuModuleGetFunction)(&function, module, kernel));
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(CU(cuMemcpyDtoH)(&got, out, sizeof got));
  return got;
}

static CUarray make_array(size_t width, size_t height, size_t depth, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR d = {.Width = width, .Height = height, .Depth = depth, .Flags = flags};
  CUarray array = NULL;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  OK(CU(cuArray3DCreate)(&array, &d));
  return array;
}

static void fill(CUarray array, size_t width, size_t height, size_t depth, float base) {
  static float values[1024];
  for (size_t i = 0; i < width * height * depth; i++) values[i] = base + (float)i;
  CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = values, .srcPitch = width * 4};
  copy.srcHeight = height;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width * 4;
  copy.Height = height;
  copy.Depth = depth;
  OK(CU(cuMemcpy3D)(&copy));
}

static CUtexObject texture_of(CUarray array, unsigned flags, CUfilter_mode filter) {
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
  CUDA_TEXTURE_DESC t = {.filterMode = filter, .flags = flags};
  CUtexObject texture = 0;
  for (int i = 0; i < 3; i++) t.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
  r.res.array.hArray = array;
  OK(CU(cuTexObjectCreate)(&texture, &r, &t, NULL));
  return texture;
}

TEST(textures) {
  open_module();
  CUarray array = make_array(8, 4, 0, 0);
  fill(array, 8, 4, 1, 0);
  CUtexObject points = texture_of(array, 0, CU_TR_FILTER_MODE_POINT);
  CUtexObject smooth = texture_of(array, CU_TRSF_NORMALIZED_COORDINATES, CU_TR_FILTER_MODE_LINEAR);
  CHECK_NEAR(run("flat", points, 3, 2, 0, 0).f[0], 19, 0);
  CHECK_NEAR(run("flat", smooth, 0.5f, 0.5f, 0, 0).f[0], 15.5, 0); // between four texels
  CUDA_RESOURCE_DESC r;
  CUDA_TEXTURE_DESC t;
  OK(CU(cuTexObjectGetResourceDesc)(&r, smooth));
  CHECK(r.resType == CU_RESOURCE_TYPE_ARRAY && r.res.array.hArray == array);
  OK(CU(cuTexObjectGetTextureDesc)(&t, smooth));
  CHECK(t.filterMode == CU_TR_FILTER_MODE_LINEAR && t.flags & CU_TRSF_NORMALIZED_COORDINATES);
  CHECK_INT(t.addressMode[1], CU_TR_ADDRESS_MODE_CLAMP);
  OK(CU(cuTexObjectDestroy)(points));
  CHECK_INT(CU(cuTexObjectGetResourceDesc)(&r, points), CUDA_ERROR_INVALID_VALUE);

  // Plain memory of bytes: read as fractions, or as they are.
  unsigned char bytes[4 * 64] = {0};
  CUdeviceptr memory;
  CUtexObject fractions, integers, row;
  bytes[64 + 2] = 51;
  OK(CU(cuMemAlloc)(&memory, sizeof bytes));
  OK(CU(cuMemcpyHtoD)(memory, bytes, sizeof bytes));
  r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
  r.res.pitch2D.devPtr = memory;
  r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
  r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = 16;
  r.res.pitch2D.height = 4;
  r.res.pitch2D.pitchInBytes = 64;
  t = (CUDA_TEXTURE_DESC){0};
  OK(CU(cuTexObjectCreate)(&fractions, &r, &t, NULL));
  CHECK_NEAR(run("flat", fractions, 2, 1, 0, 0).f[0], 0.2, 1e-6);
  t.flags = CU_TRSF_READ_AS_INTEGER;
  OK(CU(cuTexObjectCreate)(&integers, &r, &t, NULL));
  CHECK_INT(run("integers", integers, 2, 1, 0, 0).u[0], 51);
  CUDA_RESOURCE_DESC got;
  OK(CU(cuTexObjectGetResourceDesc)(&got, integers));
  CHECK(got.res.pitch2D.pitchInBytes == 64 && got.res.pitch2D.format == CU_AD_FORMAT_UNSIGNED_INT8);
  r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR};
  r.res.linear.devPtr = memory;
  r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
  r.res.linear.numChannels = 1;
  r.res.linear.sizeInBytes = sizeof bytes;
  t.flags = 0;
  OK(CU(cuTexObjectCreate)(&row, &r, &t, NULL));
  CHECK_NEAR(run("row", row, 66, 0, 0, 0).f[0], 0.2, 1e-6);
  OK(CU(cuMemFree)(memory));
}

TEST(cube_maps) {
  open_module();
  CUarray faces = make_array(4, 4, 6, CUDA_ARRAY3D_CUBEMAP);
  CUarray more = make_array(4, 4, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
  fill(faces, 4, 4, 6, 0);
  fill(more, 4, 4, 12, 100);
  CUtexObject t = texture_of(faces, CU_TRSF_NORMALIZED_COORDINATES, CU_TR_FILTER_MODE_POINT);
  CUtexObject layered = texture_of(more, CU_TRSF_NORMALIZED_COORDINATES, CU_TR_FILTER_MODE_POINT);
  // Each face near its corner of texel 0: which coordinates lead there is the guide's table.
  static const float corners[6][3] = {{8, 7, 7},   {-8, 7, -7}, {-7, 8, -7},
                                      {-7, -8, 7}, {-7, 7, 8},  {7, 7, -8}};
  for (int face = 0; face < 6; face++) {
    const float *c = corners[face];
    CHECK_NEAR(run("cube", t, c[0], c[1], c[2], 0).f[0], 16 * face, 0);
    CHECK_NEAR(run("cubes", layered, c[0], c[1], c[2], 1).f[0], 100 + 96 + 16 * face, 0);
  }
  CHECK_NEAR(run("cube", t, 1, -0.9f, -0.9f, 0).f[0], 15, 0); // the opposite corner of the first
  CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 4, .Height = 4, .Depth = 5, .Format = CU_AD_FORMAT_FLOAT};
  CUarray bad;
  d.NumChannels = 1;
  d.Flags = CUDA_ARRAY3D_CUBEMAP;
  CHECK_INT(CU(cuArray3DCreate)(&bad, &d), CUDA_ERROR_INVALID_VALUE);
}

TEST(mipmaps) {
  open_module();
  CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CUmipmappedArray mipmap;
  CUarray level;
  OK(CU(cuMipmappedArrayCreate)(&mipmap, &d, 3));
  for (unsigned i = 0; i < 3; i++) {
    OK(CU(cuMipmappedArrayGetLevel)(&level, mipmap, i));
    OK(CU(cuArray3DGetDescriptor)(&d, level));
    CHECK_INT(d.Width, 8 >> i);
    fill(level, 8u >> i, 8u >> i, 1, (float)(1000 * i));
  }
  CHECK_INT(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
  r.res.mipmap.hMipmappedArray = mipmap;
  CUDA_TEXTURE_DESC t = {.flags = CU_TRSF_NORMALIZED_COORDINATES, .maxMipmapLevelClamp = 9};
  CUtexObject near, between, part;
  OK(CU(cuTexObjectCreate)(&near, &r, &t, NULL));
  t.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
  OK(CU(cuTexObjectCreate)(&between, &r, &t, NULL));
  CHECK_INT(run("levels", near, 0, 0, 0, 0).u[0], 3);
  for (int i = 0; i < 3; i++) CHECK_NEAR(run("level", near, 0, 0, (float)i, 0).f[0], 1000 * i, 0);
  CHECK_NEAR(run("level", near, 0, 0, 7, 0).f[0], 2000, 0);
  CHECK_NEAR(run("level", between, 0, 0, 0.25f, 0).f[0], 250, 0);
  CHECK_NEAR(run("level", between, 0, 0, 1.5f, 0).f[0], 1500, 0);
  CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, .width = 4, .height = 4};
  view.firstMipmapLevel = 1;
  view.lastMipmapLevel = 2;
  OK(CU(cuTexObjectCreate)(&part, &r, &t, &view));
  CHECK_INT(run("levels", part, 0, 0, 0, 0).u[0], 2);
  CHECK_NEAR(run("level", part, 0, 0, 0, 0).f[0], 1000, 0);
  view.format = CU_RES_VIEW_FORMAT_FLOAT_4X32; // texels of another size
  CHECK_INT(CU(cuTexObjectCreate)(&part, &r, &t, &view), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMipmappedArrayDestroy)(mipmap));
}

TEST(surfaces) {
  open_module();
  CUarray array = make_array(4, 2, 0, CUDA_ARRAY3D_SURFACE_LDST), plain = make_array(4, 2, 0, 0);
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY}, got;
  CUsurfObject surface = 0;
  float values[4] = {0};
  r.res.array.hArray = plain;
  CHECK_INT(CU(cuSurfObjectCreate)(&surface, &r), CUDA_ERROR_INVALID_VALUE);
  r.res.array.hArray = array;
  OK(CU(cuSurfObjectCreate)(&surface, &r));
  OK(CU(cuSurfObjectGetResourceDesc)(&got, surface));
  CHECK(got.res.array.hArray == array);
  run("store", surface, 42, 0, 0, 0); // at byte 8 of row 1
  CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = array, .srcY = 1};
  rows.dstMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstHost = values;
  rows.WidthInBytes = sizeof values;
  rows.Height = 1;
  OK(CU(cuMemcpy2D)(&rows));
  CHECK(values[1] == 0 && values[2] == 42);
  OK(CU(cuMemcpyHtoAAsync)(array, 0, values, sizeof values, NULL));
  OK(CU(cuMemcpyAtoA)(array, 0, array, 8, 4));
  OK(CU(cuMemcpyAtoHAsync)(values, array, 0, 4, NULL));
  CHECK(values[0] == 42);
  OK(CU(cuSurfObjectDestroy)(surface));
}

// ---- reserved addresses ----

enum { GRAIN = 2 << 20 };
static CUmemAllocationProp pinned(void) {
  CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}
static CUmemAccessDesc both_ways(void) {
  CUmemAccessDesc d = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return d;
}

static int open_files(void) {
  int count = 0;
  DIR *all = opendir("/proc/self/fd");
  while (all && readdir(all)) count++;
  if (all) closedir(all);
  return count;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(references) {
  open_module();
  CUmodule old = NULL;
  CUtexref plane = NULL, again = NULL, own = NULL;
  CUsurfref board = NULL;
  CUarray back = NULL;
  CUaddress_mode edge;
  CUarray_format format;
  CUdeviceptr line = 0, got = 0;
  float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int channels = 0;
  unsigned flags = 0;
  size_t offset = 9;
  OK(CU(cuModuleLoadData)(&old, references));
  CHECK_INT(CU(cuModuleGetTexRef)(&plane, old, "nix"), CUDA_ERROR_NOT_FOUND);
  OK(CU(cuModuleGetTexRef)(&plane, old, "plane"));
  OK(CU(cuModuleGetTexRef)(&again, old, "plane"));
  CHECK(plane == again);
  CUmodule before = module;
  module = old;
  // An array, first by texels, then filtered, with normalized coordinates and a border.
  CUarray array = make_array(4, 2, 0, CUDA_ARRAY3D_SURFACE_LDST);
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = values,
                        .srcPitch = 16,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = array,
                        .WidthInBytes = 16,
                        .Height = 2};
  OK(CU(cuMemcpy2D)(&copy));
  CHECK_INT(CU(cuTexRefSetArray)(plane, array, 0), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuTexRefSetArray)(plane, array, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_NEAR(run("look", 0, 2.5f, 1.5f, 0, 0).f[0], 7, 0);
  OK(CU(cuTexRefSetFilterMode)(plane, CU_TR_FILTER_MODE_LINEAR));
  CHECK_NEAR(run("look", 0, 2, 1, 0, 0).f[0], 4.5, 0);
  OK(CU(cuTexRefSetFlags)(plane, CU_TRSF_NORMALIZED_COORDINATES));
  OK(CU(cuTexRefGetFlags)(&flags, plane));
  CHECK_INT(flags, CU_TRSF_NORMALIZED_COORDINATES);
  CHECK_NEAR(run("look", 0, 0.5f, 0.5f, 0, 0).f[0], 4.5, 0);
  OK(CU(cuTexRefSetAddressMode)(plane, 0, CU_TR_ADDRESS_MODE_BORDER));
  OK(CU(cuTexRefGetAddressMode)(&edge, plane, 0));
  CHECK_INT(edge, CU_TR_ADDRESS_MODE_BORDER);
  OK(CU(cuTexRefSetBorderColor)(plane, (float[4]){50, 0, 0, 0}));
  CHECK_NEAR(run("look", 0, 2, 0.25f, 0, 0).f[0], 50, 0);
  OK(CU(cuTexRefGetArray)(&back, plane));
  CHECK(back == array);
  CHECK_INT(CU(cuTexRefGetAddress)(&got, plane), CUDA_ERROR_INVALID_VALUE);
  // Linear memory.
  OK(CU(cuMemAlloc)(&line, 512));
  OK(CU(cuMemcpyHtoD)(line, values, sizeof values));
  OK(CU(cuTexRefSetFormat)(plane, CU_AD_FORMAT_FLOAT, 2));
  OK(CU(cuTexRefGetFormat)(&format, &channels, plane));
  CHECK(format == CU_AD_FORMAT_FLOAT && channels == 2);
  OK(CU(cuTexRefSetAddress)(&offset, plane, line, sizeof values));
  CHECK(offset == 0);
  OK(CU(cuTexRefGetAddress)(&got, plane));
  CHECK(got == line && run("item", 0, 1, 0, 0, 0).f[1] == 4);
  // A surface writes what the texture then reads.
  OK(CU(cuModuleGetSurfRef)(&board, old, "board"));
  OK(CU(cuSurfRefSetArray)(board, array, 0));
  OK(CU(cuSurfRefGetArray)(&back, board));
  CHECK(back == array);
  run("put", 0, 99, 0, 0, 0);
  OK(CU(cuTexRefSetFilterMode)(plane, CU_TR_FILTER_MODE_POINT));
  OK(CU(cuTexRefSetFlags)(plane, 0));
  OK(CU(cuTexRefSetArray)(plane, array, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_NEAR(run("look", 0, 1.5f, 0.5f, 0, 0).f[0], 99, 0);
  // One of no module; and what is none.
  OK(CU(cuTexRefCreate)(&own));
  OK(CU(cuTexRefSetMaxAnisotropy)(own, 4));
  OK(CU(cuTexRefGetMaxAnisotropy)(&channels, own));
  CHECK_INT(channels, 4);
  OK(CU(cuTexRefDestroy)(own));
  CHECK_INT(CU(cuTexRefDestroy)(own), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuTexRefSetFlags)(own, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuTexRefSetFlags)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuTexRefDestroy)(plane), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuTexRefSetAddressMode)(plane, 3, CU_TR_ADDRESS_MODE_CLAMP), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemFree)(line));
  OK(CU(cuArrayDestroy)(array));
  OK(CU(cuModuleUnload)(old));
  module = before;
}
#pragma GCC diagnostic pop

TEST(mapped_memory) {
  CUdeviceptr p = 0, alias = 0;
  CUmemGenericAllocationHandle first = 0, second = 0, again = 0;
  CUmemAllocationProp properties = pinned();
  CUmemAccessDesc allow = both_ways();
  size_t grain = 0, total = 0;
  float values[2] = {7, 8}, got[2] = {0};
  open_module();
  OK(CU(cuMemGetAllocationGranularity)(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_INT(grain, GRAIN);
  int supported = 0;
  OK(CU(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  CHECK_INT(supported, 1);
  OK(CU(cuMemAddressReserve)(&p, 4 * GRAIN, 0, 0, 0));
  CHECK(p % GRAIN == 0);
  int files = open_files();
  OK(CU(cuMemCreate)(&first, GRAIN, &properties, 0));
  OK(CU(cuMemCreate)(&second, 2 * GRAIN, &properties, 0));
  CHECK_INT(CU(cuMemCreate)(&again, 1000, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemCreate)(&again, (size_t)1 << 50, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  OK(CU(cuMemMap)(p, GRAIN, 0, first, 0));
  OK(CU(cuMemMap)(p + GRAIN, 2 * GRAIN, 0, second, 0));
  CHECK_INT(CU(cuMemMap)(p, GRAIN, 0, first, 0), CUDA_ERROR_INVALID_VALUE); // in use
  CHECK_INT(CU(cuMemcpyHtoD)(p, values, 8), CUDA_ERROR_INVALID_VALUE);      // no access yet
  OK(CU(cuMemSetAccess)(p, 3 * GRAIN, &allow, 1));
  // Copies cross from one mapping into the next, and kernels read what they wrote.
  OK(CU(cuMemcpyHtoD)(p + GRAIN - 4, values, 8));
  CHECK_NEAR(run("copy", p + GRAIN - 4, 0, 0, 0, 0).f[0], 7, 0);
  CHECK_NEAR(run("copy", p + GRAIN, 0, 0, 0, 0).f[0], 8, 0);
  OK(CU(cuMemsetD8)(p, 0, 3 * GRAIN));
  CHECK_INT(CU(cuMemsetD8)(p, 0, 3 * GRAIN + 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_INT(CU(cuMemFree)(p), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr start = 0;
  OK(CU(cuMemGetAddressRange)(&start, &total, p + GRAIN + 100));
  CHECK(start == p + GRAIN && total == 2 * GRAIN);

  // The same bytes at two places.
  CHECK_INT(CU(cuMemMap)(p + 3 * GRAIN, GRAIN, GRAIN, second, 0), CUDA_ERROR_NOT_SUPPORTED); // a part of it
  OK(CU(cuMemAddressReserve)(&alias, 2 * GRAIN, 0, 0, 0));
  OK(CU(cuMemMap)(alias, 2 * GRAIN, 0, second, 0));
  OK(CU(cuMemSetAccess)(alias, 2 * GRAIN, &allow, 1));
  OK(CU(cuMemcpyHtoD)(alias + GRAIN, values, 8));
  OK(CU(cuMemcpyDtoH)(got, p + 2 * GRAIN, 8));
  CHECK(got[0] == 7 && got[1] == 8);

  // Released memory lives on while it is mapped; what is unmapped cannot be accessed, and its neighbours can.
  OK(CU(cuMemRetainAllocationHandle)(&again, (void *)(uintptr_t)p));
  CHECK(again == first);
  OK(CU(cuMemRelease)(again));
  OK(CU(cuMemRelease)(first));
  OK(CU(cuMemRelease)(second));
  CHECK_INT(CU(cuMemRelease)(second), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemcpyHtoD)(p, values, 8));
  OK(CU(cuMemUnmap)(p, GRAIN));
  CHECK_INT(CU(cuMemcpyHtoD)(p, values, 8), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemcpyHtoD)(p + GRAIN, values, 8));
  CHECK_INT(CU(cuMemAddressFree)(p, 4 * GRAIN), CUDA_ERROR_INVALID_VALUE); // something is mapped
  OK(CU(cuMemUnmap)(p + GRAIN, 2 * GRAIN));
  OK(CU(cuMemAddressFree)(p, 4 * GRAIN));
  OK(CU(cuMemUnmap)(alias, 2 * GRAIN));
  OK(CU(cuMemAddressFree)(alias, 2 * GRAIN));
  CHECK_INT(open_files(), files); // the memory is gone
}

TEST(shared_memory_by_file) {
  CUmemGenericAllocationHandle mine = 0, theirs = 0;
  CUmemAllocationProp properties = pinned();
  CUmemAccessDesc allow = both_ways();
  CUdeviceptr p = 0;
  int file = -1;
  float values[2] = {7, 8}, got[2] = {0};
  open_module();
  OK(CU(cuMemCreate)(&mine, GRAIN, &properties, 0));
  OK(CU(cuMemExportToShareableHandle)(&file, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(CU(cuMemImportFromShareableHandle)(&theirs, (void *)(intptr_t)file,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  CHECK_INT(CU(cuMemImportFromShareableHandle)(&theirs, (void *)(intptr_t)file,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemAddressReserve)(&p, 2 * GRAIN, 0, 0, 0));
  OK(CU(cuMemMap)(p, GRAIN, 0, mine, 0));
  OK(CU(cuMemMap)(p + GRAIN, GRAIN, 0, theirs, 0));
  OK(CU(cuMemSetAccess)(p, 2 * GRAIN, &allow, 1));
  OK(CU(cuMemcpyHtoD)(p, values, 8));
  OK(CU(cuMemcpyDtoH)(got, p + GRAIN, 8));
  CHECK(got[0] == 7 && got[1] == 8);
}

// A kernel that touches reserved addresses with nothing behind them is told so, and nothing crashes.
TEST(unmapped_fault) {
  CUdeviceptr p = 0;
  CUfunction function;
  open_module();
  OK(CU(cuMemAddressReserve)(&p, GRAIN, 0, 0, 0));
  void *params[] = {&p, &at, &out};
  OK(CU(cuModuleGetFunction)(&function, module, "copy"));
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  CHECK_INT(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
#else
#include <stdio.h>
int main(void) {
  puts("no CUDA headers");
  return 77;
}
#endif
