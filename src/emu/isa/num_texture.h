// The arithmetic of cube maps and levels of mipmaps.
#ifndef SOL_EMU_NUM_TEXTURE_H
#define SOL_EMU_NUM_TEXTURE_H

#include "base/port.h"

typedef struct NumFace {
  uint32_t face; // +x, -x, +y, -y, +z, -z
  double s, t;   // on it, from 0 to 1
} NumFace;

// The face that a direction from the cube's centre meets, and where: the table of the CUDA programming guide. Where two
// axes are equally long z goes before y, and y before x, as on an H200.
static inline NumFace num_cube_face(float x, float y, float z) {
  float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  NumFace f;
  double m, s, t;
  if (az >= ax && az >= ay)
    f.face = z < 0 ? 5 : 4, m = az, s = z < 0 ? -x : x, t = -y;
  else if (ay >= ax)
    f.face = y < 0 ? 3 : 2, m = ay, s = x, t = y < 0 ? -z : z;
  else
    f.face = x < 0 ? 1 : 0, m = ax, s = x < 0 ? z : -z, t = -y;
  f.s = m > 0 ? (s / m + 1) / 2 : 0.5; // without direction: the middle of +z
  f.t = m > 0 ? (t / m + 1) / 2 : 0.5;
  return f;
}

// The texel beside a face of n by n texels, one step over one of its edges: of the face that is there.
static inline NumFace num_cube_beside(uint32_t face, int64_t i, int64_t j, uint32_t n) {
  float s = (float)(2 * i + 1) / (float)n - 1, t = (float)(2 * j + 1) / (float)n - 1;
  switch (face) {
  case 0: return num_cube_face(1, -t, -s);
  case 1: return num_cube_face(-1, -t, s);
  case 2: return num_cube_face(s, 1, t);
  case 3: return num_cube_face(s, -1, -t);
  case 4: return num_cube_face(s, -t, 1);
  default: return num_cube_face(-s, -t, -1);
  }
}

// How fast a place on a face moves as its direction does.
static inline void num_cube_slope(const float at[3], const float by[3], double out[2]) {
  static const struct {
    uint8_t s, t, m;
    int8_t sign_s, sign_t, sign_m;
  } axes[6] = {{2, 1, 0, -1, -1, 1}, {2, 1, 0, 1, -1, -1}, {0, 2, 1, 1, 1, 1},
               {0, 2, 1, 1, -1, -1}, {0, 1, 2, 1, -1, 1},  {0, 1, 2, -1, -1, -1}};
  uint32_t face = num_cube_face(at[0], at[1], at[2]).face;
  double m = axes[face].sign_m * (double)at[axes[face].m], dm = axes[face].sign_m * (double)by[axes[face].m];
  double s = axes[face].sign_s * (double)at[axes[face].s], ds = axes[face].sign_s * (double)by[axes[face].s];
  double t = axes[face].sign_t * (double)at[axes[face].t], dt = axes[face].sign_t * (double)by[axes[face].t];
  out[0] = m > 0 ? (ds * m - s * dm) / (2 * m * m) : 0;
  out[1] = m > 0 ? (dt * m - t * dm) / (2 * m * m) : 0;
}

// The binary logarithm of a number that is not negative, to 20 bits behind the point.
static inline double num_log2(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  double log = (double)(bits >> 52) - 1023, part = 0.5;
  bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
  memcpy(&v, &bits, sizeof v);
  for (int i = 0; i < 20; i++, part /= 2) {
    v *= v;
    if (v >= 2) v /= 2, log += part;
  }
  return log;
}

typedef struct NumLevel {
  uint32_t first, part; // part: weight of the level after it, in 1/256
} NumLevel;

// A level of detail in 1/256, cut off towards zero. One that is not a number is the first.
static inline int32_t num_detail(float detail) {
  if (detail != detail) return 0;
  if (detail <= -0x1p15f) return -(1 << 23);
  return detail < 0x1p15f ? (int32_t)(detail * 256) : 1 << 23;
}

// The levels that a level of detail of `at` / 256, from 0 on, lies between; or the nearest.
static inline NumLevel num_level(int32_t at, bool linear) {
  if (!linear) return (NumLevel){(uint32_t)(at + 128) >> 8, 0};
  return (NumLevel){(uint32_t)at >> 8, (uint32_t)at & 255};
}

#endif
