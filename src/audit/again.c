// Launches that were not counted, because many before them had equal counts: each is billed by one of those, of which
// a copy is kept under its key.
#include "audit/inside.h"
#include "base/error.h"
#include "base/heap.h"

enum { MOST_KEPT = 8192 }; // a forged report can ask for so many

struct AuditKept {
  uint64_t key;
  AuditLaunch launch; // its instructions have no texts: the kernel has them already
  void *memory;       // of its instructions and touches
};

static struct AuditKept *find(AuditState *s, uint64_t key) {
  for (uint32_t i = 0; i < s->kept_count; i++)
    if (s->kept[i].key == key) return &s->kept[i];
  return NULL;
}

void audit_kept_free(AuditProgram *p) {
  AuditState *s = p->state;
  if (!s) return;
  for (uint32_t i = 0; i < s->kept_count; i++) sol_heap_free(s->kept[i].memory);
  sol_heap_free(s->kept);
  s->kept = NULL;
  s->kept_count = 0;
}

// The kernel's own copy lives as long as the program.
static const char *label_in(const AuditKernel *k, const AuditTouch *t) {
  for (uint32_t i = 0; i < k->touch_count; i++)
    if (k->touches[i].address == t->address && k->touches[i].bytes == t->bytes) return k->touches[i].label;
  return "";
}

// Of its trace nothing is kept but what came of it.
static bool copy(const AuditState *s, const AuditKernel *k, const AuditLaunch *l, struct AuditKept *to) {
  size_t insts = sizeof *l->insts * l->inst_count, touches = sizeof *l->touches * l->touch_count;
  AuditInst *inst = sol_heap_alloc(insts + touches + 1);
  if (!inst) return false;
  AuditTouch *touch = (AuditTouch *)(void *)(inst + l->inst_count);
  if (insts) memcpy(inst, l->insts, insts);
  if (touches) memcpy(touch, l->touches, touches);
  for (uint32_t i = 0; i < l->inst_count; i++) inst[i].text = inst[i].file = inst[i].inlined = NULL;
  for (uint32_t i = 0; i < l->touch_count; i++) touch[i].label = label_in(k, &touch[i]);
  to->memory = inst;
  to->launch = *l;
  to->launch.name = k->name;
  to->launch.insts = inst;
  to->launch.touches = touch;
  to->launch.trace = NULL;
  to->launch.replayed = s->replayed;
  to->launch.exposed = s->exposed;
  to->launch.code = NULL;
  to->launch.faults = NULL;
  to->launch.fault_count = 0;
  to->launch.faults_left_out = 0;
  return true;
}

SolStatus audit_keep_launch(AuditProgram *p, const AuditKernel *k, const AuditLaunch *l, SolError *err) {
  AuditState *s = p->state;
  struct AuditKept *kept = find(s, l->key);
  if (!kept && s->kept_count == MOST_KEPT) return sol_fail(err, SOL_ERR_ARGUMENT, "too many kept launches");
  if (!kept) {
    void *room = s->kept;
    if (!audit_grow(&room, s->kept_count, &s->kept_cap, sizeof *kept))
      return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
    s->kept = room;
    kept = &s->kept[s->kept_count++];
    *kept = (struct AuditKept){.key = l->key};
  }
  sol_heap_free(kept->memory);
  kept->memory = NULL;
  return copy(s, k, l, kept) ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}

SolStatus audit_add_again(AuditProgram *p, const AuditAgain *again, SolError *err) {
  const struct AuditKept *kept = find(p->state, again->key);
  if (!kept || !kept->memory) return sol_fail(err, SOL_ERR_NOT_FOUND, "no launch was kept under this key");
  AuditLaunch launch = kept->launch;
  launch.graph = again->graph;
  AuditKernel *k;
  SolStatus status = audit_add_launch(p, &launch, &k, err);
  if (status) return status;
  k->unlike += again->unlike ? 1 : 0;
  k->counted += again->counted ? 1 : 0;
  bool fine = audit_add_faults(p, k, again->faults, again->fault_count, again->faults_left_out);
  return fine ? SOL_OK : sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
}
