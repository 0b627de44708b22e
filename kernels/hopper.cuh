// Hopper's asynchronous instructions, one function each: mbarriers, tensor copies (TMA), wgmma, clusters. sm_90a alone.
#ifndef SOL_KERNELS_HOPPER_CUH
#define SOL_KERNELS_HOPPER_CUH

#include "common.cuh"

INLINE uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// ---- mbarriers ----

INLINE void barrier_init(uint64_t *bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to tensor copies and to the cluster's other blocks.
INLINE void barrier_init_done(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

INLINE void barrier_wait(uint64_t *bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::"r"(
          shared_address(bar)),
      "r"(parity)
      : "memory");
}

// At the barrier of the cluster's block `rank`. Without a scope: one of the cluster would be a fence of all memory, about
// a thousand clocks, which shared memory that only asynchronous copies write does not need.
INLINE void barrier_arrive(uint64_t *bar, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          shared_address(bar)),
      "r"(rank)
      : "memory");
}

INLINE void barrier_expect(uint64_t *bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}

// ---- clusters ----

INLINE uint32_t block_rank(void) {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

INLINE void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// `count` threads, whole warps; id 0 is __syncthreads'.
INLINE void named_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// ---- tensor copies of three dimensions ----

INLINE void tensor_load(void *to, const void *map, uint64_t *bar, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// To the same place in, and completing the same barrier of, every block of the cluster whose bit is set.
INLINE void tensor_load_all(void *to, const void *map, uint64_t *bar, int x, int y, int z, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}

INLINE void tensor_store(const void *map, const void *from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
               : "memory");
}

INLINE void tensor_store_commit(void) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until all but `left` of this thread's committed stores have read their shared memory.
template <int left> INLINE void tensor_store_read(void) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

INLINE void tensor_prefetch_map(const void *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// What was written to shared memory is seen by the asynchronous proxy, after a barrier by other threads' copies, too.
INLINE void async_fence(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma ----

// A tile in shared memory, swizzled over 128 bytes, that begins at a multiple of 1024. stride: bytes between groups of
// eight rows (K-major) or eight k (MN-major), 1024; leading: MN-major alone, between groups of 64 rows.
INLINE uint64_t matrix_descriptor(uint32_t address, uint32_t leading) {
  return (uint64_t)(address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
         (uint64_t)1 << 62;
}

INLINE void wgmma_fence(void) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
INLINE void wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int left> INLINE void wgmma_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

#define WGMMA_64(k, type, turns, extra)                                                                                 \
  asm volatile(                                                                                                \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"                                                       \
      "wgmma.mma_async.sync.aligned.m64n64k" k ".f32." type "." type " {"                                      \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "   \
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "                                                      \
      "}, %32, %33, adds, 1, 1" turns ";\n}"                                                                \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),        \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),               \
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),             \
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),             \
        "+f"(d[29]), "+f"(d[30]), "+f"(d[31])                                                                  \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_128(k, type, turns, extra)                                                                                \
  asm volatile(                                                                                                \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                                                       \
      "wgmma.mma_async.sync.aligned.m64n128k" k ".f32." type "." type " {"                                     \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "   \
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "   \
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "   \
      "%62, %63 "                                                                                              \
      "}, %64, %65, adds, 1, 1" turns ";\n}"                                                               \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),        \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),               \
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),             \
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),             \
        "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),             \
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),             \
        "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),             \
        "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),             \
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])              \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_256(k, type, turns, extra)                                                                                \
  asm volatile(                                                                                                \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %130, 0;\n"                                                      \
      "wgmma.mma_async.sync.aligned.m64n256k" k ".f32." type "." type " {"                                     \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "   \
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "   \
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "   \
      "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "   \
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, "       \
      "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "       \
      "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127 "                                      \
      "}, %128, %129, adds, 1, 1" turns ";\n}"                                                             \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),        \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),               \
        "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),             \
        "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),             \
        "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),             \
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),             \
        "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),             \
        "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),             \
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),             \
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]),             \
        "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),             \
        "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]),             \
        "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),             \
        "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]),             \
        "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]),       \
        "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]),      \
        "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),      \
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]),      \
        "+f"(d[127])                                                                                           \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_TURNED , "n"(a_turned), "n"(b_turned)
#define WGMMA_NONE
#define WGMMA_HALF(n, type, turns) WGMMA_##n("16", type, turns, WGMMA_TURNED)

// d = A B + (adds ? d : 0) of 64 rows, 2 * regs columns and 32 bytes of k. kind: of A and B. turned: MN-major, which fp8
// has not.
template <int regs, int kind, int a_turned, int b_turned>
INLINE void wgmma(float (&d)[regs], uint64_t a, uint64_t b, int adds) {
  static_assert(kind != KIND_FP8 || (!a_turned && !b_turned), "fp8 lies along k");
  if constexpr (regs == 32 && kind == KIND_BF16) WGMMA_HALF(64, "bf16", ", %35, %36");
  else if constexpr (regs == 32 && kind == KIND_FP16) WGMMA_HALF(64, "f16", ", %35, %36");
  else if constexpr (regs == 32) WGMMA_64("32", "e4m3", "", WGMMA_NONE);
  else if constexpr (regs == 64 && kind == KIND_BF16) WGMMA_HALF(128, "bf16", ", %67, %68");
  else if constexpr (regs == 64 && kind == KIND_FP16) WGMMA_HALF(128, "f16", ", %67, %68");
  else if constexpr (regs == 64) WGMMA_128("32", "e4m3", "", WGMMA_NONE);
  else if constexpr (kind == KIND_BF16) WGMMA_HALF(256, "bf16", ", %131, %132");
  else if constexpr (kind == KIND_FP16) WGMMA_HALF(256, "f16", ", %131, %132");
  else WGMMA_256("32", "e4m3", "", WGMMA_NONE);
}
#undef WGMMA_HALF
#undef WGMMA_TURNED
#undef WGMMA_NONE
#undef WGMMA_64
#undef WGMMA_128
#undef WGMMA_256

#endif
