// The emulator as a backend.
#include "base/error.h"
#include "driver/driver.h"
#include "emu/texture.h"
#include "machine/work.h"

// A figure that nobody has published leaves the emulator's own default.
static double known_or_zero(SolFigure figure) {
  return sol_known(figure) ? figure.value : 0;
}

static uint32_t whole(double value) {
  return (uint32_t)(value + 0.5);
}

static uint32_t percent(double share) {
  return whole(share * 100);
}

static SolEmuClocks clocks_of(const MachineModel *m) {
  const SolDevice *d = m->device;
  return (SolEmuClocks){.issues = whole(m->issue_clocks),
                        .l1_waits = whole(known_or_zero(d->l1_latency)),
                        .far_waits = whole(machine_far_clocks(m)),
                        .shared_waits = whole(known_or_zero(d->smem_latency)),
                        .other_waits = whole(m->other_shared_clocks),
                        .barriers = whole(machine_barrier(m, MACHINE_USUAL_WARPS)),
                        .cluster_barriers = whole(m->cluster_barrier_clocks),
                        .fences = whole(m->fence_clocks),
                        .store_fences = whole(m->store_fence_clocks),
                        .sleeps = 1};
}

SolEmuMachine sol_driver_machine(const SolDevice *d) {
  MachineModel m = machine_model(d);
  return (SolEmuMachine){
      .sms = (int)known_or_zero(d->sms),
      .cc = d->cc_major * 10 + d->cc_minor,
      .max_threads_per_sm = (int)(known_or_zero(d->max_warps_per_sm) * known_or_zero(d->warp_size)),
      .max_blocks_per_sm = (int)known_or_zero(d->max_blocks_per_sm),
      .cluster_blocks = (int)m.cluster_blocks,
      .smem_per_sm = (uint64_t)known_or_zero(d->smem_per_sm),
      .smem_per_block = (uint64_t)known_or_zero(d->smem_per_block),
      .l1_bytes = (uint64_t)known_or_zero(d->l1_size),
      .l1_overhead = (uint64_t)m.l1_overhead,
      .l2 = {.bytes = (uint64_t)known_or_zero(d->l2_size),
             .usable_percent = percent(m.l2_usable),
             .dirty_percent = percent(m.l2_dirty),
             .partial_percent = percent(m.l2_partial),
             .dram_bytes = whole(m.dram_bytes),
             .set_percent = machine_l2_sets},
      .l2_persisting = (uint64_t)(known_or_zero(d->l2_size) * m.l2_persisting),
      .ncu_dirty = (uint64_t)(known_or_zero(d->l2_size) * m.l2_ncu_dirty),
      .clock = known_or_zero(d->boost_clock),
      .mem_bytes = (uint64_t)known_or_zero(d->mem_size),
      .clocks = clocks_of(&m),
      .swap_clocks = whole(m.shared_swap_clocks),
      .contended_clocks = whole(m.shared_contended_clocks),
      .hand_waits = m.hand_waits,
      .hand_near_clocks = whole(m.hand_near_clocks),
      .hand_near_warp_clocks = whole(m.hand_near_warp_clocks),
      .meet_waits = m.meet_waits,
      .meet_block_waits = m.meet_block_waits,
      .constant_bytes = whole(m.constant_bytes),
      .near_in_flight = whole(m.near_in_flight),
      .guard_loads = whole(m.guard_loads),
      .guard_plain = whole(m.guard_plain),
      .unroll_times = whole(m.unroll_times),
      .unroll_size = whole(m.unroll_size),
      .atomic_bytes = whole(m.atomic_bytes),
      .l2_slices = whole(m.l2_slices),
  };
}

static SolStatus open_emu(const SolDriverOptions *options, void **state, SolError *err) {
  const SolDevice *device = options->device;
  SolStatus status = device ? SOL_OK : sol_device_find("h100-sxm", &device, err);
  if (status) return status;
  SolEmuMachine machine = sol_driver_machine(device);
  machine.workers = options->workers;
  machine.track_init = options->track_init;
  SolEmu *emu;
  status = sol_emu_create(&machine, &emu, err);
  if (!status) *state = emu;
  return status;
}

static void close_emu(void *state) {
  sol_emu_destroy(state);
}

static SolStatus alloc_emu(void *state, uint64_t bytes, const char *label, uint64_t *address, SolError *err) {
  return sol_emu_alloc(state, bytes, label, address, err);
}

static SolStatus free_emu(void *state, uint64_t address, SolError *err) {
  return sol_emu_free(state, address, err);
}

static SolStatus write_emu(void *state, uint64_t to, const void *from, uint64_t bytes, SolError *err) {
  return sol_emu_write(state, to, from, bytes, err);
}

static SolStatus read_emu(void *state, void *to, uint64_t from, uint64_t bytes, SolError *err) {
  return sol_emu_read(state, to, from, bytes, err);
}

static SolStatus load_emu(void *state, const SolPtxSource *sources, int count, void **module, SolError *err) {
  SolEmuModule *m;
  SolStatus status = sol_emu_load(state, sources, count, &m, err);
  if (!status) *module = m;
  return status;
}

static const SolPtxModule *ptx_emu(void *module) {
  return sol_emu_ptx(module);
}

static void unload_emu(void *state, void *module) {
  sol_emu_unload(state, module);
}

static SolStatus kernel_emu(void *state, void *module, const char *name, void **kernel, SolError *err) {
  (void)state;
  *kernel = sol_emu_kernel(module, name);
  return *kernel ? SOL_OK : sol_fail(err, SOL_ERR_NOT_FOUND, "unknown kernel '%.80s'", name);
}

static SolStatus launch_emu(void *state, void *kernel, const SolDriverLaunch *launch, SolEmuResult *result,
                            double *seconds, SolError *err) {
  (void)seconds; // the emulator's own time says nothing about a GPU's
  SolEmuLaunch l = launch->emu ? *launch->emu : (SolEmuLaunch){0};
  l.kernel = kernel;
  for (int i = 0; i < 3; i++) {
    l.grid[i] = launch->grid[i];
    l.block[i] = launch->block[i];
    l.cluster[i] = launch->cluster[i];
  }
  l.dynamic_shared = launch->dynamic_shared;
  l.params = launch->params;
  l.param_bytes = launch->param_bytes;
  l.cooperative = launch->cooperative;
  if (launch->window_bytes)
    l.l2_window = (SolL2Window){.address = launch->window,
                                .bytes = launch->window_bytes,
                                .hit_permille = 1000,
                                .hit = SOL_L2_PERSISTING,
                                .miss = SOL_L2_STREAMING};
  SolEmuResult scratch = {0};
  SolStatus status = sol_emu_launch(state, &l, result ? result : &scratch, err);
  sol_emu_result_free(&scratch);
  return status;
}

static SolStatus enqueue_emu(void *state, void *kernel, const SolDriverLaunch *launch, SolStream stream,
                             SolError *err) {
  (void)stream;
  SolEmuLaunch uncounted = launch->emu ? *launch->emu : (SolEmuLaunch){0};
  uncounted.no_counts = true;
  SolDriverLaunch l = *launch;
  l.emu = &uncounted;
  SolEmuResult result = {0};
  SolStatus status = launch_emu(state, kernel, &l, &result, NULL, err);
  if (!status && (result.end != SOL_EMU_DONE ||
                  result.finding_count)) // no result reaches the caller: what was found is the error
    status = sol_fail(err, SOL_ERR_RANGE, "%s",
                      result.finding_count ? result.findings[0].message : "the launch did not end");
  sol_emu_result_free(&result);
  return status;
}

static SolStatus allow_shared_emu(void *state, void *kernel, uint64_t bytes, SolError *err) {
  (void)state, (void)kernel, (void)bytes, (void)err; // the launch itself checks
  return SOL_OK;
}

static SolStatus enqueue_copy_emu(void *state, uint64_t to, uint64_t from, uint64_t bytes, SolStream stream,
                                  SolError *err) {
  (void)stream;
  return sol_emu_copy(state, to, from, bytes, err);
}

static SolStatus persist_emu(void *state, uint64_t bytes, SolError *err) {
  (void)err;
  sol_emu_l2_set_aside(state, bytes);
  if (!bytes) sol_emu_l2_reset(state);
  return SOL_OK;
}

static SolStatus texture_emu(void *state, const SolDriverImage *image, SolDriverTexture *out, SolError *err) {
  SolEmuRange range = {0};
  uint64_t bytes = (uint64_t)image->width * image->height * sizeof(float);
  *out = (SolDriverTexture){0};
  if (!sol_emu_range(state, image->address, &range) || range.address + range.bytes - image->address < bytes)
    return sol_fail(err, SOL_ERR_ARGUMENT, "[0x%llx, +%llu) is not inside one live allocation",
                    (unsigned long long)image->address, (unsigned long long)bytes);
  SolEmuTexture t = {.image = {.address = image->address,
                               .width = image->width,
                               .height = image->height,
                               .kind = SOL_EMU_FLOAT,
                               .bits = 32,
                               .channels = 1}};
  out->base = range.address;
  return sol_emu_texture_create(state, &t, &out->handle, err);
}

static void texture_free_emu(void *state, SolDriverTexture *texture) {
  sol_emu_object_destroy(state, texture->handle, NULL);
}

static SolStatus tensor_map_emu(void *state, const SolTensorMap *map, uint8_t *out, SolError *err) {
  (void)state, (void)err;
  sol_tensor_map_pack(map, out);
  return SOL_OK;
}

static SolStatus sync_emu(void *state, SolError *err) {
  (void)state, (void)err; // every launch has ended already
  return SOL_OK;
}

static SolStatus check_pointer_emu(void *state, uint64_t address, uint64_t bytes, SolError *err) {
  if (sol_emu_host(state, address, bytes)) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "[0x%llx, +%llu) is not inside one live allocation",
                  (unsigned long long)address, (unsigned long long)bytes);
}

static SolStatus info_emu(void *state, SolDriverInfo *out, SolError *err) {
  (void)err;
  const SolEmuMachine *m = sol_emu_machine(state);
  *out = (SolDriverInfo){
      .cc = m->cc, .sms = m->sms, .smem_per_sm = m->smem_per_sm, .smem_per_block = m->smem_per_block};
  return SOL_OK;
}

const SolDriverTable sol_driver_emu_table = {
    .name = "emu",
    .open = open_emu,
    .close = close_emu,
    .alloc = alloc_emu,
    .free = free_emu,
    .write = write_emu,
    .read = read_emu,
    .load = load_emu,
    .unload = unload_emu,
    .ptx = ptx_emu,
    .kernel = kernel_emu,
    .launch = launch_emu,
    .enqueue = enqueue_emu,
    .allow_shared = allow_shared_emu,
    .enqueue_copy = enqueue_copy_emu,
    .persist = persist_emu,
    .texture = texture_emu,
    .texture_free = texture_free_emu,
    .tensor_map = tensor_map_emu,
    .sync = sync_emu,
    .check_pointer = check_pointer_emu,
    .info = info_emu,
};
