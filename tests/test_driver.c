// The driver interface beyond what operations use: copies on a stream, windows of L2, textures. On the
// emulator, and on a fake CUDA driver that keeps books.
#include "check.h"
#include "driver/driver.h"
#include "fake_cuda.h"
#include "machine/machine.h"

static FakeCuda *fake;
static const char source[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                             ".visible .entry fetch(.param .u64 t, .param .u64 y) {\n"
                             "  .reg .b64 %t, %y;\n  .reg .f32 %f<6>;\n"
                             "  ld.param.u64 %t, [t];\n  ld.param.u64 %y, [y];\n"
                             "  mov.f32 %f0, 0f40200000;\n  mov.f32 %f1, 0f3FC00000;\n" // 2.5, 1.5
                             "  tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%t, {%f0, %f1}];\n"
                             "  st.global.f32 [%y], %f2;\n  ret;\n}\n";

static SolDriver *open_driver(SolBackend backend) {
  SolDriver *d = NULL;
  SolError err = {0};
  CHECK_MSG(!sol_driver_open(&(SolDriverOptions){.backend = backend}, &d, &err), "%s", err.message);
  return d;
}

// 8 x 4 floats: 0, 1, 2 ...; the texture's texel (2, 1) is 10.
static uint64_t image_of(SolDriver *d, float first) {
  float texels[32];
  uint64_t at = 0;
  for (int i = 0; i < 32; i++) texels[i] = first + (float)i;
  CHECK(!sol_driver_alloc(d, sizeof texels, "image", &at, NULL));
  CHECK(!sol_driver_write(d, at, texels, sizeof texels, NULL));
  return at;
}

static SolDriverLaunch launch_of(SolDriver *d, const uint64_t params[2]) {
  SolPtxSource text = {"fetch", source, sizeof source - 1};
  SolDriverModule *module = NULL;
  SolDriverKernel *kernel = NULL;
  SolError err = {0};
  CHECK_MSG(!sol_driver_load(d, &text, 1, &module, &err), "%s", err.message);
  CHECK(!sol_driver_kernel(module, "fetch", &kernel, &err));
  return (SolDriverLaunch){
      .kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params, .param_bytes = 16};
}

TEST(emulator_reads_textures) {
  SolDriver *d = open_driver(SOL_BACKEND_EMU);
  uint64_t at = image_of(d, 0), y = 0, rows = 0, array = 0, again = 0;
  float got = 0, fresh = 100;
  SolError err = {0};
  CHECK(!sol_driver_alloc(d, 4, "y", &y, &err));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, false}, &rows, &err));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &array, &err));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &again, &err));
  CHECK(rows != array && array == again);
  uint64_t params[2] = {rows, y};
  SolDriverLaunch l = launch_of(d, params);
  l.window = at, l.window_bytes = 64; // without meaning here
  CHECK_MSG(!sol_driver_enqueue(d, &l, NULL, &err), "%s", err.message);
  CHECK(!sol_driver_read(d, &got, y, sizeof got, &err));
  CHECK_NEAR(got, 10, 0);
  params[0] = array;
  CHECK(!sol_driver_write(d, at + sizeof(float) * 10, &fresh, sizeof fresh, &err));
  CHECK(!sol_driver_enqueue(d, &l, NULL, &err));
  CHECK(!sol_driver_read(d, &got, y, sizeof got, &err));
  CHECK_NEAR(got, 100, 0);
  CHECK(sol_driver_texture(d, &(SolDriverImage){at, 8, 5, false}, &rows, &err) == SOL_ERR_ARGUMENT);
  CHECK(sol_driver_texture(d, &(SolDriverImage){at, 0, 5, false}, &rows, &err) == SOL_ERR_ARGUMENT);
  CHECK(!sol_driver_free(d, at, &err));
  CHECK_MSG(sol_driver_enqueue(d, &l, NULL, &err) == SOL_ERR_RANGE, "a texture outlived its memory");
  CHECK(!sol_driver_persist(d, 1 << 20, &err));
  sol_driver_close(d);
}

TEST(emulator_copies) {
  SolDriver *d = open_driver(SOL_BACKEND_EMU);
  uint64_t a = image_of(d, 0), b = image_of(d, 50);
  float got[32];
  CHECK(!sol_driver_enqueue_copy(d, b, a, 64, NULL, NULL));
  CHECK(!sol_driver_enqueue_copy(d, b, a, 0, NULL, NULL));
  CHECK(!sol_driver_read(d, got, b, sizeof got, NULL));
  CHECK_NEAR(got[15], 15, 0);
  CHECK_NEAR(got[16], 66, 0);
  CHECK(sol_driver_enqueue_copy(d, b, a, 129, NULL, NULL) != SOL_OK);
  sol_driver_close(d);
}

TEST(cuda_textures) {
  if (!CHECK(fake != NULL)) return;
  SolDriver *d = open_driver(SOL_BACKEND_CUDA);
  uint64_t at = image_of(d, 0), other = image_of(d, 0), rows = 0, array = 0, more = 0;
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, false}, &rows, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &array, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){other, 8, 4, true}, &more, NULL));
  CHECK_INT(fake->textures, 3);
  CHECK_INT(fake->arrays, 2);
  const float *texels = (const float *)(uintptr_t)array;
  CHECK_NEAR(texels[10], 10, 0);
  // Only what was written is copied again.
  int copies = fake->calls[FAKE_copy_2d];
  float fresh = 100;
  CHECK(!sol_driver_write(d, at + sizeof(float) * 10, &fresh, sizeof fresh, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &array, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &array, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){other, 8, 4, true}, &more, NULL));
  CHECK_INT(fake->calls[FAKE_copy_2d], copies + 1);
  CHECK_NEAR(texels[10], 100, 0);
  CHECK(!sol_driver_enqueue_copy(d, at, other, 128, NULL, NULL));
  CHECK(!sol_driver_texture(d, &(SolDriverImage){at, 8, 4, true}, &array, NULL));
  CHECK_NEAR(texels[10], 10, 0);
  CHECK(sol_driver_texture(d, &(SolDriverImage){at, 7, 4, false}, &rows, NULL) == SOL_ERR_UNSUPPORTED);
  CHECK(!sol_driver_free(d, at, NULL));
  CHECK_INT(fake->textures, 1);
  CHECK_INT(fake->arrays, 1);
  sol_driver_close(d);
  CHECK_INT(fake->textures, 0);
  CHECK_INT(fake->arrays, 0);
}

TEST(cuda_windows_and_copies) {
  if (!CHECK(fake != NULL)) return;
  SolDriver *d = open_driver(SOL_BACKEND_CUDA);
  uint64_t at = image_of(d, 0), to = image_of(d, 0);
  static const uint64_t params[2] = {1, 2};
  SolStream stream = NULL;
  CHECK(!sol_driver_persist(d, 1 << 20, NULL));
  CHECK_INT(fake->persisting, 1 << 20);
  CHECK(!sol_driver_persist(d, 1 << 30, NULL));
  CHECK_INT(fake->persisting, 30 << 20);
  CHECK_INT(fake->calls[FAKE_reset_persisting], 0);
  SolDriverLaunch l = launch_of(d, params);
  l.window = at, l.window_bytes = 128, l.early = true;
  CHECK(!sol_driver_enqueue(d, &l, NULL, NULL));
  const FakeLaunch *last = &fake->launch[(fake->launches - 1) % FAKE_LAUNCHES];
  CHECK(last->window == at && last->window_bytes == 128 && last->early);
  l.window_bytes = 0;
  CHECK(!sol_driver_enqueue(d, &l, NULL, NULL));
  CHECK(!fake->launch[(fake->launches - 1) % FAKE_LAUNCHES].window_bytes);
  CHECK(!sol_driver_persist(d, 0, NULL));
  CHECK_INT(fake->persisting, 0);
  CHECK_INT(fake->calls[FAKE_reset_persisting], 1);
  CHECK(!sol_driver_stream_open(d, &stream, NULL));
  CHECK(!sol_driver_enqueue_copy(d, to, at, 128, stream, NULL));
  CHECK(fake->copy_stream == stream);
  SolDriverInfo info;
  CHECK(!sol_driver_info(d, &info, NULL));
  CHECK_INT(info.smem_per_sm, 228 << 10);
  CHECK_INT(info.smem_per_block, 227 << 10);
  sol_driver_stream_close(d, stream);
  sol_driver_close(d);
}

// The emulator gets the machine's constants, each applied once: of L2 the part that holds distinct data, clocks by which
// warps are compared, the compiler's limits.
TEST(the_emulator_gets_the_machines_constants) {
  for (int i = 0; i < sol_device_count(); i++) {
    const SolDevice *d = sol_device_at(i);
    MachineModel m = machine_model(d);
    SolEmuMachine e = sol_driver_machine(d);
    CHECK_NEAR((double)e.l2.bytes, d->l2_size.value, 0);
    CHECK_NEAR(e.l2.usable_percent, m.l2_usable * 100, 0.5);
    CHECK_NEAR(e.l2.dirty_percent, m.l2_dirty * 100, 0.5);
    CHECK_NEAR(e.l2.partial_percent, m.l2_partial * 100, 0.5);
    CHECK_NEAR(e.clocks.fences, m.fence_clocks, 0.5);
    CHECK_NEAR(e.clocks.store_fences, m.store_fence_clocks, 0.5);
    CHECK_NEAR(e.near_in_flight, m.near_in_flight, 0);
    CHECK_NEAR(e.guard_loads, m.guard_loads, 0);
    CHECK_NEAR(e.atomic_bytes, m.atomic_bytes, 0);
    CHECK_NEAR(e.l2_slices, m.l2_slices, 0);
    CHECK_NEAR(e.cluster_blocks, m.cluster_blocks, 0);
  }
}

int main(int argc, char **argv) {
  fake = fake_open(argv[0]);
  return check_main(argc, argv);
}
