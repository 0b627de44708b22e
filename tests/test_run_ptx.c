// sol run-ptx as a user meets it: counts, findings, limits, bad input. Runs the tool named by $SOL.
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_read.h"
#include "check.h"

static char output[1 << 20];

static int run(const char *arguments) {
  const char *tool = getenv("SOL");
  char command[2048];
  snprintf(command, sizeof command, "COLUMNS=200 %s run-ptx %s", tool ? tool : "build/sol", arguments);
  FILE *p = popen(command, "r");
  if (!p) return -1;
  output[fread(output, 1, sizeof output - 1, p)] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define COLUMN                                                                                               \
  "examples/scale.ptx --kernel column_scale --grid 4,64 --block 256 --arg 'out:f32[1024*64]' --arg "         \
  "'x:f32[1024*64]=iota' --arg 'f32[64]=2' --arg 1024 --arg 64 "

static double number(SolJson object, const char *key) {
  SolJson v;
  double n;
  return sol_json_get(object, key, &v) && sol_json_number(v, &n) ? n : NAN;
}

TEST(counts) {
  SolJson root, memory, row;
  SolError err = {0};
  CHECK_INT(run(COLUMN "--json --by line"), 0);
  if (!CHECK_MSG(!sol_json_check(output, strlen(output), &root, &err), "%s", err.message)) return;
  CHECK(number(root, "schema") == 1 && number(root, "blocks") == 256);
  if (!CHECK(sol_json_get(root, "memory", &memory))) return;
  SolJsonIter it = {memory, 0};
  // 2048 warps; x and y 32 sectors each, scale one.
  CHECK(sol_json_next(&it, NULL, &row) && number(row, "requests") == 4096 &&
        number(row, "sectors") == 2048 * 33);
  CHECK(sol_json_next(&it, NULL, &row) && number(row, "requests") == 2048 &&
        number(row, "sectors") == 2048 * 32 && number(row, "ideal_sectors") == 2048 * 4);
  SolJson lines;
  CHECK(sol_json_get(root, "lines", &lines));
}

#define SCALE "examples/scale.ptx --kernel contiguous_scale --grid 1 --block 64 "

// Arguments may overlap: y and x are parts of one buffer here, and y in place of x in the next.
TEST(pointers_into_a_buffer) {
  CHECK_INT(run(SCALE
                "--buffer 'all:f32[128]=iota' --arg @all --arg @all+256 --arg 'f32[64]=2' --arg 64 --arg 64 "
                "--show all"),
            0);
  CHECK_HAS(output, "128 130 132");
  CHECK_INT(run(SCALE "--arg @x --arg 'x:f32[64]=iota' --arg 'f32[64]=3' --arg 64 --arg 64 --show x"), 0);
  CHECK_HAS(output, "0 3 6 9");
  CHECK_INT(run(SCALE "--arg @y --arg 'x:f32[64]' --arg 'f32[64]' --arg 64 --arg 64 2>&1"), 2);
  CHECK_HAS(output, "no buffer is called 'y'");
  CHECK_INT(run(SCALE "--buffer 'f32[64]' --arg 1 --arg 1 --arg 1 --arg 64 --arg 64 2>&1"), 2);
  CHECK_HAS(output, "NAME:TYPE[COUNT]");
  CHECK_INT(run(SCALE "--arg @x+4 --arg 'x:f32[64]' --arg 'f32[64]=3' --arg 64 --arg 64 2>&1"), 4);
}

TEST(results_and_workers) {
  CHECK_INT(run(COLUMN "--show out"), 0);
  CHECK_HAS(output, "0 2 4 6 8 10");
  static char one[sizeof output];
  CHECK_INT(run(COLUMN "--json --by instruction --workers 1"), 0);
  memcpy(one, output, sizeof one);
  CHECK_INT(run(COLUMN "--json --by instruction --workers 2"), 0);
  CHECK(strcmp(one, output) == 0);
  char path[] = "/tmp/sol-save-XXXXXX", arguments[512];
  int fd = mkstemp(path);
  snprintf(arguments, sizeof arguments, COLUMN "--save out=%s", path);
  CHECK_INT(run(arguments), 0);
  close(fd); // another file has its name now, which was written whole
  fd = open(path, O_RDONLY);
  float first[4] = {0};
  CHECK(read(fd, first, sizeof first) == (ssize_t)sizeof first && first[1] == 2 && first[3] == 6);
  CHECK_INT((int)lseek(fd, 0, SEEK_END), 1024 * 64 * 4);
  close(fd);
  unlink(path);
}

TEST(findings_and_limits_exit_with_4) {
  CHECK_INT(run("examples/scale.ptx --kernel contiguous_scale --grid 2 --block 256 --arg 'out:f32[512]' "
                "--arg 'x:f32[100]' --arg 'f32[8]' --arg 512 --arg 8 --wide"),
            4);
  CHECK_HAS(output, "out of bounds: read of 4 bytes");
  CHECK_HAS(output, "past the end of x");
  CHECK_HAS(output, "scale.cu:14");
  CHECK_INT(run(COLUMN "--max-instructions 100"), 4);
  CHECK_HAS(output, "instruction limit");
}

static const char loop_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nL: bra L;\n}\n";
static const char bad_ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  "
                              "tcgen05.shift.cta_group::1.down [0];\n  ret;\n}\n";

static int run_text(const char *ptx, const char *arguments) {
  char path[] = "/tmp/sol-ptx-XXXXXX", command[512];
  int fd = mkstemp(path);
  if (write(fd, ptx, strlen(ptx)) < 0) return -1;
  close(fd);
  snprintf(command, sizeof command, "%s %s", path, arguments);
  int code = run(command);
  unlink(path);
  return code;
}

TEST(a_kernel_that_never_ends_is_stopped) {
  CHECK_INT(run_text(loop_ptx, "--grid 1 --block 32 --seconds 0.3"), 4);
  CHECK_HAS(output, "time limit");
}

TEST(bad_input) {
  CHECK_INT(run_text(bad_ptx, "--grid 1 --block 32 2>&1"), 2);
  CHECK_HAS(output, ":5:");
  CHECK_HAS(output, "^");
  CHECK_INT(run_text(".version 8.0\n.target sm_80\n.visible .entry k( {", "--list 2>&1"), 2);
  CHECK_INT(run_text("", "--list 2>&1"), 2);
  static const struct {
    const char *arguments, *message;
  } bad[] = {
      {"", "name a PTX file"},
      {"no-such.ptx", "cannot open"},
      {"examples/scale.ptx --grid 1 --block 1", "2 kernels"},
      {"examples/scale.ptx --kernel colum_scale --grid 1 --block 1", "nearest: column_scale"},
      {"examples/scale.ptx --kernel column_scale", "--grid and --block are needed"},
      {"examples/scale.ptx --kernel column_scale --grid 1 --block 32", "takes 5 arguments, 0 given"},
      {COLUMN "--block 2048", "1024"},
      {COLUMN "--grid 0,1", "at least 1"},
      {COLUMN "--check everything", "none of memory"},
      {COLUMN "--show y", "no buffer is named 'y'"},
      {"examples/scale.ptx --kernel column_scale --grid 1 --block 1 --arg 'f32[4' --arg 1 --arg 1 --arg 1 "
       "--arg 1",
       "expected ']'"},
      {"examples/scale.ptx --kernel column_scale --grid 1 --block 1 --arg 'f32[4]' --arg 'f32[4]' --arg "
       "'f32[4]' --arg 1.5 --arg 1",
       "fraction"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char arguments[1024];
    snprintf(arguments, sizeof arguments, "%s 2>&1", bad[i].arguments);
    int code = run(arguments);
    CHECK_MSG(code == 2, "%s: exit code %d", bad[i].arguments, code);
    CHECK_MSG(strstr(output, bad[i].message), "%s: no '%s' in: %s", bad[i].arguments, bad[i].message, output);
  }
}

TEST(a_gpu_is_asked_for_politely) {
  int code = run(COLUMN "--backend cuda 2>&1");
  if (code == 0)
    CHECK_HAS(output, "measured");
  else
    CHECK_HAS(output, "CUDA driver");
}

// Kernels that reach out of their memory: each ends with its finding, soon.
TEST(hostile_memory) {
  static const char *const rows[][3] = {
      {"bulk_two_allocations", "", "past the end of A"},
      {"heap", "", "past the end of memory from malloc of 8388000 bytes"},
      {"heap_before", "--arg 'out:u64[1024]'", "past the end of memory from malloc of 64 bytes"},
      {"heap_loop", "--arg 'out:u64[1024]'", "past the end of memory from malloc of 64 bytes"},
      {"heap_misal", "--arg 'out:u64[1024]'", "past the end of memory from malloc of 64 bytes"},
      {"heap_oobwrite", "--arg 'out:u64[1024]'", "past the end of memory from malloc of 64 bytes"},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    char arguments[512];
    snprintf(arguments, sizeof arguments,
             "tests/ptx_hostile/%s.ptx --kernel k --grid 1 --block 1 --smem 66064 %s 2>&1", rows[k][0],
             rows[k][1]);
    CHECK_INT(run(arguments), 4);
    CHECK_HAS(output, rows[k][2]);
  }
}

// Errors that know their line and not their place in the text show that line, and nothing else of memory.
TEST(errors_that_know_their_line_alone) {
  CHECK_INT(run("tests/ptx_hostile/undefined_function.ptx --kernel k --grid 1 --block 1 2>&1"), 2);
  CHECK_HAS(output, "undefined_function.ptx:5:1: k: who is defined nowhere: 'call' cannot be run\n"
                    "  .visible .entry k() { .param .b64 a; .param .b32 r; call (r),who,(a); ret; }\n  ^\n");
  CHECK_INT(run("tests/ptx_hostile/wide_parameter.ptx --kernel k --grid 1 --block 1 2>&1"), 2);
  CHECK_HAS(output, "wide_parameter.ptx:6:1: k: a parameter of 128 bits: 'ld.param.b128' cannot be run\n"
                    "    ld.param.b128 %q,[p];\n  ^\n");
}

CHECK_MAIN
