// Calls of libraries that compute: each at its roof, since their kernels are not known.
#include "audit/inside.h"
#include "base/error.h"

double audit_library_seconds(const MachineModel *model, AuditLibraryCall *c) {
  double peak = 0;
  SolUnit unit = c->tensor ? SOL_UNIT_DEFAULT : SOL_UNIT_VECTOR;
  bool known = !sol_device_peak(model->device, c->dtype, unit, &peak, NULL, NULL) ||
               !sol_device_peak(model->device, c->dtype, SOL_UNIT_VECTOR, &peak, NULL, NULL);
  c->memory = (c->read + c->written) / machine_copy_rate(model);
  c->compute = known ? c->flops / peak : 0;
  c->seconds = sol_larger(c->memory, c->compute) + machine_light(model, 0, 1, 0);
  return c->seconds;
}

static AuditLibraryCall *row_of(AuditProgram *p, const AuditLibraryCall *call) {
  for (uint32_t i = 0; i < p->call_count; i++) {
    AuditLibraryCall *c = &p->calls[i];
    if (c->dtype == call->dtype && c->tensor == call->tensor && strcmp(c->name, call->name) == 0) return c;
  }
  void *room = p->calls;
  const char *name = audit_keep(p, call->name);
  if (!name || !audit_grow(&room, p->call_count, &p->call_cap, sizeof *p->calls)) return NULL;
  p->calls = room;
  p->calls[p->call_count] = (AuditLibraryCall){.name = name, .dtype = call->dtype, .tensor = call->tensor};
  return &p->calls[p->call_count++];
}

SolStatus audit_library(AuditProgram *p, const AuditLibraryCall *call, SolError *err) {
  AuditLibraryCall one = *call, *row = row_of(p, call);
  if (!row) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  audit_library_seconds(&p->machine, &one);
  row->times++;
  row->read += one.read;
  row->written += one.written;
  row->flops += one.flops;
  row->memory += one.memory;
  row->compute += one.compute;
  row->seconds += one.seconds;
  return SOL_OK;
}
