// The steps of the diagnosis. Thresholds are the usual ones for reading a profile: a unit over 60% of
// what it can do binds, under 40% it does not; more than a tenth of the shared-memory wavefronts being
// conflicts is worth padding; any local memory is worth a look.
#include "profile/diagnose.h"

#include "base/error.h"
#include "base/format.h"
#include "profile/judge.h"

#define CONFLICTS 0.10 // share of wavefronts that is worth padding

// ---- words ----

const char *judge_keep(Judge *j, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = sol_arena_alloc(j->arena, n);
  if (copy) memcpy(copy, text, n);
  return copy ? copy : "";
}

void judge_rate(char *out, size_t cap, double rate) {
  static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  int u = 0;
  while (rate >= 1000 && u < 4) rate /= 1000, u++;
  sol_format(out, cap, "%.3g %s", rate, units[u]);
}

// Notes which counters a step rests on; returns the value.
double judge_look(Judge *j, ProfileStep *step, ProfileMetric metric) {
  double value = profile_value(j->kernel, metric);
  bool known = profile_known(value);
  ProfileMetric *list = known ? step->used : step->missing;
  int *count = known ? &step->used_count : &step->missing_count;
  if (!list) list = sol_arena_alloc(j->arena, PROFILE_METRICS * sizeof *list);
  if (!list) return value; // out of memory: shows at the end
  for (int i = 0; i < *count; i++)
    if (list[i] == metric) return value;
  list[(*count)++] = metric;
  if (known)
    step->used = list;
  else
    step->missing = list;
  return value;
}

// ---- step 2 ----

// Sectors a request: 4 are right for 4-byte accesses, 8 for 8 bytes, 16 for 16; more than 16 are right for
// none.
static const char *sectors_say(double sectors, double use) {
  if (profile_known(use)) return use >= 28.8 ? "coalesced" : use >= 16 ? "partly wasted" : "mostly wasted";
  if (sectors > 16.05) return "lanes far apart";
  if (sectors > 4.05) return "as 8- or 16-byte accesses have, or 4-byte ones that are not coalesced";
  return "coalesced";
}

static int describe(Judge *j, ProfileStep *s, char *out, size_t cap, const char *what, const ProfileMetric *m,
                    double *sectors) {
  double requests = judge_look(j, s, m[0]), count = judge_look(j, s, m[1]),
         use = profile_value(j->kernel, m[2]);
  out[0] = 0;
  *sectors = count / requests;
  if (profile_known(use)) judge_look(j, s, m[2]);
  if (!profile_known(requests) || !profile_known(count)) return -1;
  if (!(requests > 0)) return *sectors = PROFILE_UNKNOWN, 0;
  size_t n = sol_format(out, cap, "%s %.2f sectors a request", what, *sectors);
  if (profile_known(use)) n += sol_format(out + n, cap - n, ", %.1f of 32 bytes of each used", use);
  sol_format(out + n, cap - n, " (%s)", sectors_say(*sectors, use));
  return *sectors > 16.05 || use < 16 ? 2 : use < 28.8 || (!profile_known(use) && *sectors > 4.05) ? 1 : 0;
}

static void step_coalescing(Judge *j) {
  ProfileDiagnosis *d = j->out;
  ProfileStep *s = &d->steps[PROFILE_STEP_COALESCING];
  static const ProfileMetric load[] = {PROFILE_load_requests, PROFILE_load_sectors, PROFILE_load_use};
  static const ProfileMetric store[] = {PROFILE_store_requests, PROFILE_store_sectors, PROFILE_store_use};
  char a[160], b[160], text[460];
  int loads = describe(j, s, a, sizeof a, "loads", load, &d->load_sectors);
  int stores = describe(j, s, b, sizeof b, "stores", store, &d->store_sectors);
  if (loads < 0 && stores < 0) {
    s->verdict = PROFILE_NOT_COUNTED;
    s->text = "not counted: requests and sectors of global loads and stores";
    return;
  }
  s->verdict = loads == 2 || stores == 2 ? PROFILE_BAD : PROFILE_FINE;
  j->partly = loads != 0 || stores != 0;
  double all = profile_value(j->kernel, PROFILE_global_sectors),
         fewest = profile_value(j->kernel, PROFILE_global_sectors_ideal);
  j->excess = all > 0 && profile_known(fewest) ? (all - fewest) / all : PROFILE_UNKNOWN;
  if (profile_known(j->excess)) {
    judge_look(j, s, PROFILE_global_sectors), judge_look(j, s, PROFILE_global_sectors_ideal);
    j->partly = j->excess > 0.1;
    s->verdict = j->excess > 0.5 ? PROFILE_BAD : PROFILE_FINE;
  }
  size_t n = sol_format(text, sizeof text, "%s%s%s", a, a[0] && b[0] ? "; " : "", b);
  if (profile_known(j->excess) && n)
    sol_format(text + n, sizeof text - n, "; %.0f%% of all sectors are more than the bytes need",
               j->excess * 100);
  s->text = text[0] ? judge_keep(j, text) : "no global loads or stores";
}

// ---- step 3 ----

static void step_throughput(Judge *j) {
  ProfileDiagnosis *d = j->out;
  ProfileStep *s = &d->steps[PROFILE_STEP_THROUGHPUT];
  double share = d->shares[MACHINE_DRAM];
  judge_look(j, s, PROFILE_dram_read), judge_look(j, s, PROFILE_dram_write), judge_look(j, s, PROFILE_time);
  if (!profile_known(d->dram_rate) && !profile_known(share)) {
    s->verdict = PROFILE_NOT_COUNTED;
    s->text = "not counted: bytes of DRAM, or its throughput";
    return;
  }
  if (!j->by_rate) judge_look(j, s, PROFILE_dram_pct);
  char text[320], rate[32] = "", l2[32];
  size_t n = 0;
  if (profile_known(d->dram_rate)) {
    judge_rate(rate, sizeof rate, d->dram_rate);
    n = sol_format(text, sizeof text, "DRAM %s", rate);
  } else {
    n = sol_format(text, sizeof text, "DRAM");
  }
  if (profile_known(share)) {
    ProfileBand band = judge_band(share);
    n += sol_format(text + n, sizeof text - n, "%s %.0f%% of %s: %s", n > 4 ? "," : "", share * 100,
                    !j->by_rate          ? "its peak, by the counters"
                    : j->roofs->measured ? "what was measured"
                                         : "the datasheet's peak",
                    band == PROFILE_EXCELLENT  ? "excellent, at the hardware's limit"
                    : band == PROFILE_GOOD     ? "good"
                    : band == PROFILE_WASTEFUL ? "wasteful"
                                               : "poor");
  }
  double hits = profile_value(j->kernel, PROFILE_l2_hits),
         sectors = profile_value(j->kernel, PROFILE_l2_sectors);
  if (profile_known(d->l2_rate)) {
    judge_look(j, s, PROFILE_l2_sectors);
    judge_rate(l2, sizeof l2, d->l2_rate);
    n += sol_format(text + n, sizeof text - n, "; L2 %s", l2);
    if (profile_known(hits) && sectors > 0) {
      judge_look(j, s, PROFILE_l2_hits);
      sol_format(text + n, sizeof text - n, ", %.0f%% found there", hits / sectors * 100);
    }
  }
  bool busy_elsewhere =
      d->kind && d->bound != MACHINE_DRAM && d->busiest >= JUDGE_BINDS; // the roof is another one
  s->verdict = profile_known(share) && share < 0.6 && !busy_elsewhere ? PROFILE_BAD : PROFILE_FINE;
  s->text = judge_keep(j, text);
}

// ---- steps 4 and 5 ----

static void step_shared(Judge *j) {
  ProfileDiagnosis *d = j->out;
  ProfileStep *s = &d->steps[PROFILE_STEP_SHARED];
  double load = judge_look(j, s, PROFILE_shared_load_wavefronts),
         store = judge_look(j, s, PROFILE_shared_store_wavefronts);
  double bad_load = judge_look(j, s, PROFILE_shared_load_conflicts),
         bad_store = judge_look(j, s, PROFILE_shared_store_conflicts);
  double wavefronts = load + store, bad = bad_load + bad_store;
  double exact = profile_value(j->kernel, PROFILE_shared_passes),
         ideal = profile_value(j->kernel, PROFILE_shared_passes_ideal);
  bool by_instruction = profile_known(exact) && profile_known(ideal);
  char text[240];
  if (by_instruction) { // free of the other traffic that the pipe's own counters see
    judge_look(j, s, PROFILE_shared_passes), judge_look(j, s, PROFILE_shared_passes_ideal);
    s->missing_count = 0;
    d->conflicts = exact > 0 ? (exact - ideal) / exact : 0;
    sol_format(text, sizeof text, "%.1f%% of %.0f wavefronts are conflicts (%.0f would do)",
               d->conflicts * 100, exact, ideal);
    wavefronts = exact;
  } else if (profile_known(wavefronts) && profile_known(bad)) {
    d->conflicts = wavefronts > 0 ? bad / wavefronts : 0;
    sol_format(text, sizeof text,
               "%.1f%% of %.0f wavefronts are conflicts (loads %.0f of %.0f, stores %.0f of %.0f)",
               d->conflicts * 100, wavefronts, bad_load, load, bad_store, store);
  } else if (wavefronts != 0) {
    s->verdict = PROFILE_NOT_COUNTED;
    s->text = "not counted: shared-memory wavefronts, and conflicts";
    return;
  }
  s->verdict = d->conflicts > CONFLICTS ? PROFILE_BAD : PROFILE_FINE;
  s->text = wavefronts > 0 ? judge_keep(j, text) : "shared memory is not used";
}

static void step_spills(Judge *j) {
  ProfileDiagnosis *d = j->out;
  ProfileStep *s = &d->steps[PROFILE_STEP_SPILLS];
  double load = judge_look(j, s, PROFILE_local_load_sectors),
         store = judge_look(j, s, PROFILE_local_store_sectors);
  d->local_sectors = load + store;
  if (!profile_known(d->local_sectors)) {
    s->verdict = PROFILE_NOT_COUNTED;
    s->text = "not counted: sectors of local memory";
    return;
  }
  char text[200];
  s->verdict = d->local_sectors > 0 ? PROFILE_BAD : PROFILE_FINE;
  sol_format(text, sizeof text, "local memory is used: %.0f sectors loaded, %.0f stored%s", load, store,
             profile_known(j->kernel->registers) && j->kernel->registers >= 255
                 ? "; the kernel has all 255 registers"
                 : "");
  s->text = d->local_sectors > 0 ? judge_keep(j, text) : "none: no local memory is used";
}

// ---- the roofline ----

static void point(Judge *j) {
  ProfileDiagnosis *d = j->out;
  const ProfileKernel *k = j->kernel;
  double fp32 =
      profile_value(k, PROFILE_fadd) + profile_value(k, PROFILE_fmul) + 2 * profile_value(k, PROFILE_ffma);
  double fp64 =
      profile_value(k, PROFILE_dadd) + profile_value(k, PROFILE_dmul) + 2 * profile_value(k, PROFILE_dfma);
  double bytes = profile_value(k, PROFILE_dram_read) + profile_value(k, PROFILE_dram_write);
  d->flops = profile_known(fp64) ? fp32 + fp64 : fp32;
  if (!(bytes > 0) || !profile_known(d->flops)) return;
  d->intensity = d->flops / bytes;
  SolFigure peak = fp64 > fp32 ? j->roofs->fp64 : j->roofs->fp32;
  if (!sol_known(peak) || !sol_known(j->dram_roof)) return;
  double memory = d->intensity * j->dram_roof.value;
  d->attainable = memory < peak.value ? memory : peak.value;
}

SolStatus profile_diagnose(Profile *p, const ProfileRoofs *roofs, SolError *err) {
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    ProfileDiagnosis *d = sol_arena_alloc(&p->arena, sizeof *d);
    if (!d) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
    Judge j = {.excess = PROFILE_UNKNOWN,
               .arena = &p->arena,
               .roofs = roofs,
               .kernel = &p->kernels[i],
               .out = d,
               .profile = p};
    d->bound = MACHINE_LATENCY;
    d->band = PROFILE_NO_BAND;
    d->share = d->busiest = d->dram_rate = d->l2_rate = d->load_sectors = d->store_sectors = PROFILE_UNKNOWN;
    d->conflicts = d->local_sectors = d->flops = d->intensity = d->attainable = PROFILE_UNKNOWN;
    for (int r = 0; r < MACHINE_RESOURCES; r++) d->shares[r] = PROFILE_UNKNOWN;
    judge_bound(&j);
    step_coalescing(&j);
    step_throughput(&j);
    step_shared(&j);
    step_spills(&j);
    judge_verdict(&j);
    point(&j);
    judge_rules(&j);
    p->kernels[i].diagnosis = d;
  }
  return p->arena.failed ? sol_fail(err, SOL_ERR_NO_SPACE, "out of memory") : SOL_OK;
}
