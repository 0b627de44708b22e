// Reads what audit_wire.c writes. The program that wrote the lines may be faulty: nothing in them is trusted.
#include "audit/audit_wire.h"
#include "audit/inside.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/json_read.h"
#include "base/text.h"

enum { MOST_PLACES = 1 << 20 }; // instructions of a kernel; a forged line can ask for room for so many

// The instructions of a kernel described so far, by AuditInst.place.
struct AuditReadKernel {
  uint32_t id;
  const char *name;
  AuditInst *insts;
  uint32_t count;
};

void audit_reader_free(AuditReader *r) {
  for (uint32_t i = 0; i < r->count; i++) sol_heap_free(r->kernels[i].insts);
  sol_heap_free(r->kernels);
  sol_arena_free(&r->arena);
  sol_arena_free(&r->scratch);
  *r = (AuditReader){0};
}

static const char *keep_text(SolArena *arena, SolJson value) {
  char text[1024];
  if (!sol_json_string(value, text, sizeof text)) return NULL;
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(arena, n);
  return copy ? memcpy(copy, text, n) : NULL;
}

// Up to `cap` numbers of an array, the rest of `out` zero.
static bool numbers_of(SolJson array, double *out, size_t cap) {
  memset(out, 0, cap * sizeof *out);
  SolJsonIter it = {.container = array};
  SolJson value;
  size_t n = 0;
  while (sol_json_next(&it, NULL, &value))
    if (n == cap || !sol_json_number(value, &out[n++])) return false;
  return sol_json_kind(array) == SOL_JSON_ARRAY;
}

// A line is long, and looking for one field goes through all of it: once is enough.
enum { MOST_FIELDS = 32, LONGEST_NAME = 16 };
typedef struct Fields {
  uint32_t count;
  char name[MOST_FIELDS][LONGEST_NAME];
  SolJson value[MOST_FIELDS];
} Fields;

static void find_fields(SolJson line, Fields *out) {
  SolJsonIter it = {.container = line};
  SolJson name;
  if (sol_json_kind(line) != SOL_JSON_OBJECT) return;
  while (out->count < MOST_FIELDS && sol_json_next(&it, &name, &out->value[out->count]))
    sol_json_string(name, out->name[out->count++], LONGEST_NAME);
}

static bool field(const Fields *line, const char *name, SolJson *value) {
  uint32_t at = line->count;
  while (at && strcmp(line->name[at - 1], name) != 0) at--;
  if (at) *value = line->value[at - 1];
  return at;
}

static bool get_numbers(const Fields *line, const char *key, double *out, size_t cap) {
  SolJson array;
  return field(line, key, &array) && numbers_of(array, out, cap);
}

// A count as it was sent; what cannot be one is 0.
static uint64_t count_of(double value) {
  return value >= 0 && value <= SOL_EXACT ? (uint64_t)value : 0;
}

static int64_t offset_of(double value) {
  return value < 0 ? -(int64_t)count_of(-value) : (int64_t)count_of(value);
}

// Sizes from `least` on, no larger than a launch can have.
static bool get_dims(const Fields *line, const char *key, double least, double most, uint32_t out[3]) {
  double d[3];
  if (!get_numbers(line, key, d, 3)) return false;
  for (int i = 0; i < 3; i++) {
    if (!(d[i] >= least && d[i] <= most)) return false;
    out[i] = (uint32_t)d[i];
  }
  return true;
}

static struct AuditReadKernel *kernel_of(AuditReader *r, uint32_t id, SolJson name) {
  char text[1024];
  if (!sol_json_string(name, text, sizeof text)) return NULL;
  for (uint32_t i = 0; i < r->count; i++) // a child of the program counts its kernels on its own
    if (r->kernels[i].id == id && strcmp(r->kernels[i].name, text) == 0) return &r->kernels[i];
  void *room = r->kernels;
  const char *kept = keep_text(&r->arena, name);
  if (!kept || !audit_grow(&room, r->count, &r->cap, sizeof *r->kernels)) return NULL;
  r->kernels = room;
  r->kernels[r->count] = (struct AuditReadKernel){.id = id, .name = kept};
  return &r->kernels[r->count++];
}

static bool read_new(AuditReader *r, struct AuditReadKernel *k, SolJson row) {
  enum { NUMBERS = 7, PARTS = 9 };
  SolJson part[PARTS];
  SolJsonIter it = {.container = row};
  double n[NUMBERS];
  for (int i = 0; i < PARTS; i++) {
    if (!sol_json_next(&it, NULL, &part[i])) return false;
    if (i < NUMBERS && !sol_json_number(part[i], &n[i])) return false;
  }
  SolJson last, inlined;
  double ptx_line = 0;
  if (sol_json_next(&it, NULL, &last) && !sol_json_number(last, &ptx_line)) return false;
  const char *chain = sol_json_next(&it, NULL, &inlined) ? keep_text(&r->arena, inlined) : "";
  if (!chain) return false;
  if (!(n[0] >= 0 && n[0] < MOST_PLACES)) return false;
  uint32_t place = (uint32_t)n[0];
  if (place >= k->count) {
    AuditInst *room = sol_heap_realloc(k->insts, (place + 64) * sizeof *room);
    if (!room) return false;
    memset(room + k->count, 0, (place + 64 - k->count) * sizeof *room);
    k->insts = room;
    k->count = place + 64;
  }
  unsigned flags = (unsigned)count_of(n[3]);
  k->insts[place] = (AuditInst){.place = place,
                                .line = (uint32_t)(count_of(n[1]) & UINT32_MAX),
                                .unit = (SolEmuClass)(count_of(n[2]) & 0xff),
                                .async = flags & 1,
                                .is_load = flags >> 1 & 1,
                                .barrier = flags >> 2 & 1,
                                .branch = flags >> 3 & 1,
                                .waits = flags >> 4 & 1,
                                .follows = flags >> 5 & 1,
                                .real = flags >> 6 & 1,
                                .read_only = flags >> 7 & 1,
                                .indexing = flags >> 8 & 1,
                                .bulk = flags >> 9 & 1,
                                .tensor = flags >> 10 & 1,
                                .prints = flags >> 11 & 1,
                                .allocates = flags >> 12 & 1,
                                .size = (uint8_t)(flags >> 13 & 255),
                                .list = flags >> 21 & 1,
                                .better = flags >> 22 & 1,
                                .inlined = chain,
                                .flops = n[4],
                                .base = count_of(n[5]),
                                .offset = offset_of(n[6]),
                                .ptx_line = (uint32_t)(count_of(ptx_line) & UINT32_MAX),
                                .file = keep_text(&r->arena, part[7]),
                                .text = keep_text(&r->arena, part[8])};
  return k->insts[place].file && k->insts[place].text;
}

static bool read_example(SolJson list, SolEmuExample *out) {
  double n[AUDIT_EXAMPLE_NUMBERS];
  if (!numbers_of(list, n, AUDIT_EXAMPLE_NUMBERS) || !(n[0] >= 0 && n[0] <= SOL_EXACT)) return false;
  for (int i = 1; i < AUDIT_EXAMPLE_NUMBERS; i++)
    if (!(n[i] >= 0 && n[i] <= UINT32_MAX)) return false;
  *out = (SolEmuExample){.block = (uint64_t)n[0], .mask = (uint32_t)n[1], .sectors = (uint32_t)n[2]};
  for (int lane = 0; lane < 32; lane++) out->lane[lane] = (uint32_t)n[3 + lane];
  return true;
}

static bool read_inst(const struct AuditReadKernel *k, SolJson row, AuditInst *out) {
  enum { COUNTS = sizeof(SolEmuCounts) / 8, PATTERN = 27, MACHINE = sizeof(AuditExecuted) / sizeof(double) };
  SolJson part[6];
  SolJsonIter it = {.container = row};
  double place, kind, counts[COUNTS], pattern[PATTERN], machine[MACHINE] = {0};
  for (int i = 0; i < 4; i++)
    if (!sol_json_next(&it, NULL, &part[i])) return false;
  if (!sol_json_number(part[0], &place) || !sol_json_number(part[1], &kind)) return false;
  if (!(place >= 0 && place < k->count) || !(kind >= 0 && kind < SOL_EMU_KIND_COUNT)) return false;
  if (!numbers_of(part[2], counts, COUNTS) || !numbers_of(part[3], pattern, PATTERN)) return false;
  if (sol_json_next(&it, NULL, &part[4]) && !numbers_of(part[4], machine, MACHINE)) return false;
  *out = k->insts[(uint32_t)place];
  if (sol_json_next(&it, NULL, &part[5]) && !read_example(part[5], &out->pattern.example)) return false;
  if (!out->text || (unsigned)out->unit >= SOL_EMU_CLASS_COUNT) return false;
  out->kind = (SolEmuKind)kind;
  size_t at = 0;
#define TAKE_COUNT(name)   out->counts.name = count_of(counts[at++]);
#define TAKE_PATTERN(name) out->pattern.name = (__typeof__(out->pattern.name))pattern[at++];
  SOL_EMU_COUNTS(TAKE_COUNT)
  at = 0;
  for (size_t i = 0; i < PATTERN; i++)
    if (!(pattern[i] >= -SOL_EXACT && pattern[i] <= SOL_EXACT)) return false;
  for (size_t i = 0; i < PATTERN; i++)
    if (pattern[i] < 0 && i != 2 && i != 10) return false; // stride and step have a sign
  if (pattern[0] > UINT32_MAX) return false;               // the width
  AUDIT_PATTERN_NUMBERS(TAKE_PATTERN)
  at = 0;
#define TAKE_MACHINE(name)                                                                                   \
  out->executed.name = machine[at] >= 0 && machine[at] <= SOL_EXACT ? machine[at] : 0, at++;
  AUDIT_MACHINE(TAKE_MACHINE)
#undef TAKE_MACHINE
#undef TAKE_COUNT
#undef TAKE_PATTERN
  out->width = out->pattern.width;
  return true;
}

static bool read_touch(AuditReader *r, SolJson row, AuditTouch *out) {
  SolJson part[2];
  SolJsonIter it = {.container = row};
  double n[12];
  for (int i = 0; i < 2; i++)
    if (!sol_json_next(&it, NULL, &part[i])) return false;
  if (!numbers_of(part[0], n, 12)) return false;
  *out = (AuditTouch){.address = count_of(n[0]),
                      .bytes = count_of(n[1]),
                      .variable = count_of(n[2]) & 1,
                      .host = count_of(n[2]) >> 1 & 1,
                      .read = n[3],
                      .written = n[4],
                      .read_first = n[5],
                      .read_sectors = n[6],
                      .written_sectors = n[7],
                      .partial_sectors = n[8],
                      .moved = n[9],
                      .moved_pages = n[10],
                      .moved_blocks = n[11],
                      .label = keep_text(&r->scratch, part[1])};
  return out->label != NULL;
}

static uint32_t length_of(SolJson array) {
  SolJsonIter it = {.container = array};
  SolJson value;
  uint32_t n = 0;
  while (sol_json_next(&it, NULL, &value)) n++;
  return n;
}

static uint32_t small(double value) {
  return (uint32_t)(count_of(value) & UINT32_MAX);
}

static bool read_fault(AuditReader *r, SolJson row, AuditFault *out) {
  SolJson part[4];
  SolJsonIter it = {.container = row};
  double n[AUDIT_FAULT_NUMBERS];
  for (int i = 0; i < 4; i++)
    if (!sol_json_next(&it, NULL, &part[i])) return false;
  if (!numbers_of(part[3], n, AUDIT_FAULT_NUMBERS)) return false;
  *out = (AuditFault){.message = keep_text(&r->scratch, part[0]),
                      .kind = keep_text(&r->scratch, part[1]),
                      .file = keep_text(&r->scratch, part[2]),
                      .line = small(n[0]),
                      .function = small(n[1]),
                      .inst = small(n[2]),
                      .block = {small(n[3]), small(n[4]), small(n[5])},
                      .thread = {small(n[6]), small(n[7]), small(n[8])},
                      .address = count_of(n[9]),
                      .bytes = count_of(n[10]),
                      .times = count_of(n[11])};
  return out->message && out->kind && out->file;
}

static bool read_faults(AuditReader *r, const Fields *line, const AuditFault **out, uint32_t *count,
                        uint64_t *left_out) {
  SolJson list, row, value;
  double number = 0;
  if (!field(line, "faults", &list)) return false;
  if (field(line, "left_out", &value) && !sol_json_number(value, &number)) return false;
  AuditFault *faults = sol_arena_alloc(&r->scratch, (length_of(list) + 1) * sizeof *faults);
  for (SolJsonIter it = {.container = list}; faults && sol_json_next(&it, NULL, &row); (*count)++)
    if (!read_fault(r, row, &faults[*count])) return false;
  *out = faults;
  *left_out = count_of(number);
  return faults != NULL;
}

static bool read_lists(AuditReader *r, struct AuditReadKernel *k, const Fields *line, AuditLaunch *l) {
  SolJson list, row;
  if (!field(line, "new", &list)) return false;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (!read_new(r, k, row)) return false;
  if (!field(line, "insts", &list)) return false;
  AuditInst *insts = sol_arena_alloc(&r->scratch, (length_of(list) + 1) * sizeof *insts);
  for (SolJsonIter it = {.container = list}; insts && sol_json_next(&it, NULL, &row); l->inst_count++) {
    if (!read_inst(k, row, &insts[l->inst_count])) return false;
    insts[l->inst_count].by_machine = l->machine;
    if (l->inst_count && insts[l->inst_count].place <= insts[l->inst_count - 1].place) return false;
  }
  if (!field(line, "touches", &list)) return false;
  AuditTouch *touches = sol_arena_alloc(&r->scratch, (length_of(list) + 1) * sizeof *touches);
  for (SolJsonIter it = {.container = list}; touches && sol_json_next(&it, NULL, &row); l->touch_count++)
    if (!read_touch(r, row, &touches[l->touch_count])) return false;
  l->insts = insts;
  l->touches = touches;
  return insts && touches && read_faults(r, line, &l->faults, &l->fault_count, &l->faults_left_out);
}

static bool read_launch(AuditReader *r, const Fields *line, double id, AuditLaunch *l) {
  SolJson name;
  double n[AUDIT_LAUNCH_NUMBERS], unit;
  SolJson value;
  if (!(id >= 0 && id < UINT32_MAX) || !field(line, "name", &name)) return false;
  if (!field(line, "unit", &value) || !sol_json_number(value, &unit)) return false;
  if (!get_dims(line, "grid", 1, INT32_MAX, l->grid) || !get_dims(line, "block", 1, 1024, l->block))
    return false;
  if (!get_dims(line, "cluster", 0, 1024, l->cluster) || !get_numbers(line, "numbers", n, SOL_COUNT(n)))
    return false;
  struct AuditReadKernel *k = kernel_of(r, (uint32_t)id, name);
  if (!k) return false;
  double key = 0;
  if (field(line, "key", &value) && !sol_json_number(value, &key)) return false;
  l->key = count_of(key);
  l->name = k->name;
  l->unit = (uint32_t)count_of(unit);
  l->dynamic_shared = count_of(n[0]);
  l->static_shared = count_of(n[1]);
  l->stack_bytes = count_of(n[2]);
  l->local_array_bytes = count_of(n[3]);
  l->registers = (int)(count_of(n[4]) & 0xffff);
  l->registers_from = n[5] != 0 ? AUDIT_FROM_EMULATOR : AUDIT_FROM_PTXAS;
  l->graph = n[6] != 0;
  l->end = n[7] >= 0 && n[7] <= SOL_EMU_INTERRUPTED ? (SolEmuEnd)n[7] : SOL_EMU_FAULT;
  l->blocks = count_of(n[8]);
  l->flight = (SolEmuFlight){count_of(n[9]), count_of(n[10]), count_of(n[11]), n[12]};
  size_t at = 13;
#define TAKE_CHAIN(name) l->chain.name = n[at] >= 0 && n[at] <= SOL_EXACT ? n[at] : 0, at++;
  SOL_EMU_CHAIN(TAKE_CHAIN)
#undef TAKE_CHAIN
  l->machine = n[at++] != 0;
  l->left_dirty = count_of(n[at]);
  l->dirty_limit = count_of(n[at + 1]);
  l->earlier_read = count_of(n[at + 2]);
  l->balance = (SolEmuBalance){n[at + 3], n[at + 4]};
  for (uint32_t age = 0; age < SOL_AGES; age++) {
    l->earlier.found[age] = count_of(n[AUDIT_LAUNCH_FOUND + age]);
    l->earlier.written[age] = count_of(n[AUDIT_LAUNCH_FOUND + SOL_AGES + age]);
  }
  if (field(line, "trace", &value) && !audit_read_trace(&r->scratch, value, &l->trace)) return false;
  return read_lists(r, k, line, l);
}

static bool read_again(AuditReader *r, const Fields *line, double key, AuditAgain *out) {
  SolJson value;
  double graph, unlike, counted = 0;
  bool fine = field(line, "graph", &value) && sol_json_number(value, &graph) &&
              field(line, "unlike", &value) && sol_json_number(value, &unlike);
  if (field(line, "counted", &value) && !sol_json_number(value, &counted)) return false;
  if (fine)
    *out = (AuditAgain){
        .key = count_of(key), .graph = graph != 0, .unlike = unlike != 0, .counted = counted != 0};
  return fine && out->key && read_faults(r, line, &out->faults, &out->fault_count, &out->faults_left_out);
}

enum { PROGRESS_NAME = 128 }; // a longer one is cut

// The text is no longer than the line that holds it.
static bool read_module(AuditReader *r, const Fields *line, double unit, size_t length, AuditMessage *out) {
  SolJson value;
  char *text = sol_arena_alloc(&r->scratch, length + 1);
  out->unit = (uint32_t)count_of(unit);
  out->ptx = text;
  return text && unit >= 0 && unit < UINT32_MAX && field(line, "ptx", &value) &&
         sol_json_string(value, text, length + 1);
}

static bool read_library(AuditReader *r, const Fields *line, SolJson name, AuditLibraryCall *out) {
  double n[5];
  if (!get_numbers(line, "numbers", n, SOL_COUNT(n)) || !(n[3] > SOL_DTYPE_DEFAULT && n[3] < SOL_DTYPE_COUNT))
    return false;
  for (int i = 0; i < 3; i++)
    if (!(n[i] >= 0 && n[i] <= 1e18)) return false;
  *out = (AuditLibraryCall){.name = keep_text(&r->scratch, name),
                            .read = n[0],
                            .written = n[1],
                            .flops = n[2],
                            .dtype = (SolDtype)n[3],
                            .tensor = n[4] != 0};
  return out->name != NULL;
}

SolStatus audit_read_line(AuditReader *r, const char *text, size_t length, AuditMessage *out, SolError *err) {
  SolJson whole, value;
  Fields fields = {0}, *line = &fields;
  *out = (AuditMessage){0};
  sol_arena_free(&r->scratch);
  r->scratch = (SolArena){0};
  SolStatus status = sol_json_check(text, length, &whole, err);
  if (status) return status;
  find_fields(whole, line);
  double number, n[2];
  bool fine = false;
  if (field(line, "launch", &value) && sol_json_number(value, &number)) {
    out->kind = AUDIT_LINE_LAUNCH;
    fine = read_launch(r, line, number, &out->launch);
  } else if (field(line, "again", &value) && sol_json_number(value, &number)) {
    out->kind = AUDIT_LINE_AGAIN;
    fine = read_again(r, line, number, &out->again);
  } else if (field(line, "module", &value) && sol_json_number(value, &number)) {
    out->kind = AUDIT_LINE_MODULE;
    fine = read_module(r, line, number, length, out);
  } else if (field(line, "outside", &value) && sol_json_number(value, &number)) {
    out->kind = AUDIT_LINE_OUTSIDE;
    out->what = number != 0 ? AUDIT_OUTSIDE_READ : AUDIT_OUTSIDE_WROTE;
    fine = field(line, "address", &value) && sol_json_number(value, &n[0]) && field(line, "bytes", &value) &&
           sol_json_number(value, &n[1]);
    out->address = fine ? count_of(n[0]) : 0;
    out->bytes = fine ? count_of(n[1]) : 0;
  } else if (field(line, "missing", &value)) {
    out->kind = AUDIT_LINE_MISSING;
    out->missing = keep_text(&r->scratch, value);
    fine = out->missing != NULL;
  } else if (field(line, "library", &value)) {
    out->kind = AUDIT_LINE_LIBRARY;
    fine = read_library(r, line, value, &out->library);
  } else if (field(line, "progress", &value) && sol_json_number(value, &number)) {
    out->kind = AUDIT_LINE_PROGRESS;
    char *name = sol_arena_alloc(&r->scratch, PROGRESS_NAME);
    fine = name && field(line, "instructions", &value) && sol_json_number(value, &n[0]) &&
           field(line, "kernel", &value);
    if (fine) sol_json_string(value, name, PROGRESS_NAME);
    out->progress =
        (SolEmuProgress){.kernel = name, .done = number, .instructions = fine ? count_of(n[0]) : 0};
  }
  if (r->arena.failed || r->scratch.failed) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  return fine ? SOL_OK : sol_fail(err, SOL_ERR_SYNTAX, "this is no line of an audit");
}
