// tex, tld4, txq, istypep.
//
// As on an H200, to the last bit, for one and two dimensions: a coordinate is rounded to 1/256 of a texel,
// ties up; two dimensions' weights have 8 bits too (the product of both fractions is rounded, ties up, the
// other three follow by subtraction); the weighted sum is rounded once, ties away from zero: f32 texels to
// f32, f16 to f16, 8- and 16-bit fractions to 1/65535 (unsigned) or 1/32767. Channels that a texel lacks read
// as 0. Sums are made in double: where f32 texels differ by more than 2^16 in size the last bit may be
// another. Weights of three dimensions are made in the same way (one of 192 reads of an H200 had another). The
// level of detail of a mipmap is cut off to 1/256; what two levels give is weighted by that and rounded once
// more, where an H200 weighs all texels at once. Of tex.grad it is half the logarithm of the longer derivative's square, in
// texels, as OpenGL has it; anisotropic filters are not modelled. Cube maps are filtered within a face unless they are
// seamless: then over its edges, and at a corner of the cube, where there is no fourth texel, the three that meet share its
// weight. Counted: one request per
// row of texels that a lane's filter covers, two neighbouring texels wide;
// images lie row by row, which a CUDA array on a GPU does not.
#include "emu/core/state.h"
#include "emu/core/texture_table.h"
#include "emu/isa/num_cvt.h"
#include "emu/isa/num_texture.h"

typedef struct TexPlan {
  EmuLoc handle, sampler, coord[3], layer, level, slope[2][3], d[4];
  bool has_sampler, has_layer, has_level, has_slope, float_coord, gather, cube, base;
  uint8_t dims;
  uint8_t channel; // tld4
} TexPlan;

enum { MOST_CORNERS = 8 };
typedef struct Fetch {
  const SolEmuImage *image;
  const SolEmuTexture *texture;
  const SolEmuSampler *sampler;
  int dims;    // that the filter runs over
  int corners; // texels a lane needs
  uint32_t mask;
  int32_t index[3][2][EMU_LANES]; // of both texels of each dimension; -1: the border
  uint32_t frac[3][EMU_LANES];    // of the second one, in 1/256
  uint32_t layer[EMU_LANES];
  bool seamless;                  // indices may be one beyond the face
  uint8_t missing[EMU_LANES];     // 1 + the corner beyond two edges of it; 0: none is
  uint32_t outside[MOST_CORNERS]; // lanes whose texel is the border
  uint8_t raw[MOST_CORNERS][EMU_LANES][16];
} Fetch;

// ---- coordinates ----

static uint32_t extent(const SolEmuImage *m, int dim) {
  uint32_t n = dim == 0 ? m->width : dim == 1 ? m->height : m->depth;
  return n ? n : 1;
}

static int32_t at_edge(int64_t i, uint32_t n, uint8_t edge) {
  int64_t count = n, period = edge == SOL_EMU_MIRROR ? 2 * count : count;
  if (i >= 0 && i < count) return (int32_t)i;
  switch (edge) {
  case SOL_EMU_WRAP:
  case SOL_EMU_MIRROR:
    i %= period;
    if (i < 0) i += period;
    return (int32_t)(i < count ? i : period - 1 - i);
  case SOL_EMU_BORDER: return -1;
  default: return i < 0 ? 0 : (int32_t)(count - 1);
  }
}

// Both texels around coordinate c, or the one that it lies in.
static void place(Fetch *f, int dim, int lane, double c, bool linear) {
  uint32_t n = extent(f->image, dim);
  uint8_t edge = f->sampler->edge[dim];
  if (f->sampler->normalized)
    c *= n;
  else if (edge == SOL_EMU_WRAP || edge == SOL_EMU_MIRROR)
    edge = SOL_EMU_CLAMP;
  c = c > -0x1p40 ? c < 0x1p40 ? c : 0x1p40 : -0x1p40; // NaN too
  int64_t first;
  f->frac[dim][lane] = 0;
  if (linear) {
    int64_t fixed = (int64_t)__builtin_floor(c * 256 - 127.5);
    f->frac[dim][lane] = (uint32_t)(fixed & 255);
    first = (fixed - (fixed & 255)) / 256;
  } else {
    first = (int64_t)__builtin_floor(c);
  }
  if (f->seamless) {
    first = first < -1 ? -1 : first < n ? first : n - 1;
    f->index[dim][0][lane] = (int32_t)first;
    f->index[dim][1][lane] = (int32_t)first + 1;
    return;
  }
  f->index[dim][0][lane] = at_edge(first, n, edge);
  f->index[dim][1][lane] = at_edge(first + 1, n, edge);
}

// By whole numbers: plain memory is 0 outside.
static void place_index(Fetch *f, int dim, int lane, int32_t c) {
  uint32_t n = extent(f->image, dim);
  uint8_t edge = f->sampler->edge[dim] == SOL_EMU_BORDER ? SOL_EMU_BORDER : SOL_EMU_CLAMP;
  f->frac[dim][lane] = 0;
  f->index[dim][0][lane] = at_edge(c, n, f->texture->buffer ? SOL_EMU_BORDER : edge);
  f->index[dim][1][lane] = f->index[dim][0][lane];
}

// ---- texels ----

static bool beyond(const Fetch *f, int dim, int corner, int lane) {
  int32_t at = f->index[dim][corner >> dim & 1][lane];
  return at < 0 || (uint32_t)at >= f->image->width;
}

// Of a seamless cube. What lies beyond two edges does not exist: the nearest of the face stands for it, without weight.
static uint64_t seamless_at(const Fetch *f, int corner, int lane) {
  const SolEmuImage *m = f->image;
  uint32_t n = m->width, face = f->layer[lane] % 6;
  uint64_t slice = f->layer[lane];
  int64_t i = f->index[0][corner & 1][lane], j = f->index[1][corner >> 1 & 1][lane];
  bool over[2] = {beyond(f, 0, corner, lane), beyond(f, 1, corner, lane)};
  if (over[0] && over[1]) {
    i = at_edge(i, n, SOL_EMU_CLAMP);
    j = at_edge(j, n, SOL_EMU_CLAMP);
  } else if (over[0] || over[1]) {
    NumFace next = num_cube_beside(face, i, j, n);
    slice = slice - face + next.face;
    i = at_edge((int64_t)(next.s * n), n, SOL_EMU_CLAMP);
    j = at_edge((int64_t)(next.t * n), n, SOL_EMU_CLAMP);
  }
  return m->address + slice * m->slice + (uint64_t)j * m->pitch + (uint64_t)i * emu_texel_bytes(m);
}

static uint64_t texel_at(const Fetch *f, int corner, int lane, bool *outside) {
  if (f->seamless) return seamless_at(f, corner, lane);
  int64_t at[3] = {0, 0, 0};
  for (int dim = 0; dim < f->dims; dim++) {
    at[dim] = f->index[dim][corner >> dim & 1][lane];
    if (at[dim] < 0) *outside = true;
  }
  if (*outside) return 0;
  const SolEmuImage *m = f->image;
  uint64_t slice = m->layers ? f->layer[lane] : (uint64_t)at[2];
  return m->address + slice * m->slice + (uint64_t)at[1] * m->pitch + (uint64_t)at[0] * emu_texel_bytes(m);
}

static void fetch_corner(EmuCtx *x, const EmuInst *i, Fetch *f, int corner, bool linear) {
  uint32_t texel = emu_texel_bytes(f->image), inside = 0;
  uint64_t addr[EMU_LANES];
  EmuAccess acc;
  for (uint32_t left = f->mask; left; left &= left - 1) {
    int l = emu_first(left);
    bool outside = false;
    addr[l] = texel_at(f, corner, l, &outside);
    if (!outside) inside |= 1u << l;
  }
  f->outside[corner] = f->mask & ~inside;
  memset(f->raw[corner], 0, sizeof f->raw[corner]);
  if (!inside) return;
  uint32_t ok = emu_resolve_at(x, i, inside, addr, PTX_SPACE_GLOBAL, texel, false, &acc);
  for (uint32_t left = ok; left; left &= left - 1)
    memcpy(f->raw[corner][emu_first(left)], acc.host[emu_first(left)], texel);
  if (!ok || corner & 1) return; // its row has been counted
  bool pair = linear && f->image->width > 1;
  if (pair)
    for (uint32_t left = ok; left; left &= left - 1) { // the last texel of a row goes with the one before it
      int l = emu_first(left);
      if (f->index[0][0][l] == (int32_t)f->image->width - 1) acc.addr[l] -= texel;
    }
  emu_count(x, i, &acc, pair ? 2 * texel : texel, EMU_LOAD);
}

// ---- values ----

static int64_t integer_of(const Fetch *f, int corner, int lane, int channel) {
  const SolEmuImage *m = f->image;
  uint32_t bytes = m->bits / 8u;
  uint32_t v = 0;
  if (f->outside[corner] >> lane & 1) {
    if (!f->texture->buffer) memcpy(&v, &f->sampler->border[channel], 4);
    if (m->bits < 32) v &= (1u << m->bits) - 1;
  } else {
    memcpy(&v, f->raw[corner][lane] + (uint32_t)channel * bytes, bytes);
  }
  uint32_t sign = m->kind == SOL_EMU_SIGNED ? 1u << (m->bits - 1) : 0;
  return (int64_t)v - (v & sign ? (int64_t)sign * 2 : 0);
}

static double float_of(const Fetch *f, int corner, int lane, int channel) {
  if (f->outside[corner] >> lane & 1) return f->texture->buffer ? 0 : (double)f->sampler->border[channel];
  const uint8_t *raw = f->raw[corner][lane];
  if (f->image->bits == 16) {
    uint16_t h;
    memcpy(&h, raw + channel * 2, 2);
    return (double)num_cvt_f32_f16(h);
  }
  float v;
  memcpy(&v, raw + channel * 4, 4);
  return (double)v;
}

// The fraction that a whole number stands for, in units of 1 / full.
static int64_t full_of(const SolEmuImage *m) {
  return m->kind == SOL_EMU_SIGNED ? (INT64_C(1) << (m->bits - 1)) - 1 : (INT64_C(1) << m->bits) - 1;
}
static int64_t fraction_of(const Fetch *f, int corner, int lane, int channel) {
  int64_t full = full_of(f->image);
  if (f->outside[corner] >> lane & 1) {
    double b = (double)f->sampler->border[channel], least = f->image->kind == SOL_EMU_SIGNED ? -1 : 0;
    b = b > least ? b < 1 ? b : 1 : least;
    return (int64_t)__builtin_floor(b * (double)full + 0.5);
  }
  int64_t v = integer_of(f, corner, lane, channel);
  return v < -full ? -full : v;
}

// Weights of the corners, and what they add up to.
static int64_t weigh(const Fetch *f, int lane, int64_t w[MOST_CORNERS]) {
  int64_t a = f->frac[0][lane], b = f->frac[1][lane];
  if (f->dims == 1) {
    w[0] = 256 - a;
    w[1] = a;
    return 256;
  }
  if (f->dims == 2) {
    w[3] = (a * b + 128) >> 8;
    w[2] = b - w[3];
    w[1] = a - w[3];
    w[0] = 256 - a - b + w[3];
    if (!f->missing[lane]) return 256;
    int64_t share = w[f->missing[lane] - 1];
    for (int c = 0; c < 4; c++) w[c] = c + 1 == f->missing[lane] ? 0 : 3 * w[c] + share;
    return 3 * 256;
  }
  int64_t c = f->frac[2][lane], ab = (a * b + 128) >> 8, ac = (a * c + 128) >> 8, bc = (b * c + 128) >> 8;
  w[7] = (a * b * c + (1 << 15)) >> 16;
  w[6] = bc - w[7];
  w[5] = ac - w[7];
  w[3] = ab - w[7];
  w[4] = c - ac - w[6];
  w[2] = b - ab - w[6];
  w[1] = a - ab - w[5];
  w[0] = 256 - a - w[2] - w[4] - w[6];
  return 256;
}

// To nearest, ties away from zero.
static uint32_t round_f32(double v) {
  float r = (float)v;
  uint32_t u = num_bits_f32(r);
  if (r != r) return NUM_NAN_F32;
  double further = (double)num_f32(u + 1);
  bool short_of = v < 0 ? (double)r > v : (double)r < v;
  return short_of && further - v == v - (double)r ? u + 1 : u;
}
static uint32_t round_f16(double v) {
  uint16_t h = num_canon_f16(num_cvt_f16_f64(v, NUM_RN));
  double r = (double)num_cvt_f32_f16(h), further = (double)num_cvt_f32_f16((uint16_t)(h + 1));
  bool short_of = v < 0 ? r > v : r < v;
  return num_bits_f32(num_cvt_f32_f16((uint16_t)(short_of && further - v == v - r ? h + 1 : h)));
}

static uint32_t filtered(const Fetch *f, int lane, int channel) {
  int64_t w[MOST_CORNERS] = {0}, whole = weigh(f, lane, w);
  const SolEmuImage *m = f->image;
  if (m->kind == SOL_EMU_FLOAT) {
    double sum = 0;
    for (int c = 0; c < f->corners; c++)
      if (w[c]) sum += (double)w[c] * float_of(f, c, lane, channel);
    sum /= (double)whole;
    return m->bits == 16 ? round_f16(sum) : round_f32(sum);
  }
  int64_t sum = 0, full = full_of(m), grain = m->kind == SOL_EMU_SIGNED ? 32767 : 65535;
  for (int c = 0; c < f->corners; c++) sum += w[c] * fraction_of(f, c, lane, channel);
  int64_t mag = sum < 0 ? -sum : sum, units = (2 * mag * grain + full * whole) / (2 * full * whole);
  return num_bits_f32((float)((double)(sum < 0 ? -units : units) / (double)grain));
}

// A texel as it is: NaN keep their payload.
static uint32_t element(const Fetch *f, int corner, int lane, int channel) {
  const SolEmuImage *m = f->image;
  uint32_t raw = 0;
  memcpy(&raw, f->raw[corner][lane] + (uint32_t)channel * (m->bits / 8u), m->bits / 8u);
  bool nan = m->kind == SOL_EMU_FLOAT && m->bits == 16 && num_isnan_f16((uint16_t)raw);
  if (nan) return (raw & 0x8000) << 16 | 0x7f800000 | (raw & 0x3ff) << 13;
  if (m->kind == SOL_EMU_FLOAT && m->bits == 32 && !(f->outside[corner] >> lane & 1)) return raw;
  if (m->kind == SOL_EMU_FLOAT) return num_bits_f32((float)float_of(f, corner, lane, channel));
  if (!f->texture->read_normalized) return (uint32_t)integer_of(f, corner, lane, channel);
  return num_bits_f32((float)((double)fraction_of(f, corner, lane, channel) / (double)full_of(m)));
}

static uint32_t value(const TexPlan *plan, const Fetch *f, int lane, int out, bool linear) {
  static const uint8_t order[4] = {2, 3, 1, 0}; // tld4: from the lower left, against the clock
  if (plan->gather)
    return plan->channel < f->image->channels ? element(f, order[out], lane, plan->channel) : 0;
  if (out >= f->image->channels) return 0;
  return linear ? filtered(f, lane, out) : element(f, 0, lane, out);
}

// ---- tex, tld4 ----

static double coordinate(EmuCtx *x, EmuLoc loc, int lane) {
  return (double)EMU_IN(float, loc)[lane];
}

// Where a lane's coordinates lie.
static void place_lane(EmuCtx *x, const TexPlan *plan, Fetch *f, int l, bool linear) {
  uint32_t layer = plan->has_layer ? EMU_IN(uint32_t, plan->layer)[l] : 0;
  uint32_t each = plan->cube ? 6 : 1, layers = f->image->layers / each;
  layer = layers && layer >= layers ? layers - 1 : layer;
  f->layer[l] = layer;
  if (plan->cube) {
    const EmuLoc *c = plan->coord;
    NumFace face = num_cube_face(EMU_IN(float, c[0])[l], EMU_IN(float, c[1])[l], EMU_IN(float, c[2])[l]);
    f->layer[l] = layer * 6 + face.face;
    place(f, 0, l, face.s, linear);
    place(f, 1, l, face.t, linear);
    for (int corner = 0; corner < 4 && f->seamless; corner++)
      if (beyond(f, 0, corner, l) && beyond(f, 1, corner, l)) f->missing[l] = (uint8_t)(1 + corner);
    return;
  }
  for (int dim = 0; dim < plan->dims; dim++) {
    if (plan->float_coord)
      place(f, dim, l, coordinate(x, plan->coord[dim], l), linear);
    else
      place_index(f, dim, l, EMU_IN(int32_t, plan->coord[dim])[l]);
  }
}

// Lanes with the same texture, sampler and level.
static void fetch_group(EmuCtx *x, const EmuInst *i, const EmuObject *object, const SolEmuImage *image,
                        const SolEmuSampler *sampler, uint32_t mask, uint32_t out[4][EMU_LANES]) {
  const TexPlan *plan = (const TexPlan *)i->more;
  Fetch f = {.image = image, .texture = &object->texture, .sampler = sampler, .mask = mask};
  bool linear = plan->float_coord && (sampler->linear || plan->gather);
  // A row of one dimension is filtered against the rows beside it, where there is nothing but border.
  bool has_border = linear && plan->dims == 1 && !f.image->height && sampler->edge[1] == SOL_EMU_BORDER;
  f.dims = has_border ? 2 : plan->dims;
  f.corners = linear ? 1 << f.dims : 1;
  f.seamless = linear && plan->cube && sampler->seamless;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    place_lane(x, plan, &f, l, linear);
    if (has_border) place(&f, 1, l, 0, true);
  }
  for (int corner = 0; corner < f.corners; corner++) fetch_corner(x, i, &f, corner, linear);
  for (int c = 0; c < 4; c++)
    for (uint32_t left = mask; left; left &= left - 1)
      out[c][emu_first(left)] = value(plan, &f, emu_first(left), c, linear);
}

static NumLevel level_of(const SolEmuSampler *s, uint32_t levels, float detail) {
  int32_t last = (int32_t)(levels - 1) * 256, at = num_detail(detail) + num_detail(s->level_bias);
  int32_t least = num_detail(s->least_level), most = num_detail(s->most_level);
  at = at > least ? at : least;
  at = at < most ? at : most;
  return num_level(at > 0 ? at < last ? at : last : 0, s->level_linear);
}

// The level of detail at which neighbouring results are about a texel apart.
static float detail_of(EmuCtx *x, const TexPlan *plan, const SolEmuImage *m, const SolEmuSampler *s,
                       int lane) {
  if (!plan->has_slope) return plan->has_level ? EMU_IN(float, plan->level)[lane] : 0;
  double most = 0;
  for (int k = 0; k < 2; k++) {
    float at[3] = {0, 0, 0}, by[3] = {0, 0, 0};
    double slope[3], length = 0;
    for (int dim = 0; dim < (plan->cube ? 3 : plan->dims); dim++) {
      at[dim] = EMU_IN(float, plan->coord[dim])[lane];
      slope[dim] = by[dim] = EMU_IN(float, plan->slope[k][dim])[lane];
    }
    if (plan->cube) num_cube_slope(at, by, slope);
    for (int dim = 0; dim < plan->dims; dim++) {
      double texels = slope[dim] * (s->normalized || plan->cube ? extent(m, dim) : 1);
      length += texels * texels;
    }
    if (length > most) most = length;
  }
  return most > 0 ? (float)(num_log2(most < 0x1p100 ? most : 0x1p100) / 2) : -0x1p15f;
}

// Both levels of a mipmap that the lanes' levels of detail lie between.
static void fetch_levels(EmuCtx *x, const EmuInst *i, const EmuObject *object, const SolEmuSampler *sampler,
                         uint32_t mask, uint32_t out[4][EMU_LANES]) {
  const TexPlan *plan = (const TexPlan *)i->more;
  const SolEmuTexture *t = &object->texture;
  if (t->levels < 2) {
    fetch_group(x, i, object, &t->image, sampler, mask, out);
    return;
  }
  uint32_t next[4][EMU_LANES], at[EMU_LANES] = {0}, part[EMU_LANES] = {0}, both = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    NumLevel level = level_of(sampler, t->levels, detail_of(x, plan, &t->image, sampler, l));
    if (plan->base || plan->gather) level = (NumLevel){0};
    at[l] = level.first;
    part[l] = level.part;
    both |= (uint32_t)(level.part > 0) << l;
  }
  for (uint32_t n = 0; n < t->levels; n++) {
    const SolEmuImage *image = n ? &t->smaller[n - 1] : &t->image;
    uint32_t first = 0, second = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
      int l = emu_first(left);
      first |= (uint32_t)(at[l] == n) << l;
      second |= (uint32_t)(at[l] + 1 == n) << l;
    }
    if (first) fetch_group(x, i, object, image, sampler, first, out);
    if (second & both) fetch_group(x, i, object, image, sampler, second & both, next);
  }
  for (int c = 0; c < 4; c++)
    for (uint32_t left = both; left; left &= left - 1) {
      int l = emu_first(left);
      double a = (double)num_f32(out[c][l]), b = (double)num_f32(next[c][l]), w = part[l];
      out[c][l] = round_f32((a * (256 - w) + b * w) / 256);
    }
}

const EmuObject *emu_named_object(EmuCtx *x, const EmuInst *i, uint32_t lanes, uint64_t value,
                                  EmuObjectKind kind) {
  static const char *const names[] = {"object", "texture", "sampler", "surface"};
  const EmuObject *o = emu_object(x->launch->emu, value);
  if (o && o->kind == kind) return o;
  emu_find(x, i, lanes, SOL_EMU_BAD_USE, value, 0, "0x%llx is no %s", (unsigned long long)value, names[kind]);
  return NULL;
}

static void tex(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  const TexPlan *plan = (const TexPlan *)i->more;
  const uint64_t *handle = EMU_IN(uint64_t, plan->handle), *sampler = EMU_IN(uint64_t, plan->sampler);
  uint32_t out[4][EMU_LANES];
  memset(out, 0, sizeof out);
  for (uint32_t left = mask; left;) {
    int first = emu_first(left);
    uint32_t group = 0;
    for (uint32_t rest = left; rest; rest &= rest - 1) {
      int l = emu_first(rest);
      bool same = handle[l] == handle[first] && (!plan->has_sampler || sampler[l] == sampler[first]);
      group |= (uint32_t)same << l;
    }
    left &= ~group;
    const EmuObject *t = emu_named_object(x, i, group, handle[first], EMU_TEXTURE);
    const EmuObject *s = plan->has_sampler ? emu_named_object(x, i, group, sampler[first], EMU_SAMPLER) : t;
    if (t && s) fetch_levels(x, i, t, &s->texture.sampler, group, out);
  }
  for (int c = 0; c < 4; c++)
    for (uint32_t left = mask; left; left &= left - 1)
      EMU_OUT(uint32_t, plan->d[c])[emu_first(left)] = out[c][emu_first(left)];
}

// ---- txq, istypep ----

static void txq(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  EmuObjectKind kind = (EmuObjectKind)i->bytes;
  for (; mask; mask &= mask - 1) {
    int l = emu_first(mask);
    const EmuObject *o = emu_named_object(x, i, 1u << l, EMU_IN(uint64_t, i->a)[l], kind);
    EMU_OUT(uint32_t, i->d)[l] = o ? emu_image_attribute(o, i->fn) : 0;
  }
}

static void istypep(EmuCtx *x, const EmuInst *i, uint32_t mask) {
  uint32_t bits = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = emu_first(left);
    const EmuObject *o = emu_object(x->launch->emu, EMU_IN(uint64_t, i->a)[l]);
    if (o && (uint8_t)o->kind == i->bytes) bits |= 1u << l;
  }
  emu_set_pred(x, i->d, mask, bits);
}

// ---- lowering ----

bool lower_image_query(Lower *l, const PtxInst *in, EmuInst *out, EmuObjectKind kind) {
  out->d = lower_write(l, &in->operands[0]);
  out->a = lower_read(l, &in->operands[1].elems[0]);
  out->fn = in->code->fn;
  out->bytes = (uint8_t)kind;
  out->run = txq;
  return true;
}

static bool lower_tex(Lower *l, const PtxInst *in, EmuInst *out) {
  const PtxCode *code = in->code;
  const PtxOperand *t = &in->operands[1];
  TexPlan *plan = (TexPlan *)lower_alloc(l, sizeof *plan);
  const EmuLoc *d = lower_list(l, &in->operands[0]);
  if (!plan || !d) return false;
  for (int c = 0; c < 4; c++) plan->d[c] = d[c];
  plan->handle = lower_read(l, &t->elems[0]);
  plan->has_sampler = t->elems[1].kind != PTX_ARG_NONE;
  plan->sampler = plan->has_sampler ? lower_read(l, &t->elems[1]) : plan->handle;
  plan->has_layer = emu_geom_layered(code->geom);
  plan->dims = emu_geom_dims(code->geom);
  plan->cube = emu_geom_cube(code->geom);
  plan->base = code->op == PTX_OP_TEX && code->fn == PTX_FN_BASE;
  plan->has_level = code->op == PTX_OP_TEX && code->fn == PTX_FN_LEVEL;
  if (plan->has_level) plan->level = lower_read(l, &in->operands[2]);
  plan->has_slope = code->op == PTX_OP_TEX && code->fn == PTX_FN_GRAD;
  for (int k = 0; k < 2 && plan->has_slope; k++) {
    const EmuLoc *list = lower_list(l, &in->operands[2 + k]);
    if (!list) return false;
    for (int dim = 0; dim < (plan->cube ? 3 : plan->dims); dim++) plan->slope[k][dim] = list[dim];
  }
  plan->float_coord = code->type[1] == PTX_F32;
  plan->gather = code->op == PTX_OP_TLD4;
  plan->channel = code->fn == PTX_FN_GREEN      ? 1
                  : code->fn == PTX_FN_MATRIX_B ? 2
                  : code->fn == PTX_FN_MATRIX_A ? 3
                                                : 0;
  const PtxOperand *coords = &t->elems[2];
  if (plan->has_layer) plan->layer = lower_read(l, coords++);
  int count = plan->cube ? 3 : plan->dims;
  for (int dim = 0; dim < count; dim++) plan->coord[dim] = lower_read(l, &coords[dim]);
  out->space = PTX_SPACE_GLOBAL;
  out->kind = SOL_EMU_KIND_TEXTURE;
  out->vec = 1;
  out->more = plan;
  out->run = tex;
  return true;
}

bool lower_texture(Lower *l, const PtxInst *in, EmuInst *out) {
  switch (in->code->op) {
  case PTX_OP_TEX:
  case PTX_OP_TLD4: return lower_tex(l, in, out);
  case PTX_OP_TXQ: return lower_image_query(l, in, out, EMU_TEXTURE);
  case PTX_OP_ISTYPEP:
    out->d = lower_write(l, &in->operands[0]);
    out->a = lower_read(l, &in->operands[1]);
    out->bytes = (uint8_t)(in->code->type[0] == PTX_TEXREF       ? EMU_TEXTURE
                           : in->code->type[0] == PTX_SAMPLERREF ? EMU_SAMPLER
                                                                 : EMU_SURFACE);
    out->run = istypep;
    return true;
  default: return false;
  }
}
