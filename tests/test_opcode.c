// Every opcode of ops.def that computes, in every form, type and modifier: a kernel is made for each
// combination, run on random and special operands by full and by partial warps, and compared with a reference
// of its own. For opcodes that do not compute see opcode_elsewhere.h; one in neither place fails
// the test.
#include "emu/emu.h"
#include "opcode_elsewhere.h"
#include "opcode_gpu.h"
#include "opcode_kernel.h"

enum { THREADS = 256, CASES_AT_ONCE = 48 };

// ---- checking ----

static SolEmu *emu;
static uint64_t in_address, out_address;
static uint64_t inputs[THREADS][IN_WORDS], outputs[THREADS][OUT_WORDS];
static long runs_done, lanes_checked, gpu_runs, gpu_refused;
static OpcodeGpu gpu;
static const char *where = ""; // whose outputs are being checked

static void fill_inputs(const Run *r) {
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < IN_WORDS; i++) inputs[t][i] = random_word();
    for (int i = 0; i < r->operand_count; i++) {
      int n = source_index(r, i);
      for (int k = 0; n >= 0 && k < (r->operands[i].four ? 4 : 1); k++)
        inputs[t][n + k] = n == r->immediate ? r->immediate_value
                                             : in_range(r->c.id, n + k, random_operand(r->operands[i].type));
    }
    if (r->immediate != 1 && r->sources < 3 && random_word() % 8 == 0) inputs[t][1] = inputs[t][0];
  }
}

static void reference(const Run *r, const uint64_t *words, OpcodeOut *out) {
  const OpcodeCase *c = &r->c;
  OpcodeIn in = {.g = words[6] & 1, .carry = words[6] >> 3 & 1};
  memcpy(in.s, words, sizeof in.s);
  *out = (OpcodeOut){.d = 0};
  if (!strcmp(c->type[0], "pred")) in.s[0] = words[6] & 1, in.s[1] = words[6] >> 1 & 1;
  if (opcode_ref_int(c, r->handler, &in, r->table, out)) {
  } else if (!strcmp(r->handler, "float_arith")) {
    ref_float(c, &in, r->three ? 3 : 2, out);
  } else if (!strcmp(r->handler, "float_unary")) {
    ref_unary(c, &in, out);
  } else if (!strcmp(r->handler, "compare")) {
    ref_compares(c, &in, out);
  } else if (!strcmp(r->handler, "select")) {
    ref_select(c, &in, out);
  } else {
    ref_convert(c, &in, out);
  }
}

// Bits of the destination that the instruction defines, and whether `got` is right. An integer written to a
// wider register is extended by its sign.
static bool value_right(const Run *r, const OpcodeOperand *d, uint64_t got, const OpcodeOut *want) {
  int bits = opcode_bits(d->type);
  const RefFormat *f = ref_format(d->type);
  if (f && opcode_pair(d->type) && want->near) return true; // halves are checked apart
  if (want->near) return ref_near(cut(got, bits), f, want);
  if (want->any_nan && ref_nan(want->d, f)) return ref_nan(cut(got, bits), f);
  if (want->has_other && got == want->other) return true;
  int whole = operand_reg_bits(r, d);
  uint64_t wanted = cut(want->d, bits);
  if (opcode_signed(d->type)) wanted = (uint64_t)value_of(wanted, d->type);
  return cut(got, whole) == cut(wanted, whole);
}

// Approximate functions of pairs: each half against the function of a single operand.
static bool halves_right(const Run *r, const OpcodeOperand *d, uint64_t got, const uint64_t *words) {
  const RefFormat *f = ref_format(d->type);
  for (int half = 0; half < 2; half++) {
    uint64_t one[IN_WORDS];
    OpcodeOut want;
    memcpy(one, words, sizeof one);
    one[0] = cut(words[0] >> half * 16, 16);
    reference(r, one, &want);
    if (!ref_near(cut(got >> half * 16, 16), f, &want)) return false;
  }
  return true;
}

static bool lane_right(const Run *r, int t, int copy, const OpcodeOut *want, uint64_t *got) {
  bool active = !copy || inputs[t][6] >> 2 & 1;
  const OpcodeOperand *d = NULL;
  bool has_p = false;
  for (int i = 0; i < r->operand_count; i++) {
    const OpcodeOperand *o = &r->operands[i];
    if (o->letter == 'd' && strcmp(o->type, "pred") != 0) d = o;
    if (o->letter == 'p' || (o->letter == 'd' && !strcmp(o->type, "pred"))) has_p |= !o->bar || r->has_q;
  }
  *got = d ? outputs[t][copy] : 0;
  uint32_t p = (uint32_t)outputs[t][2 + copy], q = (uint32_t)(outputs[t][2 + copy] >> 32);
  if (!active) {
    int bits = d ? operand_reg_bits(r, d) : 0;
    return (!d || cut(*got, bits) == cut(inputs[t][7], bits)) && !p && !q;
  }
  if (d && !value_right(r, d, *got, want)) return false;
  if (d && want->near && opcode_pair(d->type) && !halves_right(r, d, *got, inputs[t])) return false;
  bool want_p = strcmp(r->c.type[0], "pred") ? want->p : want->d & 1;
  if (has_p && p != want_p) return false;
  if (!copy && !strcmp(r->handler, "int_carry") && (uint32_t)outputs[t][4] != want->carry) return false;
  return !(r->has_q && r->operands[1].letter == 'q') || q == want->q;
}

// ptxas 13.0 makes several instructions of a guarded set or testp and does not guard them all (lanes that are
// off lose the register's upper half), and folds a guarded abs or neg into its user without touching a NaN.
static bool gpu_is_no_oracle(const Run *r) {
  static const char *const ids[] = {"SET", "TESTP", "FABS", "FNEG"};
  for (int i = 0; i < 4; i++)
    if (opcode_is(&r->c, ids[i])) return true;
  return false;
}

static void check_run(const Run *r) {
  for (int t = 0; t < THREADS; t++)
    for (int copy = 0; copy < (where[0] && gpu_is_no_oracle(r) ? 1 : 2); copy++) {
      OpcodeOut want;
      uint64_t got;
      reference(r, inputs[t], &want);
      lanes_checked++;
      if (lane_right(r, t, copy, &want, &got)) continue;
      CHECK_MSG(false,
                "%s%s%s%s: a %llx b %llx c %llx flags %llx: got %llx p,q %llx cf %llx, want %llx (%g) p %d q "
                "%d cf %d",
                where, r->c.text, copy ? " guarded" : "", r->immediate >= 0 ? " immediate" : "",
                (unsigned long long)inputs[t][0], (unsigned long long)inputs[t][1],
                (unsigned long long)inputs[t][2], (unsigned long long)inputs[t][6] & 15,
                (unsigned long long)got, (unsigned long long)outputs[t][2 + copy],
                (unsigned long long)outputs[t][4], (unsigned long long)want.d, want.value, want.p, want.q,
                want.carry);
      return;
    }
}

static void launch_on_gpu(const Run *r, void *module, const char *name) {
  memset(outputs, 0, sizeof outputs);
  where = "on the GPU: ";
  if (CHECK(opcode_gpu_run(&gpu, module, name, THREADS, inputs, sizeof inputs, outputs, sizeof outputs)))
    check_run(r);
  where = "";
  gpu_runs++;
}

static void launch_run(const Run *r, SolEmuModule *module, void *gpu_module, int index) {
  char name[16];
  snprintf(name, sizeof name, "k%d", index);
  uint64_t params[2] = {in_address, out_address};
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, name),
                         .grid = {1, 1, 1},
                         .block = {THREADS, 1, 1},
                         .params = params,
                         .param_bytes = sizeof params,
                         .no_counts = true};
  SolEmuResult result = {0};
  SolError err = {0};
  fill_inputs(r);
  memset(outputs, 0, sizeof outputs);
  if (!CHECK(launch.kernel)) return;
  sol_emu_write(emu, in_address, inputs, sizeof inputs, &err);
  sol_emu_write(emu, out_address, outputs, sizeof outputs, &err);
  bool ok = sol_emu_launch(emu, &launch, &result, &err) == SOL_OK && result.end == SOL_EMU_DONE;
  CHECK_MSG(ok, "%s: %s %s", r->c.text, err.message, result.finding_count ? result.findings[0].message : "");
  sol_emu_result_free(&result);
  sol_emu_read(emu, outputs, out_address, sizeof outputs, &err);
  if (ok) check_run(r), runs_done++;
  if (gpu_module) launch_on_gpu(r, gpu_module, name);
}

static void run_all(const Run *runs, int count) {
  Text t = {0};
  if (gpu.target)
    put(&t, ".version 8.8\n.target sm_%da\n.address_size 64\n", gpu.target);
  else
    put(&t, ".version 8.8\n.target sm_100a\n.address_size 64\n");
  for (int i = 0; i < count; i++) put_kernel(&t, &runs[i], i);
  SolEmuModule *module = NULL;
  SolError err = {0};
  SolPtxSource source = {"opcodes", t.bytes, t.count};
  void *gpu_module = opcode_gpu_load(&gpu, t.bytes);
  if (gpu.target && !gpu_module && count > 1) {
    for (int i = 0; i < count; i++) run_all(&runs[i], 1);
  } else if (sol_emu_load(emu, &source, 1, &module, &err) == SOL_OK) {
    for (int i = 0; i < count; i++) launch_run(&runs[i], module, gpu_module, i);
    sol_emu_unload(emu, module);
    if (gpu.target && !gpu_module) gpu_refused++;
  } else if (count > 1) { // find the one that does not load
    for (int i = 0; i < count; i++) run_all(&runs[i], 1);
  } else {
    CHECK_MSG(false, "%s: line %d: %s", runs[0].c.text, (int)err.line, err.message);
  }
  if (gpu_module) gpu.unload(gpu_module);
  free(t.bytes);
}

// ---- what to run ----

static bool is_legal(const OpcodeCase *c, const char *handler) {
  if (!strcmp(handler, "compare")) return compare_legal(c, c->type[opcode_is(c, "SET")]);
  if (!opcode_is(c, "CVT")) return true;
  bool plain = !strncmp(c->line->operands, "d~ a:2~ - -", 11);
  return !plain || cvt_legal(c);
}

static Run make_run(const OpcodeCase *c, const char *handler) {
  Run r = {.c = *c, .handler = handler, .immediate = -1};
  r.operand_count = opcode_operands(c, r.operands);
  r.table = (uint32_t)(random_word() & 255);
  r.has_q = random_word() & 1;
  for (int i = 0; i < r.operand_count; i++)
    if (r.operands[i].bar && r.operands[i].letter == 'p') r.has_q = true; // lop3
  for (int i = 0; i < r.operand_count; i++)
    if (source_index(&r, i) >= 0) r.sources++;
  return r;
}

typedef struct Queue {
  Run runs[CASES_AT_ONCE];
  int count;
} Queue;
static void flush(Queue *q) {
  if (q->count) run_all(q->runs, q->count);
  q->count = 0;
}
static void add(Queue *q, Run r) {
  if (q->count == CASES_AT_ONCE) flush(q);
  q->runs[q->count++] = r;
}

// A case and its variants: the last source as a constant, a third operand, wider registers.
static void add_case(Queue *q, const OpcodeCase *c, const char *handler) {
  Run r = make_run(c, handler);
  int last = -1;
  const char *last_type = "";
  bool may_miss = false, tilde = strchr(c->line->operands, '~') != NULL;
  for (int i = 0; i < r.operand_count; i++) {
    if (source_index(&r, i) >= 0) last = source_index(&r, i), last_type = r.operands[i].type;
    may_miss |= r.operands[i].may_miss;
  }
  bool needs_three = opcode_has(c, "abs") && !opcode_has(c, "xorsign") && may_miss; // PTX's rule
  if (!needs_three) add(q, r);
  if (may_miss) {
    Run three = r;
    three.three = true;
    add(q, three);
  }
  if (needs_three) return;
  if (tilde && strncmp(c->line->operands, "d~ a:2~", 7) == 0) {
    Run wide = r;
    wide.wide = true;
    add(q, wide);
  }
  bool shifts = !strcmp(handler, "shift") || !strcmp(handler, "bits");
  if (last < 1 || is_cvt(&r) || opcode_bits(last_type) > 32 || opcode_pair(last_type)) return;
  if (opcode_float(last_type) && opcode_bits(last_type) == 16) return; // PTX has no constants of these
  for (int n = 0; n < (shifts ? 6 : 1); n++) {
    r.immediate = last;
    r.immediate_value =
        shifts && n < 4 ? random_word() % 36 : cut(random_operand(last_type), opcode_bits(last_type));
    r.immediate_value = in_range(c->id, last, r.immediate_value);
    if (!strcmp(handler, "shift"))
      r.immediate_value &= 0xffff; // beyond, ptxas folds shifts of 16 bits wrongly
    if (opcode_is(c, "PRMT") && n < 4) r.immediate_value = random_word() & 0x7777;
    r.table = (uint32_t)(random_word() & 255);
    add(q, r);
  }
}

static void run_line(int line) {
  const OpcodeLine *l = &opcode_lines[line];
  const char *handler = opcode_handler(line);
  Queue *q = calloc(1, sizeof *q);
  // Of comparisons there are tens of thousands: some of them, in steps that go through all words.
  long count = opcode_count(l), most = !strcmp(handler, "compare") ? 600 : count;
  long step = count > most ? count / most | 1 : 1;
  while (step > 1 && (count % step == 0 || step % 3 == 0 || step % 5 == 0 || step % 7 == 0)) step += 2;
  long before = runs_done;
  for (long k = 0, done = 0; done < count; k = (k + step) % count, done += step) {
    OpcodeCase c;
    opcode_case(l, k, &c);
    if (is_legal(&c, handler)) add_case(q, &c, handler);
  }
  if (opcode_is(&(OpcodeCase){.id = l->id}, "LOP3")) // the tables with handlers of their own, and all others
    for (uint32_t table = 0; table < 256; table++) {
      OpcodeCase c;
      opcode_case(l, (long)table % count, &c);
      Run r = make_run(&c, handler);
      r.table = table;
      add(q, r);
    }
  flush(q);
  CHECK_MSG(runs_done > before, "%s: '%s': nothing was run", l->id, l->modifiers);
  free(q);
}

static void run_family(const char *family) {
  SolError err = {0};
  SolEmuMachine machine = {.workers = 1, .sms = 1};
  if (!CHECK(sol_emu_create(&machine, &emu, &err) == SOL_OK)) return;
  sol_emu_alloc(emu, sizeof inputs, "in", &in_address, &err);
  sol_emu_alloc(emu, sizeof outputs, "out", &out_address, &err);
  if (!gpu.target) opcode_gpu_open(&gpu, sizeof inputs, sizeof outputs);
  for (int i = 0; i < OPCODE_LINES; i++)
    if (!strcmp(opcode_handler(i), family)) run_line(i);
  sol_emu_destroy(emu);
}

#define EACH_FAMILY(X)                                                                                       \
  X(int_arith)                                                                                               \
  X(int_carry)                                                                                               \
  X(int_mul) X(int_dot) X(bits) X(shift) X(float_arith) X(float_unary) X(compare) X(select) X(convert)
#define FAMILY_TEST(name)                                                                                    \
  TEST(name) {                                                                                               \
    run_family(#name);                                                                                       \
  }
EACH_FAMILY(FAMILY_TEST)

TEST(every_opcode_has_a_test) {
  char *texts = elsewhere_texts();
  int untested = 0;
  if (!texts) printf("the tests' sources are not here: opcodes tested elsewhere are taken on trust\n");
  for (int i = 0; i < OPCODE_LINES; i++) {
    const char *handler = opcode_handler(i);
    bool here = false;
#define FAMILY_NAME(name) here |= !strcmp(handler, #name);
    EACH_FAMILY(FAMILY_NAME)
    if (here || !opcode_lines[i].handler) continue;
    CHECK_MSG(elsewhere_is_family(handler), "%s: nobody tests family %s", opcode_lines[i].id, handler);
    if (!texts || elsewhere_names(texts, opcode_lines[i].root)) continue;
    CHECK_MSG(elsewhere_is_untested(opcode_lines[i].id), "%s has no test", opcode_lines[i].id);
    untested++;
  }
  free(texts);
  if (untested)
    printf("%d opcodes of memory, control and barriers have no test of their own yet\n", untested);
  printf("%ld kernels, %ld lanes compared\n", runs_done, lanes_checked);
  if (gpu.target) printf("of them %ld on the GPU too; %ld it does not know\n", gpu_runs, gpu_refused);
}

CHECK_MAIN
