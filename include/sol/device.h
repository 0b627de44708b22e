// GPUs and their figures. Every figure carries its source; a figure that is not published is unknown
// (source NULL), never zero or -1. The table is constant: no set-up, no locking, valid for ever.
#ifndef SOL_DEVICE_H
#define SOL_DEVICE_H

#include "sol/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SolFigure {
  double value;
  const char *source; // where the value was published or how it was measured; NULL: unknown
} SolFigure;

static inline int sol_known(SolFigure figure) {
  return figure.source != 0;
}

// The one list of figures: X(field, unit, label). Units are plain SI: bytes, Hz, B/s, FLOP/s.
#define SOL_DEVICE_FIGURES(X)                                                                                \
  X(sms, "", "SMs")                                                                                          \
  X(base_clock, "Hz", "base clock")                                                                          \
  X(boost_clock, "Hz", "boost clock")                                                                        \
  X(regs_per_sm, "", "32-bit registers per SM")                                                              \
  X(max_regs_per_block, "", "registers per block, most")                                                     \
  X(max_regs_per_thread, "", "registers per thread, most")                                                   \
  X(reg_alloc_unit, "", "register allocation unit, per warp")                                                \
  X(warp_alloc_unit, "", "warp allocation unit")                                                             \
  X(smem_per_sm, "B", "shared memory per SM")                                                                \
  X(smem_per_block, "B", "shared memory per block, most (opt-in)")                                           \
  X(smem_reserved, "B", "shared memory reserved per block")                                                  \
  X(smem_alloc_unit, "B", "shared memory allocation unit")                                                   \
  X(smem_bytes_per_clock, "B/clock", "shared memory bandwidth per SM")                                       \
  X(l1_size, "B", "L1 and shared memory per SM, together")                                                   \
  X(l2_size, "B", "L2 cache")                                                                                \
  X(l2_bandwidth, "B/s", "L2 read bandwidth")                                                                \
  X(mem_size, "B", "memory")                                                                                 \
  X(mem_bus_bits, "bit", "memory bus")                                                                       \
  X(mem_bandwidth, "B/s", "memory bandwidth")                                                                \
  X(link_bandwidth, "B/s", "GPU-to-GPU link, one direction")                                                 \
  X(peak_fp64, "FLOP/s", "fp64 peak, vector units")                                                          \
  X(peak_fp64_tensor, "FLOP/s", "fp64 peak, tensor cores")                                                   \
  X(peak_fp32, "FLOP/s", "fp32 peak, vector units")                                                          \
  X(peak_fp16_vector, "FLOP/s", "fp16 peak, vector units")                                                   \
  X(peak_tf32, "FLOP/s", "tf32 dense peak, tensor cores")                                                    \
  X(peak_fp16, "FLOP/s", "fp16 dense peak, tensor cores")                                                    \
  X(peak_bf16, "FLOP/s", "bf16 dense peak, tensor cores")                                                    \
  X(peak_fp8, "FLOP/s", "fp8 dense peak, tensor cores")                                                      \
  X(peak_fp4, "FLOP/s", "fp4 dense peak, tensor cores")                                                      \
  X(peak_int8, "OP/s", "int8 dense peak, tensor cores")                                                      \
  X(warp_size, "", "threads per warp")                                                                       \
  X(max_warps_per_sm, "", "warps per SM, most")                                                              \
  X(max_blocks_per_sm, "", "blocks per SM, most")                                                            \
  X(max_threads_per_block, "", "threads per block, most")                                                    \
  X(smem_latency, "clocks", "shared memory latency")                                                         \
  X(l1_latency, "clocks", "L1 hit latency")                                                                  \
  X(l2_latency, "clocks", "L2 hit latency")                                                                  \
  X(mem_latency, "clocks", "memory latency")                                                                 \
  X(launch_us, "us", "launch cost of a kernel in a stream")                                                  \
  X(graph_launch_us, "us", "launch cost of a kernel in a CUDA graph")                                        \
  X(mem_copy, "B/s", "memory bandwidth of a copy, measured")

typedef struct SolDevice {
  const char *id;      // "h100-sxm"
  const char *name;    // "NVIDIA H100 SXM5 80 GB"
  const char *aliases; // other names that find it, separated by spaces: "h100"
  const char *family;  // "Hopper"
  const char *arch;    // "sm_90"
  int cc_major, cc_minor;
  const char *mem_type; // "HBM3"
  const char *mem_type_source;
  const char *note; // what a reader of the figures should know; NULL where there is nothing
#define SOL_FIGURE_FIELD(field, unit, label) SolFigure field;
  SOL_DEVICE_FIGURES(SOL_FIGURE_FIELD)
#undef SOL_FIGURE_FIELD
} SolDevice;

// Which unit of the SM does the arithmetic.
typedef enum SolUnit {
  SOL_UNIT_DEFAULT = 0, // tensor cores where the dtype has a tensor peak, else vector units
  SOL_UNIT_TENSOR,
  SOL_UNIT_VECTOR // fp32 units for every dtype narrower than fp64: storage is narrow, arithmetic is fp32
} SolUnit;

SOL_API int sol_device_count(void);
// The i-th device, oldest first; NULL outside [0, count).
SOL_API const SolDevice *sol_device_at(int i);
// By id, alias or name, any case; '-', '_' and spaces are alike. Unknown: the nearest ids are in err->hint.
SOL_API SolStatus sol_device_find(const char *name, const SolDevice **out, SolError *err);

// The same with accelerators and CPUs of other makers behind NVIDIA's GPUs: for sol_roofline() and sol_model_run(),
// which need no more than published figures. What emulates or occupies an SM refuses them (cc_major 0).
SOL_API int sol_accelerator_count(void);
SOL_API const SolDevice *sol_accelerator_at(int i);
SOL_API SolStatus sol_accelerator_find(const char *name, const SolDevice **out, SolError *err);

// Dense peak in FLOP/s (OP/s for integers) for arithmetic on `dtype`. On success *used says which unit
// it belongs to (may be NULL). SOL_ERR_UNSUPPORTED where the device has no such unit.
SOL_API SolStatus sol_device_peak(const SolDevice *device, SolDtype dtype, SolUnit unit, double *flops_per_s,
                                  SolUnit *used, SolError *err);

// The figures as a list, for printing: sol_device_figure_count() of them, in the order above.
typedef struct SolFigureInfo {
  const char *field, *unit, *label;
} SolFigureInfo;
SOL_API int sol_device_figure_count(void);
SOL_API SolFigure sol_device_figure(const SolDevice *device, int i, SolFigureInfo *info);

#ifdef __cplusplus
}
#endif
#endif
