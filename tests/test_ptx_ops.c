// Every line of src/ptx/ops.def: each of its modifiers' words is written out, loaded and looked at in what
// comes back. Where there is a ptxas, it has to take one instruction of each line for some GPU as well.
#define _POSIX_C_SOURCE 200809L // popen, mkstemp

#include "ptx_check.h"

#include <unistd.h>

#include "ptx/words.h"

enum { MOST = 32 };

// A column of ops.def cut at spaces.
typedef struct Words {
  char text[1024];
  char *word[MOST];
  int count;
} Words;

static void cut(Words *w, const char *text, char separator) {
  snprintf(w->text, sizeof w->text, "%s", text);
  w->count = 0;
  for (char *at = w->text; *at && w->count < MOST;) {
    while (*at == separator) *at++ = 0;
    if (!*at) break;
    w->word[w->count++] = at;
    while (*at && *at != separator) at++;
  }
}

// One modifier: its kind, and the words it takes.
typedef struct Modifier {
  char kind[48]; // "": a flag
  bool optional, implied;
  Words words;
} Modifier;

static void words_of_kind(const char *kind, Words *out) {
  char list[1024] = "", upper[48];
  snprintf(upper, sizeof upper, "%.40s",
           !strcmp(kind, "layout2")  ? "layout"
           : !strcmp(kind, "evict3") ? "evict2"
                                     : kind);
  for (char *c = upper; *c; c++) *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
  if (!strcmp(kind, "vec")) strcpy(list, "v2,v4,v8");
  const PtxWordRow *row;
  for (int i = 0; (row = sol_ptx_word(i)); i++)
    if (!strcmp(row->kind, upper))
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? "," : "", row->text);
  cut(out, list, ',');
}

static bool is_kind(const char *word) {
  static const char *const kinds[] = {"t1",     "t2",       "t3",     "t4",     "space", "space2",
                                      "layout", "layout2",  "evict2", "evict3", "rnd",   "cmp",
                                      "bool",   "fn",       "edge",   "sem",    "scope", "cop",
                                      "evict1", "prefetch", "geom",   "vec",    "shape", "scale"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (!strcmp(word, kinds[i])) return true;
  return false;
}

static void read_modifier(const char *text, Modifier *m) {
  memset(m, 0, sizeof *m);
  char word[512];
  m->implied = text[0] == '+';
  snprintf(word, sizeof word, "%s", text + m->implied);
  char *list = strchr(word, ':');
  if (list && list[1] == ':') list = NULL; // L2::cache_hint
  if (list) *list++ = 0;
  size_t length = strlen(word);
  if (word[length - 1] == '?') m->optional = true, word[length - 1] = 0;
  if (is_kind(word)) snprintf(m->kind, sizeof m->kind, "%.40s", word);
  if (!m->kind[0])
    cut(&m->words, word, ',');
  else if (list)
    cut(&m->words, list, ',');
  else
    words_of_kind(word, &m->words);
}

// The value of the field of PtxCode that a kind goes to; -1 for vec and shape, which are looked at by
// themselves.
static int field_of(const PtxCode *c, const char *kind) {
  const struct {
    const char *kind;
    int value;
  } fields[] = {
      {"t1", c->type[0]},    {"t2", c->type[1]},    {"t3", c->type[2]},    {"t4", c->type[3]},
      {"space", c->space},   {"space2", c->space2}, {"layout", c->layout}, {"layout2", c->layout2},
      {"evict1", c->evict1}, {"evict2", c->evict2}, {"evict3", c->evict3}, {"rnd", c->rnd},
      {"cmp", c->cmp},       {"bool", c->bool_op},  {"fn", c->fn},         {"edge", c->edge},
      {"sem", c->sem},       {"scope", c->scope},   {"cop", c->cop},       {"prefetch", c->prefetch},
      {"geom", c->geom},     {"scale", c->scale}};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (!strcmp(kind, fields[i].kind)) return fields[i].value;
  return -1;
}

static int value_of(const char *kind, const char *word) {
  if (kind[0] == 't' && kind[1] >= '1' && kind[1] <= '4') {
    for (int i = 1; i < PTX_TYPE_COUNT; i++)
      if (!strcmp(sol_ptx_type_name((PtxType)i), word)) return i;
    return -2;
  }
  const PtxWordRow *row;
  for (int i = 0; (row = sol_ptx_word(i)); i++) {
    char lower[48];
    snprintf(lower, sizeof lower, "%s", row->kind);
    for (char *c = lower; *c; c++) *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    size_t length = strlen(lower);
    bool same = !strncmp(kind, lower, length) && (!kind[length] || kind[length] == '2') &&
                strcmp(row->text, word) == 0;
    if (!strcmp(kind, "evict3")) same = !strcmp(lower, "evict2") && !strcmp(row->text, word);
    if (same) return row->value;
  }
  return -2;
}

// Whether the decoded code says what the word says.
static bool says(const PtxCode *c, const Modifier *m, const char *word) {
  if (!m->kind[0]) {
    const PtxWordRow *row;
    for (int i = 0; (row = sol_ptx_word(i)); i++)
      if (!row->kind[0] && !strcmp(row->text, word)) return c->flags >> row->value & 1;
    return false;
  }
  if (!strcmp(m->kind, "vec")) return c->vec == atoi(word + 1);
  if (!strcmp(m->kind, "shape")) {
    char shape[32];
    snprintf(shape, sizeof shape, "m%un%uk%u", c->m, c->n, c->k);
    return !strcmp(shape, word) || (!c->k && !strncmp(shape, word, strlen(word)));
  }
  return field_of(c, m->kind) == value_of(m->kind, word);
}

// ---- instructions to go with the opcodes ----

typedef struct Line {
  const PtxFormRow *form;
  Modifier modifiers[MOST];
  int modifier_count;
  const char *chosen[MOST]; // NULL: left out
  char opcode[256], text[1024];
} Line;

static PtxType chosen_type(const Line *l, int which) {
  char kind[] = {'t', (char)('0' + which), 0};
  for (int i = 0; i < l->modifier_count; i++) {
    const Modifier *m = &l->modifiers[i];
    const char *word = m->implied ? m->words.word[0] : l->chosen[i];
    if (!strcmp(m->kind, kind) && word) return (PtxType)value_of(kind, word);
  }
  return PTX_TYPE_NONE;
}

static const char *chosen_word(const Line *l, const char *kind) {
  for (int i = 0; i < l->modifier_count; i++)
    if (!strcmp(l->modifiers[i].kind, kind) && l->chosen[i]) return l->chosen[i];
  return "";
}

static bool has_flag(const Line *l, const char *flag, size_t length) {
  for (int i = 0; i < l->modifier_count; i++)
    if (!l->modifiers[i].kind[0] && l->chosen[i] && strlen(l->chosen[i]) == length &&
        !memcmp(l->chosen[i], flag, length))
      return true;
  return length == 4 && !memcmp(flag, "bool", 4) && chosen_word(l, "bool")[0];
}

static const char *register_for(PtxType type, bool wider) {
  int bits = sol_ptx_type_bits(type);
  if (type == PTX_TYPE_NONE) return "%d1";
  if (type == PTX_PRED) return "%p1";
  if (type == PTX_F32) return "%f1";
  if (type == PTX_F64) return "%fd1";
  if (bits == 8 && wider && sol_ptx_type_class(type) != PTX_CLASS_PACKED) return "%h1";
  return bits == 8 ? "%b1" : bits == 16 ? "%h1" : bits == 32 ? "%r1" : bits == 64 ? "%d1" : "%q1";
}

static void put(Line *l, const char *text) {
  snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s", text);
}

static bool in_tensor_memory(int op) {
  return op == PTX_OP_TCGEN05_LD || op == PTX_OP_TCGEN05_ST || op == PTX_OP_TCGEN05_CP ||
         op == PTX_OP_TCGEN05_MMA || op == PTX_OP_TCGEN05_MMA_SCALED;
}

static void put_address(Line *l, const char *word) {
  const char *space = chosen_word(l, word[3] == '2' ? "space2" : "space");
  const char *name = !strcmp(space, "global")   ? "[g]"
                     : !strcmp(space, "shared") ? "[s]"
                     : !strcmp(space, "const")  ? "[c]"
                                                : "[%d1]";
  if (word[3] == 'm') name = "[s]";
  if (in_tensor_memory(l->form->op)) name = "[%r1]";
  bool reads = !strncmp(l->form->root, "ld", 2) || !strncmp(l->form->root, "prefetch", 8);
  if (!strcmp(space, "param") && !reads)
    name = "[call]"; // a kernel's own cannot be written
  else if (!strcmp(space, "param"))
    name = "[a]";
  if (word[3] != 't') {
    put(l, name);
    return;
  }
  const char *geom = chosen_word(l, "geom");
  if (strstr(l->form->root, "tensor")) {
    int count = strstr(chosen_word(l, "fn"), "4") ? 5 : geom[0] - '0';
    put(l, "[%d1, {");
    for (int i = 0; i < count; i++) put(l, i ? ", %r1" : "%r1");
    put(l, "}]");
    return;
  }
  bool real = chosen_type(l, 2) == PTX_F32;
  if (!geom[0])
    put(l, "[%d1]");
  else if (!strcmp(geom, "1d"))
    put(l, real ? "[%d1, {%f1}]" : "[%d1, {%r1}]");
  else if (!strcmp(geom, "2d"))
    put(l, real ? "[%d1, {%f1, %f2}]" : "[%d1, {%r1, %r2}]");
  else if (!strcmp(geom, "3d"))
    put(l, real ? "[%d1, {%f1, %f2, %f3, %f4}]" : "[%d1, {%r1, %r2, %r3, %r4}]");
  else if (!strcmp(geom, "cube"))
    put(l, "[%d1, {%f1, %f2, %f3, %f4}]");
  else if (!strcmp(geom, "a1d"))
    put(l, real ? "[%d1, {%r1, %f2}]" : "[%d1, {%r1, %r2}]");
  else
    put(l, real ? "[%d1, {%r1, %f2, %f3, %f4}]" : "[%d1, {%r1, %r2, %r3, %r4}]");
}

// A matrix fragment's register count from the manual's table of elements per lane, for the shapes of a warp.
static void put_fragment(Line *l, char matrix, PtxType explicit_type) {
  int m = 0, n = 0, k = 0;
  sscanf(chosen_word(l, "shape"), "m%dn%dk%d", &m, &n, &k);
  bool wmma = !strncmp(l->form->root, "wmma", 4);
  char which = matrix;
  PtxType type = explicit_type;
  int count = 0;
  if (matrix == 'I') {
    count = chosen_word(l, "geom")[0] - '0' - 2;
    type = PTX_B16;
  } else if (!strncmp(l->form->root, "ldmatrix", 8) || !strncmp(l->form->root, "stmatrix", 8)) {
    count = (chosen_word(l, "vec")[1] - '0') * (n == 16 ? 2 : 1);
    type = PTX_B32;
  } else if (in_tensor_memory(l->form->op)) { // lanes by bits, so many times: 32 threads have 32 bits each
    int lanes = 0, bits = 0;
    sscanf(chosen_word(l, "fn"), "%dx%d", &lanes, &bits);
    count = atoi(chosen_word(l, "vec") + 1) * (lanes * bits > 1024 ? lanes * bits / 1024 : 1);
    type = PTX_B32;
  } else {
    if (matrix == 'L')
      which = l->form->op == PTX_OP_WMMA_STORE ? 'D' : (char)(chosen_word(l, "fn")[0] - 32),
      type = chosen_type(l, 1);
    else
      type = chosen_type(l, matrix == 'D' ? 1 : matrix - 'A' + 2);
    int warps = !strncmp(l->form->root, "wgmma", 5) ? 4 : 1;
    int elements = (which == 'A' ? m * k : which == 'B' ? k * n : m * n) / 32 / warps;
    int bits = sol_ptx_type_bits(type);
    if (l->form->op == PTX_OP_WGMMA_SP && which == 'A') elements /= 2;
    if (wmma && type == PTX_F16 && (which == 'A' || which == 'B')) elements = 16;
    if (!wmma && m == 8 && k == 4 && chosen_type(l, 2) == PTX_F16)
      elements = which == 'A' || which == 'B' ? 4 : 8;
    count = bits >= 32 ? elements : elements * bits / 32;
    if (type != PTX_F64 && type != PTX_F32) type = PTX_B32;
  }
  put(l, "{");
  for (int i = 0; i < count; i++) {
    put(l, i ? ", " : "");
    put(l, register_for(type, false));
  }
  put(l, "}");
}

static const char *constant_for(const Line *l, const char *word) {
  switch (l->form->op) {
  case PTX_OP_CP_ASYNC: return "16";
  case PTX_OP_ST_BULK: return "0";
  case PTX_OP_SETMAXNREG: return "40";
  case PTX_OP_WGMMA: return "1"; // a scale, or that it is transposed
  case PTX_OP_WGMMA_SP: return word[0] == 'c' ? "0" : "1";
  case PTX_OP_DISCARD:
  case PTX_OP_APPLYPRIORITY:
  case PTX_OP_TENSORMAP_COPY:
  case PTX_OP_FENCE_PROXY: return "128";
  case PTX_OP_TENSORMAP_REPLACE: return "0";
  default: return "4";
  }
}

// Writes the operand for one word of the operands column; false where there is none.
static bool put_operand(Line *l, const char *word, bool *first) {
  const char *condition = strchr(word, '@'), *type_text = strchr(word, ':');
  if (word[0] == '-' || (strchr(word, '?') && word[0] != '|')) return false;
  if (condition && !has_flag(l, condition + 1, strlen(condition + 1))) return false;
  if (condition && type_text > condition) type_text = NULL;
  put(l, *first ? " " : word[0] == '|' ? "|" : ", ");
  *first = false;
  if (word[0] == '[') return put_address(l, word), true;
  PtxType type = chosen_type(l, 1);
  if (type_text) {
    char name[16] = "";
    sscanf(type_text + 1, "%15[a-z0-9]", name);
    if (!strcmp(name, "label")) return put(l, "L"), true;
    if (!strcmp(name, "table")) return put(l, "T"), true;
    if (!strcmp(name, "w"))
      type = type == PTX_U16 || type == PTX_S16 ? PTX_U32 : PTX_U64;
    else if (name[0] >= '1' && name[0] <= '4')
      type = chosen_type(l, name[0] - '0');
    else
      type = strcmp(name, "addr") ? (PtxType)value_of("t1", name) : PTX_TYPE_NONE;
  }
  bool remote = l->form->op == PTX_OP_MBARRIER_ARRIVE || l->form->op == PTX_OP_MBARRIER_ARRIVE_DROP;
  if (remote && word[0] == 'd' && !strcmp(chosen_word(l, "space"), "shared::cluster"))
    return put(l, "_"), true;
  if (strchr(word, '#')) return put(l, constant_for(l, word)), true;
  const char *star = strchr(word, '*');
  if (star && star[1] >= 'A' && star[1] <= 'L') return put_fragment(l, star[1], type), true;
  bool fixed = star && star[1] >= '1' && star[1] <= '4'; // in braces, one as well
  int count = fixed ? star[1] - '0' : star && chosen_word(l, "vec")[0] ? chosen_word(l, "vec")[1] - '0' : 1;
  if (fixed || count > 1) put(l, "{");
  for (int i = 0; i < count; i++) {
    if (i) put(l, ", ");
    put(l, register_for(type, strchr(word, '~') != NULL));
  }
  if (fixed || count > 1) put(l, "}");
  return true;
}

static void write_line(Line *l) {
  snprintf(l->opcode, sizeof l->opcode, "%s", l->form->root);
  for (int i = 0; i < l->modifier_count; i++)
    if (l->chosen[i])
      snprintf(l->opcode + strlen(l->opcode), sizeof l->opcode - strlen(l->opcode), ".%s", l->chosen[i]);
  snprintf(l->text, sizeof l->text, "%s", l->opcode);
  Words operands = {0};
  cut(&operands, l->form->operands, ' ');
  bool first = true;
  for (int i = 0; i < operands.count; i++) put_operand(l, operands.word[i], &first);
  put(l, ";");
}

static void read_line(const PtxFormRow *form, Line *l) {
  memset(l, 0, sizeof *l);
  l->form = form;
  Words mods = {0};
  cut(&mods, form->modifiers, ' ');
  for (int i = 0; i < mods.count; i++) {
    Modifier *m = &l->modifiers[l->modifier_count++];
    read_modifier(mods.word[i], m);
    l->chosen[i] = m->optional || m->implied ? NULL : m->words.word[0];
  }
}

#define SURROUND                                                                                             \
  ".global .align 128 .b8 g[256]; .const .align 128 .b8 c[256]; .shared .align 128 .b8 s[256];\n"            \
  ".visible .entry k(.param .align 64 .b8 a[64]) {\n" KERNEL_REGS ".param .b64 call; T: .branchtargets L;\n"

// Combinations that single words cannot rule out, which the decoder and the manual both refuse.
static bool refused_together(const Line *l, const char *message) {
  switch (l->form->op) {
  case PTX_OP_CVT:
    return strstr(message, "conversion") || strstr(message, "rounded") || strstr(message, "ftz is for f32");
  case PTX_OP_SET:
  case PTX_OP_SETP: return strstr(message, "this comparison is not for this type");
  case PTX_OP_LD:
  case PTX_OP_ST: return strstr(message, "v8 is for") || strstr(message, "at most 32 bytes");
  case PTX_OP_MMA: return strstr(message, "one type");
  case PTX_OP_FMIN:
  case PTX_OP_FMAX: return strstr(message, ".abs of two operands needs .xorsign");
  default: return false;
  }
}

static void check_line(Line *l, int asked) {
  write_line(l);
  char text[4096];
  snprintf(text, sizeof text, "%s%s%s\nL: ret;\n}\n", PTX_HEAD, SURROUND, l->text);
  SolError err = {0};
  SolPtxModule *m = load_sources(&(SolPtxSource){"line", text, strlen(text)}, 1, &err);
  if (!m) {
    CHECK_MSG(refused_together(l, err.message), "%s: %s", l->text, err.message);
    return;
  }
  const PtxInst *inst = &kernel(m)->insts[0];
  CHECK_MSG(inst->code->op == l->form->op, "%s is %s", l->text, sol_ptx_op_id((PtxOp)inst->code->op));
  CHECK_STR(inst->code->text, l->opcode);
  for (int i = 0; i < l->modifier_count; i++) {
    const Modifier *modifier = &l->modifiers[i];
    const char *word = modifier->implied ? modifier->words.word[0] : l->chosen[i];
    if (word)
      CHECK_MSG(says(inst->code, modifier, word), "%s does not say '%s' (modifier %d of %s)", l->opcode, word,
                asked, l->form->modifiers);
  }
  char printed[1024];
  sol_ptx_format_inst(m, kernel(m), inst, printed, sizeof printed);
  if (l->form->op != PTX_OP_BRA && l->form->op != PTX_OP_BRX) CHECK_STR(printed, l->text);
  sol_ptx_free(m);
}

TEST(every_word_of_every_line) {
  const PtxFormRow *form;
  for (int f = 0; (form = sol_ptx_form(f)); f++) {
    if (form->op == PTX_OP_CALL) continue; // test_ptx_module.c
    Line line;
    read_line(form, &line);
    check_line(&line, -1);
    for (int i = 0; i < line.modifier_count; i++) {
      const char *kept = line.chosen[i];
      for (int k = 0; !line.modifiers[i].implied && k < line.modifiers[i].words.count; k++) {
        line.chosen[i] = line.modifiers[i].words.word[k];
        check_line(&line, i);
      }
      line.chosen[i] = kept;
    }
  }
}

// The operands column has the same positions in every line of an opcode.
TEST(forms_agree_on_positions) {
  const PtxFormRow *form;
  for (int f = 0; (form = sol_ptx_form(f)); f++) {
    const char *first = sol_ptx_op_operands((PtxOp)form->op);
    CHECK_MSG(ptx_walk_positions(form->operands) == ptx_walk_positions(first), "%s: '%s' and '%s'",
              sol_ptx_op_id((PtxOp)form->op), form->operands, first);
    CHECK_MSG(ptx_walk_positions(form->operands) <= PTX_MAX_OPERANDS, "%s", form->operands);
  }
  for (int op = 1; op < PTX_OP_COUNT; op++)
    CHECK(sol_ptx_op_handler((PtxOp)op)[0] && sol_ptx_op_semantics((PtxOp)op)[0] &&
          sol_ptx_op_id((PtxOp)op)[0]);
}

TEST(refused_instructions_are_named) {
  const PtxRefusedRow *row;
  for (int i = 0; (row = sol_ptx_refused(i)); i++) {
    char text[256];
    snprintf(text, sizeof text, ".entry k() {\n\n  %s.u32 %%r1;\n}", row->root);
    SolError err = load_error(text);
    CHECK_INT(err.status, SOL_ERR_UNSUPPORTED);
    CHECK(err.line == 3 && err.column == 3);
    CHECK_HAS(err.message, row->root);
    CHECK_HAS(err.message, row->what);
  }
}

// ---- ptxas ----

static char ptxas_path[1024];

static bool find_ptxas(void) {
  FILE *pipe = popen("scripts/cuda-env nvcc 2>/dev/null", "r");
  if (!pipe) return false;
  bool found = fgets(ptxas_path, sizeof ptxas_path, pipe) != NULL;
  pclose(pipe);
  char *slash = found ? strrchr(ptxas_path, '/') : NULL;
  if (!slash) return false;
  snprintf(slash, sizeof ptxas_path - (size_t)(slash - ptxas_path), "/ptxas");
  return access(ptxas_path, X_OK) == 0;
}

enum { MAX_LINES = 600 };

// Lines that a ptxas of today cannot judge: shfl and vote without .sync need PTX before 6.4 and older GPUs.
static bool unjudged(const Line *l) {
  bool legacy = (l->form->op == PTX_OP_SHFL || l->form->op == PTX_OP_VOTE) && !has_flag(l, "sync", 4);
  return legacy || l->form->op == PTX_OP_CALL;
}

// Assembles the lines not yet taken for one GPU, leaving out those it complains about, and those with the word `without`.
static void assemble(const char *arch, const char *without, char lines[][1024], bool *taken, int count) {
  static bool refused[MAX_LINES];
  memset(refused, 0, sizeof refused);
  char path[64] = "/tmp/sol-test-ptx-XXXXXX", command[1400], line[1024];
  int fd = mkstemp(path);
  if (fd < 0) return;
  close(fd);
  for (bool again = true; again;) {
    again = false;
    FILE *file = fopen(path, "w");
    if (!file) return;
    int at[MAX_LINES], written = 0, before = 1;
    char head[1024];
    snprintf(head, sizeof head, ".version 9.0\n.target %s\n.address_size 64\n%s", arch, SURROUND);
    for (char *c = head; *c; c++) before += *c == '\n';
    fputs(head, file);
    for (int i = 0; i < count; i++)
      if (!taken[i] && !refused[i] && !strstr(lines[i], without))
        fprintf(file, "%s\n", lines[i]), at[written++] = i;
    fputs("L: ret;\n}\n", file);
    fclose(file);
    snprintf(command, sizeof command, "'%s' -arch=%s %s -o /dev/null 2>&1", ptxas_path, arch, path);
    FILE *pipe = popen(command, "r");
    if (!pipe) return;
    while (fgets(line, sizeof line, pipe)) {
      int number = 0;
      char *place = strstr(line, ", line ");
      if (!place || sscanf(place, ", line %d", &number) != 1 || number < before || number >= before + written)
        continue;
      if (!refused[at[number - before]]) refused[at[number - before]] = again = true;
    }
    if (pclose(pipe) == 0)
      for (int i = 0; i < written; i++) taken[at[i]] = true;
  }
  remove(path);
}

TEST(ptxas_takes_every_line) {
  if (!find_ptxas()) SKIP("no ptxas to compare with");
  static char lines[MAX_LINES][1024];
  static bool taken[MAX_LINES];
  int count = 0;
  const PtxFormRow *form;
  for (int f = 0; (form = sol_ptx_form(f)) && count < MAX_LINES; f++) {
    Line line;
    read_line(form, &line);
    // The first word of each is not always one that goes with the others.
    for (int i = 0; i < line.modifier_count; i++) {
      const Modifier *m = &line.modifiers[i];
      if (form->op == PTX_OP_CVT && !strcmp(m->kind, "rnd") && m->optional) line.chosen[i] = NULL;
      if (m->optional && !strcmp(m->kind, "edge")) line.chosen[i] = m->words.word[0];
      if (form->op == PTX_OP_CVTA && !strcmp(m->kind, "t1")) line.chosen[i] = "u64";
      bool bulk = strstr(form->root, "async.bulk") || strstr(form->root, "tensormap");
      if (bulk && line.chosen[i] && !strcmp(line.chosen[i], "shared")) line.chosen[i] = "shared::cta";
    }
    write_line(&line);
    if (!unjudged(&line)) snprintf(lines[count++], sizeof lines[0], "%s", line.text);
  }
  static const char *const archs[] = {"sm_100a", "sm_100a", "sm_90a", "sm_80", "sm_75"};
  for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) // a kernel has one kind of cta_group
    assemble(archs[i], i == 0 ? "cta_group::2" : "cta_group::1", lines, taken, count);
  for (int i = 0; i < count; i++) CHECK_MSG(taken[i], "no ptxas takes '%s'", lines[i]);
  CHECK(count > 200);
}

CHECK_MAIN
