// The answer of sol roofline as facts, for the command line and for the page.
#ifndef SOL_REPORT_ROOFLINE_H
#define SOL_REPORT_ROOFLINE_H

#include "report/facts.h"
#include "sol/roofline.h"

// The work to place: an operation with its shape, or raw bytes and FLOPs.
typedef struct RooflineQuestion {
  bool by_op;
  char name[160]; // "rmsnorm 8192x4096 bf16"
  SolOpArgs op;   // where by_op
  SolCost cost;   // likewise
  SolWork work;
  SolRooflineOptions options;
  bool tiled; // a gemm's bytes at a level below hbm
  SolTile tile;
} RooflineQuestion;

// A gemm in tiles, "128x256x64" or "" for these, where one is given or a level below hbm is asked for: its bytes and its
// name. The operation, its work, its name and the level are set already.
SolStatus report_roofline_tiles(RooflineQuestion *q, const char *tile, SolError *err);

// Under one device: everything but advice and comparison, which follow.
void report_roofline_facts(Fact *root, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r);
// The operation's separate kernels against the fused one; SOL_ERR_UNSUPPORTED where it is a single pass anyhow.
SolStatus report_roofline_unfused(Fact *root, const SolDevice *d, const RooflineQuestion *q,
                                  const SolRoofline *fused, SolError *err);
SolStatus report_roofline_advice(Fact *root, const SolDevice *d, const RooflineQuestion *q,
                                 const SolRoofline *r, SolError *err);
// One line of the table over several devices; with err->status the line says why there are no figures.
void report_roofline_row(Fact *root, const SolDevice *d, const RooflineQuestion *q, const SolRoofline *r,
                         const SolError *err);

#endif
