// What nvcc makes of tests/data/ptx_src has to load, for every architecture Sol runs (src/ptx).
// What is compiled is kept under $B/ptx_src and compiled again when its source is newer.
#define _POSIX_C_SOURCE 200809L // popen

#include "ptx_check.h"

#include <sys/stat.h>
#include <unistd.h>

static char nvcc[1024];

static bool find_nvcc(void) {
  FILE *pipe = popen("scripts/cuda-env nvcc 2>/dev/null", "r");
  if (!pipe) return false;
  bool found = fgets(nvcc, sizeof nvcc, pipe) != NULL;
  pclose(pipe);
  nvcc[strcspn(nvcc, "\n")] = 0;
  return found && nvcc[0];
}

static bool is_newer(const char *path, const char *than) {
  struct stat a, b;
  return stat(path, &a) == 0 && stat(than, &b) == 0 && a.st_size > 0 && a.st_mtime >= b.st_mtime;
}

// The PTX of tests/data/ptx_src/NAME.cu; NULL after a failure, which is reported.
static char *compile(const char *name, const char *arch, const char *options, size_t *length) {
  const char *folder = getenv("B") ? getenv("B") : "/tmp";
  char source[256], out[1024], made[1100], command[8192];
  snprintf(source, sizeof source, "tests/data/ptx_src/%s.cu", name);
  snprintf(out, sizeof out, "%s/ptx_src/%s_%s%s.ptx", folder, name, arch, options);
  snprintf(made, sizeof made, "%s.%d", out, (int)getpid());
  if (!is_newer(out, source)) {
    snprintf(
        command, sizeof command,
        "mkdir -p '%s/ptx_src' && '%s' -std=c++17 -w -arch=compute_%s %s -ptx %s -o '%s' && mv '%s' '%s'",
        folder, nvcc, arch, options, source, made, made, out);
    if (!CHECK_MSG(system(command) == 0, "nvcc failed: %s", command)) return NULL;
  }
  FILE *file = fopen(out, "rb");
  if (!CHECK_MSG(file, "cannot open %s", out)) return NULL;
  struct stat info;
  fstat(fileno(file), &info);
  char *text = malloc((size_t)info.st_size + 1);
  if (!text) abort();
  *length = fread(text, 1, (size_t)info.st_size, file);
  fclose(file);
  return text;
}

static SolPtxModule *load(const char *name, const char *arch, const char *options) {
  size_t length = 0;
  char *text = compile(name, arch, options, &length);
  if (!text) return NULL;
  SolError err = {0};
  SolPtxModule *m = NULL;
  SolStatus status = sol_ptx_load(&(SolPtxSource){name, text, length}, 1, &m, &err);
  CHECK_MSG(status == SOL_OK, "%s for sm_%s%s: %d:%d: %s", name, arch, options, err.line, err.column,
            err.message);
  PtxWalk walk;
  const char *wrong = m ? ptx_walk(&walk, m) : NULL;
  CHECK_MSG(!wrong, "%s for sm_%s%s: %s", name, arch, options, wrong);
  free(text);
  return m;
}

static const char *const archs[] = {"75", "80", "90a", "100"};
static const char *const names[] = {"arithmetic", "halves", "memory", "groups", "functions"};

TEST(every_architecture) {
  for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++)
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
      SolPtxModule *m = load(names[n], archs[a], "");
      if (!m) continue;
      CHECK_INT(m->target, atoi(archs[a]));
      CHECK_MSG(m->function_count > 0 && m->symbol_count > 0, "%s for sm_%s is empty", names[n], archs[a]);
      sol_ptx_free(m);
    }
}

TEST(debug_builds) {
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) sol_ptx_free(load(names[n], "90", "-G"));
}

TEST(source_lines) {
  SolPtxModule *m = load("groups", "90", "-lineinfo");
  if (!m) return;
  int own = 0, inlined = 0, named = 0;
  for (uint32_t i = 0; i < m->loc_count; i++) {
    const PtxLoc *l = &m->locs[i];
    own += l->file != PTX_NONE && strstr(m->files[l->file], "groups.cu") != NULL;
    inlined += l->inlined_at != PTX_NONE;
    named += l->function != NULL && strncmp(l->function, "_Z", 2) == 0;
  }
  CHECK_MSG(own > 20 && inlined > 100 && named > 100, "%d own, %d inlined, %d named positions", own, inlined,
            named);
  sol_ptx_free(m);
}

TEST(functions_as_they_are_called) {
  SolPtxModule *m = load("functions", "80", "");
  if (!m) return;
  const PtxFunction *k = kernel(m);
  if (!CHECK(k)) return;
  CHECK_INT(k->param_size, 72); // a pointer, 48 bytes, an int, a pointer
  CHECK(k->calls_indirectly && !k->recursive);
  int recursive = 0, taken = 0, external = 0;
  for (uint32_t i = 0; i < m->function_count; i++) {
    recursive += m->functions[i].recursive;
    taken += m->functions[i].address_taken;
    external += !m->functions[i].defined;
  }
  CHECK_MSG(recursive >= 1 && taken >= 4 && external == 1, "%d recursive, %d by address, %d external",
            recursive, taken, external);
  CHECK(!sol_ptx_find_function(m, "vprintf")->defined);
  sol_ptx_free(m);
}

TEST(two_translation_units) {
  size_t length[2] = {0};
  char *text[2] = {compile("link_a", "80", "-rdc=true", &length[0]),
                   compile("link_b", "80", "-rdc=true", &length[1])};
  if (text[0] && text[1]) {
    SolError err = {0};
    SolPtxSource sources[2] = {{"link_a", text[0], length[0]}, {"link_b", text[1], length[1]}};
    SolPtxModule *m = load_sources(sources, 2, &err);
    CHECK_MSG(m, "%d:%d: %s", err.line, err.column, err.message);
    for (uint32_t i = 0; m && i < m->function_count; i++)
      CHECK_MSG(m->functions[i].defined, "%s is not defined", m->functions[i].name);
    const PtxSymbol *counter = m ? sol_ptx_find_symbol(m, "counter") : NULL;
    CHECK(counter && counter->init_bytes && counter->init[0] == 7);
    CHECK(m && kernel(m)->uses_dynamic_shared);
    sol_ptx_free(m);
    CHECK_INT(sol_ptx_load(sources, 1, &m, &err), SOL_ERR_SYNTAX); // alone it lacks its variables
    CHECK_HAS(err.message, "defined nowhere");
  }
  free(text[0]);
  free(text[1]);
}

int main(int argc, char **argv) {
  if (!find_nvcc()) {
    printf("no nvcc of CUDA 13 or newer\n");
    return 77;
  }
  return check_main(argc, argv);
}
