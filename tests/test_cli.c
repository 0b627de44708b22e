// The command line as a user and as a machine meets it: exit codes, messages, JSON keys, the seeds'
// arithmetic. Runs the tool named by $SOL (default build/sol).
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>

#include "base/json_read.h"
#include "check.h"
#include "sol/sol.h"

static char output[4 << 20];
static size_t output_length;

// Runs "sol ARGUMENTS" in a shell, keeps what it printed; the exit code.
static int run(const char *arguments) {
  const char *tool = getenv("SOL");
  char command[2048];
  snprintf(command, sizeof command, "%s %s", tool ? tool : "build/sol", arguments);
  FILE *p = popen(command, "r");
  if (!p) return -1;
  output_length = fread(output, 1, sizeof output - 1, p);
  output[output_length] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool run_json(const char *arguments, SolJson *root) {
  SolError err = {0};
  int code = run(arguments);
  return CHECK_MSG(code == 0, "sol %s: exit code %d", arguments, code) &&
         CHECK_MSG(!sol_json_check(output, output_length, root, &err), "sol %s: line %d: %s", arguments,
                   err.line, err.message);
}

// The number at a path of keys: "terms.memory_us". NAN where there is none.
static double number_at(SolJson value, const char *path) {
  char key[64];
  while (*path) {
    size_t n = strcspn(path, ".");
    snprintf(key, sizeof key, "%.*s", (int)n, path);
    if (!sol_json_get(value, key, &value)) return NAN;
    path += n + (path[n] == '.');
  }
  double v;
  return sol_json_number(value, &v) ? v : NAN;
}

static bool has_keys(SolJson object, const char *const *keys) {
  SolJson v;
  bool all = true;
  for (; *keys; keys++) all &= CHECK_MSG(sol_json_get(object, *keys, &v), "key %s is missing", *keys);
  return all;
}

static int count_items(SolJson array) {
  SolJsonIter it = {array, 0};
  SolJson v;
  int n = 0;
  while (sol_json_next(&it, NULL, &v)) n++;
  return n;
}

TEST(devices) {
  SolJson root, v;
  if (!run_json("devices --json", &root)) return;
  CHECK_INT(sol_json_kind(root), SOL_JSON_ARRAY);
  CHECK_INT(count_items(root), sol_accelerator_count());
  SolJsonIter it = {root, 0};
  while (sol_json_next(&it, NULL, &v))
    has_keys(v, (const char *const[]){"schema", "id", "name", "arch", "sms", "mem_bandwidth", "peak_bf16",
                                      "sources", "ridge", NULL});
  CHECK_INT(run("devices"), 0);
  CHECK_HAS(output, "h100-sxm");
  CHECK_INT(run("devices h100"), 0);
  CHECK_HAS(output, "Ridge points");
  CHECK_HAS(output, "whitepaper");
  CHECK(!strchr(output, '\033'));
}

// What predictions for a GPU rest on: counts by basis, and each constant with its source.
TEST(devices_model) {
  SolJson root, v, c;
  if (!run_json("devices a100 l4 h200 --model --json", &root)) return;
  SolJsonIter it = {root, 0};
  for (int n = 0; sol_json_next(&it, NULL, &v); n++) {
    double all = number_at(v, "model.published") + number_at(v, "model.measured") +
                 number_at(v, "model.compiler") + number_at(v, "model.assumed");
    SolJson model, constants;
    if (!CHECK(sol_json_get(v, "model", &model) && sol_json_get(model, "constants", &constants))) return;
    CHECK_NEAR(all, count_items(constants), 0);
    CHECK(n == 2 ? number_at(v, "model.measured") > number_at(v, "model.assumed")
                 : number_at(v, "model.measured") == 0 && number_at(v, "model.assumed") > 20);
    SolJsonIter each = {constants, 0};
    while (sol_json_next(&each, NULL, &c))
      has_keys(c, (const char *const[]){"name", "value", "unit", "basis", "source", NULL});
  }
  CHECK_INT(run("devices a100 --model"), 0);
  CHECK_HAS(output, "fence_clocks");
  CHECK_HAS(output, "; of h200");
  CHECK_HAS(output, "assumed (sol devices a100");
  CHECK_INT(run("devices --model"), 0);
  CHECK_HAS(output, "assumed");
  CHECK_HAS(output, "l4");
}

TEST(roofline_keys) {
  SolJson r;
  if (!run_json("roofline --bytes 40e6 --flops 5e6 --launches 3 --dtype bf16 --json", &r)) return;
  has_keys(r, (const char *const[]){"schema", "device", "bytes", "flops", "launches", "intensity", "ridge",
                                    "bound", "time_us", "terms", "basis", NULL});
  CHECK(number_at(r, "bytes") == 40e6 && number_at(r, "flops") == 5e6 && number_at(r, "launches") == 3);
  CHECK_NEAR(number_at(r, "intensity"), 0.125, 1e-12);
  const SolDevice *d;
  CHECK_INT(sol_device_find("h100", &d, NULL), SOL_OK);
  CHECK_NEAR(number_at(r, "terms.memory_us"), 40e6 / d->mem_bandwidth.value * 1e6, 1e-9);
  CHECK_NEAR(number_at(r, "terms.launch_us"), 3 * d->launch_us.value, 1e-9);
  CHECK_NEAR(number_at(r, "time_us"), number_at(r, "terms.memory_us") + number_at(r, "terms.launch_us"),
             1e-9);
  if (!run_json("roofline --bytes 40e6 --flops 5e6 --json", &r)) return;
  CHECK(number_at(r, "launches") == 1);
}

// The arithmetic of the seed articles, through the tool.
TEST(seeds) {
  SolJson r;
  if (run_json("roofline gemm 4096x4096x4096 --dtype fp16 --device h100 --json", &r)) {
    CHECK_NEAR(number_at(r, "intensity"), 4096 / 3.0, 1e-9);
    CHECK_NEAR(number_at(r, "ridge"), 295, 0.005);
  }
  if (run_json("roofline gemm 4096x4096x4096 --device b200 --json", &r))
    CHECK(number_at(r, "ridge") > 240 && number_at(r, "ridge") < 290);
  if (run_json("roofline rmsnorm 1x4096 --dtype fp16 --json", &r))
    CHECK_NEAR(number_at(r, "intensity"), 2 / 3.0, 1e-9);
  if (run_json("roofline bias_relu_scale 1000x4000 --dtype bf16 --unfused --json", &r)) {
    CHECK_NEAR(number_at(r, "bytes"), 16e6, 0.001);
    CHECK_NEAR(number_at(r, "unfused.bytes"), 48e6, 0.001);
    CHECK(number_at(r, "unfused.trips") == 6 && number_at(r, "unfused.fused_trips") == 2);
  }
  if (run_json("occupancy --threads 256 --regs 64 --device a100 --json", &r)) {
    has_keys(r,
             (const char *const[]){"schema", "blocks_per_sm", "warps_per_sm", "occupancy", "limiter", NULL});
    CHECK(number_at(r, "blocks_per_sm") == 4 && number_at(r, "warps_per_sm") == 32 &&
          number_at(r, "occupancy") == 0.5);
  }
}

TEST(model_keys_add_up) {
  SolJson r, kernels, k;
  if (!run_json("model llama-3-8b --phase decode --batch 32 --context 4096 --device h100 --json", &r)) return;
  has_keys(r, (const char *const[]){"schema", "kernels", "total_us", "launch_us", "tokens_per_s", "memory",
                                    "what_if", NULL});
  CHECK_NEAR(number_at(r, "memory.weight_bytes"), 2 * 8030261248.0, 0.01);
  if (!CHECK(sol_json_get(r, "kernels", &kernels))) return;
  double sum = number_at(r, "launch_us"), bytes = 0;
  SolJsonIter it = {kernels, 0};
  while (sol_json_next(&it, NULL, &k)) {
    has_keys(k,
             (const char *const[]){"name", "count", "bytes", "flops", "intensity", "bound", "time_us", NULL});
    sum += number_at(k, "time_us");
    bytes += number_at(k, "bytes");
  }
  CHECK_NEAR(sum, number_at(r, "total_us"), 1e-6);
  CHECK_NEAR(bytes, number_at(r, "bytes"), 1e-6);
  CHECK_NEAR(number_at(r, "tokens_per_s"), 32 / (number_at(r, "total_us") * 1e-6), 1e-6);
}

// Every operation at a small shape, on every device: valid JSON, no crash.
TEST(every_operation_on_every_device) {
  for (int i = 0; i < sol_op_count(); i++) {
    const SolOpInfo *op = sol_op_info(i);
    char arguments[256];
    const char *shapes[] = {"128", "64x128", "8x16x128", "2x8x64x128"};
    SolJson root;
    snprintf(arguments, sizeof arguments, "roofline %s %s --json --device all", op->name,
             shapes[op->rank_max - 1]);
    if (run_json(arguments, &root)) CHECK_INT(count_items(root), sol_accelerator_count());
    snprintf(arguments, sizeof arguments, "roofline %s %s --dtype fp16 --device h200%s", op->name,
             shapes[op->rank_max - 1], op->fusable ? " --unfused" : "");
    CHECK_MSG(run(arguments) == 0, "sol %s", arguments);
    CHECK_HAS(output, "What to do");
  }
  CHECK_INT(run("roofline --list"), 0);
  CHECK_HAS(output, "embed_rmsnorm");
}

// What a user gets wrong: exit code 2, one clear message, and where there is text a caret.
TEST(bad_input) {
  static const struct {
    const char *arguments, *message;
  } bad[] = {
      {"", "Usage"},
      {"rooflin", "nearest: roofline"},
      {"devices h1000", "nearest: h100"},
      {"roofline rmsnrom 8x8", "nearest: rmsnorm"},
      {"roofline rmsnorm", "needs a shape: MxN"},
      {"roofline rmsnorm 8", "takes a shape MxN"},
      {"roofline rmsnorm 8x8x8", "takes a shape MxN"},
      {"roofline rmsnorm 8,8", "^"},
      {"roofline rmsnorm 0x8", "must be at least 1"},
      {"roofline rmsnorm -- -8x8", "must not be negative"},
      {"roofline rmsnorm 1e15x1e15", "2^53"},
      {"roofline rmsnorm 8x99999999999999999999", "larger than 2^53"},
      {"roofline rmsnorm 8x8 junk", "unexpected argument 'junk'"},
      {"roofline rmsnorm 8x8 --device nope", "unknown device 'nope'"},
      {"roofline rmsnorm 8x8 --device h100,", "unknown device"},
      {"roofline rmsnorm 8x8 --dtype fp17", "nearest: fp16"},
      {"roofline rmsnorm 8x8 --vocab 5", "vocab"},
      {"roofline rmsnorm 8x8 --level l9", "none of hbm|l2|smem"},
      {"roofline rmsnorm 8x8 --tile 8x8x8", "goes with gemm"},
      {"roofline --flops 1 --tile 8x8x8", "goes with gemm"},
      {"roofline gemm 8x8x8 --tile 8x8", "MxNxK"},
      {"roofline gemm 8x8x8 --tile 8x8x100000", "65536"},
      {"roofline rmsnorm 8x8 --levle l2", "nearest: level"},
      {"roofline rmsnorm 8x8 --json=1", "takes no value"},
      {"roofline rmsnorm 8x8 --dtype", "needs a value"},
      {"roofline rmsnorm 8x8 -x", "unknown option '-x'"},
      {"roofline rmsnorm 8x8 --bytes 5", "not both"},
      {"roofline transpose 8x8 --unfused --device h100", "transpose"},
      {"roofline copy 8 --launches 2", "one launch"},
      {"roofline --bytes 0 --flops 0", "zero"},
      {"roofline --bytes abc", "expected a number"},
      {"roofline --bytes 1e999", "too large"},
      {"roofline --bytes -4", "must not be negative"},
      {"roofline --bytes 4 --kv-heads 2", "goes with an operation"},
      {"roofline", "name an operation"},
      {"roofline gemm 8x8x8 --dtype bf16 --device v100", "bf16"},
      {"roofline attention 1x7x8x8 --kv-heads 2", "kv_heads"},
      {"occupancy", "--threads is needed"},
      {"occupancy --threads 0", "at least 1"},
      {"occupancy --threads 2000", "1024"},
      {"occupancy --threads 256 --regs 300", "255"},
      {"occupancy --threads 256 --smem 10MiB", "shared memory"},
      {"occupancy --threads 1.5", "whole number"},
      {"occupancy --threads 256 --device h100,h200", "one GPU"},
      {"model", "name a preset"},
      {"model lama-3-8b", "nearest: llama-3-8b"},
      {"model ./no-such-config.json", "cannot open"},
      {"model /", "folder"},
      {"model llama-3-8b --batch 0", "at least 1"},
      {"model llama-3-8b --tp 7", "split evenly over 7"},
      {"completion tcsh", "bash, zsh or fish"},
      {"help nothing", "unknown command"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char arguments[512];
    snprintf(arguments, sizeof arguments, "%s 2>&1 >/dev/null", bad[i].arguments);
    int code = run(arguments);
    CHECK_MSG(code == 2, "sol %s: exit code %d", bad[i].arguments, code);
    CHECK_MSG(strstr(output, bad[i].message), "sol %s: no '%s' in: %s", bad[i].arguments, bad[i].message,
              output);
    snprintf(arguments, sizeof arguments, "%s 2>/dev/null", bad[i].arguments);
    run(arguments);
    CHECK_MSG(output_length == 0, "sol %s prints on standard output: %s", bad[i].arguments, output);
  }
}

TEST(caret_stands_under_the_place) {
  run("roofline rmsnorm 8192,4096 2>&1");
  CHECK_HAS(output, "shape:1:5:");
  CHECK_HAS(output, "\n  8192,4096\n      ^\n");
}

TEST(help_man_and_completion_know_every_option) {
  CHECK_INT(run("commands"), 0);
  char names[8][32];
  int count = 0;
  for (char *word = strtok(output, "\n"); word && count < 8; word = strtok(NULL, "\n"))
    snprintf(names[count++], 32, "%s", word);
  CHECK(count >= 4);
  for (int i = 0; i < count; i++) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%.31s --help", names[i]);
    CHECK_INT(run(arguments), 0);
    CHECK_HAS(output, "Examples:");
    CHECK_HAS(output, "--json");
    snprintf(arguments, sizeof arguments, "man %.31s", names[i]);
    CHECK_INT(run(arguments), 0);
    CHECK_HAS(output, ".SH OPTIONS");
  }
  CHECK_INT(run("man"), 0);
  CHECK_INT(run("completion bash"), 0);
  CHECK_HAS(output, "roofline:--level) w='hbm l2 smem'");
  CHECK_INT(run("completion zsh"), 0);
  CHECK_INT(run("completion fish"), 0);
  CHECK_HAS(output, "-l kv-heads");
  CHECK_INT(run("--version"), 0);
  CHECK_HAS(output, SOL_VERSION);
}

// An example in a help text may go on after a backslash; returns what follows it.
static const char *read_example(const char *at, char *out, size_t cap) {
  size_t n = 0;
  for (; *at && *at != '#' && *at != '\n' && n + 1 < cap; at++) {
    bool continues = strncmp(at, "\\\n", 2) == 0;
    out[n++] = continues ? ' ' : *at;
    at += continues;
  }
  out[n] = 0;
  return at;
}

// Every example in a help text runs.
TEST(examples_in_the_help_run) {
  const char *commands[] = {"devices", "roofline", "occupancy", "model", "run-ptx"};
  for (int c = 0; c < 5; c++) {
    char arguments[256], lines[8][256]; // an example's words, without 'sol'
    int count = 0;
    snprintf(arguments, sizeof arguments, "%s --help", commands[c]);
    CHECK_INT(run(arguments), 0);
    const char *at = strstr(output, "Examples:");
    while (at && (at = strstr(at, "\n  sol ")) && count < 8) {
      at = read_example(at + 7, lines[count++], 256);
    }
    CHECK(count >= 3);
    for (int i = 0; i < count; i++) {
      if (strstr(lines[i], "config.json")) continue; // the user's own file
      if (strstr(lines[i], "--measure") || strstr(lines[i], "devices this"))
        continue; // the user's own machine
      CHECK_MSG(run(lines[i]) == 0, "sol %s", lines[i]);
    }
  }
}

TEST(colour_only_where_asked_and_write_errors_are_seen) {
  run("devices");
  CHECK(!strchr(output, '\033'));
  run("devices --color always");
  CHECK(strchr(output, '\033'));
  run("devices --color=never");
  CHECK(!strchr(output, '\033'));
  CHECK_INT(run("devices >/dev/full 2>/dev/null"), 1);
}

CHECK_MAIN
