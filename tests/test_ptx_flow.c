// Basic blocks and where branches meet again (src/ptx/flow.c, dominators.c).
#include <time.h>

#include "ptx_check.h"

// The reconvergence points of a kernel's branches, in order, end included, as text: "3 7 end".
static void check_reconverges(const char *body, const char *want) {
  char text[4096], got[256] = "";
  snprintf(text, sizeof text, ".extern .func stop() .noreturn; .visible .entry k() {\n%s%s\n}", KERNEL_REGS,
           body);
  SolPtxModule *m = LOAD(text);
  const PtxFunction *f = kernel(m);
  if (!f) return;
  for (uint32_t i = 0; i < f->inst_count; i++) {
    if (!f->insts[i].diverges) continue;
    char one[16] = "end";
    if (f->insts[i].reconverge < f->inst_count) snprintf(one, sizeof one, "%u", f->insts[i].reconverge);
    snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", got[0] ? " " : "", one);
  }
  CHECK_STR(got, want);
  sol_ptx_free(m);
}

#define NOP "mov.u32 %r1, 0; "

TEST(where_lanes_reconverge) {
  check_reconverges("@%p1 bra E; " NOP "E: ret;", "2");                         // if
  check_reconverges("@%p1 bra T; " NOP "bra J; T: " NOP "J: ret;", "4");        // if and else
  check_reconverges("L: " NOP "@%p1 bra L; ret;", "2");                         // loop
  check_reconverges("L: @%p1 bra X; " NOP "@%p2 bra X; bra L; X: ret;", "4 4"); // loop with a break
  check_reconverges("@%p1 bra A; ret; A: ret;", "end");                         // two ways out
  check_reconverges("@%p1 bra A; @%p2 bra B; " NOP "B: " NOP "A: ret;", "4 3"); // nested
  check_reconverges("T: .branchtargets A, B, C; brx.idx %r1, T; A: " NOP "bra C; B: " NOP "C: ret;", "4");
  check_reconverges("T: .branchtargets A, B; @%p1 brx.idx %r1, T; " NOP "A: " NOP "B: ret;", "3");
  check_reconverges("@%p1 bra E; E: ret;", "1");     // to the next one
  check_reconverges("@%p1 bra E; " NOP "E:", "end"); // a label at the end
  check_reconverges("bra.uni E; E: @%p1 bra.uni E; ret;", "2");
}

// Threads that end need not be waited for.
TEST(ended_threads_are_not_waited_for) {
  check_reconverges("@%p1 bra A; @%p2 bra T; " NOP "bra J; T: trap; A: " NOP "J: ret;", "6 2");
  check_reconverges("@%p1 bra A; @%p2 exit; " NOP "bra J; A: " NOP "J: ret;", "5");
  check_reconverges("@%p1 bra A; @%p2 ret; " NOP "bra J; A: " NOP "J: ret;", "5");
  check_reconverges("@%p1 bra A; call stop; A: ret;", "2");
  check_reconverges("@%p1 bra A; exit; A: trap;", "end");  // there is no other way
  check_reconverges("@%p1 bra A; L: bra L; A: ret;", "2"); // an endless loop
}

// In a function a guarded return leads back to the caller, which is a way out like any other.
TEST(guarded_returns_of_functions) {
  SolPtxModule *m = LOAD(".func f() { .reg .pred %p<3>; .reg .b32 %r<2>; @%p1 bra A; @%p2 ret; " NOP
                         "bra J; A: " NOP "J: ret; }");
  if (!m) return;
  const PtxFunction *f = sol_ptx_find_function(m, "f");
  CHECK_INT(f->insts[0].reconverge, f->inst_count);
  sol_ptx_free(m);
}

TEST(persistent_kernels_reconverge_inside_their_loop) {
  check_reconverges("L: @%p1 bra A; " NOP "bra J; A: " NOP "J: " NOP "bra L;", "4");
}

TEST(blocks_of_a_loop) {
  SolPtxModule *m = BODY(NOP "L: " NOP NOP "@%p1 bra L; " NOP "ret;");
  const PtxFunction *f = kernel(m);
  if (!f) return;
  CHECK_INT(f->block_count, 3);
  CHECK(f->blocks[1].first == 1 && f->blocks[1].count == 3);
  CHECK(f->blocks[1].next[0] == 2 && f->blocks[1].next[1] == 1);
  CHECK(f->blocks[0].next[0] == 1 && f->blocks[0].next[1] == PTX_NONE);
  CHECK_INT(f->blocks[1].post_dominator, 2);
  CHECK_INT(f->blocks[2].post_dominator, PTX_NONE);
  CHECK(f->insts[0].leader && f->insts[1].leader && f->insts[4].leader && !f->insts[2].leader);
  sol_ptx_free(m);
}

// ---- random graphs against a plain definition ----

enum { MOST = 24 };

typedef struct Graph {
  int n;             // instructions; n is the end
  int next[MOST][2]; // -1: none
} Graph;

static uint32_t draw(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

// Whether the end can be reached from `from` without passing `without`.
static bool reaches(const Graph *g, int from, int without) {
  bool met[MOST + 1] = {false};
  int stack[MOST + 1], top = 0;
  if (from == without) return false;
  stack[top++] = from;
  met[from] = true;
  while (top) {
    int at = stack[--top];
    if (at == g->n) return true;
    for (int k = 0; k < 2; k++) {
      int to = g->next[at][k];
      if (to < 0 || to == without || met[to]) continue;
      met[to] = true;
      stack[top++] = to;
    }
  }
  return false;
}

// The nearest instruction that all ways from `from` to the end pass: the one that no other such one lies
// before.
static int nearest(const Graph *g, int from) {
  int best = g->n;
  for (int p = 0; p < g->n; p++) {
    if (p == from || reaches(g, from, p)) continue;
    if (best == g->n || !reaches(g, p, best)) best = p; // p comes before best
  }
  return best;
}

static Graph draw_graph(uint32_t *state, char *text, size_t cap) {
  Graph g = {.n = 3 + (int)(draw(state) % (MOST - 3))};
  text[0] = 0;
  for (int i = 0; i < g.n; i++) {
    int target = (int)(draw(state) % (unsigned)(g.n + 1));
    size_t used = strlen(text);
    g.next[i][0] = i + 1, g.next[i][1] = -1;
    switch (i == g.n - 1 ? 0 : draw(state) % 4) {
    case 0:
      g.next[i][0] = g.n;
      if (i < g.n - 1 && draw(state) % 4) goto plain;
      snprintf(text + used, cap - used, "L%d: ret;\n", i);
      break;
    case 1:
      g.next[i][1] = target;
      snprintf(text + used, cap - used, "L%d: @%%p1 bra L%d;\n", i, target);
      break;
    case 2:
      if (draw(state) % 3) goto plain;
      g.next[i][0] = target;
      snprintf(text + used, cap - used, "L%d: bra L%d;\n", i, target);
      break;
    default:
    plain:
      g.next[i][0] = i + 1;
      snprintf(text + used, cap - used, "L%d: mov.u32 %%r1, 0;\n", i);
    }
  }
  snprintf(text + strlen(text), cap - strlen(text), "L%d:", g.n);
  return g;
}

TEST(random_graphs) {
  uint32_t state = 2463534242u;
  int checked = 0;
  for (int round = 0; round < 3000; round++) {
    char text[2048], whole[3072];
    Graph g = draw_graph(&state, text, sizeof text);
    bool all = true;
    for (int i = 0; i < g.n; i++) all &= reaches(&g, i, -1);
    if (!all) continue; // endless loops are another rule's
    snprintf(whole, sizeof whole, ".visible .entry k() {\n%s%s\n}", KERNEL_REGS, text);
    SolPtxModule *m = LOAD(whole);
    const PtxFunction *f = kernel(m);
    if (!f) break;
    for (int i = 0; i < g.n; i++) {
      if (f->insts[i].code->op != PTX_OP_BRA) continue;
      checked++;
      // Inside a block the first instruction stands for all: a branch ends its block.
      int want = nearest(&g, i);
      if (!CHECK_MSG((int)f->insts[i].reconverge == want, "L%d meets at %u, not %d, in\n%s", i,
                     f->insts[i].reconverge, want, text))
        break;
    }
    sol_ptx_free(m);
  }
  CHECK_MSG(checked > 5000, "only %d branches were checked", checked);
}

// ---- large functions ----

// `depth` loops, one in the other: a shape that is quadratic for the simple algorithm. Returns the processor
// time that loading takes, the least of a few: what else runs on the machine adds to it at most.
static double load_time(int depth) {
  size_t room = (size_t)depth * 64 + 4096;
  char *text = malloc(room);
  if (!text) abort();
  int used = snprintf(text, 4096, "%s.visible .entry k() {\n.reg .pred %%p1; .reg .b32 %%r1;\n", PTX_HEAD);
  for (int i = 0; i < depth; i++) used += snprintf(text + used, 64, "A%d: @%%p1 bra B%d;\n", i, i / 2);
  for (int i = depth; i-- > 0;) used += snprintf(text + used, 64, "B%d: @%%p1 bra A%d;\n", i, i);
  used += snprintf(text + used, 64, "ret;\n}\n");
  double least = 0;
  for (int i = 0; i < 3; i++) {
    SolError err = {0};
    clock_t start = clock();
    SolPtxModule *m = load_sources(&(SolPtxSource){"large", text, (size_t)used}, 1, &err);
    double took = (double)(clock() - start);
    if (i == 0 || took < least) least = took;
    CHECK_MSG(m, "%s", err.message);
    if (m) CHECK_INT(kernel(m)->inst_count, 2 * depth + 1);
    sol_ptx_free(m);
  }
  free(text);
  return least;
}

// Times on their own say how fast the machine is. Sixteen times the text takes about 16 times as long where
// the work grows with its size, and 256 times where it grows with its square.
TEST(large_functions_take_time_that_grows_with_their_size) {
  enum { DEPTH = 4000, TIMES = 16 };
  double small = load_time(DEPTH), large = load_time(DEPTH * TIMES);
  CHECK_MSG(large < small * TIMES * 6, "%d times the text takes %.0f times as long", TIMES, large / small);
}

CHECK_MAIN
