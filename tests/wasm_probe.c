// The same questions asked of the native and of the wasm build (tests/wasm.sh): both write their answers as
// text, and the texts must be equal. Twelve digits: a native compiler may fuse a multiply and an add, wasm
// does not.
#include "base/format.h"
#include "sol/sol.h"

SOL_API size_t sol_probe(char *out, size_t cap);

typedef struct Page {
  char *text;
  size_t cap, used;
} Page;

#define WRITE(page, ...)                                                                                     \
  ((page)->used += sol_format((page)->text + (page)->used, (page)->cap - (page)->used, __VA_ARGS__))

static void ask_formats(Page *p) {
  WRITE(p, "%zu %lld %ld %x %s %c %5d %-5d| %05d %g %.17g %e %.0f\n", (size_t)4000000000u,
        -9007199254740993LL, -2147483647L, 0xfffffffeu, "text", '!', 42, 42, -42, 1e21, 0.1, 5e-324,
        1.7976931348623157e308);
}

static void ask_devices(Page *p) {
  for (int i = 0; i < sol_device_count(); i++) {
    const SolDevice *device = sol_device_at(i);
    WRITE(p, "%s %s %d.%d", device->id, device->name, device->cc_major, device->cc_minor);
    for (int f = 0; f < sol_device_figure_count(); f++) {
      SolFigureInfo info;
      SolFigure figure = sol_device_figure(device, f, &info);
      if (sol_known(figure)) WRITE(p, " %s=%.12g", info.field, figure.value);
    }
    WRITE(p, "\n");
  }
}

static void ask_roofline(Page *p, const SolDevice *device, const SolCost *cost) {
  SolWork work = sol_work_of_cost(cost);
  SolRoofline r = {0};
  SolStatus status = sol_roofline(device, &work, 0, &r, 0);
  WRITE(p, "  %s %s: %.12g %.12g %s %.12g us\n", device->id, sol_status_name(status), r.intensity, r.ridge,
        sol_bound_name(r.bound), r.time_us);
}

static void ask_operations(Page *p) {
  for (int op = 0; op < sol_op_count(); op++) {
    const SolOpInfo *info = sol_op_info(op);
    SolOpArgs args = {.op = op};
    for (int d = 0; d < info->rank_min; d++) args.dim[d] = 64 << d;
    SolCost cost = {0};
    SolError err = {0};
    SolStatus status = sol_op_cost(&args, &cost, &err);
    WRITE(p, "%s %s '%s' %.12g %.12g %.12g\n", info->name, sol_status_name(status), err.message,
          cost.bytes_read, cost.bytes_written, cost.flops);
    if (status) continue;
    for (int i = 0; i < sol_device_count(); i++) ask_roofline(p, sol_device_at(i), &cost);
    SolPass passes[SOL_MAX_PASSES];
    int count = 0;
    if (!sol_op_unfused(&args, passes, &count, 0))
      for (int k = 0; k < count; k++) WRITE(p, "  %s %.12g\n", passes[k].name, passes[k].cost.bytes_read);
    SolAdvice advice;
    if (!sol_advise_op(sol_device_at(sol_device_count() - 1), &args, 0, &advice, 0))
      for (int k = 0; k < advice.count; k++)
        WRITE(p, "  %s %.12g\n", advice.steps[k].what, advice.steps[k].gain);
  }
}

static void ask_occupancy(Page *p) {
  for (int i = 0; i < sol_device_count(); i++)
    for (int regs = 16; regs <= 256; regs += 48) {
      SolKernelShape kernel = {.threads = 192, .regs = regs, .smem = 9000};
      SolOccupancy o = {0};
      SolError err = {0};
      SolStatus status = sol_occupancy(sol_device_at(i), &kernel, &o, &err);
      WRITE(p, "%d regs: %s %d %d %s '%s'\n", regs, sol_status_name(status), o.blocks_per_sm, o.warps_per_sm,
            sol_limiter_name(o.limiter), err.message);
    }
}

static void ask_models(Page *p) {
  const SolDevice *device = 0;
  if (sol_device_find("h100", &device, 0)) return;
  SolModelConfig config;
  for (int i = 0; i < sol_model_preset_count(); i++) {
    config = *sol_model_preset(i);
    SolModelWeights weights = {0};
    sol_model_weights(&config, &weights, 0);
    SolModelRun run = {.phase = SOL_PHASE_DECODE, .batch = 8, .context = 1024};
    SolModelReport report = {0};
    SolStatus status = sol_model_run(device, &config, &run, &report, 0);
    WRITE(p, "%s %s %.12g %.12g us %.12g tokens/s\n", config.name, sol_status_name(status), weights.params,
          report.total_us, report.tokens_per_s);
  }
  static const char broken[] = "{\"model_type\": \"llama\",\n \"hidden_size\": -1}";
  SolError err = {0};
  SolStatus status = sol_model_parse(broken, sizeof broken - 1, &config, &err);
  WRITE(p, "%s %d:%d '%s' '%s'\n", sol_status_name(status), err.line, err.column, err.message, err.hint);
}

size_t sol_probe(char *out, size_t cap) {
  Page page = {out, cap, 0};
  WRITE(&page, "%s\n", sol_version());
  ask_formats(&page);
  ask_devices(&page);
  ask_operations(&page);
  ask_occupancy(&page);
  ask_models(&page);
  return page.used;
}

#ifndef __wasm__
#include <stdio.h>

int main(void) {
  static char text[1 << 22];
  size_t used = sol_probe(text, sizeof text);
  return used < sizeof text && fwrite(text, 1, used, stdout) == used ? 0 : 1;
}
#endif
