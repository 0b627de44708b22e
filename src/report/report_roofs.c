#include "report/report_roofs.h"

#include "sol/roofline.h"

static void put(Fact *o, const char *key, FactUnit unit, bool known, double value) {
  if (known)
    fact_number(o, key, 0, unit, BASIS_PUBLISHED, value);
  else
    fact_unknown(o, key, 0);
}

void report_roofs_facts(Fact *root, const SolDevice *device) {
  Fact *o = fact_object(root, "roofs", 0);
  for (int level = 0; level <= SOL_LEVEL_SMEM; level++) {
    SolRooflineOptions options = {.level = (SolLevel)level};
    SolRoofline r;
    bool known = !sol_roofline(device, &(SolWork){.bytes = 1}, &options, &r, 0);
    put(o, sol_level_name((SolLevel)level), UNIT_BYTES_PER_S, known, known ? r.bandwidth : 0);
  }
  static const SolWork peaks[] = {{.flops = 1, .dtype = SOL_FP32, .unit = SOL_UNIT_VECTOR},
                                  {.flops = 1, .dtype = SOL_BF16, .unit = SOL_UNIT_TENSOR}};
  for (int i = 0; i < 2; i++) {
    SolRoofline r;
    bool known = !sol_roofline(device, &peaks[i], 0, &r, 0);
    put(o, i ? "tensor_bf16" : "vector_fp32", UNIT_FLOPS_PER_S, known, known ? r.peak : 0);
  }
  put(o, "launch_us", UNIT_US, sol_known(device->launch_us), device->launch_us.value);
}
