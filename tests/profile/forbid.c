// CUPTI as it is where the driver forbids the counters: everything but this one function is the real library's,
// which this one is linked with. For SOL_CUPTI=; bench/profile_gpu.py builds it.
int cuptiRangeProfilerEnable(void *params);
int cuptiRangeProfilerEnable(void *params) {
  (void)params;
  return 35; // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
}
