// The result of a launch, summed over the workers.
#include "base/error.h"
#include "base/heap.h"
#include "emu/core/trace.h"

void sol_emu_counts_add(SolEmuCounts *to, const SolEmuCounts *from) {
#define ADD(name) to->name += from->name;
  SOL_EMU_COUNTS(ADD)
#undef ADD
}

void sol_emu_result_free(SolEmuResult *result) {
  emu_children_free(result);
  sol_heap_free(result->insts);
  sol_heap_free(result->findings);
  sol_heap_free(result->touches);
  sol_heap_free(result->trace.events);
  *result = (SolEmuResult){0};
}

SolStatus emu_result_prepare(EmuRun *run, SolError *err) {
  SolEmuResult *r = run->result;
  const EmuProgram *p = run->program;
  if (r->insts) return SOL_OK;
  r->kernel = run->launch->kernel;
  r->insts = sol_heap_alloc(sizeof *r->insts * p->count);
  if (!r->insts) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  for (uint32_t f = 0; f < p->function_count; f++)
    for (uint32_t k = 0; k < p->functions[f].fn->inst_count; k++)
      r->insts[r->inst_count++] = (SolEmuInstCounts){.function = p->functions[f].index, .inst = k};
  return SOL_OK;
}

// What was executed in stretches, by instruction.
static void spread(EmuRun *run) {
  for (uint32_t k = 0; k < run->worker_count; k++) {
    EmuStretch *s = emu_worker(&run->workers[k])->stretches, sum = {0};
    for (uint32_t pc = 0; pc < run->program->count; pc++) {
      sum.executions += s[pc].executions;
      sum.lanes += s[pc].lanes;
      s[pc] = (EmuStretch){0};
      run->workers[k].counts[pc].executions += sum.executions;
      run->workers[k].counts[pc].lanes += sum.lanes;
    }
  }
}

// Of one instruction, all workers.
static SolEmuCounts sum(const EmuRun *run, uint32_t pc) {
  SolEmuCounts c = {0};
  for (uint32_t k = 0; k < run->worker_count; k++) {
    const EmuCtx *x = &run->workers[k];
    const SolL1Counts *l1 = &emu_worker(x)->l1_counts[pc];
    const SolL2Counts *l2 = &emu_worker(x)->l2_counts[pc];
    sol_emu_counts_add(&c, &x->counts[pc]);
    c.requests += l1->requests;
    c.sectors += l1->sectors;
    c.sectors_ideal += l1->ideal_sectors;
    c.lines += l1->lines;
    c.l1_hits += l1->hits;
    c.l1_misses += l1->misses;
    c.l2_hits += l2->read_hits + l2->atomic_hits;
    c.l2_misses += l2->reads - l2->read_hits + l2->atomics - l2->atomic_hits;
    c.l2_writes += l2->writes;
    c.l2_requests += l2->requests;
    c.l2_packets += l1->packets;
    c.dram_read += l2->dram_read_bytes;
    c.dram_write += l2->dram_write_bytes;
  }
  return c;
}

// A generic access counts where it went.
static SolEmuKind kind_of(const EmuInst *i, const SolEmuCounts *c) {
  if (!c->requests && c->shared_requests) {
    if (i->kind == SOL_EMU_KIND_GLOBAL_LOAD) return SOL_EMU_KIND_SHARED_LOAD;
    if (i->kind == SOL_EMU_KIND_GLOBAL_STORE) return SOL_EMU_KIND_SHARED_STORE;
    if (i->kind == SOL_EMU_KIND_GLOBAL_ATOMIC) return SOL_EMU_KIND_SHARED_ATOMIC;
  }
  return c->requests || c->shared_requests ? (SolEmuKind)i->kind : SOL_EMU_KIND_OTHER;
}

// What an observed launch adds to the counts `c` of the instruction at `pc`.
static void add_observed(EmuRun *run, uint32_t pc, const SolEmuCounts *c, SolEmuInstCounts *to) {
  const EmuStatics *s = run->statics;
  SolEmuFlight *f = &run->result->flight;
  emu_observe_sum(run, pc, &to->pattern);
  to->waits = s->waits[pc] != 0;
  to->follows = s->paths[pc] & EMU_PATH_FOLLOWS || 2 * to->pattern.joins > c->executions;
  if (s->waits[pc]) f->waits += (double)c->executions / s->waits[pc];
  if (!s->loads[pc]) return;
  f->loads += c->requests;
  f->bytes += c->bytes;
  if (s->loads[pc] == 2) f->async_bytes += c->bytes;
}

void emu_result_add(EmuRun *run) {
  SolEmuResult *r = run->result;
  const EmuProgram *p = run->program;
  uint32_t at = 0;
  spread(run);
  if (run->observing) emu_observe_slices(run);
  for (uint32_t f = 0; f < p->function_count; f++)
    for (uint32_t pc = p->functions[f].first; pc < p->functions[f].end; pc++, at++) {
      SolEmuCounts c = sum(run, pc);
      SolEmuKind kind = kind_of(&p->code[pc], &c);
      sol_emu_counts_add(&r->insts[at].counts, &c);
      sol_emu_counts_add(&r->total, &c);
      if ((unsigned)kind < SOL_EMU_KIND_COUNT) sol_emu_counts_add(&r->kinds[kind], &c);
      r->classes[sol_emu_class(p->source[pc])] += c.executions;
      if (run->observing) add_observed(run, pc, &c, &r->insts[at]);
    }
  if (run->observing) emu_path_sum(run, &r->chain), r->balance = emu_balance(run), emu_trace_result(run);
  uint64_t units = 0;
  for (uint32_t k = 0; k < run->worker_count; k++) {
    units += emu_worker(&run->workers[k])->units_done;
    r->flight.waits += (double)emu_worker(&run->workers[k])->idles;
  }
  r->blocks += units * run->cluster_size;
  r->threads += units * run->cluster_size * run->threads;
  r->blocks_in_grid += run->units_in_grid * run->cluster_size;
  r->end = (SolEmuEnd)run->stop;
  r->seconds += sol_thread_clock() - run->started;
}
