// The roofline equation.
#include "sol/roofline.h"

#include "base/error.h"
#include "base/port.h"

static double smaller(double a, double b) {
  return a < b ? a : b;
}

static SolStatus check_count(double value, const char *what, SolError *err) {
  if (__builtin_isfinite(value) && value >= 0) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "%s must be finite and not negative", what);
}

static SolStatus check_work(const SolWork *work, SolError *err) {
  SolStatus status = check_count(work->bytes, "bytes", err);
  if (!status) status = check_count(work->flops, "flops", err);
  if (!status) status = check_count(work->launches, "launches", err);
  if (status) return status;
  if (work->bytes == 0 && work->flops == 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "bytes and flops are both zero: nothing to place under a roof");
  if ((unsigned)work->dtype >= SOL_DTYPE_COUNT)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such dtype: %d", (int)work->dtype);
  if ((unsigned)work->unit > SOL_UNIT_VECTOR)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such unit: %d", (int)work->unit);
  return SOL_OK;
}

static SolStatus need(const SolDevice *device, SolFigure figure, const char *what, double *value,
                      SolError *err) {
  if (!sol_known(figure))
    return sol_fail(err, SOL_ERR_UNKNOWN, "the %s of %s is not published", what, device->id);
  if (!__builtin_isfinite(figure.value) || figure.value < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the %s of %s is not a number from 0 up", what, device->id);
  *value = figure.value;
  return SOL_OK;
}

static SolStatus smem_bandwidth(const SolDevice *device, double *bandwidth, SolError *err) {
  double sms = 0, width = 0, clock = 0;
  SolStatus status = need(device, device->sms, "number of SMs", &sms, err);
  if (!status) status = need(device, device->smem_bytes_per_clock, "shared memory width", &width, err);
  if (!status) status = need(device, device->boost_clock, "boost clock", &clock, err);
  if (!status) *bandwidth = sms * width * clock;
  return status;
}

static SolStatus level_bandwidth(const SolDevice *device, SolLevel level, double *bandwidth, SolError *err) {
  if (level == SOL_LEVEL_SMEM) return smem_bandwidth(device, bandwidth, err);
  if (level == SOL_LEVEL_L2) return need(device, device->l2_bandwidth, "L2 bandwidth", bandwidth, err);
  return need(device, device->mem_bandwidth, "memory bandwidth", bandwidth, err);
}

// The roofs. A roof that the work does not touch may be unknown: it stays zero.
static SolStatus find_roofs(const SolDevice *device, const SolWork *work, SolLevel level, SolRoofline *r,
                            SolError *err) {
  if ((unsigned)level > SOL_LEVEL_SMEM)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such memory level: %d", (int)level);
  SolStatus status = level_bandwidth(device, level, &r->bandwidth, work->bytes > 0 ? err : 0);
  if (status && work->bytes > 0) return status;
  r->dtype = work->dtype ? work->dtype : SOL_BF16;
  r->unit = work->unit;
  status = sol_device_peak(device, r->dtype, work->unit, &r->peak, &r->unit, work->flops > 0 ? err : 0);
  if (status && work->flops > 0) return status;
  if ((work->bytes > 0 && !(r->bandwidth > 0)) ||
      (work->flops > 0 && !(r->peak > 0 && __builtin_isfinite(r->peak))))
    return sol_fail(err, SOL_ERR_ARGUMENT, "the bandwidth or peak of %s is not a number above 0", device->id);
  if (r->bandwidth > 0) r->ridge = r->peak / r->bandwidth;
  return SOL_OK;
}

static SolStatus launch_term(const SolDevice *device, int graph, SolRoofline *r, SolError *err) {
  if (r->launches == 0) return SOL_OK;
  double each = 0;
  SolStatus status = graph ? need(device, device->graph_launch_us, "launch cost in a CUDA graph", &each, err)
                           : need(device, device->launch_us, "launch cost", &each, err);
  if (!status) r->launch_us = r->launches * each;
  return status;
}

SolStatus sol_roofline(const SolDevice *device, const SolWork *work, const SolRooflineOptions *options,
                       SolRoofline *out, SolError *err) {
  if (!device || !work || !out)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device, work and out must not be NULL");
  SolRooflineOptions o = options ? *options : (SolRooflineOptions){0};
  SolRoofline r = {.bytes = work->bytes, .flops = work->flops, .level = o.level};
  r.launches = o.no_launch ? 0 : work->launches;
  SolStatus status = check_work(work, err);
  if (!status) status = find_roofs(device, work, o.level, &r, err);
  if (!status) status = launch_term(device, o.graph, &r, err);
  if (status) return status;

  if (r.bytes > 0) r.memory_us = r.bytes / r.bandwidth * 1e6;
  if (r.flops > 0) r.compute_us = r.flops / r.peak * 1e6;
  double busy_us = sol_larger(r.memory_us, r.compute_us);
  r.time_us = busy_us + r.launch_us;
  r.intensity = r.bytes > 0 ? r.flops / r.bytes : __builtin_inf();
  if (!__builtin_isfinite(r.time_us) || (r.bytes > 0 && !__builtin_isfinite(r.intensity)))
    return sol_fail(err, SOL_ERR_RANGE,
                    "bytes, flops or launches are too far apart or too large to compute with");

  r.attainable_flops = r.flops == 0 ? 0 : r.bytes == 0 ? r.peak : smaller(r.peak, r.bandwidth * r.intensity);
  r.attainable_bytes = r.bytes == 0   ? 0
                       : r.flops == 0 ? r.bandwidth
                                      : smaller(r.bandwidth, r.peak / r.intensity);
  r.bound = r.flops > 0 && r.compute_us >= r.memory_us ? SOL_BOUND_COMPUTE : SOL_BOUND_MEMORY;
  if (r.launch_us > busy_us) r.bound = SOL_BOUND_LAUNCH;
  *out = r;
  return SOL_OK;
}

SolWork sol_work_of_cost(const SolCost *cost) {
  return (SolWork){.bytes = cost->bytes_read + cost->bytes_written,
                   .flops = cost->flops,
                   .launches = cost->launches,
                   .dtype = cost->math,
                   .unit = cost->unit};
}

const char *sol_level_name(SolLevel level) {
  switch (level) {
  case SOL_LEVEL_HBM: return "hbm";
  case SOL_LEVEL_L2: return "l2";
  case SOL_LEVEL_SMEM: return "smem";
  }
  return "?";
}

const char *sol_bound_name(SolBound bound) {
  switch (bound) {
  case SOL_BOUND_MEMORY: return "memory";
  case SOL_BOUND_COMPUTE: return "compute";
  case SOL_BOUND_LAUNCH: return "launch";
  case SOL_BOUND_LINK: return "link";
  }
  return "?";
}

const char *sol_unit_name(SolUnit unit) {
  switch (unit) {
  case SOL_UNIT_DEFAULT: return "default";
  case SOL_UNIT_TENSOR: return "tensor";
  case SOL_UNIT_VECTOR: return "vector";
  }
  return "?";
}

const char *sol_response_name(SolResponse response) {
  switch (response) {
  case SOL_RESPONSE_RAISE_INTENSITY: return "raise_intensity";
  case SOL_RESPONSE_SATURATE_MEMORY: return "saturate_memory";
  case SOL_RESPONSE_SATURATE_COMPUTE: return "saturate_compute";
  case SOL_RESPONSE_LAUNCH_LESS: return "launch_less";
  }
  return "?";
}
