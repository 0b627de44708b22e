// What every command prints fits the terminal: on pseudo-terminals of several widths, and in 80 columns
// without one.
#define _GNU_SOURCE // forkpty

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "check.h"

enum { MOST_WORDS = 40 };

static void become(const char *line, const char *columns) {
  const char *tool = getenv("SOL");
  char sol[512], *copy = strdup(line), *argv[MOST_WORDS] = {sol}, *at = NULL;
  int n = 1;
  snprintf(sol, sizeof sol, "%s", tool ? tool : "build/sol");
  for (char *w = strtok_r(copy, " ", &at); w && n + 1 < MOST_WORDS; w = strtok_r(NULL, " ", &at))
    argv[n++] = w;
  if (columns)
    setenv("COLUMNS", columns, 1);
  else
    unsetenv("COLUMNS");
  setenv("TERM", "xterm", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  unsetenv("NO_COLOR");
  execv(sol, argv);
  _exit(127);
}

static int read_all(int file, pid_t pid, SolBuffer *out) {
  char room[4096];
  ssize_t n;
  int status = 0;
  while ((n = read(file, room, sizeof room)) > 0) sol_buffer_put(out, room, (size_t)n);
  close(file);
  waitpid(pid, &status, 0);
  sol_buffer_put(out, "", 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Standard output and standard error of a command on a terminal so wide.
static int on_terminal(const char *line, int columns, SolBuffer *out) {
  struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
  int file = -1;
  pid_t pid = forkpty(&file, NULL, NULL, &size);
  if (pid == 0) become(line, NULL);
  return read_all(file, pid, out);
}

static int in_pipe(const char *line, const char *columns, SolBuffer *out) {
  int ends[2];
  if (pipe(ends)) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    close(2); // messages are one line each, for what reads them
    open("/dev/null", O_WRONLY);
    become(line, columns);
  }
  close(ends[1]);
  return read_all(ends[0], pid, out);
}

// Without the escapes that set colours, and without what a carriage return takes back.
static size_t shown(const char *line, size_t length, char *out, size_t cap) {
  size_t n = 0;
  for (size_t i = 0; i < length && n + 1 < cap; i++) {
    if (line[i] == '\033' && i + 1 < length && line[i + 1] == '[') {
      for (i += 2; i < length && !(line[i] >= '@' && line[i] <= '~');) i++;
    } else if (line[i] == '\r') {
      if (i + 1 < length) n = 0;
    } else {
      out[n++] = line[i];
    }
  }
  return n;
}

static size_t widest(const SolBuffer *text, char *which, size_t cap) {
  size_t most = 0;
  char line[16384];
  for (const char *p = text->text; p && *p;) {
    size_t length = strcspn(p, "\n"), n = shown(p, length, line, sizeof line);
    size_t columns = sol_text_columns(line, n);
    if (columns > most) snprintf(which, cap, "%.*s", (int)n, line);
    if (columns > most) most = columns;
    p += length + (p[length] == '\n');
  }
  return most;
}

#define SCALE                                                                                                 \
  "examples/scale.ptx --kernel column_scale --arg out:f32[128*64] --arg f32[128*64] --arg f32[64] --arg 128 " \
  "--arg 64"

static const char *const lines[] = {
    "--help",
    "help",
    "devices",
    "devices --help",
    "devices h100",
    "devices b200 l4",
    "devices this",
    "devices --model",
    "devices h200 --model",
    "devices a100 l4 --model",
    "devices no-such-device",
    "roofline --help",
    "roofline --list",
    "roofline rmsnorm 8192x4096",
    "roofline rmsnorm 8192x4096 --device all",
    "roofline gemm 4096x4096x4096 --dtype fp16 --device all",
    "roofline bias_relu_scale 1000x4000 --unfused",
    "roofline attention 8x32x4096x128 --kv-heads 8 --phase decode",
    "roofline --bytes 40e6 --flops 5e6 --launches 3",
    "roofline no-such-operation 3",
    "model --help",
    "model --list",
    "model llama-3-8b --phase decode --batch 32",
    "model mixtral-8x7b --tp 2 --fused --graph --device all",
    "model deepseek-v3 --phase prefill --device h200 --tp 8",
    "occupancy --help",
    "occupancy --threads 256 --regs 64 --smem 48Ki --device a100",
    "occupancy --sweep regs",
    "occupancy --sweep smem",
    "audit --help",
    ("audit " SCALE " --by instruction"),
    ("audit " SCALE " --device h100,l4,b200 --max-tax 1.01"),
    "run-ptx --help",
    "run-ptx examples/scale.ptx --list",
    ("run-ptx examples/scale.ptx --kernel column_scale --grid 1,64 --block 128 --by line --show out "
     "--arg out:f32[128*64] --arg f32[128*64]=iota --arg f32[64]=2 --arg 128 --arg 64"),
    ("run-ptx examples/scale.ptx --kernel column_scale --grid 1,64 --block 128 --by instruction "
     "--arg out:f32[128*64] --arg f32[128*64]=iota --arg f32[64]=2 --arg 128 --arg 64"),
    "profile --help",
    "profile --import tests/data/ncu/h200-full-raw.csv",
    "profile --import tests/data/ncu/h200-basic.csv --device h200",
    "bench --help",
    "bench rmsnorm --shape 4x128 --backend emu",
    "bench transpose --shape 64x64 --backend cpu --quick",
    "ladder --help",
    "ladder",
    "ladder transpose --small --backend emu",
    "ladder histogram --small --backend emu --device l4",
    "ladder stride --small --backend emu",
    "ladder launches --small --backend emu",
    "ladder transpose --small --backend emu --source",
    "ladder all --compare --stored bench/results/2026-11-15-h200-ladders.json",
};

TEST(every_output_fits_the_terminal) {
  static const int widths[] = {60, 80, 120};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      SolBuffer out = {0};
      char which[400] = "";
      int code = on_terminal(lines[i], widths[w], &out);
      size_t most = widest(&out, which, sizeof which);
      CHECK_MSG(code >= 0 && code < 5 && out.length > 0, "sol %s: exit code %d", lines[i], code);
      CHECK_MSG(most <= (size_t)widths[w], "sol %s: %zu columns of %d: %s", lines[i], most, widths[w], which);
      sol_buffer_free(&out);
    }
}

TEST(without_a_terminal_there_are_80_columns_and_COLUMNS_says_otherwise) {
  if (CHECK_SANITIZED) SKIP("the same tables were printed on terminals");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    for (int given = 0; given < 2; given++) {
      SolBuffer out = {0};
      char which[400] = "";
      in_pipe(lines[i], given ? "70" : NULL, &out);
      size_t most = widest(&out, which, sizeof which);
      CHECK_MSG(most <= (given ? 70u : 80u), "sol %s: %zu columns: %s", lines[i], most, which);
      CHECK(!out.text || !strchr(out.text, '\033'));
      sol_buffer_free(&out);
    }
}

TEST(wide_shows_everything_and_json_does_not_know_of_widths) {
  SolBuffer out = {0}, narrow = {0};
  char which[400] = "";
  on_terminal("roofline --list --wide", 80, &out);
  CHECK(widest(&out, which, sizeof which) > 150 && !strstr(out.text, "Not shown") &&
        !strstr(out.text, "\xe2\x80\xa6"));
  sol_buffer_free(&out);
  in_pipe("devices --json", NULL, &out);
  in_pipe("devices --json", "60", &narrow);
  CHECK_STR(out.text, narrow.text);
  sol_buffer_free(&out);
  sol_buffer_free(&narrow);
}
CHECK_MAIN
