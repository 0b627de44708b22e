// SOL_SHIM_REPORT=FILE: one line of JSON per launch is added to FILE as soon as it has ended, so that a
// program that crashes leaves what it did so far. Lines are written whole: children may write to the same file.
// SOL_SHIM_AUDIT=FILE does the same with everything that `sol audit` needs (audit/audit_wire.h). SOL_SHIM_SAMPLE,
// SOL_SHIM_COLD and SOL_SHIM_SECONDS select a part of each launch, an L2 that is empty before each, and a time
// limit; SOL_SHIM_PROGRESS adds lines with the progress of a launch; SOL_SHIM_ALL counts launches that repeat
// (repeat.c), too; SOL_SHIM_CHECK=race,init,sync,mem lets launches go on after errors, and looks for more. Once the file SOL_SHIM_STOP exists, the running launch ends, and is reported.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit_wire.h"
#include "base/channel.h"
#include "base/json_write.h"
#include "base/threads.h"
#include "shim/shim.h"

typedef struct Output {
  const char *name; // of the environment variable that names the file
  SolChannel channel;
  bool warned; // that lines could not be written
} Output;
typedef struct Report {
  ShimObserver observer;
  Output output;
} Report;

// False: none is requested, or it cannot be opened.
static bool open_output(Output *out, const char *variable) {
  const char *path = getenv(variable);
  SolError err = {0};
  out->name = variable;
  if (!path || !*path) return false;
  if (!sol_channel_open(&out->channel, path, 0666, &err)) return true;
  shim_note("%s: %s", variable, err.message);
  return false;
}

static void write_line(Output *out, const char *text, size_t length) {
  SolError err = {0};
  if (!sol_channel_write(&out->channel, text, length, &err)) return;
  if (!out->warned)
    shim_note("%s: %s; launches are missing in the report from here on", out->name, err.message);
  out->warned = true;
}

static void put_dims(SolJsonWriter *w, const char *name, dim3 d) {
  sol_json_open(w, name, '[');
  sol_json_put_number(w, NULL, d.x);
  sol_json_put_number(w, NULL, d.y);
  sol_json_put_number(w, NULL, d.z);
  sol_json_close(w, ']');
}

static void put_global(SolJsonWriter *w, const char *name, const SolEmuCounts *c) {
  sol_json_open(w, name, '{');
  sol_json_put_number(w, "requests", (double)c->requests);
  sol_json_put_number(w, "sectors", (double)c->sectors);
  sol_json_put_number(w, "ideal_sectors", (double)c->sectors_ideal);
  sol_json_close(w, '}');
}

static void put_shared(SolJsonWriter *w, const char *name, const SolEmuCounts *c) {
  sol_json_open(w, name, '{');
  sol_json_put_number(w, "requests", (double)c->shared_requests);
  sol_json_put_number(w, "wavefronts", (double)c->wavefronts);
  sol_json_put_number(w, "ideal_wavefronts", (double)c->wavefronts_ideal);
  sol_json_close(w, '}');
}

static void put_findings(SolJsonWriter *w, const SolEmuResult *r) {
  sol_json_open(w, "findings", '[');
  for (uint32_t i = 0; i < r->finding_count; i++) {
    sol_json_open(w, NULL, '{');
    sol_json_put_text(w, "kind", sol_emu_finding_name(r->findings[i].kind));
    sol_json_put_text(w, "message", r->findings[i].message);
    sol_json_put_number(w, "threads", (double)r->findings[i].times);
    sol_json_close(w, '}');
  }
  sol_json_close(w, ']');
}

static void put_launch(SolJsonWriter *w, const ShimLaunch *l) {
  const SolEmuResult *r = l->result;
  sol_json_open(w, NULL, '{');
  sol_json_put_text(w, "name", l->work->kernel->name);
  sol_json_put_text(w, "device", shim.device->id);
  put_dims(w, "grid", l->work->grid);
  put_dims(w, "block", l->work->block);
  put_dims(w, "cluster", l->work->cluster);
  sol_json_put_number(w, "dynamic_shared", (double)l->work->shared);
  sol_json_put_number(w, "static_shared", (double)l->work->kernel->fn->shared_bytes);
  sol_json_put_number(w, "registers", l->work->kernel->registers);
  sol_json_put_bool(w, "done", r->end == SOL_EMU_DONE);
  sol_json_put_number(w, "instructions", (double)r->total.executions);
  put_global(w, "global_load", &r->kinds[SOL_EMU_KIND_GLOBAL_LOAD]);
  put_global(w, "global_store", &r->kinds[SOL_EMU_KIND_GLOBAL_STORE]);
  put_global(w, "global_atomic", &r->kinds[SOL_EMU_KIND_GLOBAL_ATOMIC]);
  put_shared(w, "shared_load", &r->kinds[SOL_EMU_KIND_SHARED_LOAD]);
  put_shared(w, "shared_store", &r->kinds[SOL_EMU_KIND_SHARED_STORE]);
  sol_json_put_number(w, "dram_bytes", (double)(r->total.dram_read + r->total.dram_write));
  put_findings(w, r);
  sol_json_close(w, '}');
}

// Drops line breaks, which are formatting and never part of a string, and the spaces after them; but for the last.
static size_t join_lines(char *text, size_t length) {
  size_t kept = 0;
  for (size_t i = 0; i + 1 < length; i++) {
    if (text[i] != '\n') {
      text[kept++] = text[i];
      continue;
    }
    while (i + 2 < length && text[i + 1] == ' ') i++;
  }
  text[kept++] = '\n';
  return kept;
}

static void on_launch(void *ctx, const ShimLaunch *launch) {
  Report *report = ctx;
  SolBuffer line = {0};
  SolJsonWriter w = {.out = &line};
  put_launch(&w, launch);
  if (line.failed) {
    shim_note("SOL_SHIM_REPORT: out of memory");
  } else {
    write_line(&report->output, line.text, join_lines(line.text, line.length));
  }
  sol_buffer_free(&line);
}

// ---- for an audit ----

typedef struct Sent { // what has been written of a kernel already
  struct Sent *next;
  const ShimKernel *kernel;
  uint32_t id;
  AuditSent sent;
} Sent;
typedef struct Audit {
  ShimObserver observer;
  Output output;
  uint32_t kernels;
  Sent *sent;
  double looked;    // when, by the host's clock: progress and SOL_SHIM_STOP
  bool progress;    // is wanted
  const char *stop; // SOL_SHIM_STOP; NULL: not set
} Audit;

static Sent *sent_of(Audit *audit, const ShimKernel *kernel) {
  for (Sent *t = audit->sent; t; t = t->next)
    if (t->kernel == kernel) return t;
  Sent *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  *t = (Sent){.next = audit->sent, .kernel = kernel, .id = ++audit->kernels};
  return audit->sent = t;
}

static void audit_again(Audit *audit, const ShimLaunch *l) {
  SolBuffer line = {0};
  SolArena arena = {0};
  AuditLaunch found = {0};
  bool taken = audit_take_faults(sol_emu_ptx(l->module), l->result, &arena, &found);
  AuditAgain again = {.key = l->again.key,
                      .graph = shim.streams.in_graph,
                      .unlike = l->again.unlike,
                      .counted = l->again.counted,
                      .faults = found.faults,
                      .fault_count = found.fault_count,
                      .faults_left_out = found.faults_left_out};
  if (taken) audit_write_again(&again, &line);
  if (taken && !line.failed)
    write_line(&audit->output, line.text, line.length);
  else
    shim_note("SOL_SHIM_AUDIT: out of memory");
  sol_buffer_free(&line);
  sol_arena_free(&arena);
}

static void audit_launch(void *ctx, const ShimLaunch *l) {
  Audit *audit = ctx;
  if (l->again.key) {
    audit_again(audit, l);
    return;
  }
  Sent *sent = sent_of(audit, l->work->kernel);
  SolArena arena = {0};
  SolBuffer line = {0};
  AuditLaunch launch;
  shim_describe(l->work, &launch);
  launch.key = l->key;
  if (l->work->kernel->code.count) launch.code = &l->work->kernel->code, launch.device = shim.device;
  bool taken = sent && !audit_take(sol_emu_ptx(l->module), l->result, &arena, &launch, NULL);
  if (taken) audit_write_launch(&launch, sent->id, &sent->sent, &line);
  if (taken && !line.failed)
    write_line(&audit->output, line.text, line.length);
  else
    shim_note("SOL_SHIM_AUDIT: out of memory");
  sol_buffer_free(&line);
  sol_arena_free(&arena);
}

static void audit_module(void *ctx, uint32_t unit, const char *ptx) {
  SolBuffer line = {0};
  audit_write_module(unit, ptx, &line);
  if (!line.failed) write_line(&((Audit *)ctx)->output, line.text, line.length);
  sol_buffer_free(&line);
}

static void audit_memory(void *ctx, bool wrote, const void *at, size_t bytes) {
  SolBuffer line = {0};
  audit_write_outside(wrote ? AUDIT_OUTSIDE_WROTE : AUDIT_OUTSIDE_READ, shim_address(at), bytes, &line);
  if (!line.failed) write_line(&((Audit *)ctx)->output, line.text, line.length);
  sol_buffer_free(&line);
}

static void audit_missing(void *ctx, const char *what) {
  SolBuffer line = {0};
  audit_write_missing(what, &line);
  if (!line.failed) write_line(&((Audit *)ctx)->output, line.text, line.length);
  sol_buffer_free(&line);
}

static void audit_library_call(void *ctx, const AuditLibraryCall *call) {
  SolBuffer line = {0};
  audit_write_library(call, &line);
  if (!line.failed) write_line(&((Audit *)ctx)->output, line.text, line.length);
  sol_buffer_free(&line);
}

// At most five times a second, for the progress display of the auditor, and for it to end the launch.
static void audit_progress(void *ctx, const SolEmuProgress *progress) {
  Audit *audit = ctx;
  double now = sol_thread_clock();
  if (now - audit->looked < 0.2) return;
  audit->looked = now;
  if (audit->stop && access(audit->stop, F_OK) == 0) shim.watch.interrupt = true;
  if (!audit->progress) return;
  SolBuffer line = {0};
  audit_write_progress(progress, &line);
  if (!line.failed) write_line(&audit->output, line.text, line.length);
  sol_buffer_free(&line);
}

// ---- the two observers ----

// Both live as long as the process.
static void open_report(void) {
  Report *report = calloc(1, sizeof *report);
  if (!report || !open_output(&report->output, "SOL_SHIM_REPORT")) {
    free(report);
    return;
  }
  report->observer = (ShimObserver){.launch = on_launch, .ctx = report};
  shim_observe(&report->observer);
}

// "race,init,sync,mem"
static void read_checks(const char *list) {
  static const struct {
    const char *name;
    unsigned bit;
  } all[] = {{"init", SOL_EMU_CHECK_INIT}, {"race", SOL_EMU_CHECK_RACE}, {"sync", SOL_EMU_CHECK_SYNC}};
  shim.watch.keep_going = list;
  for (size_t i = 0; list && i < SOL_COUNT(all); i++)
    if (strstr(list, all[i].name)) shim.watch.checks |= all[i].bit;
}

static void audit_end(void *ctx) {
  (void)ctx;
  const ShimWatch *w = &shim.watch;
  if (w->from)
    shim_note("launch %llu of %s was not reached: it was launched %llu times, and nothing was counted",
              (unsigned long long)w->from_launch, w->from, (unsigned long long)w->from_seen);
}

static void open_audit(void) {
  Audit *audit = calloc(1, sizeof *audit);
  if (!audit || !open_output(&audit->output, "SOL_SHIM_AUDIT")) {
    free(audit);
    return;
  }
  audit->observer = (ShimObserver){.launch = audit_launch,
                                   .memory = audit_memory,
                                   .module = audit_module,
                                   .missing = audit_missing,
                                   .library = audit_library_call,
                                   .end = audit_end,
                                   .ctx = audit};
  shim_observe(&audit->observer);
  shim.watch.patterns = true;
  const char *sample = getenv("SOL_SHIM_SAMPLE"), *seconds = getenv("SOL_SHIM_SECONDS");
  audit->progress = getenv("SOL_SHIM_PROGRESS");
  audit->stop = getenv("SOL_SHIM_STOP");
  shim.watch.progress = audit_progress;
  shim.watch.progress_ctx = audit;
  shim.watch.repeat =
      !getenv("SOL_SHIM_ALL") && !getenv("SOL_SHIM_REPORT"); // which has every launch's counts
  shim.watch.cold = getenv("SOL_SHIM_COLD");
  read_checks(getenv("SOL_SHIM_CHECK"));
  const char *launch = getenv("SOL_SHIM_LAUNCH");
  shim.watch.from = getenv("SOL_SHIM_FROM");
  shim.watch.from_launch = launch ? strtoull(launch, NULL, 10) : 1;
  if (sample) shim.watch.sample = (uint32_t)strtoul(sample, NULL, 10);
  if (seconds && atof(seconds) > 0) shim.streams.deadline = sol_thread_clock() + atof(seconds);
}

void shim_report_open(void) {
  open_report();
  open_audit();
}
