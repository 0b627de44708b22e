// Questions of the page (web/page.js) and their answers, both JSON texts. A question is an object whose "ask" says
// which; its other members are texts as a person types them. An answer has the keys of the command line's JSON, or
// "error", "hint", "line" and "column".
//
//   devices   {}     devices [{id, name, cuda}], ops [{name, shape, ...}], dtypes [text], models [{name}]
//   roofline  {device, bandwidth, peak, launch_us, op, shape, tile, dtype, bytes, flops, launches, unit, level}
//   memory    {addresses [32 numbers or null], width, shared, store}  one access of a warp
//   occupancy {device, threads, regs, smem}                           with sweeps {regs [], threads [], smem []}
//   model     {device, model or config (a config.json), phase, batch, context, tp, ep, pp, cp, dp, fabric, dtype, weight_dtype, kv_dtype,
//              fused, graph}                                          the two last "yes" or ""
//   audit     {device, ptx, kernel, grid, block, smem, args [text]}   the bill of one launch
#ifndef SOL_PAGE_PAGE_H
#define SOL_PAGE_PAGE_H

#include "base/json_read.h"
#include "report/facts.h"
#include "sol/device.h"

// Room for a question, and the answer to it; the answer ends with a NUL. Neither is freed: the page puts the memory back
// as it was.
SOL_API char *page_room(size_t size);
SOL_API const char *page_ask(const char *question, size_t length);

typedef struct PageAsk {
  SolJson question;
  Fact *root; // the answer
  SolError err;
} PageAsk;

// A member as text, in the arena; "" where it is none.
const char *page_text(const PageAsk *ask, const char *key);
// A number or a whole number as typed; *out stays as it is where nothing was.
bool page_number(PageAsk *ask, const char *key, double *out);
bool page_count(PageAsk *ask, const char *key, int64_t least, int64_t *out);
bool page_dtype(PageAsk *ask, const char *key, SolDtype *out);
bool page_device(PageAsk *ask, const SolDevice **out);      // "device", or h100-sxm
bool page_accelerator(PageAsk *ask, const SolDevice **out); // the same, other makers' too
void page_schema(PageAsk *ask);

// Each fills the answer; false: the error is set.
bool page_devices(PageAsk *ask);
bool page_roofline(PageAsk *ask);
bool page_memory(PageAsk *ask);
bool page_audit(PageAsk *ask);
bool page_occupancy(PageAsk *ask);
bool page_model(PageAsk *ask);

#endif
