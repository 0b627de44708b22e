// Finds kernels that read what another kernel wrote: the traffic that fusing them would save.
#include "audit/inside.h"
#include "base/heap.h"

#define NOBODY UINT32_MAX

static AuditBuffer *find_buffer(AuditState *s, uint64_t address) {
  for (uint32_t i = 0; i < s->buffer_count; i++)
    if (s->buffers[i].address == address) return &s->buffers[i];
  return NULL;
}

static AuditBuffer *buffer_of(AuditState *s, const AuditTouch *t) {
  AuditBuffer *b = find_buffer(s, t->address);
  if (!b) {
    void *room = s->buffers;
    if (!audit_grow(&room, s->buffer_count, &s->buffer_cap, sizeof *b)) return NULL;
    s->buffers = room;
    b = &s->buffers[s->buffer_count++];
    *b = (AuditBuffer){.address = t->address, .writer = NOBODY, .flow = NOBODY};
  }
  if (b->bytes != t->bytes) *b = (AuditBuffer){t->address, t->bytes, NOBODY, 0, 0, NOBODY};
  return b;
}

static uint32_t flow_of(AuditProgram *p, uint32_t from, uint32_t to, const AuditTouch *t) {
  const char *label = t->label ? t->label : "";
  for (uint32_t i = 0; i < p->flow_count; i++)
    if (p->flows[i].from == from && p->flows[i].to == to && strcmp(p->flows[i].label, label) == 0) return i;
  void *room = p->flows;
  if (!audit_grow(&room, p->flow_count, &p->flow_cap, sizeof *p->flows)) return NOBODY;
  p->flows = room;
  const char *kept = audit_keep(p, label);
  p->flows[p->flow_count] = (AuditFlow){.from = from, .to = to, .label = kept ? kept : "", .only = true};
  return p->flow_count++;
}

// A second reader means that the bytes have to be written whatever is fused with the first.
static void read_again(AuditProgram *p, AuditBuffer *b) {
  if (b->readers++ && b->flow != NOBODY) p->flows[b->flow].only = false;
}

void audit_flows_launch(AuditProgram *p, uint32_t kernel, const AuditLaunch *l) {
  for (uint32_t i = 0; i < l->touch_count; i++) {
    const AuditTouch *t = &l->touches[i];
    AuditBuffer *b = buffer_of(p->state, t);
    if (!b) return;
    if (t->read_first > 0 && b->writer != NOBODY) {
      uint32_t flow = flow_of(p, b->writer, kernel, t);
      read_again(p, b);
      if (flow != NOBODY) {
        p->flows[flow].bytes += t->read_first < b->written ? t->read_first : b->written;
        p->flows[flow].times++;
        if (b->readers > 1) p->flows[flow].only = false;
      }
      if (b->flow == NOBODY) b->flow = flow;
    }
    if (t->written <= 0) continue;
    b->writer = kernel;
    b->written = t->written;
    b->readers = 0;
    b->flow = NOBODY;
  }
}

static AuditLeft *left_of(AuditProgram *p, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < p->left_count; i++)
    if (p->lefts[i].from == from && p->lefts[i].to == to) return &p->lefts[i];
  void *room = p->lefts;
  if (!audit_grow(&room, p->left_count, &p->left_cap, sizeof *p->lefts)) return NULL;
  p->lefts = room;
  p->lefts[p->left_count] = (AuditLeft){.from = from, .to = to};
  return &p->lefts[p->left_count++];
}

void audit_lefts_launch(AuditProgram *p, uint32_t kernel, const AuditLaunch *l) {
  uint32_t *last = p->state->last;
  for (uint32_t age = 1; age < SOL_AGES; age++) {
    if (!l->earlier.found[age] && !l->earlier.written[age]) continue;
    AuditLeft *left = left_of(p, age < SOL_OLDEST && last[age] ? last[age] - 1 : NOBODY, kernel);
    if (!left) return;
    left->found += (double)l->earlier.found[age];
    left->written += (double)l->earlier.written[age];
  }
  for (uint32_t age = SOL_AGES - 1; age > 1; age--) last[age] = last[age - 1];
  last[1] = kernel + 1;
}

void audit_outside(AuditProgram *p, AuditOutside what, uint64_t address, uint64_t bytes) {
  AuditState *s = p->state;
  for (uint32_t i = 0; s && i < s->buffer_count; i++) {
    AuditBuffer *b = &s->buffers[i];
    if (address >= b->address + b->bytes || address + bytes <= b->address) continue;
    if (what == AUDIT_OUTSIDE_WROTE)
      b->writer = NOBODY;
    else if (b->writer != NOBODY) {
      if (b->flow != NOBODY) p->flows[b->flow].only = false;
      b->readers++;
    }
  }
}

void audit_flows_free(AuditProgram *p) {
  if (p->state) sol_heap_free(p->state->buffers);
  sol_heap_free(p->flows);
  sol_heap_free(p->lefts);
}
