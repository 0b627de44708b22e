// The layout of a launch: sizes, clusters, which blocks run, how many are resident on an SM.
#include "base/error.h"
#include "emu/core/state.h"

static SolStatus check_size(EmuRun *run, SolError *err) {
  const SolEmuLaunch *launch = run->launch;
  const PtxFunction *fn = launch->kernel->fn;
  const SolEmuMachine *m = &run->emu->machine;
  uint64_t threads = 1;
  for (int k = 0; k < 3; k++) {
    if (!launch->grid[k] || !launch->block[k])
      return sol_fail(err, SOL_ERR_ARGUMENT, "a grid or block of no size");
    if (launch->block[k] > 1024 || (k && launch->grid[k] > 65535) || launch->grid[k] > INT32_MAX)
      return sol_fail(err, SOL_ERR_ARGUMENT, "grid (%u,%u,%u) of blocks (%u,%u,%u) is too large",
                      launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                      launch->block[2]);
    threads *= launch->block[k];
    run->grid[k] = launch->grid[k];
    run->block[k] = launch->block[k];
    if (fn->reqntid[0] && launch->block[k] != (fn->reqntid[k] ? fn->reqntid[k] : 1))
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s requires blocks of (%u,%u,%u) threads", fn->name,
                      fn->reqntid[0], fn->reqntid[1] ? fn->reqntid[1] : 1,
                      fn->reqntid[2] ? fn->reqntid[2] : 1);
  }
  uint64_t most = fn->maxntid[0] ? (uint64_t)fn->maxntid[0] * (fn->maxntid[1] ? fn->maxntid[1] : 1) *
                                       (fn->maxntid[2] ? fn->maxntid[2] : 1)
                                 : 1024;
  if (threads > 1024 || threads > most)
    return sol_fail(err, SOL_ERR_ARGUMENT, "blocks of %llu threads; %s takes at most %llu",
                    (unsigned long long)threads, fn->name, (unsigned long long)(most < 1024 ? most : 1024));
  run->threads = (uint32_t)threads;
  run->warps = (run->threads + EMU_LANES - 1) / EMU_LANES;
  uint64_t align = fn->dynamic_align ? fn->dynamic_align : 16;
  run->dynamic_offset = (fn->shared_bytes + align - 1) / align * align;
  if (launch->dynamic_shared > m->smem_per_block ||
      run->dynamic_offset + launch->dynamic_shared > m->smem_per_block)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%llu bytes of shared memory a block; the machine has %llu",
                    (unsigned long long)(run->dynamic_offset + launch->dynamic_shared),
                    (unsigned long long)m->smem_per_block);
  run->shared_bytes =
      launch->dynamic_shared ? run->dynamic_offset + launch->dynamic_shared : fn->shared_bytes;
  if (run->program->local_bytes > m->stack_bytes)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s takes %llu bytes of local memory a thread; there are %llu",
                    fn->name, (unsigned long long)run->program->local_bytes,
                    (unsigned long long)m->stack_bytes);
  if (launch->param_bytes < fn->param_size && fn->param_size)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s takes %llu bytes of parameters, %llu were given", fn->name,
                    (unsigned long long)fn->param_size, (unsigned long long)launch->param_bytes);
  return SOL_OK;
}

static SolStatus check_cluster(EmuRun *run, SolError *err) {
  const SolEmuLaunch *launch = run->launch;
  const PtxFunction *fn = launch->kernel->fn;
  const uint32_t *from = launch->cluster[0] ? launch->cluster : fn->reqnctapercluster;
  run->explicit_cluster = from[0] != 0;
  run->cluster_size = 1;
  for (int k = 0; k < 3; k++) {
    run->cluster[k] = from[k] ? from[k] : 1;
    if (fn->reqnctapercluster[0] && launch->cluster[0] &&
        run->cluster[k] != (fn->reqnctapercluster[k] ? fn->reqnctapercluster[k] : 1))
      return sol_fail(err, SOL_ERR_ARGUMENT, "%s requires another size of clusters", fn->name);
    if (run->cluster[k] > EMU_MAX_RANKS || run->grid[k] % run->cluster[k])
      return sol_fail(err, SOL_ERR_ARGUMENT, "the grid is no multiple of clusters of (%u,%u,%u)", from[0],
                      from[1], from[2]);
    run->cluster_size *= run->cluster[k];
  }
  if (run->cluster_size > EMU_MAX_RANKS)
    return sol_fail(err, SOL_ERR_ARGUMENT, "clusters of %u blocks; at most 16", run->cluster_size);
  return SOL_OK;
}

// ---- units, waves and samples of them ----

static uint64_t waves_of(const EmuRun *run) {
  uint64_t wave = (uint64_t)run->units_per_sm * run->sm_count;
  return (run->units_in_grid + wave - 1) / wave;
}

// Of the waves taken, each is from the middle of its share.
uint64_t emu_unit_at(const EmuRun *run, uint64_t n) {
  if (!run->sample_waves) return run->first_unit + n;
  uint64_t wave = (uint64_t)run->units_per_sm * run->sm_count, k = n / wave, total = waves_of(run);
  return run->first_unit + ((2 * k + 1) * total / (2 * (uint64_t)run->sample_waves)) * wave + n % wave;
}

// More waves than one, so never a cooperative launch. All are whole but the grid's last, and the last one
// taken is the only one that may be that.
static void sample(EmuRun *run) {
  uint64_t wave = (uint64_t)run->units_per_sm * run->sm_count, last = run->units_in_grid % wave;
  run->sample_waves = run->launch->sample_waves;
  run->unit_count = run->sample_waves * wave;
  bool has_last = emu_unit_at(run, run->unit_count - wave) - run->first_unit + wave > run->units_in_grid;
  if (has_last) run->unit_count -= wave - last;
}

static SolStatus check_units(EmuRun *run, SolError *err) {
  const SolEmuLaunch *launch = run->launch;
  const SolEmuMachine *m = &run->emu->machine;
  uint64_t blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2], last = launch->last_block;
  if (!launch->first_block && !last) last = blocks;
  if (last > blocks || launch->first_block > last || launch->first_block % run->cluster_size ||
      last % run->cluster_size)
    return sol_fail(err, SOL_ERR_ARGUMENT, "blocks %llu to %llu of %llu",
                    (unsigned long long)launch->first_block, (unsigned long long)last,
                    (unsigned long long)blocks);
  run->first_unit = launch->first_block / run->cluster_size;
  run->unit_count = last / run->cluster_size - run->first_unit;
  uint64_t fit = (uint64_t)m->max_blocks_per_sm,
           by_threads = (uint64_t)m->max_threads_per_sm / (run->warps * EMU_LANES);
  if (by_threads < fit) fit = by_threads;
  if (run->shared_bytes && m->smem_per_sm / (run->shared_bytes + 1024) < fit)
    fit = m->smem_per_sm / (run->shared_bytes + 1024);
  if (m->blocks_per_sm && (uint64_t)m->blocks_per_sm < fit) fit = (uint64_t)m->blocks_per_sm;
  uint64_t in_clusters = (uint64_t)m->cluster_blocks;
  if (run->explicit_cluster && in_clusters && fit > in_clusters) fit = in_clusters;
  fit /= run->cluster_size;
  run->units_per_sm = fit ? (uint32_t)fit : 1;
  run->sm_count = (uint32_t)m->sms;
  if (launch->cooperative && run->unit_count > (uint64_t)run->units_per_sm * run->sm_count)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a cooperative launch of %llu blocks; at most %llu fit at once",
                    (unsigned long long)(run->unit_count * run->cluster_size),
                    (unsigned long long)run->units_per_sm * run->sm_count * run->cluster_size);
  if (run->unit_count < run->sm_count) run->sm_count = run->unit_count ? (uint32_t)run->unit_count : 1;
  run->units_in_grid = run->unit_count;
  if (launch->sample_waves && launch->sample_waves < waves_of(run)) sample(run);
  return SOL_OK;
}

SolStatus emu_lay_out(EmuRun *run, SolError *err) {
  SolStatus status = check_size(run, err);
  if (!status) status = check_cluster(run, err);
  return status ? status : check_units(run, err);
}
