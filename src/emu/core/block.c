// Blocks: their memory, warps and constants. All blocks of a launch have the same size, so the memory of one
// that has ended is reused.
#include "base/heap.h"
#include "emu/core/async.h"
#include "emu/core/hooks.h"

static uint8_t *carve(uint8_t **at, size_t bytes) {
  uint8_t *p = *at;
  *at += (bytes + 63) / 64 * 64;
  return p;
}

static EmuBlock *make_block(const EmuRun *run) {
  size_t n = run->warps;
  size_t bytes = sizeof(EmuBlock) + n * (sizeof(EmuWarp) + EMU_WARP_ROWS * EMU_ROW_BYTES + 16) +
                 EMU_BLOCK_ROWS * EMU_ROW_BYTES + (size_t)run->shared_bytes + 1024;
  size_t steps = n * emu_step_sites(run) * sizeof(uint64_t), paths = emu_path_count(run) * sizeof(EmuPath);
  bytes += steps + paths;
  uint8_t *memory = sol_heap_alloc(bytes);
  if (!memory) return NULL;
  memset(memory, 0, bytes);
  uint8_t *at = memory + (64 - (uintptr_t)memory % 64) % 64;
  EmuBlock *b = (EmuBlock *)(void *)carve(&at, sizeof *b);
  b->memory = memory;
  b->warps = (EmuWarp *)(void *)carve(&at, n * sizeof *b->warps);
  b->consts = carve(&at, EMU_BLOCK_ROWS * EMU_ROW_BYTES);
  b->warp_consts = carve(&at, n * EMU_WARP_ROWS * EMU_ROW_BYTES);
  b->local = (uint8_t **)(void *)carve(&at, n * sizeof *b->local);
  b->local_cap = (uint64_t *)(void *)carve(&at, n * sizeof *b->local_cap);
  b->shared = carve(&at, (size_t)run->shared_bytes);
  if (steps) b->steps = (uint64_t *)(void *)carve(&at, steps);
  if (paths) b->paths = (EmuPath *)(void *)carve(&at, paths);
  b->clocks = &run->emu->machine.clocks;
  b->warp_count = run->warps;
  b->shared_bytes = run->shared_bytes;
  for (uint32_t t = 0; t < n * EMU_LANES; t++) {
    uint32_t *row = (uint32_t *)(void *)(b->warp_consts + t / EMU_LANES * EMU_WARP_ROWS * EMU_ROW_BYTES);
    uint32_t l = t % EMU_LANES;
    row[EMU_ROW_TID_X * EMU_LANES + l] = t % run->block[0];
    row[EMU_ROW_TID_Y * EMU_LANES + l] = t / run->block[0] % run->block[1];
    row[EMU_ROW_TID_Z * EMU_LANES + l] = t / run->block[0] / run->block[1];
    row[EMU_ROW_WARPID * EMU_LANES + l] = t / EMU_LANES;
  }
  return b;
}

static void fill_row(uint8_t *bank, int number, uint32_t value) {
  uint32_t *row = (uint32_t *)(void *)(bank + number * EMU_ROW_BYTES);
  for (int l = 0; l < EMU_LANES; l++) row[l] = value;
}

static void place_block(const EmuRun *run, EmuBlock *b, const uint32_t *cluster, uint32_t rank,
                        uint32_t smid) {
  const uint32_t *size = run->cluster;
  uint32_t in[3] = {rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
  for (int k = 0; k < 3; k++) {
    b->ctaid[k] = cluster[k] * size[k] + in[k];
    fill_row(b->consts, EMU_ROW_CTAID_X + k, b->ctaid[k]);
    fill_row(b->consts, EMU_ROW_CLUSTERID_X + k, cluster[k]);
    fill_row(b->consts, EMU_ROW_RANK_X + k, in[k]);
  }
  b->rank = rank;
  b->id = ((uint64_t)b->ctaid[2] * run->grid[1] + b->ctaid[1]) * run->grid[0] + b->ctaid[0];
  fill_row(b->consts, EMU_ROW_RANK, rank);
  fill_row(b->consts, EMU_ROW_SMID, smid);
}

static bool start_warp(EmuCtx *x, EmuBlock *b, uint32_t index) {
  const EmuRun *run = x->launch;
  EmuWarp *w = &b->warps[index];
  uint32_t first = index * EMU_LANES, left = run->threads - first;
  uint32_t lanes = left >= EMU_LANES ? EMU_ALL : (1u << left) - 1;
  *w = (EmuWarp){.block = b, .index = index, .exists = lanes, .live = lanes};
  w->consts = b->warp_consts + (size_t)index * EMU_WARP_ROWS * EMU_ROW_BYTES;
  EmuFiber *f = emu_new_fiber(x, w);
  EmuFrame *frame = f ? emu_new_frame(x, 0, NULL) : NULL;
  if (!frame) return false;
  EmuEntry entry = {
      .pc = run->program->functions[0].first, .reconverge = UINT32_MAX, .mask = lanes, .base = true};
  entry.frame = frame;
  f->lanes = lanes;
  if (!emu_push(f, entry)) return false;
  if (b->local[index]) memset(b->local[index], 0, (size_t)b->local_cap[index] * EMU_LANES);
  return run->program->local_bytes <= b->local_cap[index] ||
         emu_grow_local(x, b, index, run->program->local_bytes);
}

bool emu_grow_local(EmuCtx *x, EmuBlock *b, uint32_t warp, uint64_t bytes) {
  uint64_t most = x->launch->emu->machine.stack_bytes, old = b->local_cap[warp];
  if (bytes > most) return false;
  uint64_t cap = old * 2 > bytes ? old * 2 : bytes;
  cap = (cap + 15) / 16 * 16;
  if (cap > most) cap = (bytes + 15) / 16 * 16;
  uint8_t *grown = sol_heap_alloc((size_t)cap * EMU_LANES);
  if (!grown) return false;
  memset(grown, 0, (size_t)cap * EMU_LANES);
  for (size_t l = 0; b->local[warp] && l < EMU_LANES; l++)
    memcpy(grown + l * cap, b->local[warp] + l * old, (size_t)old);
  sol_heap_free(b->local[warp]);
  b->local[warp] = grown;
  b->local_cap[warp] = cap;
  return true;
}

static EmuBlock *take_block(EmuCtx *x) {
  EmuWorker *w = emu_worker(x);
  EmuBlock *b = w->free_blocks;
  if (!b) return make_block(x->launch);
  w->free_blocks = b->next;
  memset(b->shared, 0, (size_t)b->shared_bytes);
  for (; b->arrived_at; b->arrived_at &= b->arrived_at - 1)
    b->barriers[emu_first(b->arrived_at)] = (EmuBarrier){0};
  sol_heap_free(b->tmem);
  b->tmem = NULL;
  if (b->steps) memset(b->steps, 0, b->warp_count * emu_step_sites(x->launch) * sizeof *b->steps);
  if (b->paths) memset(b->paths, 0, emu_path_count(x->launch) * sizeof *b->paths);
  return b;
}

static void free_block(EmuBlock *b) {
  for (uint32_t k = 0; k < b->warp_count; k++) sol_heap_free(b->local[k]);
  emu_shadow_free(b);
  sol_heap_free(b->tmem);
  sol_heap_free(b->memory);
}

static void return_block(EmuCtx *x, EmuBlock *b) {
  EmuWorker *w = emu_worker(x);
  for (uint32_t k = 0; k < b->warp_count; k++) {
    for (EmuFiber *f = b->warps[k].fibers; f; f = f->next) f->state = EMU_ENDED;
    emu_sweep(x, &b->warps[k]);
  }
  b->next = w->free_blocks;
  w->free_blocks = b;
}

EmuUnit *emu_start_unit(EmuCtx *x, EmuSm *sm, uint64_t id, uint32_t slot) {
  EmuRun *run = x->launch;
  EmuWorker *w = emu_worker(x);
  EmuUnit *u = w->free_units;
  if (u)
    w->free_units = u->next;
  else {
    u = sol_heap_alloc(sizeof *u + run->cluster_size * sizeof(EmuBlock *));
    if (!u) return NULL;
  }
  *u = (EmuUnit){.blocks = (EmuBlock **)(void *)(u + 1), .id = id};
  uint64_t across[3] = {run->grid[0] / run->cluster[0], run->grid[1] / run->cluster[1], 1};
  uint32_t cluster[3] = {(uint32_t)(id % across[0]), (uint32_t)(id / across[0] % across[1]),
                         (uint32_t)(id / across[0] / across[1])};
  bool ok = true;
  for (uint32_t rank = 0; ok && rank < run->cluster_size; rank++) {
    EmuBlock *b = take_block(x);
    if (!b)
      ok = false;
    else {
      u->blocks[u->count++] = b;
      b->unit = u;
      b->turn = 0;
      b->warps_live = b->warp_count;
      b->slot = slot * run->cluster_size + rank;
      for (uint32_t k = 0; k < b->warp_count; k++) b->warps[k].fibers = NULL;
      place_block(run, b, cluster, rank, sm->index);
      emu_shadow_reset(b);
      for (uint32_t k = 0; ok && k < b->warp_count; k++) ok = start_warp(x, b, k);
    }
  }
  if (ok) return u;
  emu_end_unit(x, u);
  return NULL;
}

void emu_end_unit(EmuCtx *x, EmuUnit *u) {
  EmuWorker *w = emu_worker(x);
  emu_async_drop(x, u);
  for (uint32_t k = 0; k < u->count; k++) return_block(x, u->blocks[k]);
  u->next = w->free_units;
  w->free_units = u;
}

void emu_free_worker(EmuCtx *x) {
  EmuWorker *w = emu_worker(x);
  if (!w) return;
  for (uint32_t k = 0; w->free_frames && k < x->launch->program->function_count; k++)
    for (EmuFrame *f = w->free_frames[k], *next; f; f = next) {
      next = f->caller;
      sol_heap_free(f);
    }
  for (EmuFiber *f = w->free_fibers, *next; f; f = next) {
    next = f->next;
    sol_heap_free(f->entries);
    sol_heap_free(f);
  }
  for (EmuUnit *u = w->free_units, *next; u; u = next) {
    next = u->next;
    sol_heap_free(u);
  }
  for (EmuBlock *b = w->free_blocks, *next; b; b = next) {
    next = b->next;
    free_block(b);
  }
  sol_heap_free(w->shape_memory);
  sol_heap_free(w->memory);
}

// ---- constants of the launch ----

static uint64_t sreg_value(const EmuRun *run, PtxSreg sreg, uint32_t number, uint32_t lane) {
  const uint32_t *grid = run->grid, *block = run->block, *cluster = run->cluster;
  switch (sreg) {
  case PTX_SREG_NTID_X: return block[0];
  case PTX_SREG_NTID_Y: return block[1];
  case PTX_SREG_NTID_Z: return block[2];
  case PTX_SREG_NCTAID_X: return grid[0];
  case PTX_SREG_NCTAID_Y: return grid[1];
  case PTX_SREG_NCTAID_Z: return grid[2];
  case PTX_SREG_NCLUSTERID_X: return grid[0] / cluster[0];
  case PTX_SREG_NCLUSTERID_Y: return grid[1] / cluster[1];
  case PTX_SREG_NCLUSTERID_Z: return grid[2] / cluster[2];
  case PTX_SREG_CLUSTER_NCTAID_X: return cluster[0];
  case PTX_SREG_CLUSTER_NCTAID_Y: return cluster[1];
  case PTX_SREG_CLUSTER_NCTAID_Z: return cluster[2];
  case PTX_SREG_CLUSTER_NCTARANK: return run->cluster_size;
  case PTX_SREG_IS_EXPLICIT_CLUSTER: return run->explicit_cluster ? EMU_ALL : 0;
  case PTX_SREG_LANEID: return lane;
  case PTX_SREG_LANEMASK_EQ: return 1u << lane;
  case PTX_SREG_LANEMASK_LT: return (1u << lane) - 1;
  case PTX_SREG_LANEMASK_LE: return (2u << lane) - 1;
  case PTX_SREG_LANEMASK_GT: return ~((2u << lane) - 1);
  case PTX_SREG_LANEMASK_GE: return ~((1u << lane) - 1);
  case PTX_SREG_NWARPID: return (uint32_t)run->emu->machine.max_threads_per_sm / EMU_LANES;
  case PTX_SREG_NSMID: return (uint32_t)run->emu->machine.sms;
  case PTX_SREG_GRIDID: return run->emu->launches;
  case PTX_SREG_TOTAL_SMEM_SIZE:
  case PTX_SREG_AGGR_SMEM_SIZE: return run->shared_bytes;
  case PTX_SREG_DYNAMIC_SMEM_SIZE: return run->launch->dynamic_shared;
  case PTX_SREG_ENVREG:
    if (!run->workspace || (number != 1 && number != 2)) return 0;
    return number == 1 ? run->workspace->base >> 32 : run->workspace->base & 0xffffffff;
  default: return 0; // performance monitors and the like
  }
}

static uint64_t const_value(const EmuRun *run, const EmuConst *c, uint32_t lane) {
  uint64_t value = 0;
  switch ((EmuConstKind)c->kind) {
  case EMU_CONST_VALUE: return c->value;
  case EMU_CONST_DYNAMIC: return run->dynamic_offset + c->value;
  case EMU_CONST_SREG: return sreg_value(run, (PtxSreg)(c->value & 0xffff), (uint32_t)(c->value >> 16), lane);
  case EMU_CONST_PARAM: break;
  }
  // Bytes past the arguments given read as zero.
  const uint8_t *from = run->launch->params;
  for (uint32_t k = 0; k < c->load_bytes && k < 8; k++)
    if (c->value + k < run->launch->param_bytes) value |= (uint64_t)from[c->value + k] << k * 8;
  if (c->is_signed && c->load_bytes < 8 && value >> (c->load_bytes * 8 - 1) & 1)
    value |= UINT64_MAX << c->load_bytes * 8;
  return value;
}

void emu_fill_consts(EmuRun *run) {
  const EmuProgram *p = run->program;
  memset(run->consts, 0, 64);
  uint32_t all = EMU_ALL;
  memcpy(run->consts, &all, 4);
  for (uint32_t k = 0; k < p->const_count; k++) {
    const EmuConst *c = &p->consts[k];
    uint8_t *row = run->consts + c->offset;
    for (uint32_t l = 0; l < EMU_LANES; l++) {
      uint64_t value[2] = {const_value(run, c, l), 0};
      memcpy(row + (size_t)l * c->lane_bytes, value, c->lane_bytes);
    }
  }
}
