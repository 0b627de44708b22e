// The kernels that commonly precede or follow an operation, and those that do the work of both: the FUSION rows of
// costs.def. All are called with the operation's own arguments.
#include "roofline/costs.h"

// What the operation costs alone; the last kernel of the ledger, to be changed.
static SolCost *alone(SolLedger *l) {
  for (int i = 0; i < sol_op_row_count; i++)
    if (&sol_op_rows[i].info == l->info) sol_op_rows[i].cost(l);
  return &l->pass[l->count - 1].cost;
}

static double volume(const SolLedger *l) {
  return l->d[0] * l->d[1] * l->d[2] * l->d[3];
}

static double columns(const SolLedger *l) {
  return l->d[l->info->rank_max - 1];
}

// Of the kernel that writes the operation's input: that write.
void sol_producer(SolLedger *l) {
  SolCost *cost = alone(l);
  if (l->status) return;
  cost->bytes_written = l->whole_read;
  cost->bytes_read = cost->flops = 0;
}

// The operation inside it: what it would have read is in registers, and is not written either.
void sol_in_producer(SolLedger *l) {
  SolCost *cost = alone(l);
  if (!l->status) cost->bytes_read -= l->whole_read;
}

// The same where others still read the input: it is written, but not read back.
void sol_fused_with_producer(SolLedger *l) {
  SolCost *cost = alone(l);
  if (l->status) return;
  cost->bytes_read -= l->whole_read;
  cost->bytes_written += l->whole_read;
}

// Of the kernel that reads the operation's output: that read.
void sol_consumer(SolLedger *l) {
  SolCost *cost = alone(l);
  if (l->status) return;
  cost->bytes_read = l->whole_written;
  cost->bytes_written = cost->flops = 0;
}

void sol_in_consumer(SolLedger *l) {
  SolCost *cost = alone(l);
  if (!l->status) cost->bytes_written -= l->whole_written;
}

void sol_add_before(SolLedger *l) {
  sol_pass(l, "add");
  sol_reads(l, "x", volume(l), l->dtype);
  sol_reads(l, "residual", volume(l), l->dtype);
  sol_writes(l, "residual", volume(l), l->dtype);
  sol_flops(l, volume(l));
}

void sol_with_add(SolLedger *l) {
  alone(l);
  sol_reads(l, "residual", volume(l), l->dtype);
  sol_writes(l, "residual", volume(l), l->dtype);
  sol_flops(l, volume(l));
}

void sol_scale_before(SolLedger *l) {
  sol_pass(l, "scale");
  sol_reads(l, "x", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), l->dtype);
  sol_flops(l, volume(l));
}

void sol_with_scale(SolLedger *l) {
  alone(l);
  sol_flops(l, volume(l));
}

void sol_bias_before(SolLedger *l) {
  sol_scale_before(l); // an add costs what a multiply does
  sol_reads_side(l, "bias", columns(l), l->weight);
}

void sol_with_bias(SolLedger *l) {
  sol_with_scale(l);
  sol_reads_side(l, "bias", columns(l), l->weight);
}

void sol_velocity_before(SolLedger *l) {
  sol_pass(l, "velocities");
  sol_writes(l, "velocity", 3 * l->d[0], l->dtype);
}

void sol_with_velocity(SolLedger *l) {
  SolCost *cost = alone(l);
  if (l->status) return;
  // Half of what is read are the velocities: written from registers instead.
  cost->bytes_read -= l->whole_read / 2;
  cost->bytes_written += l->whole_read / 2;
}

void sol_embedding_before(SolLedger *l) {
  SolDtype out = l->out;
  l->out = l->dtype; // the rows in between have the activations' type
  sol_cost_embedding(l);
  l->out = out;
}

void sol_rmsnorm_after(SolLedger *l) {
  sol_pass(l, "rmsnorm");
  sol_reads(l, "x", volume(l), l->out);
  sol_reads_side(l, "weight", l->d[1], l->weight);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, 4 * volume(l));
}

void sol_stencil_again(SolLedger *l) {
  alone(l);
}

void sol_stencil_twice(SolLedger *l) {
  SolCost *cost = alone(l);
  if (!l->status) cost->flops *= 2;
}

void sol_bias_gelu_after(SolLedger *l) {
  double m = l->d[0], n = l->d[1];
  sol_pass(l, "bias_gelu");
  sol_reads(l, "C", m * n, l->out);
  sol_reads_side(l, "bias", n, l->weight);
  sol_writes(l, "y", m * n, l->out);
  sol_flops(l, 9 * m * n);
}

// The epilogue's arithmetic runs on the vector units, concurrently with the products, and is not added to them.
void sol_with_epilogue(SolLedger *l) {
  alone(l);
  sol_reads_side(l, "bias", l->d[1], l->weight);
}
