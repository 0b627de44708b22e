// Launches one kernel from the command line, for every command that does so.
#include "cli/kernel.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit_names.h"
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"

enum { MAX_PTX = 1 << 30 };

// The one thing a signal handler may touch.
static volatile bool interrupted;
static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = true;
}

void cli_kernel_close(KernelRun *r) {
  sol_emu_result_free(&r->result);
  sol_driver_close(r->driver);
  free(r->params);
  for (int i = 0; i < r->source_count; i++) free((char *)(uintptr_t)r->sources[i].text);
}

// An error in a PTX text is shown with its line; with several texts the message names the one concerned.
static int ptx_error(KernelRun *r, const SolError *err) {
  for (int i = 0; i < r->source_count; i++) {
    const SolPtxSource *s = &r->sources[i];
    bool named = strncmp(err->message, s->name, strlen(s->name)) == 0;
    if (err->line > 0 && (r->source_count == 1 || named))
      return cli_error(r->cli, err, r->source_count == 1 ? s->name : 0, s->text, s->length);
  }
  return cli_error(r->cli, err, 0, 0, 0);
}

int cli_kernel_read(KernelRun *r, const char *const *paths, int count) {
  for (int i = 0; i < count; i++) {
    SolError err = {0};
    size_t length = 0;
    char *text = cli_read_file(paths[i], MAX_PTX, &length, &err);
    if (!text) return cli_error(r->cli, &err, 0, 0, 0);
    r->sources[r->source_count++] = (SolPtxSource){paths[i], text, length};
  }
  return EXIT_OK;
}

int cli_kernel_open(KernelRun *r, SolBackend backend, const SolDevice *device) {
  SolError err = {0};
  SolDriverOptions options = {.backend = backend, .device = device, .workers = (int)r->args->workers};
  if (sol_driver_open(&options, &r->driver, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  if (sol_driver_load(r->driver, r->sources, r->source_count, &r->module, &err)) return ptx_error(r, &err);
  return EXIT_OK;
}

// ---- which ----

// The kernels whose name, as written in the source, is this one.
static int count_titled(const SolPtxModule *ptx, const char *title, const char **name) {
  int count = 0;
  for (uint32_t i = 0; i < ptx->function_count; i++) {
    char text[160];
    if (!ptx->functions[i].entry) continue;
    audit_title(ptx->functions[i].name, text, sizeof text);
    size_t n = strcspn(text, "<"); // without its template arguments
    if (strcmp(text, title) != 0 && (strlen(title) != n || strncmp(text, title, n) != 0)) continue;
    if (count++ == 0) *name = ptx->functions[i].name;
  }
  return count;
}

static int too_many(const KernelRun *r, const SolPtxModule *ptx, int count) {
  SolBuffer names = {0};
  for (uint32_t i = 0; i < ptx->function_count; i++) {
    char text[160];
    if (!ptx->functions[i].entry) continue;
    audit_title(ptx->functions[i].name, text, sizeof text);
    sol_buffer_format(&names, "%s%s", names.length ? ", " : "", text);
  }
  int code = cli_fail(r->cli, "there are %d kernels in it; name one with --kernel: %.300s", count,
                      names.text ? names.text : "");
  sol_buffer_free(&names);
  return code;
}

int cli_kernel_pick(KernelRun *r) {
  const SolPtxModule *ptx = sol_driver_ptx(r->module);
  const char *name = r->args->kernel, *first = NULL;
  int count = 0;
  for (uint32_t i = 0; i < ptx->function_count; i++)
    if (ptx->functions[i].entry && count++ == 0) first = ptx->functions[i].name;
  if (!first) return cli_fail(r->cli, "there is no kernel in it");
  if (!name && count > 1) return too_many(r, ptx, count);
  if (!name) name = first;
  if (!sol_ptx_find_function(ptx, name)) {
    int titled = count_titled(ptx, name, &name);
    if (titled > 1)
      return cli_fail(r->cli, "%d kernels are called %.80s; name one as 'sol run-ptx --list' does", titled,
                      name);
  }
  SolError err = {0};
  return sol_driver_kernel(r->module, name, &r->kernel, &err) ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

// ---- arguments ----

static int make_buffer(KernelRun *r, SolKernelArg *a, int i) {
  SolError err = {0};
  uint64_t seed = (uint64_t)i + 1;
  size_t length = (size_t)a->bytes;
  char path[4096];
  void *bytes;
  if (a->init == SOL_INIT_FILE) {
    if (a->rest_length >= sizeof path) return cli_fail(r->cli, "--arg: the file's name is too long");
    sol_format(path, sizeof path, "%.*s", (int)a->rest_length, a->rest);
    bytes = cli_read_file(path, (size_t)a->bytes, &length, &err);
    if (bytes && length != a->bytes) {
      free(bytes);
      return cli_fail(r->cli, "'%.80s' has %zu bytes, the buffer %llu", path, length,
                      (unsigned long long)a->bytes);
    }
  } else {
    bytes = malloc(length ? length : 1);
    if (bytes)
      sol_arg_fill(a, seed, bytes);
    else
      sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory");
  }
  if (!bytes) return cli_error(r->cli, &err, 0, 0, 0);
  char label[48];
  if (a->name[0])
    sol_format(label, sizeof label, "%s", a->name);
  else
    sol_format(label, sizeof label, "argument %d", i + 1);
  SolStatus status = sol_driver_alloc(r->driver, a->bytes, label, &a->address, &err);
  if (!status) status = sol_driver_write(r->driver, a->address, bytes, a->bytes, &err);
  free(bytes);
  return status ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

static int parse_arg(KernelRun *r, const char *option, const char *text, SolKernelArg *out) {
  SolError err = {0};
  SolStatus status = sol_arg_parse(text, strlen(text), out, &err);
  return status ? cli_error(r->cli, &err, option, text, strlen(text)) : EXIT_OK;
}

static int make_buffers(KernelRun *r) {
  const TextList *given = &r->args->buffers;
  int code = EXIT_OK;
  for (int i = 0; i < given->count && !code; i++) {
    SolKernelArg *a = &r->buffer[i];
    code = parse_arg(r, "--buffer", given->text[i], a);
    if (!code && (!a->buffer || !a->name[0]))
      code = cli_fail(r->cli, "--buffer: expected NAME:TYPE[COUNT], not '%.60s'", given->text[i]);
    if (!code) code = make_buffer(r, a, MAX_TEXTS + i);
  }
  return code;
}

// Pointers may name any buffer, also one of a later argument.
static int point(KernelRun *r) {
  for (int i = 0; i < r->args->args.count; i++) {
    SolKernelArg *a = &r->arg[i];
    if (!a->pointer) continue;
    const SolKernelArg *to = cli_kernel_buffer(r, a->rest, a->rest_length);
    if (!to) return cli_fail(r->cli, "--arg: no buffer is called '%.*s'", (int)a->rest_length, a->rest);
    a->address = to->address + (uint64_t)a->whole;
  }
  return EXIT_OK;
}

int cli_kernel_make_args(KernelRun *r) {
  const PtxFunction *f = sol_driver_function(r->kernel);
  const SolPtxModule *ptx = sol_driver_ptx(r->module);
  const TextList *given = &r->args->args;
  if ((uint32_t)given->count != f->param_count)
    return cli_fail(r->cli, "%s takes %u argument%s, %d given (--arg)", f->name, f->param_count,
                    f->param_count == 1 ? "" : "s", given->count);
  r->params = calloc(1, (size_t)f->param_size + 1);
  if (!r->params) return cli_fail(r->cli, "out of memory");
  int code = make_buffers(r);
  for (int i = 0; i < given->count && !code; i++) {
    code = parse_arg(r, "--arg", given->text[i], &r->arg[i]);
    if (!code && r->arg[i].buffer) code = make_buffer(r, &r->arg[i], i);
  }
  if (!code) code = point(r);
  if (code) return code;
  for (int i = 0; i < given->count; i++) {
    SolError err = {0};
    if (sol_arg_pack(f, ptx, i, &r->arg[i], r->params, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  }
  r->launch.params = r->params;
  r->launch.param_bytes = f->param_size;
  return EXIT_OK;
}

// ---- geometry ----

// "32,1024" or "32x1024": up to three counts, the others 1.
static int parse_dims(Cli *cli, const char *option, const char *text, uint32_t out[3]) {
  char copy[64];
  sol_format(copy, sizeof copy, "%.60s", text);
  for (char *p = copy; *p; p++)
    if (*p == ',') *p = 'x';
  int64_t dims[3] = {1, 1, 1};
  int rank = 0;
  SolError err = {0};
  if (sol_parse_shape(copy, strlen(copy), 3, dims, &rank, &err))
    return cli_error(cli, &err, option, text, strlen(text));
  for (int i = 0; i < 3; i++) {
    if (i < rank && dims[i] > UINT32_MAX) return cli_fail(cli, "%s: larger than a launch can be", option);
    out[i] = i < rank ? (uint32_t)dims[i] : 1;
  }
  return EXIT_OK;
}

int cli_kernel_geometry(KernelRun *r, bool guess) {
  const KernelArgs *a = r->args;
  int code = EXIT_OK;
  if (!guess && (!a->grid || !a->block)) return cli_fail(r->cli, "--grid and --block are needed");
  if (a->grid) code = parse_dims(r->cli, "--grid", a->grid, r->launch.grid);
  if (!code && a->block) code = parse_dims(r->cli, "--block", a->block, r->launch.block);
  if (!code && a->cluster) code = parse_dims(r->cli, "--cluster", a->cluster, r->launch.cluster);
  if (!code && (!a->grid || !a->block)) cli_kernel_guess(r);
  return code;
}

// ---- running ----

static void print_text(void *ctx, const char *text, size_t length) {
  (void)ctx;
  fwrite(text, 1, length, stderr); // the program's own output, apart from the answer
}

int cli_kernel_launch(KernelRun *r) {
  SolError err = {0};
  r->launch.kernel = r->kernel;
  r->launch.dynamic_shared = (uint64_t)r->args->smem;
  r->launch.cooperative = r->args->cooperative;
  r->emu.max_instructions = (uint64_t)r->args->max_instructions;
  r->emu.max_seconds = r->args->seconds;
  r->emu.async_order = (uint64_t)r->args->async_order;
  r->emu.interrupt = &interrupted;
  r->emu.print = print_text;
  CliLaunch shown = {.cli = r->cli};
  r->emu.progress = cli_launch_progress;
  r->emu.progress_ctx = &shown;
  r->launch.emu = &r->emu;
  void (*before)(int) = signal(SIGINT, on_interrupt);
  SolStatus status = sol_driver_launch(r->driver, &r->launch, &r->result, &r->seconds, &err);
  signal(SIGINT, before == SIG_ERR ? SIG_DFL : before);
  r->emu.progress = NULL;
  if (shown.shown > 0) cli_status(r->cli, "%s", "");
  return status ? cli_error(r->cli, &err, 0, 0, 0) : EXIT_OK;
}

const char *cli_kernel_end_text(SolEmuEnd end) {
  switch (end) {
  case SOL_EMU_DONE: return "done";
  case SOL_EMU_FAULT: return "fault";
  case SOL_EMU_INSTRUCTION_LIMIT: return "instruction limit";
  case SOL_EMU_TIME_LIMIT: return "time limit";
  case SOL_EMU_INTERRUPTED: return "interrupted";
  }
  return "?";
}

const SolKernelArg *cli_kernel_buffer(const KernelRun *r, const char *name, size_t length) {
  for (int i = 0; length && i < 2 * MAX_TEXTS; i++) { // those that are not used are zero
    const SolKernelArg *a = i < MAX_TEXTS ? &r->arg[i] : &r->buffer[i - MAX_TEXTS];
    if (a->buffer && strlen(a->name) == length && strncmp(a->name, name, length) == 0) return a;
  }
  return NULL;
}

int cli_kernel_save(KernelRun *r) {
  for (int s = 0; s < r->args->save.count; s++) {
    const char *text = r->args->save.text[s], *equals = strchr(text, '=');
    const SolKernelArg *a = equals ? cli_kernel_buffer(r, text, (size_t)(equals - text)) : NULL;
    if (!a) return cli_fail(r->cli, "--save: expected NAME=FILE with a buffer's name, not '%.60s'", text);
    SolError err = {0};
    void *bytes = malloc((size_t)a->bytes);
    if (!bytes)
      sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory");
    else if (!sol_driver_read(r->driver, bytes, a->address, a->bytes, &err))
      cli_write_file(equals + 1, bytes, (size_t)a->bytes, &err);
    free(bytes);
    if (err.status) return cli_error(r->cli, &err, 0, 0, 0);
  }
  return EXIT_OK;
}
