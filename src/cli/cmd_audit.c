// sol audit: the memory-tax bill of a program or a kernel, on the emulator.
#define _POSIX_C_SOURCE 200809L

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/cli_audit.h"
#include "cli/scratch.h"

void cli_audit_note(AuditRun *r, const char *format, ...) {
  if (r->note_count == MAX_NOTES) return;
  char *note = r->notes[r->note_count];
  va_list args;
  va_start(args, format);
  sol_vformat(note, sizeof r->notes[0], format, args);
  va_end(args);
  for (int i = 0; i < r->note_count; i++) // of each GPU the same
    if (strcmp(r->notes[i], note) == 0) return;
  r->note_count++;
}

void cli_audit_complain(AuditRun *r, const AuditKernel *k, const AuditLine *line, const char *format, ...) {
  if (r->complaint_count == MAX_COMPLAINTS) return;
  AuditComplaint *c = &r->complaints[r->complaint_count++];
  *c = (AuditComplaint){.kernel = k->title, .file = line ? line->file : NULL, .line = line ? line->line : 0};
  size_t n = sol_format(c->text, sizeof c->text, "%.120s: ", k->title);
  va_list args;
  va_start(args, format);
  sol_vformat(c->text + n, sizeof c->text - n, format, args);
  va_end(args);
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_source(const char *path) {
  return ends_with(path, ".cu") || ends_with(path, ".cpp") || ends_with(path, ".cc") || ends_with(path, ".c");
}

// ---- one GPU ----

typedef enum Way { WAY_SOURCE, WAY_PROGRAM, WAY_KERNEL } Way;

static Way way_of(const AuditRun *r) {
  const KernelArgs *k = &r->args->kernel;
  const char *path = r->args->common.positional[0];
  if (ends_with(path, ".ptx") || k->args.count || k->grid || k->block) return WAY_KERNEL;
  return is_source(path) ? WAY_SOURCE : WAY_PROGRAM;
}

static int build_and_run(AuditRun *r, const SolDevice *device, AuditProgram *out) {
  static const char *const flags[] = {"-cudart", "shared", NULL};
  int code = scratch_make(r->cli, "audit");
  const char *program = scratch_path(r->cli, "program-%s", device->id);
  if (!code) cli_status(r->cli, "compiling %s with nvcc", r->args->common.positional[0]);
  if (!code) code = cli_audit_compile(r, device, flags, program);
  cli_status(r->cli, "%s", "");
  return code ? code : cli_audit_program(r, device, program, out);
}

static int audit_device(AuditRun *r, const SolDevice *device, AuditProgram *out) {
  SolError err = {0};
  if (way_of(r) != WAY_KERNEL && device->cc_major * 10 + device->cc_minor < 75) {
    sol_fail(&err, SOL_ERR_UNSUPPORTED, "CUDA 13 does not compile programs for %s (%s)", device->name,
             device->arch);
    sol_hint(&err, "a single kernel can be audited for it: --kernel and --arg, or a .ptx file");
    return cli_error(r->cli, &err, 0, 0, 0);
  }
  if (r->args->steady && way_of(r) != WAY_KERNEL)
    return cli_fail(r->cli,
                    "--steady is for a single kernel; a program's launches follow each other as they do");
  if (audit_start(out, device, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  int code;
  switch (way_of(r)) {
  case WAY_KERNEL: code = cli_audit_kernel(r, device, out); break;
  case WAY_SOURCE: code = build_and_run(r, device, out); break;
  default: code = cli_audit_program(r, device, r->args->common.positional[0], out);
  }
  if (code) return code;
  if (audit_finish(out, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  for (uint32_t i = 0; i < out->kernel_count; i++)
    if (out->kernels[i].end != SOL_EMU_DONE || out->kernels[i].fault_count) r->went_wrong = true;
  cli_audit_check_note(r, out);
  cli_audit_sources(r, out);
  return EXIT_OK;
}

// ---- the answer ----

// What the program called and did not run: its time is in no kernel's bill.
static void missing_facts(AuditRun *r, Fact *root) {
  SolBuffer names = {0};
  Fact *list = fact_list(root, "missing", 0);
  fact_bool(root, "incomplete", 0, r->missing_count > 0);
  for (int i = 0; i < r->missing_count; i++) {
    fact_text(list, 0, 0, r->missing[i]);
    sol_buffer_format(&names, "%s%s", i ? ", " : "", r->missing[i]);
  }
  if (r->missing_count)
    fact_note(root, "Incomplete: did not run here, and is not in this bill: %s.",
              names.text ? names.text : "");
  sol_buffer_free(&names);
}

static void end_facts(AuditRun *r, Fact *root) {
  Fact *list = fact_list(root, "gate", r->complaint_count ? "Past the limits" : 0);
  static const FactColumn columns[] = {{"what", FIT_WRAP}, {"where", 0}, {0}};
  fact_columns(list, columns);
  for (size_t i = 0; i < r->complaint_count; i++) {
    const AuditComplaint *c = &r->complaints[i];
    Fact *row = fact_object(list, 0, 0);
    const char *base = c->file ? strrchr(c->file, '/') : NULL;
    fact_text(row, "kernel", 0, c->kernel);
    fact_text(row, "file", 0, c->file);
    fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, c->line);
    if (c->file)
      fact_textf(row, 0, "where", "%s:%u", base ? base + 1 : c->file, c->line);
    else
      fact_text(row, 0, "where", "");
    fact_text(row, "message", "what", c->text);
  }
  if (r->ended[0]) {
    fact_text(root, "ended", 0, r->ended);
    bool kernel = r->program_exit == 0;             // then a kernel failed, and its error is above
    if (r->went_wrong && !(kernel && r->checks[0])) // where it went on after errors, all of it is billed
      fact_note(root, "Went wrong: %s%s. This is the bill so far.", kernel ? "a kernel; " : "", r->ended);
  }
  missing_facts(r, root);
  Fact *notes = fact_list(root, "notes", 0);
  for (int i = 0; i < r->note_count; i++) {
    fact_text(notes, 0, 0, r->notes[i]);
    fact_note(root, "%s", r->notes[i]);
  }
}

static AuditView view_of(const AuditRun *r) {
  bool one = way_of(r) == WAY_KERNEL; // --kernel has picked it already
  return (AuditView){.kernels = one ? NULL : r->args->kernel.kernel,
                     .top = r->args->top           ? (size_t)r->args->top
                            : r->args->common.json ? SIZE_MAX
                                                   : 10,
                     .instructions = r->args->by == 1,
                     .sort = (AuditSort)r->args->sort,
                     .timeline = r->args->timeline      ? AUDIT_TIMELINE_SHOWN
                                 : r->args->common.html ? AUDIT_TIMELINE_KEPT
                                                        : AUDIT_NO_TIMELINE,
                     .files = r->args->files};
}

static void title_of(AuditRun *r, Fact *root, const AuditProgram *p) {
  fact_title(root, "%s on %s, by emulation", r->args->common.positional[0], p->device->name);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "input", 0, r->args->common.positional[0]);
  report_source_facts(root, r->texts, r->text_count);
}

static int write_sarif(AuditRun *r, const AuditProgram *p, const AuditView *view) {
  char folder[4096];
  SolBuffer out = {0};
  SolError err = {0};
  report_audit_sarif(p, view, r->complaints, r->complaint_count, getcwd(folder, sizeof folder), &out);
  SolStatus status = out.failed ? sol_fail(&err, SOL_ERR_NO_SPACE, "out of memory")
                                : cli_write_file(r->args->sarif, out.text, out.length, &err);
  sol_buffer_free(&out);
  if (!status) return EXIT_OK;
  return cli_error(r->cli, &err, "--sarif", 0, 0);
}

// Where times of several GPUs are compared, those that lack a term have to be distinguished from complete ones.
static void note_left_out(AuditRun *r, const AuditProgram *p) {
  unsigned out = 0;
  for (uint32_t i = 0; i < p->kernel_count; i++) out |= p->kernels[i].time.left_out;
  for (int resource = 0; resource < MACHINE_RESOURCES; resource++)
    if (out >> resource & 1)
      cli_audit_note(r, "%s: %s is left out, since a figure of the GPU is unknown.", p->device->id,
                     machine_resource_name((MachineResource)resource));
}

// An object for each GPU.
static Fact *all_facts(AuditRun *r, const AuditProgram *programs, int count, const AuditView *view) {
  Fact *root = facts_root(&r->cli->arena, FACT_LIST);
  for (int d = 0; d < count; d++) {
    Fact *object = fact_object(root, 0, 0);
    title_of(r, object, &programs[d]);
    report_audit_facts(object, &programs[d], view);
    end_facts(r, object);
  }
  return root;
}

static int print_all(AuditRun *r, const AuditProgram *programs, int count, const AuditView *view) {
  if (count > 1 && r->args->common.json) return cli_print(r->cli, all_facts(r, programs, count, view));
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  title_of(r, root, &programs[0]);
  report_audit_facts(root, &programs[0], view);
  if (count > 1) report_audit_devices_facts(root, programs, count, view);
  end_facts(r, root);
  int code = cli_print(r->cli, root);
  if (code || count == 1) return code;
  return cli_print_pictures(r->cli, all_facts(r, programs, count, view)); // in place of the first GPU's
}

static int answer(AuditRun *r, AuditProgram *programs, int count) {
  AuditView view = view_of(r);
  bool any = false;
  for (uint32_t i = 0; i < programs[0].kernel_count; i++)
    any |= report_audit_wanted(&view, &programs[0].kernels[i]);
  any |= programs[0].call_count && !view.kernels && !view.files;
  if (!any && view.kernels)
    return cli_fail(r->cli, "--kernel: no kernel that was launched is called '%.80s'", view.kernels);
  if (!any) return cli_fail(r->cli, "--file: no kernel that was launched has a line of '%.80s'", view.files);
  int code = EXIT_OK;
  for (int d = 0; d < count && !code; d++) {
    if (count > 1) note_left_out(r, &programs[d]);
    code = cli_audit_gate(r, &programs[d], &view);
  }
  if (code) return code;
  code = print_all(r, programs, count, &view);
  if (!code && r->args->sarif) code = write_sarif(r, &programs[0], &view);
  if (code) return code;
  if (r->went_wrong) return EXIT_PROGRAM;
  return r->complaint_count ? EXIT_GATE : r->missing_count ? EXIT_INCOMPLETE : EXIT_OK;
}

static int audit_all(AuditRun *r) {
  if (r->args->markdown)
    return cli_fail(r->cli, "--markdown is the form of a comparison: name one with --against");
  if (r->args->launch && !r->args->from)
    return cli_fail(r->cli, "--launch N: of which kernel? Add --from KERNEL");
  const SolDevice *devices[MAX_AUDIT_DEVICES];
  AuditProgram programs[MAX_AUDIT_DEVICES];
  int count = 0, made = 0;
  if (!r->args->common.positional_count) return cli_fail(r->cli, "name a .cu file, a program or a .ptx file");
  int code = cli_devices(r->cli, r->args->device, devices, MAX_AUDIT_DEVICES, &count);
  for (; made < count && !code; made++) {
    programs[made] = (AuditProgram){0};
    code = audit_device(r, devices[made], &programs[made]);
  }
  if (!code) code = answer(r, programs, count);
  for (int i = 0; i < made; i++) audit_free(&programs[i]);
  return code;
}

// One side of a comparison, with the same options and arguments.
static int bill_of(AuditRun *r, const char *path, SolBuffer *out) {
  const SolDevice *device;
  int count = 0;
  AuditProgram program = {0};
  AuditRun *own = calloc(1, sizeof *own);
  AuditArgs args = *r->args;
  if (!own) return cli_fail(r->cli, "out of memory");
  args.common.positional[0] = path;
  if (path != r->args->common.positional[0]) args.common.positional_count = 1;
  *own = (AuditRun){.cli = r->cli, .args = &args, .program_exit = -1};
  int code = cli_devices(r->cli, args.device, &device, 1, &count);
  if (!code) code = audit_device(own, device, &program);
  if (!code) {
    AuditView view = view_of(own);
    Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
    title_of(own, root, &program);
    report_audit_facts(root, &program, &view);
    end_facts(own, root);
    if (!facts_render_json(root, out)) code = cli_fail(r->cli, "out of memory");
  }
  if (!code && own->went_wrong) code = cli_fail(r->cli, "'%.120s' went wrong: %.100s", path, own->ended);
  audit_free(&program);
  free(own);
  return code;
}

static int run(Cli *cli, void *arguments) {
  AuditRun *r = calloc(1, sizeof *r);
  if (!r) return cli_fail(cli, "out of memory");
  r->cli = cli;
  r->args = arguments;
  r->program_exit = -1;
  int code = cli_audit_checks(r);
  if (!code) code = r->args->against ? cli_audit_against(r, bill_of) : audit_all(r);
  free(r);
  return code;
}

static const Option options[] = {
    DEVICE_OPTION(AuditArgs, device, 1),
    {"sample", OPTION_COUNT, offsetof(AuditArgs, sample), "WAVES", 0, 1,
     "run only the blocks of WAVES waves of each launch, and scale their counts"},
    {"cold", OPTION_FLAG, offsetof(AuditArgs, cold), 0, 0, 0,
     "L2 is flushed and empty before each launch, as ncu measures; else it keeps what was left in it"},
    {"steady", OPTION_FLAG, offsetof(AuditArgs, steady), 0, 0, 0,
     "a single kernel: as one of many alike in a CUDA graph, each on other memory, as benchmarks measure"},
    {"all", OPTION_FLAG, offsetof(AuditArgs, all), 0, 0, 0,
     "count every launch; else launches that repeat with equal counts are billed by those that were counted"},
    {"from", OPTION_TEXT, offsetof(AuditArgs, from), "KERNEL", 0, 0,
     "count from a launch of this kernel on: those before it run faster, and are not in the bill"},
    {"launch", OPTION_COUNT, offsetof(AuditArgs, launch), "N", 0, 1, "which launch of --from (default 1)"},
    {"check", OPTION_TEXTS, offsetof(AuditArgs, check), "LIST", "race|init|sync|mem", 0,
     "look for errors as well, and go on after each: race,init,sync,mem"},
    {"top", OPTION_COUNT, offsetof(AuditArgs, top), "N", 0, 1,
     "lines shown of a kernel (default 10; JSON: all)"},
    {"by", OPTION_CHOICE, offsetof(AuditArgs, by), "WHAT", "line|instruction", 0,
     "source lines alone (default), or PTX instructions as well"},
    {"timeline", OPTION_FLAG, offsetof(AuditArgs, timeline), 0, 0, 0,
     "the life of one block: what copies, tensor cores and warps do when, and what waits are for"},
    {"sort", OPTION_CHOICE, offsetof(AuditArgs, sort), "BY", "time|tax|bytes|waste|launches", 0,
     "order of kernels: time (default), tax, bytes of DRAM, wasted bytes, launches"},
    {"file", OPTION_TEXT, offsetof(AuditArgs, files), "PATTERN", 0, 0,
     "only lines of files that match ('*.cuh', 'src/*'), and kernels that have some"},
    {"max-tax", OPTION_NUMBER, offsetof(AuditArgs, max_tax), "X", 0, 0,
     "gate: exit code 3 if a kernel takes more than X times light"},
    {"max-sectors-per-request", OPTION_NUMBER, offsetof(AuditArgs, max_sectors), "N", 0, 0,
     "gate: exit code 3 if a line needs more"},
    {"baseline", OPTION_TEXT, offsetof(AuditArgs, baseline), "BILL.json", 0, 0,
     "gate: exit code 3 if a line is worse than in that bill"},
    {"against", OPTION_TEXT, offsetof(AuditArgs, against), "BILL.json|PROG", 0, 0,
     "what changed since that bill, or against that build, by kernel and line"},
    {"markdown", OPTION_FLAG, offsetof(AuditArgs, markdown), 0, 0, 0,
     "print the comparison of --against as Markdown, for a pull request"},
    {"sarif", OPTION_TEXT, offsetof(AuditArgs, sarif), "FILE", 0, 0,
     "write the findings as SARIF 2.1.0 (code review) as well"},
    {"nvcc", OPTION_TEXTS, offsetof(AuditArgs, nvcc), "FLAGS", 0, 0,
     "further flags for compiling a .cu file"},
    {"source-dir", OPTION_TEXTS, offsetof(AuditArgs, source_dirs), "DIR", 0, 0,
     "one more folder whose files may be shown as source"},
    {"cubin", OPTION_TEXT, offsetof(AuditArgs, cubin), "FILE", 0, 0,
     "a single kernel's machine code (ptxas -lineinfo), where nvcc is not to make it of the PTX"},
    KERNEL_OPTIONS(AuditArgs, kernel),
    HTML_OPTION,
    SVG_OPTION,
    COMMON_OPTIONS};

const Command cmd_audit = {
    .name = "audit",
    .usage =
        "PROG.cu | ./PROG | KERNELS.cu|.ptx --kernel NAME --arg ARG... | BILL.json --against BILL.json [options] [-- ARGS]",
    .summary = "what a CUDA program pays for memory, line by line, and what to change first; no GPU needed",
    .details =
        "PROG.cu is compiled (nvcc of CUDA 13) and run on the emulator with what follows '--' as its "
        "arguments; ./PROG was built with 'nvcc -lineinfo'. With --arg (or --grid, --block, "
        "or a .ptx file) a single kernel is run without a host program; a missing --grid or --block is "
        "guessed, and the guess is printed. With a program, --kernel shows only the kernels of that name "
        "('name,name', 'name*')."
        "\n\n" KERNEL_ARG_HELP "\n"
        "Light is the longer of memory light (each byte once at the speed of a copy) and compute light (the "
        "arithmetic executed, at the peak of its pipe), and the launches; tax is the predicted time over "
        "that. A line's cost is its share of the time: all rows add up to it. Requests, sectors and wavefronts are exact for the PTX; hits, DRAM bytes, occupancy and "
        "times are modelled. L2 keeps its contents from launch to launch, and what copies leave in it; --cold "
        "empties it before each. A single kernel finds it empty. What the program prints goes to standard error. If the program or a kernel "
        "fails, or --check finds an error (exit code 4) the bill covers what ran before that. If it calls a library that does not run here (cuBLAS, "
        "cuFFT and other machine code alone) the bill is marked incomplete, names the calls, and the exit code is 5.\n\n"
        "JSON: kernels [{name, launches, counted_launches, unlike_launches, instructions, issued, instructions_from, global_load {requests, sectors, ideal_sectors}, "
        "global_store, shared_load {requests, wavefronts, ideal_wavefronts}, shared_store, local, l2_bytes, "
        "dram_bytes, earlier_write_bytes, left_dirty_bytes, l2_reused_bytes, moved_page_bytes, l2_left_by [{kernel, reused_bytes, "
        "written_bytes}], floor_bytes, occupancy, bound, time_us, light_us, memory_light_us, compute_light_us, launch_light_us, "
        "tax, terms {...}, parts {...}, lines [{file, line, cost_us, ...}], launch_cost_us, unowned_cost_us, "
        "findings [{rule, file, line, message, fix, gain}], checks [{kind, file, line, block, thread, address, "
        "bytes, threads, launches, message}]}], gate [...], incomplete, missing [...]; several GPUs: an array.",
    .examples = "sol audit examples/column_scale.cu\n"
                "sol audit examples/column_scale.cu --device h100,h200,b200\n"
                "sol audit ./prog --max-tax 1.5 --sarif audit.sarif -- --size 64\n"
                "sol audit examples/scale.ptx --kernel column_scale --arg out:f32[128*64] --arg f32[128*64] "
                "--arg f32[64] --arg 128 --arg 64",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .passes_rest = true,
    .args_size = sizeof(AuditArgs),
    .run = run,
};
