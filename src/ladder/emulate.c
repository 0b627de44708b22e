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

// Unpacks the machine code for this GPU, if the image has some; with it, whether it was made of the PTX that runs here.
static void unpack(LadderSession *s, int i) {
  const OpsImage *image = image_at(i);
  SolFatbin fat;
  SolFatEntry entry;
  char *text;
  size_t length;
  if (sol_fatbin_open(image->fat, (uint64_t)(image->fat_end - image->fat), &fat, NULL) ||
      !sol_fatbin_choose_elf(&fat, s->ctx->cc, &entry) ||
      sol_fatbin_text(&entry, &s->elf[i], &s->elf_size[i], NULL))
    return;
  if (sol_fatbin_choose_ptx(&fat, s->ctx->cc, &entry, NULL) || sol_fatbin_text(&entry, &text, &length, NULL))
    return;
  s->elf_of_ptx[i] = sass_is_of(s->elf[i], s->elf_size[i], text, length);
  sol_heap_free(text);
}

// The image with the kernel's machine code: the ladder's, or else one of the library's. -1: none has it.
static int image_of(LadderSession *s, const Ladder *ladder, const char *kernel) {
  for (int i = 0; i < ladder_image_count + ops_image_count && i < LADDER_IMAGES; i++) {
    if (i < ladder_image_count && strcmp(image_at(i)->name, ladder->module) != 0) continue;
    if (!s->elf[i]) unpack(s, i);
    if (s->elf[i] && sol_cubin_registers(s->elf[i], s->elf_size[i], kernel)) return i;
  }
  return -1;
}

// What ptxas made of the kernel, where the image has it.
static void take_code(LadderSession *s, const Ladder *ladder, const char *kernel, SolArena *arena,
                      SassCode *code, AuditLaunch *launch) {
  int i = image_of(s, ladder, kernel);
  if (i < 0) return;
  launch->registers = sol_cubin_registers(s->elf[i], s->elf_size[i], kernel);
  launch->registers_from = AUDIT_FROM_PTXAS;
  launch->stack_bytes = (uint64_t)sol_cubin_stack(s->elf[i], s->elf_size[i], kernel);
  if (s->elf_of_ptx[i] && !sass_read(s->elf[i], s->elf_size[i], kernel, arena, code, NULL))
    launch->code = code, launch->device = s->options.device;
}

static void add_counts(LadderCounts *to, const SolEmuResult *r) {
  const SolEmuCounts *k = r->kinds;
#define ADD(name, kind)                                                                                      \
  to->name##_requests += (double)k[SOL_EMU_KIND_##kind].requests;                                            \
  to->name##_sectors += (double)k[SOL_EMU_KIND_##kind].sectors;
  ADD(load, GLOBAL_LOAD)
  ADD(store, GLOBAL_STORE)
  ADD(atomic, GLOBAL_ATOMIC)
  ADD(texture, TEXTURE)
  ADD(local, LOCAL_LOAD)
  ADD(local, LOCAL_STORE)
#undef ADD
  for (int kind = 0; kind < SOL_EMU_KIND_COUNT; kind++) { // cp.async writes shared memory, too
    to->shared_requests += (double)k[kind].shared_requests;
    to->wavefronts += (double)k[kind].wavefronts;
  }
  to->dram_read += (double)r->total.dram_read;
  // What is dirty in L2 at the end is written back during the next call: it counts here.
  to->dram_write += (double)(r->total.dram_write + r->left_dirty);
}

// Kept where tensor cores are used: which unit is busy when is what such a rung is about.
static const MachineTimeline *keep_timeline(LadderSession *s, const MachineTimeline *line) {
  MachineTimeline *kept =
      line->busy[MACHINE_TENSORS] > 0 ? sol_arena_alloc(&s->timelines, sizeof *kept) : NULL;
  if (kept) *kept = *line;
  return kept;
}

static void launched(void *ctx, const SolDriverLaunch *l, const SolEmuResult *result) {
  Emulated *e = ctx;
  AuditLaunch launch = {.dynamic_shared = l->dynamic_shared,
                        .graph = e->graph,
                        .early = l->early,
                        .steady = true,
                        .registers = (int)sol_emu_kernel_registers(result->kernel),
                        .registers_from = AUDIT_FROM_EMULATOR};
  MachineTime time = {0};
  MachineTimeline line;
  SolArena arena = {0};
  SassCode code;
  memcpy(launch.grid, l->grid, sizeof launch.grid);
  memcpy(launch.block, l->block, sizeof launch.block);
  memcpy(launch.cluster, l->cluster, sizeof launch.cluster);
  take_code(e->session, e->ladder, sol_driver_function(l->kernel)->name, &arena, &code, &launch);
  SolError err = {0};
  SolStatus status = audit_take(sol_driver_kernel_ptx(l->kernel), result, &arena, &launch, &err);
  if (!status) status = audit_launch_lived(e->session->options.device, &launch, &time, &line, &err);
  sol_arena_free(&arena);
  LadderFigures *f = e->f;
  add_counts(&f->counts, result);
  f->launches++;
  f->guessed |= launch.registers_from == AUDIT_FROM_EMULATOR;
  if (status && !e->status) e->status = status, e->err = err;
  if (status) return;
  f->us += time.total * 1e6;
  if (time.total * 1e6 > f->bound_us) {
    f->bound_us = time.total * 1e6;
    f->bound = time.bound;
    f->timeline = keep_timeline(e->session, &line);
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
  if (!status) status = ladder_enqueue(&call, err);
  sol_driver_count(s->ctx->driver, NULL, NULL);
  if (!status && e.status) { // the model lacks figures of this device: counts are known, the time is not
    f->us = 0;
    if (e.status != SOL_ERR_UNKNOWN) {
      if (err) *err = e.err;
      status = e.status;
    }
  }
  double bytes = run->ladder->bytes(&run->c, rung);
  MachineModel model = machine_model(s->options.device);
  if (bytes > 0) f->light_us = machine_light(&model, bytes, 1, 1) * 1e6;
  return status;
}
