#include "profile/diagnose.h"

ProfileRoofs profile_roofs(const SolDevice *d) {
  ProfileRoofs r = {0};
  if (!d) return r;
  r.read = r.write = r.copy = d->mem_bandwidth;
  r.l2 = d->l2_bandwidth;
  r.fp32 = d->peak_fp32;
  r.fp64 = d->peak_fp64;
  r.tensor = sol_known(d->peak_bf16) ? d->peak_bf16 : d->peak_fp16;
  r.launch_us = d->launch_us;
  r.graph_us = d->graph_launch_us;
  r.sms = d->sms;
  if (sol_known(d->smem_bytes_per_clock) && sol_known(d->sms) && sol_known(d->boost_clock))
    r.shared = (SolFigure){d->smem_bytes_per_clock.value * d->sms.value * d->boost_clock.value,
                           d->smem_bytes_per_clock.source};
  return r;
}

const char *profile_band_name(ProfileBand band) {
  static const char *const names[] = {"excellent", "good", "wasteful", "poor"};
  return band < PROFILE_NO_BAND ? names[band] : NULL;
}

static const struct {
  const char *name, *title;
} steps[PROFILE_STEPS] = {{"bound", "Memory, compute or latency"},
                          {"coalescing", "Coalescing"},
                          {"throughput", "Throughput"},
                          {"shared", "Shared-memory conflicts"},
                          {"spills", "Spills"}};

const char *profile_step_name(ProfileStepId step) {
  return steps[step].name;
}

const char *profile_step_title(ProfileStepId step) {
  return steps[step].title;
}
