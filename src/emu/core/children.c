// Launches by kernels (dynamic parallelism), and values of conditional nodes that they set: the functions of CUDA's
// device runtime that nvcc calls for <<<>>> in device code. A thread gets memory for the parameters from the device heap, fills it and launches; what it launched is a list
// in the launch's result, for the caller to run when the grid has ended. That is one of the orders that CUDA allows: a
// kernel cannot wait for what it launches, and its writes before the launch are there.
#include "base/heap.h"
#include "emu/core/state.h"

struct EmuChild { // a list, under EmuRun.lock
  struct EmuChild *next;
  SolEmuChild launch;
  uint64_t buffer; // of the parameters, in the device heap
  uint64_t block;  // that launches it
  bool launched;
};

enum { TAIL_STREAM = 3, INVALID_VALUE = 1 }; // cudaStreamTailLaunch, cudaErrorInvalidValue

// The kernel at an address that mov gave; NULL: none.
static const SolEmuKernel *kernel_at(const EmuRun *run, uint64_t address) {
  const SolEmuModule *m = run->program->module;
  uint64_t n = (address - EMU_CODE_WINDOW) / EMU_CODE_STEP;
  if (address < EMU_CODE_WINDOW || address % EMU_CODE_STEP || !n || n > m->ptx->function_count) return NULL;
  return sol_emu_kernel(m, m->ptx->functions[n - 1].name);
}

// ---- the functions ----

// (kernel, grid, block, shared): memory for its parameters, or 0.
static uint64_t take_buffer(EmuCtx *x, const EmuInst *i, int lane) {
  const SolEmuKernel *kernel = kernel_at(x->launch, emu_builtin_word(x, i, 0, lane));
  struct EmuChild *child = kernel ? sol_heap_alloc(sizeof *child) : NULL;
  if (!child) return 0;
  *child = (struct EmuChild){.launch = {.kernel = kernel}, .block = x->block->id};
  child->launch.param_bytes = sol_emu_kernel_function(kernel)->param_size;
  emu_builtin_argument(x, i, 1, lane, child->launch.grid, 12);
  emu_builtin_argument(x, i, 2, lane, child->launch.block, 12);
  child->launch.dynamic_shared = (uint32_t)emu_builtin_word(x, i, 3, lane);
  child->buffer = emu_heap_malloc(x, child->launch.param_bytes ? child->launch.param_bytes : 1);
  if (!child->buffer) return sol_heap_free(child), 0;
  uint64_t buffer = child->buffer; // as soon as it is in the list another thread may end it
  sol_spin_lock(&x->launch->lock);
  child->next = x->launch->children;
  x->launch->children = child;
  sol_spin_unlock(&x->launch->lock);
  return buffer;
}

static void get_buffer(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  if (!x->launch->launch->children) {
    emu_find(x, i, mask, SOL_EMU_BAD_USE, 0, 0,
             "a kernel that launches kernels runs only in a program: sol audit ./PROG");
    emu_stop(x->launch, SOL_EMU_FAULT);
    x->budget = 0;
    return;
  }
  for (; mask; mask &= mask - 1)
    emu_builtin_return(x, i, emu_first(mask), take_buffer(x, i, emu_first(mask)));
}

static struct EmuChild *find_child(EmuRun *run, uint64_t buffer) {
  sol_spin_lock(&run->lock);
  struct EmuChild *c = run->children;
  while (c && (c->buffer != buffer || c->launched)) c = c->next;
  sol_spin_unlock(&run->lock);
  return c;
}

// (parameters, stream): a cudaError.
static uint64_t launch_child(EmuCtx *x, const EmuInst *i, int lane) {
  uint64_t buffer = emu_builtin_word(x, i, 0, lane);
  const EmuAlloc *heap = x->launch->emu->heap;
  struct EmuChild *c = find_child(x->launch, buffer);
  if (!c || !heap) return INVALID_VALUE;
  uint64_t bytes = c->launch.param_bytes;
  c->launch.params = sol_heap_alloc((size_t)bytes + 1);
  if (!c->launch.params || !emu_heap_holds(heap, buffer, bytes ? bytes : 1)) return INVALID_VALUE;
  memcpy(c->launch.params, heap->host + (buffer - heap->base), (size_t)bytes);
  c->launch.tail = emu_builtin_word(x, i, 1, lane) == TAIL_STREAM;
  sol_spin_lock(&x->launch->lock);
  c->launched = true;
  c->buffer = 0;
  c->launch.order = x->launch->children_launched++;
  sol_spin_unlock(&x->launch->lock);
  emu_heap_free(x, i, lane, buffer);
  return 0;
}

static void launch_device(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1)
    emu_builtin_return(x, i, emu_first(mask), launch_child(x, i, emu_first(mask)));
}

// Copies and fills wait for their turn as launches do. False: out of memory.
static bool add_transfer(EmuCtx *x, SolEmuChild transfer) {
  struct EmuChild *child = sol_heap_alloc(sizeof *child);
  if (!child) return false;
  *child = (struct EmuChild){.launch = transfer, .block = x->block->id, .launched = true};
  sol_spin_lock(&x->launch->lock);
  child->launch.order = x->launch->children_launched++;
  child->next = x->launch->children;
  x->launch->children = child;
  sol_spin_unlock(&x->launch->lock);
  return true;
}

// (to, from, bytes, kind, stream)
static void copy_async(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    SolEmuChild c = {.to = emu_builtin_word(x, i, 0, l),
                     .from = emu_builtin_word(x, i, 1, l),
                     .bytes = emu_builtin_word(x, i, 2, l)};
    c.tail = emu_builtin_word(x, i, 4, l) == TAIL_STREAM;
    emu_builtin_return(x, i, l, c.from && add_transfer(x, c) ? 0 : INVALID_VALUE);
  }
}

// (to, value, bytes, stream)
static void set_async(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    SolEmuChild c = {.to = emu_builtin_word(x, i, 0, l),
                     .value = (uint8_t)emu_builtin_word(x, i, 1, l),
                     .bytes = emu_builtin_word(x, i, 2, l)};
    c.tail = emu_builtin_word(x, i, 3, l) == TAIL_STREAM;
    emu_builtin_return(x, i, l, add_transfer(x, c) ? 0 : INVALID_VALUE);
  }
}

static bool store_word(EmuCtx *x, const EmuInst *i, int lane, uint64_t to, uint64_t value) {
  uint64_t address[EMU_LANES];
  EmuAccess acc;
  address[lane] = to;
  if (!emu_resolve_at(x, i, 1u << lane, address, PTX_SPACE_GENERIC, 8, true, &acc)) return false;
  memcpy(acc.host[lane], &value, 8);
  return true;
}

// (where to put the address, bytes): from the heap of malloc.
static void device_malloc(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  enum { NO_MEMORY = 2 };
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    uint64_t memory = emu_heap_malloc(x, emu_builtin_word(x, i, 1, l));
    bool stored = store_word(x, i, l, emu_builtin_word(x, i, 0, l), memory);
    emu_builtin_return(x, i, l, !stored ? INVALID_VALUE : memory ? 0 : NO_MEMORY);
  }
}

static void device_free(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    emu_heap_free(x, i, l, emu_builtin_word(x, i, 0, l));
    emu_builtin_return(x, i, l, 0);
  }
}

// (where to put it, flags): work is run in the order in which it was launched, so that one stream serves.
static void create_stream(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  enum { STREAM = 0x10 };
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    emu_builtin_return(x, i, l,
                       store_word(x, i, l, emu_builtin_word(x, i, 0, l), STREAM) ? 0 : INVALID_VALUE);
  }
}

// (handle, value)
static void set_conditional(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const SolEmuLaunch *launch = x->launch->launch;
  sol_spin_lock(&x->launch->lock);
  for (; mask && launch->set_conditional; mask &= mask - 1)
    launch->set_conditional(launch->conditional_ctx, emu_builtin_word(x, i, 0, emu_first(mask)),
                            (uint32_t)emu_builtin_word(x, i, 1, emu_first(mask)));
  sol_spin_unlock(&x->launch->lock);
}

static void succeed(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  for (; mask; mask &= mask - 1) emu_builtin_return(x, i, emu_first(mask), 0);
}

EmuHandler *emu_child_builtin(const char *name) {
  static const struct {
    const char *name;
    EmuHandler *run;
  } all[] = {{EMU_CHILD_BUFFER, get_buffer},
             {"__cudaCDP2LaunchDeviceV2", launch_device},
             {"__cudaCDP2StreamCreateWithFlags", create_stream},
             {"__cudaCDP2StreamDestroy", succeed},
             {"__cudaCDP2MemcpyAsync", copy_async},
             {"__cudaCDP2MemsetAsync", set_async},
             {EMU_CHILD_MALLOC, device_malloc},
             {"__cudaCDP2Free", device_free},
             {"cudaGraphSetConditional", set_conditional},
             {"__cudaCDP2GetErrorString", succeed}, // no text: of what fails, the host is told
             {"__cudaCDP2GetLastError", succeed},
             {"__cudaCDP2PeekAtLastError", succeed}};
  for (size_t k = 0; k < SOL_COUNT(all); k++)
    if (strcmp(all[k].name, name) == 0) return all[k].run;
  return NULL;
}

// ---- their list, when the grid has ended ----

// Tail launches last; else by block, and in a block as they were launched.
static bool comes_before(const struct EmuChild *a, const struct EmuChild *b) {
  if (a->launch.tail != b->launch.tail) return b->launch.tail;
  return a->block != b->block ? a->block < b->block : a->launch.order < b->launch.order;
}

static struct EmuChild *merge(struct EmuChild *a, struct EmuChild *b) {
  struct EmuChild *first = NULL, **end = &first;
  while (a && b) {
    struct EmuChild **from = comes_before(b, a) ? &b : &a;
    *end = *from;
    *from = (*from)->next;
    end = &(*end)->next;
  }
  *end = a ? a : b;
  return first;
}

static struct EmuChild *sorted(struct EmuChild *list) {
  if (!list || !list->next) return list;
  struct EmuChild *middle = list, *fast = list->next;
  while (fast && fast->next) middle = middle->next, fast = fast->next->next;
  struct EmuChild *second = middle->next;
  middle->next = NULL;
  return merge(sorted(list), sorted(second));
}

static void drop_child(struct EmuChild *c) {
  sol_heap_free(c->launch.params);
  sol_heap_free(c);
}

bool emu_children_result(EmuRun *run) {
  SolEmuResult *r = run->result;
  bool done = true;
  for (struct EmuChild *c = sorted(run->children), *next; c; c = next) {
    next = c->next;
    SolEmuChild *room =
        c->launched && done ? sol_heap_realloc(r->children, (r->child_count + 1) * sizeof *room) : NULL;
    if (c->launched && !room) done = false;
    if (!room) {
      drop_child(c);
      continue;
    }
    r->children = room;
    r->children[r->child_count++] = c->launch;
    sol_heap_free(c);
  }
  run->children = NULL;
  return done;
}

void emu_children_free(SolEmuResult *r) {
  for (uint32_t i = 0; i < r->child_count; i++) sol_heap_free(r->children[i].params);
  sol_heap_free(r->children);
}
