// What CUDA 13 took out of the runtime and programs of the corpus still name: their advice about managed memory, which they do not
// give as they are run here, and properties of a device that they print. Included before each source of such a program.
#pragma once
#include <cuda_runtime.h>
#define cudaThreadSynchronize     cudaDeviceSynchronize
#define cudaThreadExit            cudaDeviceReset
#define cudaMemAdvise(...)        cudaSuccess
#define cudaMemPrefetchAsync(...) cudaSuccess
#define clockRate                 major
#define deviceOverlap             asyncEngineCount
