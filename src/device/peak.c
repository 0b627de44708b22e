// Which peak belongs to a dtype and a unit of the SM.
#include "base/error.h"
#include "base/format.h"
#include "sol/device.h"

// The tensor cores' peak for each dtype. A dtype that is not here has none on any device.
static const SolFigure *tensor_peak(const SolDevice *device, SolDtype dtype) {
  switch (dtype) {
  case SOL_FP64: return &device->peak_fp64_tensor;
  case SOL_TF32: return &device->peak_tf32;
  case SOL_FP16: return &device->peak_fp16;
  case SOL_BF16: return &device->peak_bf16;
  case SOL_FP8: return &device->peak_fp8;
  case SOL_FP4: return &device->peak_fp4;
  case SOL_INT8: return &device->peak_int8;
  default: return 0;
  }
}

// The vector units compute narrow floats in fp32; only fp64 has separate units. tf32 exists in tensor
// cores alone, and no roof is published for integer arithmetic.
static const SolFigure *vector_peak(const SolDevice *device, SolDtype dtype) {
  switch (dtype) {
  case SOL_FP64: return &device->peak_fp64;
  case SOL_FP32:
  case SOL_FP16:
  case SOL_BF16:
  case SOL_FP8:
  case SOL_FP4: return &device->peak_fp32;
  default: return 0;
  }
}

// "fp64, tf32, fp16": the dtypes whose tensor peak is known.
static void list_tensor_dtypes(const SolDevice *device, char *out, size_t cap) {
  size_t used = 0;
  out[0] = 0;
  for (int i = SOL_DTYPE_DEFAULT + 1; i < SOL_DTYPE_COUNT && used < cap; i++) {
    const SolFigure *figure = tensor_peak(device, (SolDtype)i);
    if (!figure || !sol_known(*figure)) continue;
    used += sol_format(out + used, cap - used, "%s%s", used ? ", " : "", sol_dtype_name((SolDtype)i));
  }
}

// Whether tensor cores of this compute capability take the dtype at all: distinguishes "has no such unit" from
// "its rate is not published".
static bool tensor_cores_take(const SolDevice *device, SolDtype dtype) {
  int cc = device->cc_major * 10 + device->cc_minor;
  switch (dtype) {
  case SOL_FP16: return cc >= 70;
  case SOL_INT8: return cc >= 72;
  case SOL_BF16:
  case SOL_TF32: return cc >= 80;
  case SOL_FP64: return cc == 80 || cc == 90 || cc == 100;
  case SOL_FP8: return cc >= 89;
  case SOL_FP4: return cc >= 100;
  default: return false;
  }
}

static SolStatus no_tensor_peak(const SolDevice *device, SolDtype dtype, SolError *err) {
  const char *name = sol_dtype_name(dtype);
  if (!device->cc_major) // of another maker, whose units this table does not list
    return sol_fail(err, SOL_ERR_UNKNOWN, "a %s peak of %s is not published", name, device->id);
  if (tensor_cores_take(device, dtype))
    return sol_fail(err, SOL_ERR_UNKNOWN, "the %s tensor peak of %s is not published", name, device->id);
  SolStatus status = sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no %s tensor cores", device->id, name);
  char list[96];
  list_tensor_dtypes(device, list, sizeof list);
  const char *instead = dtype == SOL_FP32 && sol_known(device->peak_tf32) ? "tf32 or the" : "the";
  if (!list[0])
    sol_hint(err, "use the vector units");
  else if (dtype == SOL_FP32 || dtype == SOL_FP64)
    sol_hint(err, "use %s vector units; the tensor cores take %s", instead, list);
  else if (vector_peak(device, dtype))
    sol_hint(err, "they take %s; the vector units compute %s in fp32", list, name);
  else
    sol_hint(err, "they take %s", list);
  return status;
}

static SolStatus no_vector_peak(const SolDevice *device, SolDtype dtype, SolError *err) {
  const char *name = sol_dtype_name(dtype);
  if (vector_peak(device, dtype))
    return sol_fail(err, SOL_ERR_UNKNOWN, "the %s vector peak of %s is not published", name, device->id);
  SolStatus status =
      sol_fail(err, SOL_ERR_UNSUPPORTED, "the table has no vector peak for %s on %s", name, device->id);
  const SolFigure *tensor = tensor_peak(device, dtype);
  if (tensor && sol_known(*tensor))
    sol_hint(err, "the tensor cores take %s", name);
  else
    sol_hint(err, "vector peaks are those of fp64 and of fp32, which narrower floats are computed in");
  return status;
}

SolStatus sol_device_peak(const SolDevice *device, SolDtype dtype, SolUnit unit, double *flops_per_s,
                          SolUnit *used, SolError *err) {
  if (!device || !flops_per_s)
    return sol_fail(err, SOL_ERR_ARGUMENT, "device and flops_per_s must not be NULL");
  if (sol_dtype_bits(dtype) == 0) return sol_fail(err, SOL_ERR_ARGUMENT, "no such dtype: %d", (int)dtype);
  if (unit != SOL_UNIT_DEFAULT && unit != SOL_UNIT_TENSOR && unit != SOL_UNIT_VECTOR)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such unit: %d", (int)unit);

  const SolFigure *tensor = tensor_peak(device, dtype), *vector = vector_peak(device, dtype);
  bool has_tensor = tensor && sol_known(*tensor), has_vector = vector && sol_known(*vector);
  if (unit == SOL_UNIT_DEFAULT) {
    // Only arithmetic with separate vector units falls back on them: bf16 on a device without bf16 tensor
    // cores is refused rather than answered with the fp32 peak.
    bool own_vector = dtype == SOL_FP64 || dtype == SOL_FP32;
    bool integer = dtype == SOL_INT32 || dtype == SOL_INT64;
    unit = has_tensor || !(own_vector || integer) ? SOL_UNIT_TENSOR : SOL_UNIT_VECTOR;
  }
  if (unit == SOL_UNIT_TENSOR && !has_tensor) return no_tensor_peak(device, dtype, err);
  if (unit == SOL_UNIT_VECTOR && !has_vector) return no_vector_peak(device, dtype, err);
  *flops_per_s = unit == SOL_UNIT_TENSOR ? tensor->value : vector->value;
  if (used) *used = unit;
  return SOL_OK;
}
