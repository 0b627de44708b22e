// What the ops_*.c files share. Include it first: it sets how they are compiled.
//
// On x86-64 the Makefile compiles the files it lists as AVX2_OPS twice: for any x86-64, and with -DOPS_AVX2 for
// machines with AVX2 and FMA. Their lower_* functions are written OPS_LOWER(int_arith); OPS_CHOOSE at the end of
// the file defines the function that picks one of the two at run time.
#ifndef SOL_EMU_OPS_H
#define SOL_EMU_OPS_H

// No handler uses errno or the floating-point flags of the host. Without them the compiler can vectorise square
// roots and selects.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" // some loops cannot be vectorised, which is no error
#endif

#ifdef OPS_AVX2
#define OPS(name) name##_avx2
#elif defined(OPS_HAS_AVX2)
#define OPS(name) name##_plain
#else
#define OPS(name) name
#endif

#include "emu/core/exec.h"

// The pragma above sets the optimisation (an attribute would replace all of it). Functions that handlers call
// must be inlined into their loops.
#undef EMU_HOT
#define EMU_HOT __attribute__((flatten))

// Defines lower_NAME, which calls the version that this machine can run. Written once per family.
#if !defined(OPS_HAS_AVX2) || defined(OPS_AVX2)
#define OPS_CHOOSE(name) struct OpsNothing // takes the semicolon
#else
#define OPS_CHOOSE(name)                                                                                     \
  bool lower_##name##_avx2(Lower *l, const PtxInst *in, EmuInst *out);                                       \
  bool lower_##name(Lower *l, const PtxInst *in, EmuInst *out) {                                             \
    bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");                             \
    return wide ? lower_##name##_avx2(l, in, out) : lower_##name##_plain(l, in, out);                        \
  }                                                                                                          \
  struct OpsNothing
#endif
// Every lower_* of a hot file: OPS_LOWER(int_arith) { ... }
#define OPS_LOWER(name)                                                                                      \
  bool OPS(lower_##name)(Lower * l, const PtxInst *in, EmuInst *out);                                        \
  bool OPS(lower_##name)(Lower * l, const PtxInst *in, EmuInst *out)

#include "emu/isa/num_float.h"
static inline int ops_round(int rnd) { // NumRound of a PTX_RND_; none is to nearest
  switch (rnd) {
  case PTX_RND_RZ:
  case PTX_RND_RZI: return NUM_RZ;
  case PTX_RND_RM:
  case PTX_RND_RMI: return NUM_RM;
  case PTX_RND_RP:
  case PTX_RND_RPI: return NUM_RP;
  default: return NUM_RN;
  }
}
#define OPS_EACH_ROUND(X) X(rn, NUM_RN) X(rz, NUM_RZ) X(rm, NUM_RM) X(rp, NUM_RP)

// Parts of families that are in files of their own.
bool OPS(ops_half)(Lower *l, const PtxInst *in, EmuInst *out);   // float_arith of f16, bf16 and pairs of them
bool OPS(ops_minmax)(Lower *l, const PtxInst *in, EmuInst *out); // min, max, abs, neg of f32, f64
bool ops_cvt_packed(Lower *l, const PtxInst *in, EmuInst *out);  // cvt with a packed result, cvt.pack

// A handler of packed words: expr works on one of the 64 elements TE, d[l] = f(a[l], b[l], c[l]); TW is the
// word.
#define OPS_PAIR(name, TE, TW, expr)                                                                         \
  EMU_HOT static void name(EmuCtx *x, const EmuInst *i, uint32_t mask) {                                     \
    const TE *a = EMU_IN(TE, i->a);                                                                          \
    const TE *b = EMU_IN(TE, i->b);                                                                          \
    const TE *c = EMU_IN(TE, i->c);                                                                          \
    (void)a, (void)b, (void)c;                                                                               \
    if (mask == EMU_ALL) {                                                                                   \
      TE *d = EMU_OUT(TE, i->d);                                                                             \
      OPS_EACH(l, 2 * EMU_LANES) d[l] = (TE)(expr);                                                          \
      return;                                                                                                \
    }                                                                                                        \
    TE r[2 * EMU_LANES];                                                                                     \
    OPS_EACH(l, 2 * EMU_LANES) r[l] = (TE)(expr);                                                            \
    ops_blend_##TW(x, i->d, mask, r);                                                                        \
  }
#if defined(__clang__)
#define OPS_EACH(l, n) _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < (n); l++)
#else
#define OPS_EACH(l, n) _Pragma("GCC ivdep") for (int l = 0; l < (n); l++)
#endif

// Writes the lanes of mask from a row of results.
#define OPS_BLEND(TW)                                                                                        \
  static inline void ops_blend_##TW(EmuCtx *x, EmuLoc loc, uint32_t mask, const void *row) {                 \
    TW *d = EMU_OUT(TW, loc), r[EMU_LANES];                                                                  \
    memcpy(r, row, sizeof r);                                                                                \
    const int32_t *on = emu_on(x, mask);                                                                     \
    EMU_EACH(l) d[l] = on[l] ? r[l] : d[l];                                                                  \
  }
OPS_BLEND(uint16_t)
OPS_BLEND(uint32_t)
OPS_BLEND(uint64_t)
#undef OPS_BLEND

// The six types of integers, as the tables of handlers are ordered.
enum OpsInt { OPS_U16, OPS_U32, OPS_U64, OPS_S16, OPS_S32, OPS_S64, OPS_INTS };
static inline int ops_int(int type) {
  switch (type) {
  case PTX_B16:
  case PTX_U16: return OPS_U16;
  case PTX_B32:
  case PTX_U32: return OPS_U32;
  case PTX_B64:
  case PTX_U64: return OPS_U64;
  case PTX_S16: return OPS_S16;
  case PTX_S32: return OPS_S32;
  case PTX_S64: return OPS_S64;
  default: return -1;
  }
}
#define OPS_EACH_INT(X)                                                                                      \
  X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t) X(s16, int16_t) X(s32, int32_t) X(s64, int64_t)
// {name_u16, ... name_s64}
#define OPS_INT_TABLE(name)                                                                                  \
  { name##_u16, name##_u32, name##_u64, name##_s16, name##_s32, name##_s64 }
// The same where the sign makes no difference.
#define OPS_WORD_TABLE(name)                                                                                 \
  { name##_u16, name##_u32, name##_u64, name##_u16, name##_u32, name##_u64 }

#endif
