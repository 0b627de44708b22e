// Peaks of arithmetic: those of the device's table, and machine.def's rates where it has none.
#include "machine/arithmetic.h"

const char *machine_pipe_name(MachinePipe pipe) {
  static const char *const names[] = {"fp32",        "fp16",        "fp64", "integers", "special functions",
                                      "conversions", "tensor cores"};
  _Static_assert(SOL_COUNT(names) == MACHINE_PIPES, "a name for each");
  return (unsigned)pipe < MACHINE_PIPES ? names[pipe] : "?";
}

// Operations per second at so many warp instructions a clock and SM.
static double rate_of(const MachineModel *m, double warp_instructions, double operations) {
  return warp_instructions * operations * m->device->sms.value * m->device->boost_clock.value;
}

static double peak_or(SolFigure peak, double otherwise) {
  return sol_known(peak) ? peak.value : otherwise;
}

// Operations of a warp instruction.
static double operations(MachinePipe pipe) {
  return pipe == MACHINE_FP32 || pipe == MACHINE_FP64 ? 64 : pipe == MACHINE_FP16 ? 128 : 32;
}

// Operations per second of the whole GPU; 0: unknown.
static double peak_of(const MachineModel *m, MachinePipe pipe) {
  const SolDevice *d = m->device;
  double issuing = rate_of(m, m->issue_rate, operations(pipe));
  switch (pipe) {
  case MACHINE_FP32: return peak_or(d->peak_fp32, issuing);
  case MACHINE_FP16: return peak_or(d->peak_fp16_vector, issuing);
  case MACHINE_FP64: return peak_or(d->peak_fp64, issuing);
  case MACHINE_INTEGER: return rate_of(m, m->integer_rate, 32);
  case MACHINE_SPECIAL: return rate_of(m, m->special_rate, 32);
  case MACHINE_CONVERT: return rate_of(m, m->convert_rate, 32);
  default: return peak_or(d->peak_fp16, 0);
  }
}

double machine_pipe_rate(const MachineModel *m, MachinePipe pipe) {
  return peak_of(m, pipe) / operations(pipe) / m->device->sms.value / m->device->boost_clock.value;
}

double machine_compute_light(const MachineModel *m, const MachineArithmetic *work, MachinePipe *pipe) {
  double longest = 0;
  *pipe = MACHINE_FP32;
  for (int p = 0; p < MACHINE_PIPES; p++) {
    double peak = peak_of(m, (MachinePipe)p);
    if (peak > 0 && work->of[p] / peak > longest) longest = work->of[p] / peak, *pipe = (MachinePipe)p;
  }
  return longest;
}
