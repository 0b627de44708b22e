#include "report/report_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

// Which groups of columns a table needs: a column of zeros is left out. JSON gets all of them.
typedef struct Columns {
  bool sectors, wavefronts;
} Columns;

static void need(Columns *columns, const SolEmuCounts *c) {
  columns->sectors |= c->requests > 0;
  columns->wavefronts |= c->shared_requests > 0;
}

static double ratio(uint64_t a, uint64_t b) {
  return b ? (double)a / (double)b : 0;
}

static void count_facts(Fact *row, const SolEmuCounts *c, Columns show) {
#define NUMBER(group, key, label, unit, basis, value)                                                        \
  fact_number(row, key, (group) ? label : 0, unit, basis, value)
  NUMBER(true, "executions", "warp instr.", UNIT_PLAIN, BASIS_EXACT, (double)c->executions);
  NUMBER(true, "lanes", "lanes each", UNIT_PLAIN, BASIS_EXACT, ratio(c->lanes, c->executions));
  NUMBER(show.sectors, "requests", "requests", UNIT_PLAIN, BASIS_EXACT, (double)c->requests);
  NUMBER(show.sectors, "sectors", "sectors", UNIT_PLAIN, BASIS_EXACT, (double)c->sectors);
  NUMBER(show.sectors, "ideal_sectors", "ideal", UNIT_PLAIN, BASIS_EXACT, (double)c->sectors_ideal);
  NUMBER(show.sectors, "sectors_per_request", "per request", UNIT_PLAIN, BASIS_EXACT,
         ratio(c->sectors, c->requests));
  NUMBER(show.wavefronts, "shared_requests", "shared req.", UNIT_PLAIN, BASIS_EXACT,
         (double)c->shared_requests);
  NUMBER(show.wavefronts, "wavefronts", "wavefronts", UNIT_PLAIN, BASIS_EXACT, (double)c->wavefronts);
  NUMBER(show.wavefronts, "ideal_wavefronts", "ideal wavef.", UNIT_PLAIN, BASIS_EXACT,
         (double)c->wavefronts_ideal);
  NUMBER(show.sectors, "l1_hit", "L1 hits", UNIT_SHARE, BASIS_MODELLED,
         ratio(c->l1_hits, c->l1_hits + c->l1_misses));
  NUMBER(show.sectors, "l2_hit", "L2 hits", UNIT_SHARE, BASIS_MODELLED,
         ratio(c->l2_hits, c->l2_hits + c->l2_misses));
  NUMBER(show.sectors, "dram_bytes", "DRAM", UNIT_BYTES, BASIS_MODELLED,
         (double)(c->dram_read + c->dram_write));
#undef NUMBER
}

static const FactColumn columns[] = {
    {"kind", 0},         {"place", 0},       {"instruction", FIT_CUT}, {"requests", 0},
    {"sectors", 0},      {"per request", 0}, {"wavefronts", 0},        {"ideal", 0},
    {"ideal wavef.", 0}, {"DRAM", 0},        {"shared req.", 0},       {"lanes each", 0},
    {"warp instr.", 0},  {"L1 hits", 0},     {"L2 hits", 0},           {0}};

void report_counts_by_kind(Fact *root, const SolEmuResult *result) {
  static const struct {
    SolEmuKind kind;
    const char *key;
  } kinds[] = {{SOL_EMU_KIND_GLOBAL_LOAD, "global_load"},
               {SOL_EMU_KIND_GLOBAL_STORE, "global_store"},
               {SOL_EMU_KIND_GLOBAL_ATOMIC, "global_atomic"},
               {SOL_EMU_KIND_LOCAL_LOAD, "local_load"},
               {SOL_EMU_KIND_LOCAL_STORE, "local_store"},
               {SOL_EMU_KIND_CONST_LOAD, "const_load"},
               {SOL_EMU_KIND_TEXTURE, "texture"},
               {SOL_EMU_KIND_SHARED_LOAD, "shared_load"},
               {SOL_EMU_KIND_SHARED_STORE, "shared_store"},
               {SOL_EMU_KIND_SHARED_ATOMIC, "shared_atomic"}};
  Fact *list = fact_list(root, "memory", "Memory");
  fact_columns(list, columns);
  Columns show = {0};
  for (int k = 0; k < SOL_EMU_KIND_COUNT; k++) need(&show, &result->kinds[k]);
  for (size_t i = 0; i < SOL_COUNT(kinds); i++) {
    const SolEmuCounts *c = &result->kinds[kinds[i].kind];
    if (!c->executions) continue;
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "kind", "kind", kinds[i].key);
    count_facts(row, c, show);
  }
}

// What a table's row is: a source line, or one PTX instruction.
typedef struct Row {
  const char *file;
  uint32_t line;
  uint32_t inst; // index in result->insts; PTX_NONE for a line
  SolEmuCounts counts;
} Row;

static void add_counts(SolEmuCounts *to, const SolEmuCounts *from) {
#define ADD_COUNT(name) to->name += from->name;
  SOL_EMU_COUNTS(ADD_COUNT)
#undef ADD_COUNT
}

static int by_cost(const void *a, const void *b) {
  const Row *x = a, *y = b;
  uint64_t p = x->counts.sectors + x->counts.wavefronts, q = y->counts.sectors + y->counts.wavefronts;
  if (p != q) return p > q ? -1 : 1;
  if (x->counts.executions != y->counts.executions)
    return x->counts.executions > y->counts.executions ? -1 : 1;
  return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                            : (x->inst > y->inst) - (x->inst < y->inst);
}

// Rows in the order of the text; lines that occur again are added up.
static Row *collect_rows(const SolPtxModule *ptx, const SolEmuResult *result, bool lines, size_t *count) {
  Row *rows = sol_heap_alloc((result->inst_count + 1) * sizeof *rows);
  *count = 0;
  for (uint32_t i = 0; rows && i < result->inst_count; i++) {
    const SolEmuInstCounts *c = &result->insts[i];
    if (!c->counts.executions) continue;
    const PtxFunction *f = &ptx->functions[c->function];
    const PtxInst *in = &f->insts[c->inst];
    const PtxLoc *loc = in->loc != PTX_NONE ? &ptx->locs[in->loc] : NULL;
    const char *file = loc && loc->file != PTX_NONE ? ptx->files[loc->file] : ptx->sources[f->source];
    Row row = {file, loc ? loc->line : in->line, lines ? PTX_NONE : i, c->counts};
    size_t k = lines ? 0 : *count;
    while (k < *count && (rows[k].line != row.line || strcmp(rows[k].file, row.file) != 0)) k++;
    if (k < *count)
      add_counts(&rows[k].counts, &row.counts);
    else
      rows[(*count)++] = row;
  }
  if (rows) qsort(rows, *count, sizeof *rows, by_cost);
  return rows;
}

void report_counts_by_place(Fact *root, const SolPtxModule *ptx, const SolEmuResult *result, bool lines,
                            size_t most) {
  size_t count = 0;
  Row *rows = collect_rows(ptx, result, lines, &count);
  Fact *list = fact_list(root, lines ? "lines" : "instructions",
                         lines ? "By source line, costliest first" : "By PTX instruction, costliest first");
  fact_columns(list, columns);
  Columns show = {0};
  for (size_t i = 0; rows && i < count && i < most; i++) need(&show, &rows[i].counts);
  for (size_t i = 0; rows && i < count && i < most; i++) {
    Fact *row = fact_object(list, 0, 0);
    const char *slash = strrchr(rows[i].file, '/');
    fact_text(row, "file", 0, rows[i].file);
    fact_number(row, "line", 0, UNIT_PLAIN, BASIS_NONE, rows[i].line);
    fact_textf(row, 0, "place", "%s:%u", slash ? slash + 1 : rows[i].file, rows[i].line);
    if (!lines) {
      const SolEmuInstCounts *c = &result->insts[rows[i].inst];
      const PtxFunction *f = &ptx->functions[c->function];
      char text[160];
      sol_ptx_format_inst(ptx, f, &f->insts[c->inst], text, sizeof text);
      fact_text(row, "instruction", 0, text);
      fact_text(row, 0, "instruction", text);
    }
    count_facts(row, &rows[i].counts, show);
  }
  sol_heap_free(rows);
}

void report_counts_findings(Fact *root, const SolEmuResult *result) {
  static const FactColumn order[] = {{"finding", FIT_WRAP}, {"times", 0}, {0}};
  Fact *list = fact_list(root, "findings", result->finding_count ? "Findings" : 0);
  fact_columns(list, order);
  for (uint32_t i = 0; i < result->finding_count; i++) {
    const SolEmuFinding *f = &result->findings[i];
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "kind", 0, sol_emu_finding_name(f->kind));
    fact_number(row, "times", "times", UNIT_PLAIN, BASIS_EXACT, (double)f->times);
    fact_text(row, "message", "finding", f->message);
  }
  if (result->findings_dropped)
    fact_note(root, "%llu further findings are not listed.", (unsigned long long)result->findings_dropped);
}
