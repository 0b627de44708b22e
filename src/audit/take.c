// Converts the emulator's result of a launch for the bill: every executed instruction with its source line, its
// kind of access, and the pipe that executes it.
#include "audit/inside.h"
#include "base/error.h"
#include "base/format.h"

enum {
  TEXT = 96,       // of an instruction; the rest is cut
  MAX_FRAMES = 16, // of functions inlined into each other
  CHAIN = 400      // of the positions of all of them
};

bool audit_has(const char *text, const char *part) {
  size_t n = strlen(part), length = strlen(text);
  for (size_t i = 0; i + n <= length; i++)
    if (memcmp(text + i, part, n) == 0) return true;
  return false;
}

// Files that come with the compiler: what they inline belongs to the line that called them.
static bool is_toolkit(const char *file) {
  static const char *const marks[] = {
      "/targets/",        "/cuda/include/",   "/nvidia/cu13/",    "/crt/",          "cooperative_groups",
      "cuda_fp16",        "cuda_bf16",        "cuda_fp8",         "/cccl/",         "cuda_pipeline",
      "sm_30_intrinsics", "sm_32_intrinsics", "device_functions", "math_functions", "vector_functions",
      "device_atomic"};
  for (size_t i = 0; i < SOL_COUNT(marks); i++)
    if (audit_has(file, marks[i])) return true;
  return false;
}

const char *audit_base_name(const char *path) {
  const char *name = path;
  for (const char *c = path; *c; c++)
    if (*c == '/') name = c + 1;
  return name;
}

// The positions from the kernel down to the innermost function; "" where nothing was inlined.
static const char *chain_of(const SolPtxModule *ptx, const PtxLoc *const *frames, uint32_t count,
                            SolArena *arena) {
  char *text = count > 1 ? sol_arena_alloc(arena, CHAIN) : NULL;
  size_t n = 0;
  if (!text) return "";
  for (uint32_t i = count; i-- > 0 && n + 1 < CHAIN;)
    n += sol_format(text + n, CHAIN - n, "%s%.100s:%u", i + 1 < count ? " > " : "",
                    audit_base_name(ptx->files[frames[i]->file]), frames[i]->line);
  return text;
}

// Where the instruction comes from. The compiler gives line 0 to what it adds of its own: that belongs to the line
// before.
static uint32_t real_loc(const SolPtxModule *ptx, const PtxFunction *f, const PtxInst *in) {
  for (const PtxInst *at = in; at >= f->insts; at--)
    if (at->loc == PTX_NONE || ptx->locs[at->loc].line) return at->loc;
  return in->loc;
}

// The innermost position outside the compiler's own files. A kernel that is the compiler's own altogether has the
// innermost of all: its outermost, the call of its one large function, would be charged with everything.
static void find_place(const SolPtxModule *ptx, const PtxFunction *f, const PtxInst *in, SolArena *arena,
                       AuditInst *out) {
  const PtxLoc *frames[MAX_FRAMES];
  uint32_t count = 0, own = 0;
  out->file = ptx->sources[f->source];
  out->line = in->line;
  for (uint32_t at = real_loc(ptx, f, in); at != PTX_NONE && count < MAX_FRAMES;
       at = ptx->locs[at].inlined_at)
    if (ptx->locs[at].file != PTX_NONE) frames[count++] = &ptx->locs[at];
  out->inlined = chain_of(ptx, frames, count, arena);
  if (!count) return;
  while (own + 1 < count && is_toolkit(ptx->files[frames[own]->file])) own++;
  if (is_toolkit(ptx->files[frames[own]->file])) own = 0;
  out->file = ptx->files[frames[own]->file];
  out->line = frames[own]->line;
}

// Of each instruction of a function, whether it is indexing; functions are looked at once a launch.
static const uint8_t *indexing_of(const SolPtxModule *ptx, uint32_t function, const uint8_t **known,
                                  SolArena *arena) {
  const PtxFunction *f = &ptx->functions[function];
  if (known[function]) return known[function];
  uint8_t *marks = sol_arena_alloc(arena, f->inst_count + 1);
  if (!marks || !audit_indexing(f, marks, arena)) return NULL;
  return known[function] = marks;
}

// By its words; an access through a generic address counts where it went.
static SolEmuKind kind_of(const PtxCode *code, const SolEmuCounts *c) {
  bool shared = code->space == PTX_SPACE_SHARED || code->space == PTX_SPACE_SHARED_CLUSTER ||
                (!c->requests && c->shared_requests);
  if ((!c->requests && !c->shared_requests) || code->space == PTX_SPACE_PARAM) return SOL_EMU_KIND_OTHER;
  switch (code->op) {
  case PTX_OP_LD:
    if (code->space == PTX_SPACE_LOCAL) return SOL_EMU_KIND_LOCAL_LOAD;
    if (code->space == PTX_SPACE_CONST) return SOL_EMU_KIND_CONST_LOAD;
    return shared ? SOL_EMU_KIND_SHARED_LOAD : SOL_EMU_KIND_GLOBAL_LOAD;
  case PTX_OP_ST:
  case PTX_OP_ST_ASYNC:
  case PTX_OP_ST_BULK:
    if (code->space == PTX_SPACE_LOCAL) return SOL_EMU_KIND_LOCAL_STORE;
    return shared ? SOL_EMU_KIND_SHARED_STORE : SOL_EMU_KIND_GLOBAL_STORE;
  case PTX_OP_ATOM:
  case PTX_OP_RED:
  case PTX_OP_RED_ASYNC: return shared ? SOL_EMU_KIND_SHARED_ATOMIC : SOL_EMU_KIND_GLOBAL_ATOMIC;
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_SULD:
  case PTX_OP_SUST:
  case PTX_OP_SURED: return SOL_EMU_KIND_TEXTURE;
  case PTX_OP_STMATRIX:
  case PTX_OP_WMMA_STORE: return shared ? SOL_EMU_KIND_SHARED_STORE : SOL_EMU_KIND_GLOBAL_STORE;
  case PTX_OP_CP_ASYNC_BULK:
    return code->space2 == PTX_SPACE_GLOBAL ? SOL_EMU_KIND_GLOBAL_LOAD : SOL_EMU_KIND_GLOBAL_STORE;
  case PTX_OP_CP_REDUCE_ASYNC_BULK:
  case PTX_OP_CP_TENSOR_STORE:
  case PTX_OP_CP_TENSOR_REDUCE: return SOL_EMU_KIND_GLOBAL_STORE;
  case PTX_OP_CP_TENSOR: return SOL_EMU_KIND_GLOBAL_LOAD;
  case PTX_OP_CP_ASYNC: return SOL_EMU_KIND_GLOBAL_LOAD;
  default: return shared ? SOL_EMU_KIND_SHARED_LOAD : SOL_EMU_KIND_GLOBAL_LOAD;
  }
}

// FLOPs of one matrix instruction, as many as fp16 would take in the same time.
static double tensor_flops(const PtxCode *code) {
  if (code->op == PTX_OP_TCGEN05_MMA || code->op == PTX_OP_TCGEN05_MMA_SCALED)
    return 2.0 * 16 * 8 * 16; // of 16 rows by 8 columns, by 32 bytes of k: of every type alike
  double flops = 2.0 * code->m * code->n * code->k;
  if (code->op == PTX_OP_WGMMA) flops /= 4;    // of one of four warps
  if (code->op == PTX_OP_WGMMA_SP) flops /= 8; // and half of A is left out
  switch (code->type[1]) {
  case PTX_F64: return flops * 16;
  case PTX_TF32: return flops * 2;
  case PTX_F16:
  case PTX_BF16: return flops;
  default: return sol_ptx_type_bits((PtxType)code->type[1]) <= 8 ? flops / 2 : flops;
  }
}

static bool is_async(const PtxCode *code) {
  return code->op == PTX_OP_CP_ASYNC || code->op == PTX_OP_CP_ASYNC_BULK || code->op == PTX_OP_CP_TENSOR;
}

static bool is_bulk(const PtxCode *code) {
  return code->op == PTX_OP_CP_ASYNC_BULK || code->op == PTX_OP_CP_REDUCE_ASYNC_BULK ||
         code->op == PTX_OP_CP_TENSOR || code->op == PTX_OP_CP_TENSOR_STORE ||
         code->op == PTX_OP_CP_TENSOR_REDUCE;
}

static bool loads_value(const PtxCode *code, SolEmuKind kind) {
  if (code->op == PTX_OP_PREFETCH || code->op == PTX_OP_CP_ASYNC_BULK_PREFETCH) return false;
  return kind == SOL_EMU_KIND_GLOBAL_LOAD || kind == SOL_EMU_KIND_LOCAL_LOAD ||
         kind == SOL_EMU_KIND_TEXTURE || (kind == SOL_EMU_KIND_GLOBAL_ATOMIC && code->op == PTX_OP_ATOM);
}

static bool is_block_barrier(const PtxCode *code) {
  return code->op == PTX_OP_BAR_SYNC || code->op == PTX_OP_BAR_RED || code->op == PTX_OP_BARRIER_CLUSTER_WAIT;
}

static bool is_real(const PtxCode *code) {
  PtxType type = (PtxType)code->type[0];
  return sol_ptx_type_class(type) == PTX_CLASS_FLOAT || type == PTX_F16X2 || type == PTX_BF16X2 ||
         type == PTX_F32X2;
}

// Instructions that the machine has several for, or shares with others.
static bool is_made_of_several(const PtxCode *code) {
  switch (code->op) {
  case PTX_OP_DIV:
  case PTX_OP_FDIV:
  case PTX_OP_REM:
  case PTX_OP_RCP:
  case PTX_OP_SQRT:
  case PTX_OP_SIN:
  case PTX_OP_COS:
  case PTX_OP_BFE:
  case PTX_OP_BFI:
  case PTX_OP_BFIND:
  case PTX_OP_CALL: return true;
  case PTX_OP_MUL:
  case PTX_OP_MAD: return code->fn == PTX_FN_HI;
  default: return false;
  }
}

// AuditInst.machine_likeness
static uint8_t likeness_of(const PtxCode *code, const AuditInst *in) {
  PtxType type = (PtxType)code->type[0];
  if (is_made_of_several(code)) return 0;
  if (in->barrier || in->unit == SOL_EMU_CLASS_TENSOR) return 3;
  if (in->unit == SOL_EMU_CLASS_MEMORY)
    return in->kind == SOL_EMU_KIND_OTHER || in->kind == SOL_EMU_KIND_CONST_LOAD ? 0 : 3;
  PtxTypeClass class = sol_ptx_type_class(type);
  if (code->op == PTX_OP_SETP && class == PTX_CLASS_FLOAT) return 1; // ptxas repeats comparisons
  if (in->unit == SOL_EMU_CLASS_FLOAT || in->unit == SOL_EMU_CLASS_DOUBLE)
    return class == PTX_CLASS_FLOAT ? 2 : 0;
  if (in->unit == SOL_EMU_CLASS_HALF) return class == PTX_CLASS_FLOAT || class == PTX_CLASS_PACKED ? 2 : 0;
  if (in->unit == SOL_EMU_CLASS_SPECIAL) return 2;
  if (in->unit == SOL_EMU_CLASS_WARP) return code->op == PTX_OP_SHFL ? 3 : 0;
  if (in->unit == SOL_EMU_CLASS_INT) return sol_ptx_type_bits(type) == 64 ? 0 : 1;
  return 0;
}

static bool calls(const SolPtxModule *ptx, const PtxInst *in, const char *name) {
  return in->code->op == PTX_OP_CALL && in->operands[0].kind == PTX_ARG_FUNC &&
         strcmp(ptx->functions[in->operands[0].index].name, name) == 0;
}

static void take_address(const PtxInst *in, AuditInst *to) {
  const PtxOperand *o = in->operands, *end = o + in->operand_count;
  while (o < end && o->kind != PTX_ARG_MEM) o++;
  if (o == end) return;
  if (o->index != PTX_NONE)
    to->base = UINT64_C(1) << 32 | o->index;
  else if (o->symbol != PTX_NONE)
    to->base = UINT64_C(2) << 32 | o->symbol;
  to->offset = (int64_t)o->value;
}

static bool take_inst(const SolPtxModule *ptx, const SolEmuInstCounts *from, uint32_t place, SolArena *arena,
                      const uint8_t **indexing, AuditInst *to) {
  const PtxFunction *f = &ptx->functions[from->function];
  const uint8_t *marks = indexing_of(ptx, from->function, indexing, arena);
  const PtxInst *in = &f->insts[from->inst];
  char *text = sol_arena_alloc(arena, TEXT);
  if (!text || !marks) return false;
  sol_ptx_format_inst(ptx, f, in, text, TEXT);
  *to = (AuditInst){.text = text, .place = place, .counts = from->counts, .pattern = from->pattern};
  find_place(ptx, f, in, arena, to);
  to->indexing = marks[from->inst];
  to->ptx_line = in->line;
  to->kind = kind_of(in->code, &from->counts);
  to->unit = sol_emu_class(in);
  to->width = from->pattern.width;
  to->waits = from->waits;
  to->follows = from->follows;
  to->async = is_async(in->code);
  to->bulk = is_bulk(in->code);
  to->tensor =
      to->bulk && in->code->op != PTX_OP_CP_ASYNC_BULK && in->code->op != PTX_OP_CP_REDUCE_ASYNC_BULK;
  to->list = strlen(text) > 6 && memcmp(text, "tex.1d", 6) == 0;
  to->prints = calls(ptx, in, "vprintf");
  to->allocates = calls(ptx, in, "malloc") || calls(ptx, in, "free");
  to->is_load = loads_value(in->code, to->kind);
  to->barrier = is_block_barrier(in->code);
  to->branch = in->diverges;
  to->read_only = PTX_HAS(in->code, NC);
  to->real =
      is_real(in->code) && (to->kind == SOL_EMU_KIND_GLOBAL_ATOMIC || to->kind == SOL_EMU_KIND_SHARED_ATOMIC);
  to->machine_likeness = likeness_of(in->code, to);
  to->size = (uint8_t)sol_emu_size(in);
  take_address(in, to);
  AuditRetry retry = to->pattern.swaps ? audit_retry(f, from->inst, arena) : AUDIT_RETRY_NEVER;
  to->better = retry == AUDIT_RETRY_BETTER;
  if (retry == AUDIT_RETRY_NEVER) to->pattern.swaps = to->pattern.swapped = to->pattern.held = 0;
  if (to->unit == SOL_EMU_CLASS_TENSOR) to->flops = tensor_flops(in->code);
  return true;
}

// Allocations of a program have no names: their size and address have to do.
static const char *label_of(const SolEmuTouch *t, SolArena *arena) {
  enum { LABEL = 64 };
  if (t->label[0]) return t->label;
  char *text = sol_arena_alloc(arena, LABEL);
  if (text)
    sol_format(text, LABEL, "%llu bytes at 0x%llx", (unsigned long long)t->bytes,
               (unsigned long long)t->address);
  return text ? text : "";
}

static bool take_touches(const SolEmuResult *r, SolArena *arena, AuditLaunch *out) {
  AuditTouch *touches = sol_arena_alloc(arena, (r->touch_count + 1) * sizeof *touches);
  if (!touches) return false;
  for (uint32_t i = 0; i < r->touch_count; i++) {
    const SolEmuTouch *t = &r->touches[i];
    touches[i] = (AuditTouch){.address = t->address,
                              .bytes = t->bytes,
                              .label = label_of(t, arena),
                              .variable = t->variable,
                              .host = t->host,
                              .read = (double)t->read,
                              .written = (double)t->written,
                              .read_first = (double)t->read_first,
                              .read_sectors = (double)t->read_sectors,
                              .written_sectors = (double)t->written_sectors,
                              .partial_sectors = (double)t->partial_sectors,
                              .moved = (double)t->moved,
                              .moved_pages = (double)t->moved_pages,
                              .moved_blocks = (double)t->moved_blocks,
                              .launches = 1};
  }
  out->touches = touches;
  out->touch_count = r->touch_count;
  return true;
}

static AuditFault fault_of(const SolPtxModule *ptx, const SolEmuFinding *f, SolArena *arena) {
  AuditInst at = {.file = ""};
  if (f->function < ptx->function_count && f->inst < ptx->functions[f->function].inst_count)
    find_place(ptx, &ptx->functions[f->function], &ptx->functions[f->function].insts[f->inst], arena, &at);
  AuditFault fault = {.message = f->message,
                      .kind = sol_emu_finding_name(f->kind),
                      .file = at.file,
                      .line = at.line,
                      .function = f->function,
                      .inst = f->inst,
                      .address = f->address,
                      .bytes = f->bytes,
                      .times = f->times,
                      .launches = 1};
  memcpy(fault.block, f->block, sizeof fault.block);
  memcpy(fault.thread, f->thread, sizeof fault.thread);
  return fault;
}

bool audit_take_faults(const SolPtxModule *ptx, const SolEmuResult *r, SolArena *arena, AuditLaunch *out) {
  AuditFault *faults = sol_arena_alloc(arena, (r->finding_count + 1) * sizeof *faults);
  if (!faults) return false;
  for (uint32_t i = 0; i < r->finding_count; i++) faults[i] = fault_of(ptx, &r->findings[i], arena);
  out->faults = faults;
  out->fault_count = r->finding_count;
  out->faults_left_out = r->findings_dropped;
  return true;
}

SolStatus audit_take(const SolPtxModule *ptx, const SolEmuResult *r, SolArena *arena, AuditLaunch *out,
                     SolError *err) {
  const PtxFunction *f = sol_emu_kernel_function(r->kernel);
  out->name = f->name;
  out->static_shared = f->shared_bytes;
  out->local_array_bytes = f->local_bytes;
  out->end = r->end;
  out->blocks = r->blocks;
  out->flight = r->flight;
  out->chain = r->chain;
  out->balance = r->balance;
  out->trace = r->trace.events ? &r->trace : NULL;
  out->left_dirty = r->left_dirty;
  out->dirty_limit = r->dirty_limit;
  out->earlier = r->earlier;
  out->earlier_read = r->earlier_read;
  uint32_t ran = 0;
  for (uint32_t i = 0; i < r->inst_count; i++) ran += r->insts[i].counts.executions != 0;
  AuditInst *insts = sol_arena_alloc(arena, (ran + 1) * sizeof *insts);
  const uint8_t **indexing = sol_arena_alloc(arena, (ptx->function_count + 1) * sizeof *indexing);
  bool fine = insts && indexing && audit_take_faults(ptx, r, arena, out) && take_touches(r, arena, out);
  if (indexing) memset(indexing, 0, (ptx->function_count + 1) * sizeof *indexing);
  out->inst_count = 0;
  for (uint32_t i = 0; fine && i < r->inst_count; i++)
    if (r->insts[i].counts.executions)
      fine = take_inst(ptx, &r->insts[i], i, arena, indexing, &insts[out->inst_count++]);
  if (fine && out->code)
    fine = out->machine = audit_machine_code(out->code, out->device, insts, out->inst_count, arena);
  out->insts = insts;
  return fine ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}
