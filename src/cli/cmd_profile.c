// sol profile: the bill from a GPU's counters: of a program that is run, or of a CSV file of Nsight
// Compute.
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/cli_ceilings.h"
#include "cli/cli_profile.h"
#include "profile/import.h"
#include "report/report_profile.h"

enum { MAX_CSV = 1 << 30, MAX_BILL = 256 << 20 };

// The GPU's row of the table: by --device, by its name, or by a compute capability that only one has.
static int find_device(ProfileRun *r, Profile *p) {
  ProfileGpu *gpu = &p->gpu;
  if (r->args->device) {
    const SolDevice *device[1];
    int count;
    int code = cli_devices(r->cli, r->args->device, device, 1, &count);
    if (code) return code;
    int cc = device[0]->cc_major * 10 + device[0]->cc_minor;
    if (gpu->cc && gpu->cc != cc)
      return cli_fail(r->cli, "--device: %s is sm_%d, but the kernels ran on sm_%d", device[0]->id, cc,
                      gpu->cc);
    gpu->device = device[0];
    return EXIT_OK;
  }
  if (gpu->name[0] && sol_device_find(gpu->name, &gpu->device, NULL) == SOL_OK) return EXIT_OK;
  gpu->device = NULL;
  if (gpu->name[0])
    profile_note(p, "%s is not in the table of GPUs: shares are the counters' own.", gpu->name);
  else
    profile_note(p, "The file does not name the GPU: shares are the counters' own. --device NAME names it.");
  return EXIT_OK;
}

static int import(ProfileRun *r, Profile *p) {
  SolError err = {0};
  size_t length = 0;
  const char *path = r->args->import;
  if (cli_profile_is_report(path)) {
    int code = cli_profile_read_report(r, path, &path);
    if (code) return code;
  }
  char *text = cli_read_file(path, MAX_CSV, &length, &err);
  if (!text) return cli_error(r->cli, &err, "--import", 0, 0);
  int code = EXIT_OK;
  if (profile_import_csv(p, text, length, &r->filter, &err))
    code = cli_error(r->cli, &err, path, text, length);
  free(text);
  return code;
}

static int put_against(ProfileRun *r, Profile *p, const char *path, Against *against) {
  SolError err = {0};
  size_t length = 0;
  char *text = cli_read_file(path, MAX_BILL, &length, &err);
  if (!text) return cli_error(r->cli, &err, "--against", 0, 0);
  int code = EXIT_OK;
  if (profile_against(p, text, length, against, &err)) code = cli_error(r->cli, &err, path, text, length);
  free(text);
  return code;
}

static SolFigure figure(double value, SolFigure otherwise, const char *source) {
  return value == value ? (SolFigure){value, source} : otherwise;
}

// What was measured on this GPU, or else on another of its kind here, in the place of the datasheet's.
static ProfileRoofs roofs_of(const Profile *p) {
  static const char source[] = "measured on this machine";
  ProfileRoofs r = profile_roofs(p->gpu.device);
  Ceilings c;
  const char *name = p->gpu.name[0] ? p->gpu.name : p->gpu.device ? p->gpu.device->name : "";
  bool found = (p->gpu.uuid[0] && cli_ceilings_find(p->gpu.uuid, "", &c)) ||
               (name[0] && cli_ceilings_find("", name, &c));
  if (!found) return r;
  const double *v = c.values;
  r.measured = v[CEILING_dram_read] == v[CEILING_dram_read] &&
               v[CEILING_dram_write] == v[CEILING_dram_write] && v[CEILING_dram_copy] == v[CEILING_dram_copy];
  if (r.measured) {
    r.read = figure(v[CEILING_dram_read], r.read, source);
    r.write = figure(v[CEILING_dram_write], r.write, source);
    r.copy = figure(v[CEILING_dram_copy], r.copy, source);
  }
  r.l2 = figure(v[CEILING_l2_read], r.l2, source);
  r.shared = figure(v[CEILING_shared_read], r.shared, source);
  r.fp32 = figure(v[CEILING_fp32], r.fp32, source);
  r.launch_us = figure(v[CEILING_launch_us], r.launch_us, source);
  r.graph_us = figure(v[CEILING_graph_us], r.graph_us, source);
  return r;
}

static int answer(ProfileRun *r, Profile *p, const ProfileRoofs *roofs, const Against *against) {
  const char *what = r->args->import ? r->args->import : r->args->common.positional[0];
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  ProfileView view = {.top = r->args->top ? (size_t)r->args->top : 5};
  const char *gpu = p->gpu.device ? p->gpu.device->name : p->gpu.name;
  fact_title(root, "%s%s%s, measured", what, gpu[0] ? " on " : "", gpu);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, "input", 0, what);
  report_profile_facts(root, p, roofs, &view);
  if (against) report_against_facts(root, against);
  if (r->ended[0]) fact_text(root, "ended", 0, r->ended);
  if (r->went_wrong) fact_note(root, "Went wrong: %s. This is what was collected so far.", r->ended);
  Fact *notes = fact_list(root, "notes", 0);
  for (int i = 0; i < p->note_count; i++) {
    fact_text(notes, 0, 0, p->notes[i]);
    fact_note(root, "%s", p->notes[i]);
  }
  int code = cli_print(r->cli, root);
  return code ? code : r->went_wrong ? EXIT_PROGRAM : EXIT_OK;
}

static int profile(ProfileRun *r, Profile *p) {
  SolError err = {0};
  Against against;
  int code = r->args->import ? import(r, p) : cli_profile_program(r, p);
  if (!code) code = find_device(r, p);
  if (code) return code;
  ProfileRoofs roofs = roofs_of(p);
  if (profile_finish(p, &err) || profile_diagnose(p, &roofs, &err)) return cli_error(r->cli, &err, 0, 0, 0);
  const char *bill = r->args->against;
  if (!bill && r->no_counters) bill = cli_profile_emulate(r, p);
  if (bill && (code = put_against(r, p, bill, &against)) != 0) return code;
  return answer(r, p, &roofs, bill ? &against : NULL);
}

static int run(Cli *cli, void *arguments) {
  const ProfileArgs *args = arguments;
  ProfileRun r = {.cli = cli, .args = args};
  r.filter =
      (ProfileFilter){.kernels = args->kernel, .skip = (double)args->skip, .count = (double)args->count};
  bool program = args->common.positional_count > 0;
  if (args->import && (program || cli->rest))
    return cli_fail(cli, "--import reads a file: no program is run with it");
  if (!args->import && !program) return cli_fail(cli, "name a program, or a file with --import");
  if (args->dram && args->times) return cli_fail(cli, "--dram and --times: one of them");
  if (args->common.positional_count > 1)
    return cli_fail(cli, "one program; its own arguments come after '--'");
  Profile p;
  profile_start(&p, args->import ? PROFILE_FROM_NCU : PROFILE_FROM_CUPTI);
  int code = profile(&r, &p);
  profile_free(&p);
  return code;
}

static const Option options[] = {
    {"import", OPTION_TEXT, offsetof(ProfileArgs, import), "REPORT.csv|.ncu-rep", 0, 0,
     "read what 'ncu --csv' printed, or where ncu is installed its report; no GPU needed"},
    {"against", OPTION_TEXT, offsetof(ProfileArgs, against), "BILL.json", 0, 0,
     "compare every counter with the bill of 'sol audit --json'"},
    {"kernel", OPTION_TEXT, offsetof(ProfileArgs, kernel), "NAME,...", 0, 0,
     "only the kernels of that name ('name,name', 'name*')"},
    {"launch-skip", OPTION_COUNT, offsetof(ProfileArgs, skip), "N", 0, 0, "leave out their first N launches"},
    {"launch-count", OPTION_COUNT, offsetof(ProfileArgs, count), "N", 0, 1, "and take N at most"},
    {"each", OPTION_COUNT, offsetof(ProfileArgs, each), "N", 0, 1,
     "launches of a kernel and shape to count (default 8), 0.3 s each; the rest is timed"},
    {"times", OPTION_FLAG, offsetof(ProfileArgs, times), 0, 0, 0,
     "kernel times alone, no counters: little overhead"},
    {"dram", OPTION_FLAG, offsetof(ProfileArgs, dram), 0, 0, 0,
     "times and DRAM's counters alone: each launch is run once, so that bytes are the program's own"},
    {"seconds", OPTION_NUMBER, offsetof(ProfileArgs, seconds), "S", 0, 0, "stop the program after S seconds"},
    {"top", OPTION_COUNT, offsetof(ProfileArgs, top), "N", 0, 1, "kernels shown in full (default 5)"},
    {"device", OPTION_TEXT, offsetof(ProfileArgs, device), "NAME", "devices", 0,
     "the GPU of a file that does not name it (default: as the file or the driver reports)"},
    HTML_OPTION,
    SVG_OPTION,
    COMMON_OPTIONS};

const Command cmd_profile = {
    .name = "profile",
    .usage = "./PROG [options] [-- ARGS] | --import REPORT.csv|REPORT.ncu-rep",
    .summary = "what a program's kernels pay for memory, measured on a GPU, and what to change first",
    .details =
        "./PROG is run with what follows '--' as its arguments, and counted kernel by kernel: the first 8 "
        "launches of a kernel and shape (with --launch-skip or --launch-count all that they select). The "
        "rest is timed. While kernels of a CUDA graph are counted, its nodes are launched one by one. "
        "REPORT.csv is what 'ncu --csv' printed: the details page or the raw page, any sections or metrics; "
        "steps whose metrics it lacks say so. A .ncu-rep is read by ncu itself ($NCU, PATH, the toolkit's).\n\n"
        "Each kernel is diagnosed in five steps: memory, compute or latency; coalescing; throughput; "
        "shared-memory conflicts; spills. Each step shows the counters it uses. The verdict is how much "
        "of the roof worth reaching is reached: over 80% excellent, from 60% good, from 30% wasteful, below "
        "poor. That roof is the busiest unit's; where part of what L1 or L2 move is waste it is DRAM's or "
        "arithmetic's. Roofs are those that 'sol devices --measure' found on this GPU, else the "
        "datasheet's. If the program fails (exit code 4) the bill covers the launches before that.\n\n"
        "JSON: kernels [{name, symbol, grid, block, launches, time_us, share, bound, band, roof_share, "
        "global_load {requests, sectors}, ..., steps [{step, verdict, text, counters}], roofline {flops, "
        "intensity}, findings, counters {ncu's name: value}}], against [...], notes [...]. What was not "
        "counted is null.",
    .examples =
        "sol profile ./prog -- --size 64\n"
        "sol profile --times ./prog\n"
        "sol profile python3 -- train.py --steps 3\n"
        "ncu --csv --page raw --set full --log-file report.csv ./prog && sol profile --import report.csv\n"
        "sol profile --import report.csv --against bill.json --kernel 'softmax*'",
    .options = options,
    .option_count = (int)SOL_COUNT(options),
    .passes_rest = true,
    .args_size = sizeof(ProfileArgs),
    .run = run,
};
