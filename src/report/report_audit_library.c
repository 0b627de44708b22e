// Calls of libraries that compute, a row for each function.
#include "report/report_audit.h"

static void call_facts(Fact *list, const AuditLibraryCall *c) {
  Fact *row = fact_object(list, 0, 0);
  fact_text(row, "name", "library call", c->name);
  fact_number(row, "calls", "calls", UNIT_PLAIN, BASIS_EXACT, c->times);
  fact_number(row, "bytes_read", 0, UNIT_BYTES, BASIS_EXACT, c->read);
  fact_number(row, "bytes_written", 0, UNIT_BYTES, BASIS_EXACT, c->written);
  fact_number(row, 0, "bytes", UNIT_BYTES, BASIS_EXACT, c->read + c->written);
  fact_number(row, "flops", "FLOPs", UNIT_FLOPS, BASIS_EXACT, c->flops);
  fact_text(row, "dtype", "in", sol_dtype_name(c->dtype));
  fact_number(row, "time_us", "time at its roof", UNIT_US, BASIS_MODELLED, c->seconds * 1e6);
  fact_text(row, "bound", "bound by", c->memory >= c->compute ? "memory" : "compute");
}

void report_audit_library_facts(Fact *root, const AuditProgram *p) {
  static const FactColumn columns[] = {{"library call", FIT_CUT},
                                       {"time at its roof", 0},
                                       {"bytes", 0},
                                       {"FLOPs", 0},
                                       {"calls", 0},
                                       {"bound by", 0},
                                       {"in", 0},
                                       {0}};
  double seconds = 0;
  Fact *list = fact_list(root, "library_calls", p->call_count ? "Library calls" : 0);
  fact_columns(list, columns);
  for (uint32_t i = 0; i < p->call_count; i++) call_facts(list, &p->calls[i]), seconds += p->calls[i].seconds;
  fact_number(root, "library_us", 0, UNIT_US, BASIS_MODELLED, seconds * 1e6);
  if (p->call_count)
    fact_note(
        root,
        "Library calls were computed on the host: each is shown at its roof (its bytes once at the speed of a "
        "copy, its FLOPs at the peak of its dtype, and a launch), and is in no kernel's bill.");
}
