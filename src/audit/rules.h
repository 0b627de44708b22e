// Shared by the rules. A rule examines one kernel, removes the waste it is about from a copy of the kernel's
// demands, and reports a finding whose gain is the time model's prediction for that copy. rules.def lists them.
#ifndef SOL_AUDIT_RULES_H
#define SOL_AUDIT_RULES_H

#include "audit/audit.h"

typedef enum RuleId {
#define RULE(id, scope, title, meaning, fix, assumes) RULE_##id,
#include "audit/rules.def"
#undef RULE
  RULE_COUNT,
  RULE_NONE = RULE_COUNT
} RuleId;

typedef struct RuleText { // for documentation and --rules listings
  const char *id, *scope, *title, *meaning, *fix, *assumes;
} RuleText;
const RuleText *audit_rule(uint32_t i); // NULL: i is past the last

// A finding is reported where its speedup is at least this ...
#define RULE_MIN_GAIN 1.01
// ... and it saves at least this share of the whole program's time.
#define RULE_MIN_SHARE 0.01

typedef struct Rules { // the kernel that the rules examine
  AuditProgram *program;
  AuditKernel *kernel;
  MachineWork *demands;     // of each instruction: their sum is the kernel's
  uint8_t *access;          // of each instruction: the rule for its access pattern, or RULE_NONE
  double shown[RULE_COUNT]; // largest gain each rule has reported for this kernel; 0: none
  AuditNeeds needs;         // of the kernel after the change; a rule whose change alters them sets them
  double full;              // so many times the grid would fill the GPU several times over; 1: it does
} Rules;

// The text of a finding. Where `fix` is empty, the rule's text in rules.def is used.
typedef struct RuleWords {
  char message[400], evidence[300], fix[400];
} RuleWords;

// Reports a finding with the gain of `after`, unless the gain is too small; returns the gain in both cases. `at`
// is NULL for a finding about the whole kernel. No gain leads below the light of r->needs. Where the grid is too
// small for the GPU, the gain is that of one which fills it, unless the rule is about the grid or the launch.
double rule_report(Rules *r, RuleId rule, const AuditInst *at, const MachineWork *after,
                   const RuleWords *words);
// The same for a rule that computes the seconds before and after itself, and their least.
double rule_report_seconds(Rules *r, RuleId rule, const AuditInst *at, double before, double after,
                           const RuleWords *words);

// Removes a share (0 to 1) of an instruction's demands from `work`.
void rule_remove(MachineWork *work, const MachineWork *demands, double share);
// The allocation that an instruction accesses; NULL: unknown, or more than one.
const AuditTouch *rule_touch(const AuditKernel *kernel, const AuditInst *inst);
// The same; where it is NULL, the sum of all the kernel's allocations.
AuditTouch rule_touch_or_all(const AuditKernel *kernel, const AuditInst *inst);
// Whether it is the table by which sin, cos and tan reduce large arguments: the math library's, not the program's.
bool rule_is_of_angles(const AuditTouch *touch);
double rule_warps(const AuditKernel *kernel); // warps of all launches
// At most such a share of the warps accesses memory, where the others return at once; 1: all, or the others do something else.
double rule_busy_warps(const AuditKernel *kernel);
// Loads from global memory that a warp executes.
double rule_loads_per_warp(const AuditKernel *kernel);
// Bytes that stay in L2 where the kernel takes less than light because of that: light is then that of the others.
double rule_in_l2(const AuditKernel *kernel);
bool rule_is_global(const AuditInst *inst); // a load from or store to global memory
// Latency-bound: waiting takes at least half as long as the busiest resource.
bool rule_waits(const AuditKernel *kernel);
const AuditShape *rule_main_shape(const AuditKernel *kernel); // the one that takes longest; NULL: none
double rule_threads(const AuditShape *shape);                 // of a block
double rule_blocks(const AuditShape *shape);

typedef struct RuleSize { // a formatted number of bytes
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
static inline bool rule_same_line(const AuditInst *a, const AuditInst *b) {
  if (a->line != b->line || !a->file || !b->file) return false;
  return a->file == b->file || strcmp(a->file, b->file) == 0;
}

void rules_classify_accesses(Rules *r); // fills r->access

#define RULE(id, scope, title, meaning, fix, assumes) void rule_##id(Rules *r);
#include "audit/rules.def"
#undef RULE

#endif
