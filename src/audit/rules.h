// What the rules share. A rule looks at one kernel, takes the waste it is about out of a copy of the kernel's
// demands, and reports: the gain is what the time model says of the copy. rules.def is the list of rules.
#ifndef SOL_AUDIT_RULES_H
#define SOL_AUDIT_RULES_H

#include "audit/audit.h"

typedef enum RuleId {
#define RULE(id, scope, title, meaning, fix) RULE_##id,
#include "audit/rules.def"
#undef RULE
  RULE_COUNT,
  RULE_NONE = RULE_COUNT
} RuleId;

typedef struct RuleText { // for documentation and --rules listings
  const char *id, *scope, *title, *meaning, *fix;
} RuleText;
const RuleText *audit_rule(uint32_t i); // NULL past the last

// A finding is shown where it makes its kernels at least this much faster ...
#define RULE_MIN_GAIN 1.01
// ... and saves at least this share of the whole program's time.
#define RULE_MIN_SHARE 0.01

typedef struct Rules { // one kernel under the rules
  AuditProgram *program;
  AuditKernel *kernel;
  AuditWork *demands;       // of each instruction: their sum is the kernel's
  uint8_t *access;          // of each instruction: the rule that its access pattern falls under, or RULE_NONE
  double shown[RULE_COUNT]; // largest gain each rule has reported for this kernel; 0: none
} Rules;

// The words of a finding. An empty `fix` means the rule's own.
typedef struct RuleWords {
  char message[400], evidence[300], fix[400];
} RuleWords;

// Reports with the gain of `after`, unless that is too little; returns the gain either way. `at` may be NULL:
// the whole kernel.
double rule_report(Rules *r, RuleId rule, const AuditInst *at, const AuditWork *after,
                   const RuleWords *words);
// The same for a rule that knows the seconds before and after itself.
double rule_report_seconds(Rules *r, RuleId rule, const AuditInst *at, double before, double after,
                           const RuleWords *words);

// Takes share (0 to 1) of an instruction's demands out of `work`.
void rule_remove(AuditWork *work, const AuditWork *demands, double share);
// The allocation an instruction works on; NULL where it is not known or not the only one.
const AuditTouch *rule_touch(const AuditKernel *kernel, const AuditInst *inst);
// The same, or all of the kernel's allocations added up.
AuditTouch rule_touch_or_all(const AuditKernel *kernel, const AuditInst *inst);
double rule_warps(const AuditKernel *kernel); // that ran, of all launches
// Executions of loads from global memory a warp comes by.
double rule_loads_per_warp(const AuditKernel *kernel);
bool rule_is_global(const AuditInst *inst); // load or store of global memory
// True where waiting takes at least half as long as the busiest resource.
bool rule_waits(const AuditKernel *kernel);
const AuditShape *rule_main_shape(const AuditKernel *kernel); // the one that takes longest; NULL: none
double rule_threads(const AuditShape *shape);                 // of a block
double rule_blocks(const AuditShape *shape);

typedef struct RuleSize { // a number of bytes for people
  char text[24];
} RuleSize;
RuleSize rule_bytes(double bytes); // "16.8 MB"
RuleSize rule_kib(double bytes);   // "48 KiB", "1.5 KiB", "512 B"

static inline double rule_least(double a, double b) {
  return a < b ? a : b;
}
static inline double rule_most(double a, double b) {
  return a > b ? a : b;
}
static inline double rule_ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

void rules_classify_accesses(Rules *r); // fills r->access

#define RULE(id, scope, title, meaning, fix) void rule_##id(Rules *r);
#include "audit/rules.def"
#undef RULE

#endif
