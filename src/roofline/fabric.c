// Collectives over the link, as NCCL estimates them to choose its protocol:
//
//     time = base + steps x latency of a step + bytes sent / (bandwidth x share that is data)
//
// The constants are those of NCCL 2.18's tuning model (src/graph/tuning.cc) for a ring within one machine. LL sends
// a flag of four bytes with every four of data, LL128 one of eight with every 120, Simple none.
#include "roofline/fabric.h"

#include "base/port.h"

typedef struct Protocol {
  const char *name;
  double base_us;
  double nvlink_step_us, pcie_step_us;
  double data; // share of the bytes sent
} Protocol;

static const Protocol protocols[] = {
    {"LL", 6.6, 0.6, 1.0, 0.5}, {"LL128", 14.0, 1.9, 2.5, 120.0 / 128}, {"Simple", 8.4, 3.4, 5.7, 1}};

// PCIe 5.0 x16 has 64 GB/s; an NVLink of a data-centre GPU has more.
static bool is_pcie(const SolDevice *device) {
  return device->link_bandwidth.value <= 64e9;
}

static SolFabricTime ring(const SolDevice *device, double steps, double sent) {
  SolFabricTime best = {.sent = sent};
  for (size_t i = 0; i < SOL_COUNT(protocols); i++) {
    const Protocol *p = &protocols[i];
    double step = is_pcie(device) ? p->pcie_step_us : p->nvlink_step_us;
    double us = p->base_us + steps * step + sent / (device->link_bandwidth.value * p->data) * 1e6;
    if (!best.protocol || us < best.us) best.us = us, best.protocol = p->name;
  }
  return best;
}

// Every byte of the sum goes round twice, less what each GPU starts and ends with.
SolFabricTime sol_fabric_all_reduce(const SolDevice *device, int64_t gpus, double bytes) {
  double n = (double)gpus;
  return ring(device, 2 * (n - 1), 2 * (n - 1) / n * bytes);
}

SolFabricTime sol_fabric_all_gather(const SolDevice *device, int64_t gpus, double bytes_each) {
  double n = (double)gpus;
  return ring(device, n - 1, (n - 1) * bytes_each);
}
