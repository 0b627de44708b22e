// What the tests of src/ptx share: loading a text, the kernel in it, and walking the result.
#ifndef PTX_CHECK_H
#define PTX_CHECK_H

#include "check.h"
#include "ptx_walk.h"

#define PTX_HEAD ".version 9.0\n.target sm_100a\n.address_size 64\n"

static inline SolPtxModule *load_sources(const SolPtxSource *sources, int count, SolError *err) {
  SolPtxModule *m = NULL;
  SolStatus status = sol_ptx_load(sources, count, &m, err);
  check_report((status == SOL_OK) == (m != NULL), __FILE__, __LINE__, "status %d, module %p", status,
               (void *)m);
  if (!m) return NULL;
  PtxWalk walk;
  const char *wrong = ptx_walk(&walk, m);
  check_report(!wrong, __FILE__, __LINE__, "%s", wrong ? wrong : "");
  return m;
}

// Loads PTX_HEAD and `text`; a failure is reported, with what the error says.
static inline SolPtxModule *load_text(const char *text, const char *file, int line) {
  size_t length = strlen(PTX_HEAD) + strlen(text);
  char *whole = malloc(length + 1);
  if (!whole) abort();
  snprintf(whole, length + 1, "%s%s", PTX_HEAD, text);
  SolError err = {0};
  SolPtxModule *m = load_sources(&(SolPtxSource){"test", whole, length}, 1, &err);
  check_report(m, file, line, "%d:%d: %s", err.line - 3, err.column, err.message);
  free(whole);
  return m;
}
#define LOAD(text) load_text((text), __FILE__, __LINE__)
// A kernel `k` with this body, and registers of each kind: %p %b %h %r %d %q %f %fd, eight of each.
#define KERNEL_REGS                                                                                          \
  ".reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<8>; .reg .b128 %q<8>;"  \
  " .reg .f32 %f<32>; .reg .f64 %fd<8>;\n"
#define BODY(text) LOAD(".visible .entry k(.param .u64 a) {\n" KERNEL_REGS text "\n}\n")

static inline const PtxFunction *kernel(const SolPtxModule *m) {
  return m ? sol_ptx_find_function(m, "k") : NULL;
}

// The error that loading PTX_HEAD and `text` ends with; lines count from the text's own first one.
static inline SolError load_error(const char *text) {
  size_t length = strlen(PTX_HEAD) + strlen(text);
  char *whole = malloc(length + 1);
  if (!whole) abort();
  snprintf(whole, length + 1, "%s%s", PTX_HEAD, text);
  SolError err = {0};
  SolPtxModule *m = load_sources(&(SolPtxSource){"test", whole, length}, 1, &err);
  free(whole);
  if (m) snprintf(err.message, sizeof err.message, "loaded without an error");
  sol_ptx_free(m);
  err.line -= 3;
  return err;
}

#endif
