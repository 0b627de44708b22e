// Accesses that ptxas changed: their counts become those of the machine.
//  1. Loads (or stores) of shared memory at neighbouring offsets from one register become one that is 8 or 16
//     bytes wide. It takes as many wavefronts as the worst of them, but at least one for each half (8 bytes) or
//     quarter (16) of the warp with active lanes; loads, of which two such groups at one address share a
//     wavefront, half of that.
//  2. A load that the machine does not have, and whose address another one reads, has been dropped; so has every
//     access to a local array that the machine keeps in registers. What is part of a wider access to local memory moves its bytes all the same.
//  3. Atomics by a whole warp on one address: the machine adds up the warp's values first (it votes, or
//     reduces), and one lane executes the atomic. Of atomics side by side one has the vote for all, whose lane is a guard of each.
#include "audit/inside.h"

typedef struct Own { // what the machine has for a PTX instruction
  uint32_t accesses; // to memory
  uint8_t narrowest;
  bool votes;
  bool guarded; // all those accesses
} Own;

static bool is_shared(SolEmuKind kind) {
  return kind == SOL_EMU_KIND_SHARED_LOAD || kind == SOL_EMU_KIND_SHARED_STORE;
}

static bool is_local(SolEmuKind kind) {
  return kind == SOL_EMU_KIND_LOCAL_LOAD || kind == SOL_EMU_KIND_LOCAL_STORE;
}

static double per_request(const AuditInst *in) {
  return in->counts.shared_requests ? (double)in->counts.wavefronts / (double)in->counts.shared_requests : 0;
}

static void drop(AuditInst *in) {
  SolEmuCounts kept = {
      .executions = in->counts.executions, .lanes = in->counts.lanes, .divergent = in->counts.divergent};
  in->counts = kept;
}

static bool neighbours(const AuditInst *a, const AuditInst *b, uint32_t bytes) {
  int64_t apart = b->offset - a->offset;
  return a->base && a->base == b->base && a->kind == b->kind && a->width == b->width &&
         apart > -(int64_t)bytes && apart < (int64_t)bytes;
}

static double least_of(const AuditInst *in, uint32_t bytes, bool store) {
  double lanes = in->counts.executions ? (double)in->counts.lanes / (double)in->counts.executions : 32;
  double groups = __builtin_ceil(lanes * bytes / 128);
  return store ? groups : __builtin_ceil(groups / 2);
}

static void merge(AuditInst *insts, uint32_t count, const Own *own, uint32_t at) {
  AuditInst *in = &insts[at];
  bool store = in->kind == SOL_EMU_KIND_SHARED_STORE;
  uint32_t bytes = own[at].narrowest, parts = bytes / in->width;
  double worst = per_request(in), least = least_of(in, bytes, store);
  for (uint32_t i = 0, taken = 1; i < count && taken < parts; i++) {
    if (i == at || own[i].accesses || !neighbours(in, &insts[i], bytes) || !insts[i].counts.shared_requests)
      continue;
    if (per_request(&insts[i]) > worst) worst = per_request(&insts[i]);
    drop(&insts[i]);
    taken++;
  }
  if (worst < least) worst = least;
  in->counts.wavefronts = (uint64_t)(worst * (double)in->counts.shared_requests + 0.5);
  uint64_t ideal = (uint64_t)(least * (double)in->counts.shared_requests + 0.5);
  if (in->counts.wavefronts_ideal < ideal) in->counts.wavefronts_ideal = ideal;
}

static bool read_elsewhere(const AuditInst *insts, uint32_t count, const Own *own, uint32_t at) {
  for (uint32_t i = 0; i < count; i++)
    if (own[i].accesses && neighbours(&insts[at], &insts[i], 1)) return true;
  return false;
}

// Whether it is part of a wider access to that array: one beside it that the machine has, of so many bytes at once.
static bool is_part(const AuditInst *insts, uint32_t count, const Own *own, uint32_t at) {
  for (uint32_t i = 0; i < count; i++)
    if (own[i].accesses && own[i].narrowest > insts[at].width &&
        neighbours(&insts[at], &insts[i], own[i].narrowest))
      return true;
  return false;
}

// One lane for each request; what is left is one address a request.
static void combine(AuditInst *in) {
  double lanes = (double)in->counts.atomics,
         share = lanes > 0 ? (double)(in->counts.requests + in->counts.shared_requests) / lanes : 1;
  if (share > 1) return;
  in->counts.atomics = in->counts.requests + in->counts.shared_requests;
  in->pattern.hottest = (uint64_t)((double)in->pattern.hottest * share + 0.5);
  in->pattern.same = (uint64_t)((double)in->pattern.same * share + 0.5);
  double served =
      sol_larger((double)in->pattern.queue_lanes, (double)in->pattern.queue_packets) * share + 0.5;
  in->pattern.queue_lanes = (uint64_t)served;
  in->pattern.queue_packets = 0;
  if (in->kind == SOL_EMU_KIND_SHARED_ATOMIC) in->counts.wavefronts = in->counts.shared_requests;
}

// Whether it takes the lane that votes have found for another atomic of the same warps.
static bool shares_vote(const AuditInst *insts, uint32_t count, const Own *own, uint32_t at) {
  const AuditInst *in = &insts[at];
  if (!own[at].guarded || in->pattern.same < in->counts.lanes) return false;
  for (uint32_t i = 0; i < count; i++)
    if (own[i].votes && insts[i].counts.requests && insts[i].counts.lanes == in->counts.lanes &&
        insts[i].counts.executions == in->counts.executions && insts[i].kind == in->kind)
      return true;
  return false;
}

static void change(AuditInst *insts, uint32_t count, const Own *own, uint32_t at) {
  AuditInst *in = &insts[at];
  bool load = in->kind == SOL_EMU_KIND_GLOBAL_LOAD || in->kind == SOL_EMU_KIND_SHARED_LOAD,
       atomic = in->counts.atomics != 0;
  if (is_shared(in->kind) && own[at].accesses && in->width && own[at].narrowest >= 2 * in->width)
    merge(insts, count, own, at);
  else if (!own[at].accesses && ((is_local(in->kind) && !is_part(insts, count, own, at)) ||
                                 (load && !in->async && read_elsewhere(insts, count, own, at))))
    drop(in);
  else if (atomic && (own[at].votes || shares_vote(insts, count, own, at)))
    combine(in);
}

enum { MOST_INSTS = 1 << 15 }; // of a kernel: each may be compared with each

bool audit_merged(const SassCode *code, AuditInst *insts, uint32_t count, const uint32_t *inst_of,
                  SolArena *arena) {
  if (count > MOST_INSTS) return true;
  Own *own = sol_arena_alloc(arena, (count + 1) * sizeof *own);
  if (!own) return false;
  for (uint32_t i = 0; i < code->count; i++) {
    const SassInst *m = &code->insts[i];
    if (inst_of[i] == SASS_NONE) continue;
    Own *o = &own[inst_of[i]];
    if (m->kind == SASS_KIND_VOTE) o->votes = true;
    if (m->unit != SASS_UNIT_MEMORY) continue;
    o->guarded = m->guarded && (o->guarded || !o->accesses);
    if (!o->accesses++ || m->width < o->narrowest) o->narrowest = m->width;
  }
  for (uint32_t i = 0; i < count; i++) change(insts, count, own, i);
  return true;
}
