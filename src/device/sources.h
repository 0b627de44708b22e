// Where the figures of devices.def come from, one macro a source. docs/devices.md says how each was read.
// SRC_..._OF(part) names the place within a source, or the card a shared figure was taken on.
#ifndef SOL_DEVICE_SOURCES_H
#define SOL_DEVICE_SOURCES_H

// Per compute capability.
#define SRC_GUIDE_LIMITS "CUDA C++ Programming Guide 13, technical specifications per compute capability"
#define SRC_GUIDE_RESERVED                                                                                   \
  "CUDA C++ Programming Guide 13, shared memory: 1 KB kept back per block from 8.0 on"
#define SRC_GUIDE_BANKS "CUDA C++ Programming Guide 13, shared memory: 32 banks of 4 bytes per clock"
#define SRC_GUIDE_L1    "CUDA C++ Programming Guide 13, unified data cache size per compute capability"
#define SRC_OCCUPANCY_H "cuda_occupancy.h of CUDA 13.0"
#define SRC_OCCUPANCY_H_WARPS                                                                                \
  "cuda_occupancy.h of CUDA 13.0: a block's warps are spread over 4 sub-partitions"
#define SRC_GA102_WP_SMEM "NVIDIA GA102 whitepaper: 128 bytes/clock per SM, against 64 in Turing"

// Whitepapers, datasheets, product briefs and specification pages of NVIDIA.
#define SRC_V100_WP           "NVIDIA Tesla V100 whitepaper WP-08608, table 1"
#define SRC_V100_DS           "NVIDIA V100 datasheet (2020), SXM2"
#define SRC_T4_DS             "NVIDIA T4 datasheet (2019)"
#define SRC_T4_PB             "NVIDIA T4 product brief"
#define SRC_TURING_WP         "NVIDIA Turing whitepaper WP-09183, Tesla T4"
#define SRC_A100_WP           "NVIDIA A100 whitepaper (2020), comparison tables, dense"
#define SRC_A100_DS           "NVIDIA A100 datasheet (2021), dense"
#define SRC_A10_DS            "NVIDIA A10 datasheet (2021), dense"
#define SRC_A10_PB            "NVIDIA A10 product brief"
#define SRC_GA102_WP          "NVIDIA GA102 whitepaper V2, specification tables, dense"
#define SRC_GA102_FP32A       "NVIDIA GA102 whitepaper V2, specification tables, dense, fp32 accumulation"
#define SRC_3050_PAGE         "NVIDIA GeForce RTX 3050 (8 GB) specifications page"
#define SRC_3050L_PAGE        "NVIDIA GeForce RTX 30 laptops specifications page, RTX 3050"
#define SRC_TPU_3050L         "TechPowerUp GPU database, GeForce RTX 3050 Mobile (GA107, 4 GB)"
#define SRC_TPU_3050          "TechPowerUp GPU database, GeForce RTX 3050 8 GB (GA106)"
#define SRC_ADA_WP            "NVIDIA Ada whitepaper V2, appendix A, dense"
#define SRC_ADA_FP32A         "NVIDIA Ada whitepaper V2, appendix A, dense, fp32 accumulation"
#define SRC_ADA_CHIP_OF(chip) "NVIDIA Ada whitepaper V2, full " chip
#define SRC_L4_DS             "NVIDIA L4 datasheet (2023)"
#define SRC_L4_HALF           "NVIDIA L4 datasheet (2023): half the sparse figure printed"
#define SRC_L4_PB             "NVIDIA L4 product brief"
#define SRC_L40S_DS           "NVIDIA L40S datasheet (2023), dense"
#define SRC_L40S_PB           "NVIDIA L40S product brief"
#define SRC_H100_WP           "NVIDIA H100 whitepaper V1.04, comparison tables, dense"
#define SRC_H100_PB           "NVIDIA H100 PCIe product brief PB-11133"
#define SRC_H200_DS           "NVIDIA H200 datasheet (2024), SXM"
#define SRC_H200_HALF         "NVIDIA H200 datasheet (2024), SXM: half the sparse figure printed"
#define SRC_GH100_FULL        "NVIDIA H100 whitepaper V1.04: all 12 controllers of 512 bits of the full chip"
#define SRC_H200_AS_H100      "NVIDIA H100 whitepaper V1.04, SXM5: the same SMs at the same clock"
#define SRC_BLACKWELL_DS      "NVIDIA Blackwell datasheet, HGX B200, per GPU"
#define SRC_BLACKWELL_HALF    "NVIDIA Blackwell datasheet, HGX B200, per GPU: half the sparse figure printed"
#define SRC_DGX_B200_DS       "NVIDIA DGX B200 datasheet: 64 TB/s over 8 GPUs"
#define SRC_GB200_DS          "NVIDIA Blackwell datasheet, GB200 NVL72, per GPU"
#define SRC_GB200_HALF        "NVIDIA Blackwell datasheet, GB200 NVL72, per GPU: half the sparse figure"
#define SRC_RTXB_WP           "NVIDIA RTX Blackwell whitepaper V1.1, appendix A, dense"
#define SRC_RTXB_FP32A        "NVIDIA RTX Blackwell whitepaper V1.1, appendix A, dense, fp32 accumulation"
#define SRC_PCIE_OF(gen)      "datasheet: no NVLink, PCIe " gen ", half of both directions together"

// Other makers.
#define SRC_MI210        "AMD's figures as AnandTech 17326 (March 2022) prints them"
#define SRC_MI250X       "AMD's table at the launch of the MI200 series (November 2021), MI250X"
#define SRC_MI250_LINK   "ROCm documentation, MI250 microarchitecture: 50 GB/s one way for each link"
#define SRC_MI300X       "AMD's figures as hmc-tech's comparison of the MI300X prints them"
#define SRC_MI300_MEMORY "AMD ROCm blog, inference on MI300X: 192 GB at 5.3 TB/s"
#define SRC_MI300_LINK                                                                                       \
  "Infinity Fabric of an MI300X: seven links, 128 GB/s in both directions each, 448 GB/s one way"
#define SRC_MI325X        "AMD's figures as awesomeagents.ai prints them, MI325X"
#define SRC_MI325X_AS_300 "as the MI300X, whose compute units it has: awesomeagents.ai, MI325X"
#define SRC_MI355X_RATE                                                                                      \
  "AMD at ISSCC 2026: 8 x 32 compute units of 8192 FP8 FLOP a clock; AMD at Hot Chips 2025: 2.4 GHz"
#define SRC_MI355X_CLOCK      "AMD at Hot Chips 2025 (wccftech): 2.4 GHz"
#define SRC_MI355X_MEMORY     "AMD Advancing AI 2025 (hyper.ai): 288 GB at 8 TB/s"
#define SRC_GAUDI3            "Intel at Hot Chips 2024, Gaudi 3"
#define SRC_PVC_ARK           "Intel ARK, Data Center GPU Max 1550 (as quoted by G. Lockwood)"
#define SRC_PVC_HC34          "Intel at Hot Chips 34, Ponte Vecchio with two stacks (tweaktown)"
#define SRC_TPU_OF(card)      "Google Cloud documentation, TPU " card ", per chip"
#define SRC_TPU_ICI(card)     "Google Cloud documentation, TPU " card ": half of its bidirectional ICI bandwidth"
#define SRC_APPLE_OF(chip)    "Apple's announcement of the " chip ", as reported"
#define SRC_APPLE_M1_BUS      "128 bits of LPDDR4X-4266; Apple says that an M1 Max has almost six times it"
#define SRC_CHANNELS_OF(what) "computed: " what
// Not found anywhere to compare with: use --set, or a device file, where it matters.
#define SRC_MI355X_VECTOR(flops)                                                                             \
  "computed: 256 compute units x 2.4 GHz x " flops " FLOPs a clock, the rate of the MI300X's"
#define SRC_MI355X_FP4                                                                                       \
  "Hazy Research, HipKittens (2025), hardware overview: 10.1 PFLOP/s; computed: twice FP8's"
#define SRC_TPU_V5P_INT8 "Stas Bekman, Machine Learning Engineering, TFLOPS comparison table"
#define SRC_TPU7_MEMORY  "Google at Hot Chips 2025 (TechRadar): eight stacks of HBM3e, 7.3 TB/s"
#define SRC_NOT_FOUND    "from memory; no copy of the maker's data sheet was found to check it"
#define SRC_CPU_CALL     "a call of a function: nothing is launched"

// What drivers report.
#define SRC_DRIVER_B200  "reported by the driver on B200s (pytorch/ao pull request 4002 and others)"
#define SRC_DRIVER_GB200 "reported by the driver on GB200s (public benchmark logs)"
#define SRC_H200_DEVICE  "read from the driver here on an H200 (driver 580)"

// Measurements.
#define SRC_JIA_VOLTA            "Jia et al. 2018, arXiv:1804.06826, microbenchmarks of a V100 PCIe"
#define SRC_JIA_TURING           "Jia et al. 2019, arXiv:1903.07486, microbenchmarks of a T4"
#define SRC_LUO_OF(card)         "Luo et al. 2024, arXiv:2402.13499, table IV, measured on " card
#define SRC_GPU_BENCHES_OF(part) "RRZE-HPC gpu-benches, " part
#define SRC_HPMLL_OF(card)       "HPMLL NVIDIA-Hopper-Benchmark, random_latency, measured on " card
#define SRC_AI_KERNELS_OF(card)  "markdewing AI_kernels, latency, pointer chase on " card
#define SRC_MT4G_OF(card)        "caps-tum mt4g, pointer chase on " card
#define SRC_4090_L2              "smallscientist1 cuda_microbenchmark: 1945.6 bytes/clock, cp.async, 2.52 GHz"
// Taken on the H200 that Sol is tested on.
#define SRC_H200_MEASURED "measured here on an H200 (CUDA 13.0, driver 580)"

// Launch cost: time from one tiny kernel to the next, queued back to back. It includes the tiny kernel itself
// and depends on the host.
#define SRC_LAUNCH_OF(card) "RRZE-HPC gpu-benches, gpu-small-kernels: 64 KB kernels back to back on " card
#define SRC_LAUNCH_DEFAULT                                                                                   \
  "default, not measured on it: 1.6 (L40) to 2.6 us (A100) in RRZE-HPC gpu-benches, gpu-small-kernels"
#define SRC_GRAPH_DEFAULT                                                                                    \
  "default, not measured on it: 0.9 (L40) to 1.3 us (A100) in RRZE-HPC gpu-benches, gpu-small-kernels"

// Arithmetic on the row's own SMs and boost clock; the rate per clock is that of the compute capability in
// the Programming Guide (vector units) or the architecture's whitepaper (tensor cores).
#define SRC_COMPUTED_OF(rate) "computed: SMs x " rate "/clock x 2 x boost clock"

#endif
