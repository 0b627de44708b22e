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
