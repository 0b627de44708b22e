// Collectives over the links, as NCCL estimates them to choose algorithm and protocol:
//
//     time = base + steps x latency of a step + bytes sent / (bandwidth x share that is data)
//
// The constants are those of NCCL 2.18's tuning model (src/graph/tuning.cc). LL sends a flag of four bytes with every
// four of data, LL128 one of eight with every 120, Simple none. Over machines a sum is made inside each, then between
// them of each GPU's part, then spread inside: as many steps of each level as its ring or tree has. A one-shot sum is
// no NCCL: every GPU writes its whole vector to all others, as the kernels of vLLM and TensorRT-LLM do.
#include "roofline/collectives.h"

#include "base/format.h"
#include "base/port.h"

typedef struct Protocol {
  const char *ring_name, *tree_name;
  double ring_base_us, tree_base_us;
  double ring_step_us[3], tree_step_us[3]; // by SolLinkKind
  double data;                             // share of the bytes sent
} Protocol;

static const Protocol protocols[] = {
    {"ring, LL", "tree, LL", 6.6, 6.8, {0.6, 1.0, 2.7}, {0.6, 1.0, 5.0}, 0.5},
    {"ring, LL128", "tree, LL128", 14.0, 14.0, {1.9, 2.5, 4.0}, {1.25, 1.9, 8.5}, 120.0 / 128},
    {"ring, Simple", "tree, Simple", 8.4, 8.4, {3.4, 5.7, 14.0}, {4.0, 4.0, 14.0}, 1}};

// Assumed: a kernel that is launched anyway, with a barrier before and one after, costs half of what NCCL's
// smallest protocol does.
enum { ONE_SHOT_STEPS = 2 };
static const double one_shot_base_us = 3.3;

// PCIe 5.0 x16 has 64 GB/s; an NVLink of a data-centre GPU has more.
SolFabric sol_fabric_of_device(const SolDevice *device) {
  SolFabric f = {
      .inside = {.bandwidth = sol_known(device->link_bandwidth) ? device->link_bandwidth.value : 0}};
  if (f.inside.bandwidth <= 64e9) f.inside.kind = SOL_LINK_PCIE;
  sol_format(f.name, sizeof f.name, "the link of %s", device->id);
  return f;
}

// A latency that was given stands for LL's; the other protocols' keep their proportion.
static double scale_of(const SolFabricLevel *l) {
  return l->latency_us > 0 ? l->latency_us / protocols[0].ring_step_us[l->kind] : 1;
}

static void take_least(SolFabricTime *best, double sent, double us, const char *how) {
  if (!best->how || us < best->us) *best = (SolFabricTime){sent, us, how};
}

static SolFabricTime ring(const SolFabricLevel *l, double steps, double sent) {
  SolFabricTime best = {0};
  for (size_t i = 0; i < SOL_COUNT(protocols); i++) {
    const Protocol *p = &protocols[i];
    double us = p->ring_base_us + steps * scale_of(l) * p->ring_step_us[l->kind] +
                sent / (l->bandwidth * p->data) * 1e6;
    take_least(&best, sent, us, p->ring_name);
  }
  return best;
}

static double log2_up(int64_t n) {
  double steps = 0;
  for (int64_t reach = 1; reach < n; reach *= 2) steps++;
  return steps;
}

// Up and down a binary tree; two trees share the bytes, so that no GPU sends more than twice what it has.
static void try_tree(const SolFabricLevel *l, int64_t gpus, double bytes, SolFabricTime *best) {
  for (size_t i = 0; i < SOL_COUNT(protocols); i++) {
    const Protocol *p = &protocols[i];
    double us = p->tree_base_us + 2 * log2_up(gpus) * scale_of(l) * p->tree_step_us[l->kind] +
                2 * bytes / (l->bandwidth * p->data) * 1e6;
    take_least(best, 2 * bytes, us, p->tree_name);
  }
}

// Every byte of a ring's sum goes round twice, less what each GPU starts and ends with.
static SolFabricTime level_sum(const SolFabricLevel *l, int64_t gpus, double bytes) {
  double n = (double)gpus;
  SolFabricTime best = ring(l, 2 * (n - 1), 2 * (n - 1) / n * bytes);
  if (l->kind == SOL_LINK_NETWORK) try_tree(l, gpus, bytes, &best);
  if (l->one_shot) {
    double sent = (n - 1) * bytes, step = scale_of(l) * protocols[0].ring_step_us[l->kind];
    take_least(&best, sent, one_shot_base_us + ONE_SHOT_STEPS * step + sent / l->bandwidth * 1e6, "one-shot");
  }
  return best;
}

// How many of the group are in one machine, and how many machines it takes.
typedef struct Spread {
  int64_t local, machines;
} Spread;

static Spread spread(const SolFabricGroup *g) {
  int64_t room = g->fabric->inside.gpus ? g->fabric->inside.gpus / g->stride : g->gpus;
  int64_t local = room < 1 ? 1 : room < g->gpus ? room : g->gpus;
  return (Spread){local, (g->gpus + local - 1) / local};
}

static SolFabricTime both(SolFabricTime a, SolFabricTime b) {
  return (SolFabricTime){a.sent + b.sent, a.us + b.us, a.us > b.us ? a.how : b.how};
}

SolFabricTime sol_fabric_all_reduce(const SolFabricGroup *g, double bytes) {
  Spread s = spread(g);
  SolFabricTime in = {0}, out = {0};
  if (s.local > 1) in = level_sum(&g->fabric->inside, s.local, bytes);
  if (s.machines > 1) out = level_sum(&g->fabric->between, s.machines, bytes / (double)s.local);
  return both(in, out);
}

SolFabricTime sol_fabric_all_gather(const SolFabricGroup *g, double bytes_each) {
  Spread s = spread(g);
  double local = (double)s.local, machines = (double)s.machines;
  SolFabricTime in = {0}, out = {0};
  if (s.machines > 1) out = ring(&g->fabric->between, machines - 1, (machines - 1) * bytes_each);
  if (s.local > 1) in = ring(&g->fabric->inside, local - 1, (local - 1) * machines * bytes_each);
  return both(in, out);
}

// Both levels carry their share at the same time.
SolFabricTime sol_fabric_all_to_all(const SolFabricGroup *g, double bytes) {
  Spread s = spread(g);
  double others = (double)(g->gpus - 1), near = bytes * (double)(s.local - 1) / others;
  SolFabricTime in = {0}, out = {0};
  if (s.local > 1) in = ring(&g->fabric->inside, 1, near);
  if (s.machines > 1) out = ring(&g->fabric->between, 1, bytes - near);
  SolFabricTime slower = in.us > out.us ? in : out;
  return (SolFabricTime){bytes, slower.us,
                         s.machines > 1 && out.us >= in.us ? "direct, between machines" : "direct"};
}

SolFabricTime sol_fabric_send(const SolFabricGroup *g, double bytes) {
  bool inside = spread(g).local > 1;
  SolFabricTime t = ring(inside ? &g->fabric->inside : &g->fabric->between, 1, bytes);
  t.how = inside ? "direct" : "direct, between machines";
  return t;
}
