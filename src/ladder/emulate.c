// A rung on the emulator: exact counts, modelled DRAM traffic, a predicted time.
#include "base/heap.h"
#include "image/fatbin.h"
#include "ladder/ladder_run.h"

typedef struct Emulated {
  LadderSession *session;
  const Ladder *ladder;
  bool graph;
  LadderFigures *f;
  SolStatus status;
  SolError err;
} Emulated;

static const OpsImage *image_at(int i) {
  return i < ladder_image_count ? &ladder_images[i] : &ops_images[i - ladder_image_count];
}

static int registers_in(LadderSession *s, int i, const char *kernel, int *stack) {
  const OpsImage *image = image_at(i);
  SolFatbin fat;
  SolFatEntry entry;
  if (!s->elf[i] && !sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, NULL) &&
      sol_fatbin_choose_elf(&fat, s->ctx->cc, &entry))
    sol_fatbin_text(&entry, &s->elf[i], &s->elf_size[i], NULL);
  int registers = s->elf[i] ? sol_cubin_registers(s->elf[i], s->elf_size[i], kernel) : 0;
  if (registers) *stack = sol_cubin_stack(s->elf[i], s->elf_size[i], kernel);
  return registers;
}

// ptxas's number, from the machine code that the images also hold: the ladder's own, or else the library's.
static int registers_of(LadderSession *s, const Ladder *ladder, const char *kernel, int *stack) {
  int registers = 0;
  for (int i = 0; i < ladder_image_count + ops_image_count && i < LADDER_IMAGES && !registers; i++)
    if (i >= ladder_image_count || !strcmp(image_at(i)->name, ladder->module))
      registers = registers_in(s, i, kernel, stack);
  return registers;
}

static void add_counts(LadderCounts *to, const SolEmuResult *r) {
  const SolEmuCounts *k = r->kinds;
#define ADD(name, kind, field) to->name += (double)k[SOL_EMU_KIND_##kind].field;
  ADD(load_requests, GLOBAL_LOAD, requests)
  ADD(load_sectors, GLOBAL_LOAD, sectors)
  ADD(store_requests, GLOBAL_STORE, requests)
  ADD(store_sectors, GLOBAL_STORE, sectors)
  ADD(atomic_requests, GLOBAL_ATOMIC, requests)
  ADD(atomic_sectors, GLOBAL_ATOMIC, sectors)
  ADD(texture_requests, TEXTURE, requests)
  ADD(texture_sectors, TEXTURE, sectors)
  ADD(local_requests, LOCAL_LOAD, requests)
  ADD(local_sectors, LOCAL_LOAD, sectors)
  ADD(local_requests, LOCAL_STORE, requests)
  ADD(local_sectors, LOCAL_STORE, sectors)
  for (int kind = 0; kind < SOL_EMU_KIND_COUNT; kind++) { // cp.async writes shared memory, too
    to->shared_requests += (double)k[kind].shared_requests;
    to->wavefronts += (double)k[kind].wavefronts;
  }
  to->dram_read += (double)r->total.dram_read;
  // What is still in L2 at the end has to be written some time: the next call pays for it.
  to->dram_write += (double)(r->total.dram_write + r->left_dirty);
#undef ADD
}

static void launched(void *ctx, const SolDriverLaunch *l, const SolEmuResult *result) {
  Emulated *e = ctx;
  AuditLaunch launch = {
      .dynamic_shared = l->dynamic_shared, .graph = e->graph, .early = l->early, .steady = true};
  AuditTime time = {0};
  SolArena arena = {0};
  int stack = 0;
  memcpy(launch.grid, l->grid, sizeof launch.grid);
  memcpy(launch.block, l->block, sizeof launch.block);
  memcpy(launch.cluster, l->cluster, sizeof launch.cluster);
  launch.registers = registers_of(e->session, e->ladder, sol_driver_function(l->kernel)->name, &stack);
  launch.stack_bytes = (uint64_t)stack;
  bool guessed = !launch.registers;
  if (guessed) launch.registers = (int)sol_emu_kernel_registers(result->kernel);
  launch.registers_from = guessed ? AUDIT_FROM_EMULATOR : AUDIT_FROM_PTXAS;
  SolError err = {0};
  SolStatus status = audit_take(sol_driver_kernel_ptx(l->kernel), result, &arena, &launch, &err);
  if (!status) status = audit_launch_time(e->session->options.device, &launch, &time, &err);
  sol_arena_free(&arena);
  LadderFigures *f = e->f;
  add_counts(&f->counts, result);
  f->launches++;
  f->guessed |= guessed;
  if (status && !e->status) e->status = status, e->err = err;
  if (status) return;
  f->us += time.total * 1e6;
  if (time.total * 1e6 > f->bound_us) {
    f->bound_us = time.total * 1e6;
    f->bound = time.bound;
    f->registers = launch.registers;
  }
}

SolStatus ladder_emulate(LadderRun *run, const LadderRung *rung, LadderFigures *f, SolError *err) {
  LadderSession *s = run->session;
  Emulated e = {.session = s, .ladder = run->ladder, .graph = !rung->streamed, .f = f};
  SolDriverCounts counts = {.launched = launched, .ctx = &e};
  LadderCall call = ladder_call(run, rung, 0, NULL);
  f->counts = (LadderCounts){0};
  SolStatus status = sol_driver_count(s->ctx->driver, &counts, err);
  if (!status) status = rung->go(&call, err);
  sol_driver_count(s->ctx->driver, NULL, NULL);
  if (!status && e.status) { // a device whose figures the model lacks: the counts stand, the time is unknown
    f->us = 0;
    if (e.status != SOL_ERR_UNKNOWN) {
      if (err) *err = e.err;
      status = e.status;
    }
  }
  double bytes = run->ladder->bytes(&run->c, rung);
  if (bytes > 0) f->light_us = audit_light(s->options.device, bytes, 1, 1) * 1e6;
  return status;
}
