// How many warps of a kernel an SM holds, with what each input alone would change: the keys of `sol occupancy --json`,
// and of its three sweeps.
#include "page/page.h"
#include "report/report_occupancy.h"

bool page_occupancy(PageAsk *ask) {
  static const char *const names[] = {"regs", "threads", "smem"};
  const SolDevice *d;
  SolKernelShape kernel = {.threads = 256};
  if (!page_device(ask, &d) || !page_count(ask, "threads", 1, &kernel.threads) ||
      !page_count(ask, "regs", 0, &kernel.regs) || !page_count(ask, "smem", 0, &kernel.smem) ||
      report_occupancy_facts(ask->root, d, &kernel, &ask->err))
    return false;
  Fact *sweeps = fact_object(ask->root, "sweeps", 0);
  for (int i = 0; i < 3; i++)
    if (report_occupancy_sweep(fact_list(sweeps, names[i], 0), d, kernel, (OccupancySweep)(SWEEP_REGS + i),
                               &ask->err))
      return false;
  return true;
}
