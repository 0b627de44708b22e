// The bill of one launch of a kernel, from PTX: the keys of `sol audit --json`. Registers are the emulator's estimate,
// and instructions the PTX's, since there is no ptxas here.
#include <string.h>

#include "audit/audit.h"
#include "audit/audit_names.h"
#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "base/text.h"
#include "driver/args.h"
#include "page/page.h"
#include "report/report_audit.h"
#include "report/report_source.h"

enum { MAX_ARGS = 64, MOST_INSTRUCTIONS = 100 * 1000 * 1000 };
static const double MOST_BYTES = 1 << 30; // of buffers: a page has 4 GiB at most

static const char PTX_NAME[] = "kernel.ptx";

typedef struct Run {
  PageAsk *ask;
  SolEmu *emu;
  SolEmuModule *module;
  const SolEmuKernel *kernel;
  const PtxFunction *function;
  uint8_t *params;
  double bytes;
  SolEmuLaunch launch;
  SolEmuResult result;
} Run;

static bool open_module(Run *r, const SolDevice *device) {
  const char *ptx = page_text(r->ask, "ptx");
  SolEmuMachine machine = sol_driver_machine(device);
  machine.workers = 1;
  SolPtxSource source = {PTX_NAME, ptx, strlen(ptx)};
  return !sol_emu_create(&machine, &r->emu, &r->ask->err) &&
         !sol_emu_load(r->emu, &source, 1, &r->module, &r->ask->err);
}

// By its name, as mangled or as written; the first where none is given.
static bool pick(Run *r) {
  const char *want = page_text(r->ask, "kernel");
  char title[160];
  SolEmuKernel *k;
  for (int i = 0; (k = sol_emu_kernel_at(r->module, i)); i++) {
    const char *name = sol_emu_kernel_function(k)->name;
    audit_title(name, title, sizeof title);
    if (*want && strcmp(want, name) != 0 && strcmp(want, title) != 0) continue;
    r->kernel = k;
    r->function = sol_emu_kernel_function(k);
    return true;
  }
  if (*want)
    sol_fail(&r->ask->err, SOL_ERR_NOT_FOUND, "there is no kernel called '%.80s' in it", want);
  else
    sol_fail(&r->ask->err, SOL_ERR_NOT_FOUND, "there is no kernel in it");
  return false;
}

static bool make_buffer(Run *r, int i, SolKernelArg *a) {
  r->bytes += (double)a->bytes;
  if (a->init == SOL_INIT_FILE || r->bytes > MOST_BYTES) {
    sol_fail(&r->ask->err, SOL_ERR_UNSUPPORTED, "argument %d: %s", i + 1,
             a->init == SOL_INIT_FILE ? "a page reads no files" : "buffers of more than 1 GiB");
    return false;
  }
  char label[48];
  if (a->name[0])
    sol_format(label, sizeof label, "%s", a->name);
  else
    sol_format(label, sizeof label, "argument %d", i + 1);
  void *bytes = sol_heap_alloc((size_t)a->bytes + 1);
  if (!bytes) return false;
  sol_arg_fill(a, (uint64_t)i + 1, bytes);
  bool made = !sol_emu_alloc(r->emu, a->bytes, label, &a->address, &r->ask->err) &&
              !sol_emu_write(r->emu, a->address, bytes, a->bytes, &r->ask->err);
  sol_heap_free(bytes);
  return made;
}

static bool make_arg(Run *r, int i, const char *text) {
  SolKernelArg arg;
  SolError err = {0};
  if (sol_arg_parse(text, strlen(text), &arg, &err)) {
    sol_fail(&r->ask->err, err.status, "argument %d, '%.60s': %s", i + 1, text, err.message);
    return false;
  }
  if (arg.buffer && !make_buffer(r, i, &arg)) return false;
  return !sol_arg_pack(r->function, sol_emu_ptx(r->module), i, &arg, r->params, &r->ask->err);
}

static bool make_args(Run *r) {
  SolJson list, value;
  uint32_t count = 0;
  r->params = sol_arena_alloc(r->ask->root->arena, (size_t)r->function->param_size + 1);
  if (!r->params) return false;
  if (sol_json_get(r->ask->question, "args", &list))
    for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &value); count++) {
      char text[256] = "";
      sol_json_string(value, text, sizeof text);
      if (count < r->function->param_count && count < MAX_ARGS && !make_arg(r, (int)count, text))
        return false;
    }
  if (count == r->function->param_count) return true;
  sol_fail(&r->ask->err, SOL_ERR_ARGUMENT, "%.80s takes %u arguments, %u given", r->function->name,
           r->function->param_count, count);
  return false;
}

// "16,1024" or "16x1024".
static bool dims_of(PageAsk *ask, const char *key, uint32_t out[3]) {
  char text[64];
  int64_t dims[3] = {1, 1, 1};
  int rank = 0;
  SolError err = {0};
  sol_format(text, sizeof text, "%.60s", page_text(ask, key));
  for (char *p = text; *p; p++)
    if (*p == ',') *p = 'x';
  if (sol_parse_shape(text, strlen(text), 3, dims, &rank, &err)) {
    sol_fail(&ask->err, err.status, "%s: %s", key, err.message);
    return false;
  }
  for (int i = 0; i < 3; i++) out[i] = i >= rank ? 1 : dims[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)dims[i];
  return true;
}

static bool launch(Run *r) {
  int64_t smem = 0;
  const char *text = page_text(r->ask, "smem");
  if (*text && sol_parse_count(text, strlen(text), 0, &smem, &r->ask->err)) return false;
  if (!dims_of(r->ask, "grid", r->launch.grid) || !dims_of(r->ask, "block", r->launch.block)) return false;
  r->launch.kernel = r->kernel;
  r->launch.params = r->params;
  r->launch.param_bytes = r->function->param_size;
  r->launch.dynamic_shared = (uint64_t)smem;
  r->launch.max_instructions = MOST_INSTRUCTIONS;
  r->launch.observe = true;
  return !sol_emu_launch(r->emu, &r->launch, &r->result, &r->ask->err);
}

// With -lineinfo lines are those of a file that is not here: the line's first access stands for its text.
static void name_lines(AuditProgram *p) {
  for (uint32_t i = 0; i < p->kernel_count; i++)
    for (uint32_t l = 0; l < p->kernels[i].line_count; l++) {
      AuditKernel *k = &p->kernels[i];
      AuditLine *line = &k->lines[l];
      const AuditInst *shown = &k->insts[k->by_line[line->first]];
      for (uint32_t n = line->count; n-- > 0;) {
        const AuditInst *in = &k->insts[k->by_line[line->first + n]];
        if (in->counts.requests || in->counts.shared_requests) shown = in;
      }
      line->source = shown->text;
    }
}

static bool bill(Run *r, const SolDevice *device, AuditProgram *program) {
  PageAsk *ask = r->ask;
  AuditLaunch l = {.dynamic_shared = r->launch.dynamic_shared,
                   .registers = (int)sol_emu_kernel_registers(r->kernel),
                   .registers_from = AUDIT_FROM_EMULATOR};
  memcpy(l.grid, r->launch.grid, sizeof l.grid);
  memcpy(l.block, r->launch.block, sizeof l.block);
  if (audit_start(program, device, &ask->err) ||
      audit_take(sol_emu_ptx(r->module), &r->result, ask->root->arena, &l, &ask->err) ||
      audit_add(program, &l, &ask->err) || audit_finish(program, &ask->err))
    return false;
  name_lines(program);
  page_schema(ask);
  fact_text(ask->root, "input", 0, PTX_NAME);
  report_source_facts(ask->root, &(SourceText){PTX_NAME, page_text(ask, "ptx"), 1}, 1);
  report_audit_facts(ask->root, program, &(AuditView){.top = SIZE_MAX});
  fact_list(ask->root, "gate", 0);
  return true;
}

bool page_audit(PageAsk *ask) {
  const SolDevice *device;
  Run r = {.ask = ask};
  AuditProgram program = {0};
  bool done = page_device(ask, &device) && open_module(&r, device) && pick(&r) && make_args(&r) &&
              launch(&r) && bill(&r, device, &program);
  audit_free(&program);
  sol_emu_result_free(&r.result);
  sol_emu_destroy(r.emu);
  return done;
}
