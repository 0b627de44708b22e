// Builds the bill from launches: sums by kernel and by geometry, then predicted times and tax.
#include "audit/inside.h"
#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "base/text.h"

enum { TITLE = 200, MOST_FAULTS = 256 };

const char *audit_keep(AuditProgram *p, const char *text) {
  if (!text) return NULL;
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(&p->arena, n);
  return copy ? memcpy(copy, text, n) : NULL;
}

bool audit_grow(void **items, uint32_t count, uint32_t *cap, size_t size) {
  if (count < *cap) return true;
  uint32_t more = *cap ? *cap * 2 : 8;
  void *room = sol_heap_realloc(*items, more * size);
  if (!room) return false;
  *items = room;
  *cap = more;
  return true;
}

SolStatus audit_start(AuditProgram *p, const SolDevice *device, SolError *err) {
  *p = (AuditProgram){.device = device, .machine = machine_model(device)};
  MachineTime time; // says what is unknown before anything runs
  SolStatus status = machine_time(&p->machine, &(MachineWork){0}, &time, err);
  if (status) return status;
  p->state = sol_arena_alloc(&p->arena, sizeof *p->state);
  return p->state ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

void audit_free(AuditProgram *p) {
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    AuditKernel *k = &p->kernels[i];
    sol_heap_free(k->shapes);
    sol_heap_free(k->touches);
    sol_heap_free(k->findings);
    sol_heap_free(k->faults);
    sol_heap_free(p->state->slots[i].insts);
  }
  audit_flows_free(p);
  audit_kept_free(p);
  if (p->state) sol_heap_free(p->state->slots);
  sol_heap_free(p->kernels);
  sol_heap_free(p->calls);
  sol_arena_free(&p->arena);
  *p = (AuditProgram){0};
}

// ---- adding a launch ----

// A title cuts long template arguments: instances that differ in those alone are numbered.
static void unique_title(const AuditProgram *p, const char *name, char title[TITLE]) {
  char other[TITLE];
  unsigned alike = 1;
  audit_title(name, title, TITLE);
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    audit_title(p->kernels[i].name, other, sizeof other);
    alike += strcmp(other, title) == 0;
  }
  size_t n = strlen(title);
  if (alike > 1) sol_format(title + n, TITLE - n, AUDIT_INSTANCE "%u)", alike);
}

static AuditKernel *kernel_of(AuditProgram *p, const AuditLaunch *l) {
  AuditState *s = p->state;
  for (uint32_t i = 0; i < p->kernel_count; i++)
    if (s->slots[i].unit == l->unit && strcmp(p->kernels[i].name, l->name) == 0) return &p->kernels[i];
  void *kernels = p->kernels, *slots = s->slots;
  bool fine = audit_grow(&kernels, p->kernel_count, &p->kernel_cap, sizeof *p->kernels);
  p->kernels = kernels;
  fine = fine && audit_grow(&slots, p->kernel_count, &s->slot_cap, sizeof *s->slots);
  s->slots = slots;
  char title[TITLE];
  unique_title(p, l->name, title);
  AuditKernel k = {.name = audit_keep(p, l->name), .title = audit_keep(p, title), .index = p->kernel_count};
  if (!fine || !k.name || !k.title) return NULL;
  s->slots[p->kernel_count] = (AuditSlots){.unit = l->unit};
  p->kernels[p->kernel_count] = k;
  return &p->kernels[p->kernel_count++];
}

static bool same3(const uint32_t a[3], const uint32_t b[3]) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static AuditShape *shape_of(AuditKernel *k, const AuditLaunch *l) {
  for (uint32_t i = 0; i < k->shape_count; i++) {
    AuditShape *s = &k->shapes[i];
    if (same3(s->grid, l->grid) && same3(s->block, l->block) && same3(s->cluster, l->cluster) &&
        s->dynamic_shared == l->dynamic_shared)
      return s;
  }
  void *room = k->shapes;
  if (!audit_grow(&room, k->shape_count, &k->shape_cap, sizeof *k->shapes)) return NULL;
  k->shapes = room;
  AuditShape *s = &k->shapes[k->shape_count++];
  *s = (AuditShape){.dynamic_shared = l->dynamic_shared};
  memcpy(s->grid, l->grid, sizeof s->grid);
  memcpy(s->block, l->block, sizeof s->block);
  memcpy(s->cluster, l->cluster, sizeof s->cluster);
  return s;
}

// Where the machine's figures do not let such a block in, it is taken to be alone on its SM: it did run.
static void hold_clusters(SolOccupancy *o, int most) {
  if (o->blocks_per_sm <= most) return;
  o->blocks_per_sm = o->blocks_by_slots = most;
  o->warps_per_sm = o->blocks_per_sm * o->warps_per_block;
  o->occupancy = (double)o->warps_per_sm / o->max_warps_per_sm;
  o->limiter = SOL_LIMIT_BLOCKS;
}

static void find_occupancy(const MachineModel *m, const AuditLaunch *l, AuditShape *s) {
  const SolDevice *d = m->device;
  SolKernelShape shape = {.threads = (int64_t)l->block[0] * l->block[1] * l->block[2],
                          .regs = l->registers,
                          .smem = (int64_t)(l->static_shared + l->dynamic_shared)};
  if (sol_known(d->max_regs_per_thread) && (double)shape.regs > d->max_regs_per_thread.value)
    shape.regs = (int64_t)d->max_regs_per_thread.value;
  if (!sol_occupancy(d, &shape, &s->occupancy, NULL)) {
    if (l->cluster[0]) hold_clusters(&s->occupancy, (int)m->cluster_blocks);
    return;
  }
  int warps = (int)((shape.threads + 31) / 32), most = (int)d->max_warps_per_sm.value;
  s->occupancy = (SolOccupancy){.blocks_per_sm = 1,
                                .warps_per_sm = warps,
                                .max_warps_per_sm = most,
                                .warps_per_block = warps,
                                .occupancy = most > 0 ? (double)warps / most : 0,
                                .limiter = SOL_LIMIT_REGISTERS};
}

// Beyond what can be counted, as much as can be.
static uint64_t scaled(uint64_t count, double scale) {
  double value = (double)count * scale + 0.5;
  return value < SOL_EXACT ? (uint64_t)value : (uint64_t)SOL_EXACT;
}

static void scale_counts(SolEmuCounts *to, const SolEmuCounts *from, double scale) {
#define SCALE_COUNT(name) to->name += scaled(from->name, scale);
  SOL_EMU_COUNTS(SCALE_COUNT)
#undef SCALE_COUNT
}

// The commonest stride of both: that of the side with more of it. Its times are then a lower bound.
static void add_pattern(SolEmuPattern *to, const SolEmuPattern *from, double scale) {
  uint64_t strides = scaled(from->stride_times, scale), steps = scaled(from->step_times, scale);
  if (to->stride == from->stride)
    to->stride_times += strides;
  else if (strides > to->stride_times)
    to->stride = from->stride, to->stride_times = strides;
  if (to->step == from->step)
    to->step_times += steps;
  else if (steps > to->step_times)
    to->step = from->step, to->step_times = steps;
  if (from->width > to->width) to->width = from->width;
  if (sol_emu_example_better(&from->example, &to->example)) to->example = from->example;
  uint64_t hottest = scaled(from->hottest, scale);
  if (hottest > to->hottest) to->hottest = hottest;
  uint64_t lanes = scaled(from->queue_lanes, scale), words = scaled(from->queue_packets, scale);
  if (lanes + words > to->queue_lanes + to->queue_packets)
    to->queue_lanes = lanes, to->queue_packets = words, to->queue_slice = from->queue_slice;
  uint64_t swaps = scaled(from->swaps, scale);
  if (swaps > to->swaps) to->swaps = swaps;
  to->swapped += scaled(from->swapped, scale);
  to->held += scaled(from->held, scale);
  if (from->allocation && to->allocation && from->allocation != to->allocation) to->several = true;
  to->several |= from->several;
  if (!to->allocation) to->allocation = from->allocation;
#define ADD_SEEN(name) to->name += scaled(from->name, scale);
  ADD_SEEN(seen)
  ADD_SEEN(strided)
  ADD_SEEN(rows)
  ADD_SEEN(uniform)
  ADD_SEEN(scattered)
  ADD_SEEN(contiguous)
  ADD_SEEN(misaligned)
  ADD_SEEN(steps)
  ADD_SEEN(same)
  ADD_SEEN(values)
  ADD_SEEN(as_fp16)
  ADD_SEEN(as_bf16)
  ADD_SEEN(zeros)
#undef ADD_SEEN
}

static bool add_insts(AuditProgram *p, AuditKernel *k, const AuditLaunch *l, double scale) {
  AuditSlots *s = &p->state->slots[k->index];
  uint32_t need = l->inst_count ? l->insts[l->inst_count - 1].place + 1 : 0;
  if (need > s->count) {
    AuditInst *room = sol_heap_realloc(s->insts, need * sizeof *room);
    if (!room) return false;
    memset(room + s->count, 0, (need - s->count) * sizeof *room);
    s->insts = room;
    s->count = need;
  }
  for (uint32_t i = 0; i < l->inst_count; i++) {
    const AuditInst *from = &l->insts[i];
    AuditInst *to = &s->insts[from->place];
    if (!to->text) {
      SolEmuCounts counts = to->counts;
      SolEmuPattern pattern = to->pattern;
      *to = *from;
      to->counts = counts;
      to->pattern = pattern;
      to->executed = (AuditExecuted){0};
      to->text = audit_keep(p, from->text ? from->text : "");
      to->file = audit_keep(p, from->file ? from->file : "");
      to->inlined = audit_keep(p, from->inlined ? from->inlined : "");
      if (!to->text || !to->file || !to->inlined) return false;
    }
    if (to->kind == SOL_EMU_KIND_OTHER) to->kind = from->kind;
    if (from->width > to->width) to->width = from->width;
    scale_counts(&to->counts, &from->counts, scale);
    scale_counts(&k->total, &from->counts, scale);
    if ((unsigned)from->kind < SOL_EMU_KIND_COUNT) scale_counts(&k->kinds[from->kind], &from->counts, scale);
    if ((unsigned)from->unit < SOL_EMU_CLASS_COUNT)
      k->classes[from->unit] += (double)from->counts.executions * scale;
    add_pattern(&to->pattern, &from->pattern, scale);
#define ADD_MACHINE(name) to->executed.name += from->executed.name * scale;
    AUDIT_MACHINE(ADD_MACHINE)
#undef ADD_MACHINE
  }
  return true;
}

// What was read and written by the blocks that ran, taken for all of them: no more than there is.
static double most(double bytes, double scale, uint64_t limit) {
  double all = bytes * scale;
  return all > (double)limit ? (double)limit : all;
}

static bool add_touches(AuditProgram *p, AuditKernel *k, const AuditLaunch *l, double scale,
                        AuditShape *shape) {
  for (uint32_t i = 0; i < l->touch_count; i++) {
    const AuditTouch *from = &l->touches[i];
    uint32_t at = 0;
    while (at < k->touch_count &&
           (k->touches[at].address != from->address || k->touches[at].bytes != from->bytes))
      at++;
    if (at == k->touch_count) {
      void *room = k->touches;
      if (!audit_grow(&room, at, &k->touch_cap, sizeof *k->touches)) return false;
      k->touches = room;
      k->touches[k->touch_count++] = (AuditTouch){.address = from->address,
                                                  .bytes = from->bytes,
                                                  .label = audit_keep(p, from->label ? from->label : ""),
                                                  .variable = from->variable,
                                                  .host = from->host};
    }
    AuditTouch *to = &k->touches[at];
    double first = most(from->read_first, scale, from->bytes),
           wrote = most(from->written, scale, from->bytes);
    uint64_t sectors = (from->bytes + 31) / 32 + 1;
    to->read += most(from->read, scale, from->bytes);
    to->written += wrote;
    to->read_first += first;
    to->read_sectors += most(from->read_sectors, scale, sectors);
    to->written_sectors += most(from->written_sectors, scale, sectors);
    to->partial_sectors += most(from->partial_sectors, scale, sectors);
    to->moved += from->moved * scale;
    to->moved_pages += from->moved_pages * scale;
    to->moved_blocks += from->moved_blocks * scale;
    to->launches++;
    shape->floor_bytes += first + wrote;
    k->floor_bytes += first + wrote;
  }
  return true;
}

// The instructions of an unrolled loop have one line.
static bool same_place(const AuditFault *a, const AuditFault *b) {
  if (a->file[0] && b->file[0]) return a->line == b->line && strcmp(a->file, b->file) == 0;
  return a->function == b->function && a->inst == b->inst;
}

static AuditFault *fault_of(AuditProgram *p, AuditKernel *k, const AuditFault *f) {
  for (uint32_t i = 0; i < k->fault_count; i++)
    if (same_place(&k->faults[i], f) && strcmp(k->faults[i].kind, f->kind) == 0) return &k->faults[i];
  void *room = k->faults;
  if (k->fault_count == MOST_FAULTS || !audit_grow(&room, k->fault_count, &k->fault_cap, sizeof *f))
    return NULL;
  k->faults = room;
  AuditFault *to = &k->faults[k->fault_count++];
  *to = *f;
  to->times = to->launches = 0;
  to->message = audit_keep(p, f->message);
  to->kind = audit_keep(p, f->kind);
  to->file = audit_keep(p, f->file);
  return to->message && to->kind && to->file ? to : NULL;
}

// The first launch that had one describes it.
bool audit_add_faults(AuditProgram *p, AuditKernel *k, const AuditFault *faults, uint32_t count,
                      uint64_t left_out) {
  k->faults_left_out += left_out;
  for (uint32_t i = 0; i < count; i++) {
    AuditFault *to = fault_of(p, k, &faults[i]);
    if (!to && k->fault_count < MOST_FAULTS) return false;
    if (!to) {
      k->faults_left_out++;
      continue;
    }
    to->times += faults[i].times;
    to->launches++;
  }
  return true;
}

static double blocks_of(const AuditLaunch *l) {
  return (double)l->grid[0] * l->grid[1] * l->grid[2];
}

static double sum_of(const uint64_t *by_age) {
  double sum = 0;
  for (uint32_t age = 0; age < SOL_AGES; age++) sum += (double)by_age[age];
  return sum;
}

// What the whole grid leaves dirty: of a sample, as much as it would write, but no more than can be.
static double left_dirty(const AuditLaunch *l, double scale) {
  return scale > 1 ? most((double)l->left_dirty, scale, l->dirty_limit) : (double)l->left_dirty;
}

static void add_l2(const AuditLaunch *l, double scale, MachineWork *w) {
  double left = left_dirty(l, scale);
  w->dram_read += (double)l->earlier_read;
  w->dram_write += sum_of(l->earlier.written) + (double)l->left_dirty * scale - left;
  if (l->steady) w->dram_write += left;
}

static void add_pages(const AuditLaunch *l, double scale, MachineWork *w) {
  for (uint32_t i = 0; i < l->touch_count; i++) {
    w->page_bytes += l->touches[i].moved * scale;
    w->pages += l->touches[i].moved_pages * scale;
    w->page_blocks += l->touches[i].moved_blocks * scale;
  }
  w->page_launches = w->page_bytes > 0 ? 1 : 0;
}

static const AuditTouch *of_host(const AuditLaunch *l, const AuditInst *in) {
  for (uint32_t i = 0; i < l->touch_count && !in->pattern.several; i++)
    if (l->touches[i].host && l->touches[i].address == in->pattern.allocation) return &l->touches[i];
  return NULL;
}

// Atomics on a line of the host's memory that wait for each other, if lines have equally many.
static double host_turns(const AuditTouch *t, double atomics) {
  return atomics / sol_larger(__builtin_ceil(t->written_sectors / 4), 1);
}

// Mapped memory of the host: L2 keeps none of it, so that what L1 does not have comes from there each time. Waits for it are among
// the others, as often as its loads are.
static void add_host(const MachineModel *m, const AuditLaunch *l, const AuditWaits *waits, double scale,
                     MachineWork *w) {
  double loads = 0, of = 0;
  for (uint32_t i = 0; i < l->inst_count; i++) {
    const AuditInst *in = &l->insts[i];
    const SolEmuCounts *c = &in->counts;
    loads += in->is_load ? (double)c->requests : 0;
    const AuditTouch *touch = of_host(l, in);
    if (!touch) continue;
    of += in->is_load ? (double)c->requests : 0;
    if (in->kind == SOL_EMU_KIND_GLOBAL_ATOMIC) {
      w->host_atomics += host_turns(touch, (double)c->atomics) * scale;
      continue;
    }
    w->host_read += (double)(c->l2_hits + c->l2_misses) * 32 * scale;
    w->host_write += (double)c->l2_writes * 32 * scale;
    w->dram_read -= sol_smaller(w->dram_read, (double)c->dram_read * scale);
    w->dram_write -= sol_smaller(w->dram_write, (double)c->dram_write * scale);
  }
  if (of > 0)
    w->load_wait_clocks += w->load_waits * of / loads * sol_larger(m->host_clocks - waits->clocks, 0);
}

// Of a warp, at first: with each that succeeds there is one less.
static double lanes_that_try(const AuditInst *in) {
  double executions = (double)in->counts.executions;
  if (executions <= 0) return 32;
  double mean = (double)in->counts.lanes / executions;
  return sol_smaller(sol_larger(2 * mean - 1, 1), 32);
}

// Words of the allocation that the launch writes, but no fewer than `least`.
static double words_swapped(const AuditLaunch *l, const AuditInst *in, double least) {
  for (uint32_t i = 0; i < l->touch_count && in->width; i++)
    if (l->touches[i].address == in->pattern.allocation)
      return sol_larger(l->touches[i].written / in->width, least);
  return least;
}

// Of several instructions, the one with the most at one word.
static void add_swaps(const MachineModel *m, const AuditLaunch *l, const AuditInst *in, double scale,
                      MachineWork *w) {
  double sectors = (double)(in->counts.l2_hits + in->counts.l2_misses), lanes = (double)in->counts.atomics;
  w->swaps = (double)in->pattern.swaps * scale;
  w->swap_launches = 1;
  w->swap_lanes = (double)in->pattern.swapped * scale;
  w->held_clocks = (double)in->pattern.held * scale * (w->swaps / w->swap_lanes);
  w->swap_sectors = lanes > 0 ? w->swap_lanes * sectors / lanes : 0;
  w->swap_words = words_swapped(l, in, w->swap_lanes / w->swaps);
  w->swap_active = w->swap_lanes * lanes_that_try(in);
  w->swap_queue = lanes > 0 ? w->swap_lanes * audit_atomic_clocks(m, in) / lanes : 0;
  double clocks, read = audit_guard_lanes(m, l, in, &clocks);
  w->swap_guarded = read > lanes || (in->better && read > 0) ? read * scale : 0;
  w->swap_guard_clocks = clocks * scale;
}

// An atomic on shared memory by an address that may be another block's.
static bool is_of_cluster(const AuditLaunch *l, const AuditInst *in) {
  bool clusters = l->chain.cluster_barriers > 0 || l->chain.other_waits > 0;
  return clusters && in->kind == SOL_EMU_KIND_SHARED_ATOMIC && in->text && !audit_has(in->text, ".shared.") &&
         !audit_has(in->text, "shared::cta");
}

// line: filled in with the timeline of a block; NULL: not asked for.
static MachineWork work_of(const MachineModel *m, const AuditLaunch *l, const AuditShape *s, double scale,
                           MachineTimeline *line) {
  MachineWork w = {.launches = 1,
                   .graph_launches = l->graph ? 1 : 0,
                   .early_launches = l->early ? 1 : 0,
                   .blocks_per_cluster =
                       l->cluster[0] ? (double)l->cluster[0] * l->cluster[1] * l->cluster[2] : 0,
                   .blocks = blocks_of(l),
                   .warps_per_block = s->occupancy.warps_per_block,
                   .blocks_per_sm = s->occupancy.blocks_per_sm};
  AuditWaits waits = audit_waits(m, l->insts, l->inst_count, &l->flight, w.blocks);
  AuditPtx ptx = {.load_waits = l->machine ? l->flight.waits * scale : 0};
  double accesses = 0, clocks_issuing = 0;
  for (uint32_t i = 0; i < l->inst_count; i++) {
    const AuditInst *in = &l->insts[i];
    accesses += in->executed.spills * scale;
    audit_demand(m, in, &waits, scale, &w);
    w.code += audit_code(in);
    ptx.executions += audit_plain(in) * scale;
    ptx.idle += in->executed.idle * scale;
    ptx.shared_waits += l->machine ? audit_shared_waits(m, in) * scale : 0;
    if (l->machine && in->kind == SOL_EMU_KIND_LOCAL_LOAD)
      ptx.local_waits += (double)in->counts.executions / m->near_in_flight * scale;
    clocks_issuing += in->executed.clocks * scale;
    bool again = (double)in->counts.executions * scale > w.blocks;
    if (l->machine && again && in->counts.lanes == in->counts.executions) audit_add_alone(m, in, scale, &ptx);
    if (is_of_cluster(l, in))
      w.shared_wavefronts += (double)in->counts.lanes * m->other_atomic_clocks * scale;
    double turns = (double)in->pattern.hottest * scale, clocks = audit_atomics_together(m, l, in) * scale;
    if (turns > w.atomic_turns) w.atomic_turns = turns;
    if ((double)in->pattern.swaps * scale > w.swaps) add_swaps(m, l, in, scale, &w);
    bool once = (double)in->counts.executions * scale <= w.blocks * w.warps_per_block;
    if (clocks > w.atomic_clocks) w.atomic_clocks = clocks, w.atomic_end_clocks = once ? clocks : 0;
  }
  add_l2(l, scale, &w);
  add_pages(l, scale, &w);
  add_host(m, l, &waits, scale, &w);
  double spilled = audit_spilled(l->registers_from, l->stack_bytes, l->local_array_bytes),
         resident = sol_smaller(w.blocks_per_sm, __builtin_ceil(w.blocks / m->device->sms.value)) *
                    w.warps_per_block * 32;
  MachineWork spills = l->machine ? machine_spills_counted(m, spilled, accesses, resident)
                                  : machine_spills(m, spilled, w.blocks * w.warps_per_block, resident);
  if (l->machine && w.issues > 0) w.stall = clocks_issuing / w.issues;
  w.chain = audit_chain(m, &w, &waits, &l->chain, &ptx, scale);
  w.longest = audit_longest(m, &w, &waits, l, &ptx, scale);
  w.busiest = l->balance.busiest;
  audit_add_replay(m, l, &waits, scale, line, &w);
#define ADD_SPILLS(name) w.name += spills.name;
  MACHINE_DEMANDS(ADD_SPILLS)
#undef ADD_SPILLS
  return w;
}

// A launch that was cut short is billed for what it did, not for what it would have done.
static double scale_of(const AuditLaunch *l) {
  bool whole = l->end == SOL_EMU_DONE && l->blocks > 0;
  return whole && (double)l->blocks < blocks_of(l) ? blocks_of(l) / (double)l->blocks : 1;
}

SolStatus audit_launch_time(const SolDevice *device, const AuditLaunch *l, MachineTime *out, SolError *err) {
  return audit_launch_lived(device, l, out, NULL, err);
}

SolStatus audit_launch_lived(const SolDevice *device, const AuditLaunch *l, MachineTime *out,
                             MachineTimeline *line, SolError *err) {
  AuditShape shape = {0};
  MachineModel model = machine_model(device);
  find_occupancy(&model, l, &shape);
  if (line) *line = (MachineTimeline){0};
  MachineWork work = work_of(&model, l, &shape, scale_of(l), line);
  return machine_time(&model, &work, out, err);
}

SolStatus audit_add_launch(AuditProgram *p, const AuditLaunch *l, AuditKernel **kernel, SolError *err) {
  double scale = scale_of(l);
  AuditKernel *k = kernel_of(p, l);
  AuditShape *s = k ? shape_of(k, l) : NULL;
  if (s && s->launches < 1) find_occupancy(&p->machine, l, s);
  if (!s || !add_insts(p, k, l, scale) || !add_touches(p, k, l, scale, s) ||
      !audit_add_faults(p, k, l->faults, l->fault_count, l->faults_left_out))
    return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  MachineTimeline *line = l->trace && !s->timeline ? sol_arena_alloc(&p->arena, sizeof *line) : NULL;
  if (line) *line = (MachineTimeline){0};
  MachineWork work = work_of(&p->machine, l, s, scale, line);
  if (line) s->timeline = line, s->timeline_block = l->trace->block, s->timeline_cut = l->trace->cut;
  MachineTime time;
  SolStatus status = machine_time(&p->machine, &work, &time, err);
  if (status) return status;
  audit_add_time(&s->time, &time);
  p->state->replayed = work.replayed > 0;
  p->state->exposed = work.exposed;
  machine_work_add(&s->work, &work);
  s->launches++;
  k->launches++;
  k->graph_launches += l->graph ? 1 : 0;
  if (scale > k->scale) k->scale = scale;
  if (l->registers > k->registers) k->registers = l->registers;
  k->registers_from = l->registers_from;
  k->machine = l->machine;
  k->static_shared = l->static_shared;
  k->stack_bytes = l->stack_bytes;
  k->local_array_bytes = l->local_array_bytes;
  k->flight.loads += scaled(l->flight.loads, scale);
  k->flight.bytes += scaled(l->flight.bytes, scale);
  k->flight.waits += l->flight.waits * scale;
  k->end = l->end;
  k->left_dirty += left_dirty(l, scale);
  k->earlier_written += sum_of(l->earlier.written);
  k->found += sum_of(l->earlier.found);
  audit_flows_launch(p, k->index, l);
  audit_lefts_launch(p, k->index, l);
  *kernel = k;
  return SOL_OK;
}

SolStatus audit_add(AuditProgram *p, const AuditLaunch *l, SolError *err) {
  AuditKernel *k;
  SolStatus status = audit_add_launch(p, l, &k, err);
  if (status) return status;
  k->counted++;
  return l->key ? audit_keep_launch(p, k, l, err) : SOL_OK;
}
