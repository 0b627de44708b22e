// Findings: the errors of a launch, once per instruction and kind, with source line, block and thread.
#include <stdarg.h>

#include "base/format.h"
#include "base/heap.h"
#include "emu/core/state.h"

enum { MAX_FINDINGS = 64 };

const char *sol_emu_finding_name(SolEmuFindingKind kind) {
  static const char *const names[SOL_EMU_FINDING_KINDS] = {[SOL_EMU_OUT_OF_BOUNDS] = "out of bounds",
                                                           [SOL_EMU_MISALIGNED] = "misaligned",
                                                           [SOL_EMU_AFTER_FREE] = "use after free",
                                                           [SOL_EMU_NULL] = "null pointer",
                                                           [SOL_EMU_READ_ONLY] = "read-only memory",
                                                           [SOL_EMU_UNINITIALISED] = "uninitialised",
                                                           [SOL_EMU_RACE] = "race",
                                                           [SOL_EMU_DIVERGENT_BARRIER] = "divergent barrier",
                                                           [SOL_EMU_BAD_SYNC] = "out of step",
                                                           [SOL_EMU_ASSERTION] = "assertion",
                                                           [SOL_EMU_TRAP] = "trap",
                                                           [SOL_EMU_DEADLOCK] = "deadlock",
                                                           [SOL_EMU_STACK] = "stack",
                                                           [SOL_EMU_BAD_CALL] = "bad call",
                                                           [SOL_EMU_BAD_USE] = "bad operand"};
  return (unsigned)kind < SOL_EMU_FINDING_KINDS ? names[kind] : "";
}

// The finding of this kind at this place: the one that is there, or a new one. NULL: too many. *fresh: new.
static SolEmuFinding *entry(EmuRun *run, SolEmuFindingKind kind, uint32_t function, uint32_t inst,
                            bool *fresh) {
  SolEmuResult *r = run->result;
  *fresh = false;
  for (uint32_t k = 0; k < r->finding_count; k++) {
    SolEmuFinding *f = &r->findings[k];
    if (f->kind == kind && f->function == function && f->inst == inst) return f;
  }
  if (r->finding_count == r->finding_cap) {
    uint32_t cap = r->finding_cap ? r->finding_cap * 2 : 8;
    SolEmuFinding *grown = cap <= MAX_FINDINGS ? sol_heap_realloc(r->findings, sizeof *grown * cap) : NULL;
    if (!grown) {
      r->findings_dropped++;
      return NULL;
    }
    r->findings = grown;
    r->finding_cap = cap;
  }
  *fresh = true;
  SolEmuFinding *f = &r->findings[r->finding_count++];
  *f = (SolEmuFinding){.kind = kind, .function = function, .inst = inst};
  return f;
}

static size_t put(char *out, size_t cap, size_t at, const char *format, ...) SOL_PRINTF(4, 5);
static size_t put(char *out, size_t cap, size_t at, const char *format, ...) {
  if (at >= cap) return at;
  va_list args;
  va_start(args, format);
  at += sol_vformat(out + at, cap - at, format, args);
  va_end(args);
  return at < cap ? at : cap;
}

static void describe_place(EmuRun *run, SolEmuFinding *f, const PtxInst *in) {
  const SolPtxModule *ptx = run->program->module->ptx;
  char *out = f->message;
  size_t cap = sizeof f->message, at = strlen(out);
  at = put(out, cap, at, "; %s, block (%u,%u,%u) thread (%u,%u,%u)", run->program->functions[0].fn->name,
           f->block[0], f->block[1], f->block[2], f->thread[0], f->thread[1], f->thread[2]);
  if (!in) return;
  const PtxFunction *fn = &ptx->functions[f->function];
  at = put(out, cap, at, ", %s:%u", ptx->sources[fn->source], in->line);
  if (in->loc == PTX_NONE) return;
  const PtxLoc *loc = &ptx->locs[in->loc];
  if (loc->file != PTX_NONE) put(out, cap, at, ", %s:%u", ptx->files[loc->file], loc->line);
}

static const char *base_name(const char *path) {
  const char *name = path;
  for (const char *c = path; *c; c++)
    if (*c == '/') name = c + 1;
  return name;
}

void emu_place(const EmuRun *run, uint32_t pc, char *out, size_t cap) {
  const SolPtxModule *ptx = run->program->module->ptx;
  const PtxInst *in = run->program->source[pc];
  const PtxLoc *loc = in && in->loc != PTX_NONE ? &ptx->locs[in->loc] : NULL;
  *out = 0;
  if (loc && loc->file != PTX_NONE)
    sol_format(out, cap, "%s:%u", base_name(ptx->files[loc->file]), loc->line);
  else if (in)
    sol_format(out, cap, "%s:%u",
               ptx->sources[ptx->functions[emu_function_at(run->program, pc)->index].source], in->line);
}

// Of a variable of a function, "_ZZ4scanPiE4tile", its own name.
static const char *local_name(const char *name) {
  const char *own = name;
  if (strlen(name) < 3 || memcmp(name, "_ZZ", 3) != 0) return name;
  for (const char *c = name; *c; c++) {
    size_t n = 0;
    const char *digits = c + 1;
    while (*c == 'E' && *digits >= '0' && *digits <= '9' && n < 1000) n = n * 10 + (size_t)(*digits++ - '0');
    if (n && strlen(digits) == n) own = digits;
  }
  return own;
}

void emu_shared_name(const EmuRun *run, uint64_t at, char *out, size_t cap) {
  const PtxFunction *fn = run->launch->kernel->fn;
  const SolPtxModule *ptx = run->program->module->ptx;
  *out = 0;
  for (uint32_t i = 0; i < fn->shared_count; i++) {
    const PtxSymbol *s = &ptx->symbols[fn->shared[i].symbol];
    if (at - fn->shared[i].offset < s->size) sol_format(out, cap, " (%s)", local_name(s->name));
  }
  if (run->launch->dynamic_shared && at >= run->dynamic_offset) sol_format(out, cap, " (dynamic)");
}

void emu_find(EmuCtx *x, const EmuInst *i, uint32_t lanes, SolEmuFindingKind kind, uint64_t address,
              uint64_t bytes, const char *format, ...) {
  EmuRun *run = x->launch;
  const EmuProgram *p = run->program;
  const EmuFunction *fn = emu_function_at(p, i->index);
  const PtxInst *in = p->source[i->index];
  bool fresh;
  sol_spin_lock(&run->lock);
  SolEmuFinding *f = entry(run, kind, fn->index, i->index - fn->first, &fresh);
  if (f) f->times += emu_popc(lanes);
  if (f && fresh) {
    uint32_t t = x->warp->index * EMU_LANES + (lanes ? (uint32_t)emu_first(lanes) : 0);
    f->thread[0] = t % run->block[0];
    f->thread[1] = t / run->block[0] % run->block[1];
    f->thread[2] = t / run->block[0] / run->block[1];
    memcpy(f->block, x->block->ctaid, sizeof f->block);
    f->address = address;
    f->bytes = bytes;
    size_t at = sol_format(f->message, sizeof f->message, "%s: ", sol_emu_finding_name(kind));
    va_list args;
    va_start(args, format);
    sol_vformat(f->message + at, sizeof f->message - at, format, args);
    va_end(args);
    describe_place(run, f, in);
  }
  sol_spin_unlock(&run->lock);
}

bool emu_misuse(EmuCtx *x, const EmuInst *i, uint32_t lanes, const char *format, ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  sol_vformat(text, sizeof text, format, args);
  va_end(args);
  emu_find(x, i, lanes, SOL_EMU_BAD_USE, 0, 0, "%s", text);
  emu_stop(x->launch, SOL_EMU_FAULT);
  x->budget = 0;
  return false;
}

void emu_find_launch(EmuRun *run, SolEmuFindingKind kind, const char *message) {
  bool fresh;
  SolEmuFinding *f = entry(run, kind, PTX_NONE, PTX_NONE, &fresh);
  if (!f) return;
  f->times++;
  sol_format(f->message, sizeof f->message, "%s: %s", sol_emu_finding_name(kind), message);
}

static const char *waits_for(uint8_t state) {
  if (state == EMU_READY) return "memory to change";
  return state == EMU_AT_BARRIER   ? "a barrier"
         : state == EMU_AT_CLUSTER ? "the cluster's barrier"
                                   : "lanes of its warp";
}

// Nothing can go on: names the first few that wait, and where.
void emu_report_deadlock(EmuRun *run) {
  uint64_t warps = 0;
  const EmuFiber *first = NULL;
  for (uint32_t s = 0; s < run->sm_count; s++)
    for (const EmuUnit *u = run->sms[s].units; u; u = u->next)
      for (uint32_t k = 0; k < u->count; k++)
        for (uint32_t w = 0; w < u->blocks[k]->warp_count; w++)
          for (const EmuFiber *f = u->blocks[k]->warps[w].fibers; f; f = f->next) {
            if (f->state == EMU_ENDED) continue;
            warps++;
            if (!first) first = f;
          }
  if (!first) return;
  EmuCtx *x = &run->workers[0];
  x->warp = first->warp;
  x->block = first->warp->block;
  const EmuInst *at =
      first->state == EMU_READY ? &run->program->code[first->entries[first->count - 1].pc] : first->at;
  emu_find(x, at, first->lanes, SOL_EMU_DEADLOCK, 0, 0, "%llu warps wait for ever, the first for %s%s",
           (unsigned long long)warps, waits_for(first->state),
           run->sample_waves ? ", perhaps from a block that was left out of the sample" : "");
}
