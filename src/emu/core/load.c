// Creates the emulator, and loads modules: places and initialises variables, lowers kernels.
#include "base/error.h"
#include "base/heap.h"
#include "emu/core/hooks.h"

static void defaults(SolEmuMachine *m) {
#define DEFAULT(field, value) m->field = m->field ? m->field : (value)
  DEFAULT(sms, 132);
  DEFAULT(cc, 90);
  DEFAULT(max_threads_per_sm, 2048);
  DEFAULT(max_blocks_per_sm, 32);
  DEFAULT(smem_per_sm, 228 * 1024);
  DEFAULT(smem_per_block, 227 * 1024);
  DEFAULT(l1_bytes, 256 * 1024);
  DEFAULT(l2.bytes, 50 << 20);
  DEFAULT(l2.usable_percent, 100);
  DEFAULT(l2.dirty_percent, 100);
  DEFAULT(l2.partial_percent, 100);
  DEFAULT(l2.dram_bytes, 32);
  DEFAULT(near_in_flight, 1);
  DEFAULT(atomic_bytes, SOL_SECTOR_BYTES);
  DEFAULT(l2_slices, 1024);
  DEFAULT(mem_bytes, UINT64_C(80) << 30);
  DEFAULT(heap_bytes, 8 << 20);
  DEFAULT(stack_bytes, 512 * 1024);
  DEFAULT(workers, sol_thread_cores());
#undef DEFAULT
  static const SolEmuClocks unknown;
#define ONE_CLOCK(name) m->clocks.name = 1;
  if (memcmp(&m->clocks, &unknown, sizeof unknown) == 0) {
    SOL_EMU_CHAIN(ONE_CLOCK)
  }
#undef ONE_CLOCK
  if (!(m->clock > 0)) m->clock = 1.755e9;
}

SolStatus sol_emu_create(const SolEmuMachine *machine, SolEmu **out, SolError *err) {
  SolEmuMachine m = machine ? *machine : (SolEmuMachine){0};
  defaults(&m);
  if (m.sms < 1 || m.sms > 1024 || m.workers < 1 || m.max_blocks_per_sm < 1 || m.blocks_per_sm < 0 ||
      m.smem_per_block > 1u << EMU_RANK_SHIFT || m.stack_bytes > 1 << 24 || m.l1_bytes > SOL_L1_MAX_BYTES ||
      m.near_in_flight > 16 || m.cluster_blocks < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such machine can be emulated");
  SolEmu *emu = sol_heap_alloc(sizeof *emu);
  if (!emu) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memset(emu, 0, sizeof *emu);
  emu->machine = m;
  emu->next_base = EMU_GLOBAL_BASE;
  *out = emu;
  return SOL_OK;
}

void sol_emu_destroy(SolEmu *emu) {
  if (!emu) return;
  while (emu->modules) sol_emu_unload(emu, emu->modules);
  for (uint32_t k = 0; k < emu->alloc_count; k++) {
    emu_drop_alloc(emu, emu->allocs[k]);
    sol_heap_free(emu->allocs[k]);
  }
  sol_heap_free(emu->allocs);
  sol_heap_free(emu->cache_memory);
  sol_heap_free(emu->l2_memory);
  sol_heap_free(emu->l2);
  sol_heap_free(emu->sm_memory);
  if (emu->pool && sol_pool_usable(emu->pool)) sol_pool_destroy(emu->pool);
  emu_textures_free(emu->textures);
  emu_touch_free(emu);
  sol_heap_free(emu);
}

const SolEmuMachine *sol_emu_machine(const SolEmu *emu) {
  return &emu->machine;
}
void sol_emu_set_workers(SolEmu *emu, int workers) {
  emu->machine.workers = workers < 1 ? 1 : workers;
}

// ---- variables ----

static bool placed(const PtxSymbol *s) {
  return s->function == PTX_NONE || s->space == PTX_SPACE_GLOBAL || s->space == PTX_SPACE_CONST;
}

static bool in_device_memory(const PtxSymbol *s) {
  return placed(s) && (s->space == PTX_SPACE_GLOBAL || s->space == PTX_SPACE_CONST);
}

static SolStatus at_symbol(const PtxSymbol *s, SolStatus status, SolError *err) {
  if (err) err->line = (int32_t)s->line, err->column = 1;
  return status;
}

static SolStatus too_large(const PtxSymbol *s, const char *what, uint64_t room, SolError *err) {
  sol_fail(err, SOL_ERR_RANGE, "%.80s takes %llu bytes; %llu are %s", s->name, (unsigned long long)s->size,
           (unsigned long long)room, what);
  return at_symbol(s, SOL_ERR_RANGE, err);
}

// All sizes before any memory is taken: a short text can name more than there is.
static SolStatus check_sizes(const SolEmuModule *m, SolError *err) {
  const SolEmuMachine *machine = &m->emu->machine;
  uint64_t left = machine->mem_bytes > m->emu->bytes_used ? machine->mem_bytes - m->emu->bytes_used : 0;
  uint64_t host = emu_host_bytes();
  for (uint32_t k = 0; k < m->ptx->symbol_count; k++) {
    const PtxSymbol *s = &m->ptx->symbols[k];
    if (s->space == PTX_SPACE_SHARED && s->size > machine->smem_per_block)
      return too_large(s, "what a block of the device has", machine->smem_per_block, err);
    if (s->space == PTX_SPACE_LOCAL && s->size > machine->stack_bytes)
      return too_large(s, "what a thread of the device has", machine->stack_bytes, err);
    if (!in_device_memory(s)) continue;
    if (s->size > left) return too_large(s, "left of the device's memory", left, err);
    if (s->size > host)
      return too_large(s, "left of the memory of this machine, which emulates it", host, err);
    left -= s->size;
    host -= s->size;
  }
  return SOL_OK;
}

static SolStatus place_symbols(SolEmuModule *m, SolError *err) {
  const SolPtxModule *ptx = m->ptx;
  for (uint32_t k = 0; k < ptx->symbol_count; k++) {
    const PtxSymbol *s = &ptx->symbols[k];
    if (!in_device_memory(s)) continue;
    if (s->linkage == PTX_LINK_EXTERN) {
      sol_fail(err, SOL_ERR_NOT_FOUND, "%s is declared, but defined nowhere", s->name);
      return at_symbol(s, SOL_ERR_NOT_FOUND, err);
    }
    EmuAlloc *a = s->managed && m->emu->managed ? emu_add_managed(m->emu, s->size, s->name)
                                                : emu_add_alloc(m->emu, s->size, s->name);
    if (!a)
      return sol_fail(err, SOL_ERR_NO_SPACE, "no memory for %s, %llu bytes", s->name,
                      (unsigned long long)s->size);
    a->constant = s->space == PTX_SPACE_CONST;
    a->variable = true;
    m->alloc[k] = a;
    m->address[k] = a->base;
    if (s->init_bytes) memcpy(a->host, s->init, (size_t)(s->init_bytes < a->size ? s->init_bytes : a->size));
  }
  return SOL_OK;
}

static uint64_t reloc_value(const SolEmuModule *m, const PtxReloc *r) {
  uint64_t value;
  if (r->function != PTX_NONE)
    value = EMU_CODE_WINDOW + (uint64_t)(r->function + 1) * EMU_CODE_STEP;
  else
    value = m->address[r->symbol];
  return (value + (uint64_t)r->addend) >> r->shift;
}

static void relocate(SolEmuModule *m) {
  for (uint32_t k = 0; k < m->ptx->symbol_count; k++) {
    const PtxSymbol *s = &m->ptx->symbols[k];
    for (uint32_t r = 0; m->alloc[k] && r < s->reloc_count; r++) {
      uint64_t value = reloc_value(m, &s->relocs[r]);
      if (s->relocs[r].offset + s->relocs[r].bytes > m->alloc[k]->size) continue;
      memcpy(m->alloc[k]->host + s->relocs[r].offset, &value, s->relocs[r].bytes);
    }
  }
}

// ---- modules ----

// Of all kernels together, each with all it may call: many kernels that call one long function need more than
// their text has.
enum { MOST_INSTRUCTIONS = 1 << 24, MOST_PAIRS = 1 << 25 };

static SolStatus lower_kernels(SolEmuModule *m, SolError *err) {
  uint32_t count = 0;
  uint64_t instructions = 0;
  for (uint32_t k = 0; k < m->ptx->function_count; k++)
    count += m->ptx->functions[k].entry && m->ptx->functions[k].defined;
  if ((uint64_t)count * m->ptx->function_count > MOST_PAIRS) // each kernel has a list of the functions
    return sol_fail(err, SOL_ERR_RANGE, "%u kernels in a module of %u functions: more than can be loaded",
                    count, m->ptx->function_count);
  m->kernels = sol_heap_alloc(sizeof *m->kernels * (count + 1));
  if (!m->kernels) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  for (uint32_t k = 0; k < m->ptx->function_count; k++) {
    const PtxFunction *fn = &m->ptx->functions[k];
    if (!fn->entry || !fn->defined) continue;
    SolEmuKernel *kernel = &m->kernels[m->kernel_count];
    *kernel = (SolEmuKernel){.module = m, .fn = fn};
    SolStatus status = emu_lower(m, k, &kernel->program, err);
    if (status) return status;
    m->kernel_count++;
    instructions += kernel->program->count;
    if (instructions > MOST_INSTRUCTIONS)
      return sol_fail(err, SOL_ERR_RANGE,
                      "%.80s: the kernels and what they call have more than %d instructions", fn->name,
                      MOST_INSTRUCTIONS);
  }
  return SOL_OK;
}

static SolStatus build(SolEmuModule *m, const SolPtxSource *sources, int count, SolError *err) {
  SolStatus status = sol_ptx_load(sources, count, &m->ptx, err);
  if (status) return status;
  size_t symbols = m->ptx->symbol_count + 1;
  m->address = sol_heap_alloc(sizeof *m->address * symbols);
  m->alloc = sol_heap_alloc(sizeof *m->alloc * symbols);
  if (!m->address || !m->alloc) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  memset(m->address, 0, sizeof *m->address * symbols);
  memset(m->alloc, 0, sizeof *m->alloc * symbols);
  status = check_sizes(m, err);
  if (!status) status = place_symbols(m, err);
  if (status) return status;
  relocate(m);
  const PtxFunction *heap_user = sol_ptx_find_function(m->ptx, "malloc");
  if (!heap_user) heap_user = sol_ptx_find_function(m->ptx, EMU_CHILD_BUFFER);
  if (!heap_user) heap_user = sol_ptx_find_function(m->ptx, EMU_CHILD_MALLOC);
  if (heap_user && !heap_user->defined && !m->emu->heap) {
    m->emu->heap = emu_add_alloc(m->emu, m->emu->machine.heap_bytes, "device heap");
    if (!m->emu->heap) return sol_fail(err, SOL_ERR_NO_SPACE, "no memory for the device heap");
    m->emu->heap->heap = true;
  }
  return lower_kernels(m, err);
}

SolStatus sol_emu_load(SolEmu *emu, const SolPtxSource *sources, int count, SolEmuModule **out,
                       SolError *err) {
  SolEmuModule *m = sol_heap_alloc(sizeof *m);
  if (!m) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *m = (SolEmuModule){.emu = emu, .next = emu->modules};
  emu->modules = m;
  SolStatus status = build(m, sources, count, err);
  if (status)
    sol_emu_unload(emu, m);
  else
    *out = m;
  return status;
}

void sol_emu_unload(SolEmu *emu, SolEmuModule *m) {
  if (!m) return;
  for (SolEmuModule **at = &emu->modules; *at; at = &(*at)->next)
    if (*at == m) {
      *at = m->next;
      break;
    }
  for (uint32_t k = 0; k < m->kernel_count; k++) emu_free_program(m->kernels[k].program);
  for (uint32_t k = 0; m->alloc && m->ptx && k < m->ptx->symbol_count; k++)
    if (m->alloc[k]) emu_drop_alloc(emu, m->alloc[k]);
  sol_heap_free(m->kernels);
  sol_heap_free(m->address);
  sol_heap_free(m->alloc);
  sol_ptx_free(m->ptx);
  sol_heap_free(m);
}

const SolPtxModule *sol_emu_ptx(const SolEmuModule *module) {
  return module->ptx;
}

SolEmuKernel *sol_emu_kernel_at(const SolEmuModule *m, int i) {
  return i >= 0 && (uint32_t)i < m->kernel_count ? &m->kernels[i] : NULL;
}

SolEmuKernel *sol_emu_kernel(const SolEmuModule *m, const char *name) {
  for (uint32_t k = 0; k < m->kernel_count; k++)
    if (strcmp(m->kernels[k].fn->name, name) == 0) return &m->kernels[k];
  return NULL;
}

const PtxFunction *sol_emu_kernel_function(const SolEmuKernel *kernel) {
  return kernel->fn;
}

uint32_t sol_emu_kernel_registers(const SolEmuKernel *kernel) {
  uint32_t most = 0; // the spare row stands behind the registers
  for (uint32_t k = 0; k < kernel->program->function_count; k++)
    if (kernel->program->functions[k].spare > most) most = kernel->program->functions[k].spare;
  return most / EMU_ROW_BYTES;
}

SolStatus sol_emu_symbol(const SolEmuModule *m, const char *name, uint64_t *address, uint64_t *bytes,
                         SolError *err) {
  const PtxSymbol *s = sol_ptx_find_symbol(m->ptx, name);
  uint32_t k = s ? (uint32_t)(s - m->ptx->symbols) : 0;
  if (!s || !m->alloc[k]) return sol_fail(err, SOL_ERR_NOT_FOUND, "no variable %s", name);
  *address = m->address[k];
  if (bytes) *bytes = s->size;
  return SOL_OK;
}
