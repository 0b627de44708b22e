// The rule about arithmetic that takes many instructions where few would do.
#include "audit/inside.h"
#include "audit/rules.h"
#include "base/format.h"

#define WORTH_CHANGING 3.0  // plain instructions: what takes no more stays as it is
#define BACK           0.25 // of the conversions to double, those back: with fewer, sums are kept in double
#define FAST_ROOT      8.0  // plain instructions of a quotient or root in single precision
#define SINGLE         1.0  // of every other operation

typedef struct SlowMath {
  const char *opcodes; // beginnings of PTX instructions, each with a space after it
  double left;         // plain instructions in place of one
  const char *what, *fix;
} SlowMath;

static const SlowMath kinds[] = {
    {"div.s32 div.u32 rem.s32 rem.u32 ", 3,
     "quotients and remainders of whole numbers, by values that are known only at run time",
     "Where an index wraps around, compare and subtract; make the divisor a constant of the program (a template "
     "parameter) or a power of two; or divide by one value with a multiplication (__umulhi by a reciprocal that the host "
     "computes)."},
    {"div.s64 div.u64 rem.s64 rem.u64 ", 6, "quotients and remainders of 64 bits",
     "Use 32 bits where the numbers fit (unsigned in place of size_t), constants of the program or powers of two as "
     "divisors, or divide once and go on by additions."},
    {"div.rn.f32 sqrt.rn.f32 rcp.rn.f32 ", 3, "quotients and roots that are rounded exactly",
     "Multiply by a reciprocal that is computed once, use rsqrtf in place of 1 / sqrtf; where the last bits do not "
     "matter, __fdividef, or compile with -prec-div=false -prec-sqrt=false (-use_fast_math)."},
};

// The instruction without its guard, "@%p1 ".
static const char *opcode(const AuditInst *in) {
  const char *text = in->text ? in->text : "";
  if (*text != '@') return text;
  while (*text && *text != ' ') text++;
  while (*text == ' ') text++;
  return text;
}

static bool is_one_of(const AuditInst *in, const char *opcodes) {
  const char *text = opcode(in);
  for (const char *word = opcodes; *word;) {
    size_t length = 0;
    while (word[length] != ' ') length++;
    if (strlen(text) > length && memcmp(text, word, length) == 0 &&
        (text[length] == ' ' || text[length] == '\t'))
      return true;
    word += length + 1;
  }
  return false;
}

typedef struct Slow {         // what a finding is about
  uint8_t *changed;           // of each instruction
  double executions, removed; // of warps; issues
  const AuditInst *worst;
  double most;
} Slow;

// In place of the instruction, `left` plain ones on the pipe of fp32 or of whole numbers.
static void make_fast(const Rules *r, uint32_t i, double left, Slow *s, MachineWork *after) {
  const AuditInst *in = &r->kernel->insts[i];
  const MachineWork *d = &r->demands[i];
  double issues = rule_least(left * (double)in->counts.executions, d->issues), gone = d->issues - issues;
  rule_remove(after, d, 1);
  after->issues += issues;
  s->changed[i] = 1;
  s->executions += (double)in->counts.executions;
  s->removed += gone;
  if (gone > s->most) s->most = gone, s->worst = in;
}

static void report(Rules *r, Slow *s, const MachineWork *after, const char *what, const char *fix) {
  MachinePipe pipe;
  RuleWords w = {{0}, {0}, {0}};
  if (!s->worst) return;
  r->needs.compute = audit_compute_light(r->program, r->kernel, s->changed, &pipe);
  sol_format(w.message, sizeof w.message,
             "%.0f%% of the instructions that the kernel executes could go: they are for %s.",
             100 * rule_ratio(s->removed, r->kernel->work.issues), what);
  sol_format(w.evidence, sizeof w.evidence, "%.0f executions by a warp, %.1f instructions each that could go",
             s->executions, rule_ratio(s->removed, s->executions));
  sol_format(w.fix, sizeof w.fix, "%s", fix);
  rule_report(r, RULE_slow_math, s->worst, after, &w);
}

static void report_kind(Rules *r, const SlowMath *kind) {
  const AuditKernel *k = r->kernel;
  Slow s = {.changed = sol_arena_alloc(&r->program->arena, k->inst_count + 1)};
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count && s.changed; i++)
    if (k->insts[i].size > WORTH_CHANGING && is_one_of(&k->insts[i], kind->opcodes))
      make_fast(r, i, kind->left, &s, &after);
  report(r, &s, &after, kind->what, kind->fix);
}

// ---- double precision between floats ----

static bool is_to_double(const AuditInst *in) {
  return is_one_of(in, "cvt.f64.f32 ");
}

static bool is_from_double(const AuditInst *in) {
  return is_one_of(in, "cvt.rn.f32.f64 ");
}

// No double comes from memory or goes there, and what is computed from floats becomes a float again: no sum is kept in double.
static bool is_between_floats(const AuditKernel *k) {
  double to = 0, from = 0;
  for (uint32_t i = 0; i < k->inst_count; i++) {
    const AuditInst *in = &k->insts[i];
    if (is_to_double(in)) to += (double)in->counts.executions;
    if (is_from_double(in)) from += (double)in->counts.executions;
    if (in->width && in->text && audit_has(in->text, ".f64")) return false;
  }
  return to > 0 && from >= BACK * to;
}

static void report_double(Rules *r) {
  const AuditKernel *k = r->kernel;
  if (!is_between_floats(k)) return;
  Slow s = {.changed = sol_arena_alloc(&r->program->arena, k->inst_count + 1)};
  MachineWork after = k->work;
  for (uint32_t i = 0; i < k->inst_count && s.changed; i++) {
    const AuditInst *in = &k->insts[i];
    if (is_to_double(in) || is_from_double(in)) make_fast(r, i, 0, &s, &after);
    if (in->unit == SOL_EMU_CLASS_DOUBLE)
      make_fast(r, i, in->size > FAST_ROOT ? FAST_ROOT : SINGLE, &s, &after);
  }
  report(
      r, &s, &after, "double precision, though what goes in and comes out are floats",
      "Write constants as floats (0.1f; 0.1 is a double and makes its whole expression one), call sqrtf, expf and "
      "the like, and declare variables float. Many GPUs compute doubles at a 32nd or 64th of the rate of floats.");
}

void rule_slow_math(Rules *r) {
  for (size_t i = 0; i < SOL_COUNT(kinds); i++) report_kind(r, &kinds[i]);
  report_double(r);
}
