// The least time that arithmetic takes on a GPU: each pipe at its peak on all SMs, with every lane at work.
//
//   MachineArithmetic work = {.of = {[MACHINE_FP32] = 2.0 * m * n * k}};
//   MachinePipe pipe;
//   double seconds = machine_compute_light(&model, &work, &pipe);     pipe: the one that takes longest
#ifndef SOL_MACHINE_ARITHMETIC_H
#define SOL_MACHINE_ARITHMETIC_H

#include "machine/machine.h"

typedef enum MachinePipe {
  MACHINE_FP32,    // FLOPs; a multiply-add is two, and so is every other instruction of the pipe
  MACHINE_FP16,    // FLOPs
  MACHINE_FP64,    // FLOPs
  MACHINE_INTEGER, // operations of a lane
  MACHINE_SPECIAL, // operations of a lane
  MACHINE_CONVERT, // operations of a lane
  MACHINE_MATRIX,  // FLOPs, in units of the fp16 rate: tf32 counts twice, fp8 half
  MACHINE_PIPES
} MachinePipe;
const char *machine_pipe_name(MachinePipe pipe); // "fp32", "tensor cores"

typedef struct MachineArithmetic {
  double of[MACHINE_PIPES];
} MachineArithmetic;

// Warp instructions a clock and SM.
double machine_pipe_rate(const MachineModel *model, MachinePipe pipe);
// A pipe whose peak is unknown takes as long as issuing its instructions; tensor cores without one no time.
double machine_compute_light(const MachineModel *model, const MachineArithmetic *work, MachinePipe *pipe);

#endif
