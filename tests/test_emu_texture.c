// tex in every format and geometry, references, samplers, txq, istypep, counts, and what goes wrong.
#include "emu_rig.h"
COVERS(TEX, TXQ, ISTYPEP)

#define TEX1 "tex.1d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1}]"

// ---- formats and geometries ----

static uint32_t want_element(uint8_t kind, int bits, uint32_t raw) {
  if (kind == SOL_EMU_SIGNED && bits < 32 && raw >> (bits - 1)) raw |= ~((1u << bits) - 1);
  if (kind != SOL_EMU_FLOAT || bits == 32) return raw;
  float f = (float)(raw & 0x7c00 ? ldexp(1024 + (double)(raw & 1023), (int)(raw >> 10 & 31) - 25)
                                 : ldexp((double)(raw & 1023), -24));
  uint32_t u;
  memcpy(&u, &f, 4);
  return u | (raw & 0x8000) << 16;
}

// Point reads of every texel of an image with gaps between rows and slices.
static void check_format(uint8_t kind, int bits, int channels, const char *geom, uint64_t *seed) {
  enum { W = 5, H = 4, D = 3, ROW = 128, SLICE = ROW * H + 64 };
  static uint8_t image[SLICE * D];
  static float at[W * H * D][4];
  static uint32_t out[W * H * D][4];
  bool layered = geom[0] == 'a', flat = geom[layered] == '1', deep = geom[0] == '3';
  int h = flat ? 1 : H, d = layered || deep ? D : 1, count = 0;
  for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)body_random(seed);
  if (kind == SOL_EMU_FLOAT) // no infinities or NaN
    for (size_t i = 1; i < sizeof image; i += 2) image[i] &= 0xbb;
  for (int z = 0; z < d; z++)
    for (int y = 0; y < h; y++)
      for (int x = 0; x < W; x++, count++)
        at[count][0] = (float)x + 0.25f, at[count][1] = (float)y + 0.5f, at[count][2] = (float)z + 0.75f;
  char op[160], coords[64];
  snprintf(coords, sizeof coords, "%s",
           layered ? flat ? "%r13,%f1" : "%r13,%f1,%f2,%f2"
           : flat  ? "%f1"
           : deep  ? "%f1,%f2,%f3,%f3"
                   : "%f1,%f2");
  snprintf(op, sizeof op, "tex.%s.v4.%s.f32 {%%r1,%%r2,%%r3,%%r4}, [%%x, {%s}]", geom,
           kind == SOL_EMU_FLOAT    ? "f32"
           : kind == SOL_EMU_SIGNED ? "s32"
                                    : "u32",
           coords);
  SolEmuTexture t = {.image = {.width = W,
                               .height = flat ? 0 : H,
                               .depth = deep ? D : 0,
                               .layers = layered ? D : 0,
                               .pitch = ROW,
                               .slice = SLICE,
                               .kind = kind,
                               .bits = (uint8_t)bits,
                               .channels = (uint8_t)channels}};
  Rig r;
  if (rig_open(&r, image, sizeof image) && rig_texture(&r, t) &&
      sample(&r, op, (const float(*)[4])at, count, out))
    for (int i = 0; i < count; i++)
      for (int c = 0; c < 4; c++) {
        uint32_t raw = 0;
        size_t texel = (size_t)(at[i][2]) * (d > 1 ? SLICE : 0) + (size_t)at[i][1] * (h > 1 ? ROW : 0) +
                       (size_t)at[i][0] * (size_t)(bits / 8 * channels);
        memcpy(&raw, image + texel + (size_t)(c * bits / 8), (size_t)bits / 8);
        uint32_t want = c < channels ? want_element(kind, bits, raw) : 0;
        CHECK_MSG(out[i][c] == want, "%s kind %d bits %d texel %d channel %d: %08x, not %08x", geom, kind,
                  bits, i, c, out[i][c], want);
      }
  sol_emu_destroy(r.emu);
}

TEST(formats) {
  static const char *const geoms[] = {"1d", "2d", "3d", "a1d", "a2d"};
  uint64_t seed = 1;
  for (int g = 0; g < 5; g++)
    for (uint8_t kind = 0; kind < 3; kind++)
      for (int bits = kind == SOL_EMU_FLOAT ? 16 : 8; bits <= 32; bits *= 2)
        for (int channels = 1; channels <= 4; channels *= 2)
          check_format(kind, bits, channels, geoms[g], &seed);
}

// Three dimensions, at quarters of texels: 8 bits hold the products of their weights. How others are rounded was measured
// (tests/data/h200-cubes.csv).
TEST(three_dimensions_linear) {
  float image[4][4][4], at[64][4];
  uint32_t out[64][4];
  uint64_t seed = 2;
  for (int i = 0; i < 64; i++) image[i / 16][i / 4 % 4][i % 4] = (float)(body_random(&seed) % 1000);
  for (int i = 0; i < 64; i++)
    for (int c = 0; c < 3; c++) at[i][c] = (float)(body_random(&seed) % 20) / 4 - 0.5f;
  Rig r;
  SolEmuTexture t = {
      .image = {.width = 4, .height = 4, .depth = 4, .kind = SOL_EMU_FLOAT, .bits = 32, .channels = 1},
      .sampler = {.linear = true}};
  if (rig_open(&r, image, sizeof image) && rig_texture(&r, t) &&
      sample(&r, "tex.3d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2,%f3,%f3}]", (const float(*)[4])at, 64,
             out))
    for (int i = 0; i < 64; i++) {
      double sum = 0;
      for (int corner = 0; corner < 8; corner++) {
        double w = 1;
        int index[3];
        for (int c = 0; c < 3; c++) {
          double u = (double)at[i][c] - 0.5, low = floor(u), a = u - low;
          int k = (int)low + (corner >> c & 1);
          w *= corner >> c & 1 ? a : 1 - a;
          index[c] = k < 0 ? 0 : k > 3 ? 3 : k;
        }
        sum += w * (double)image[index[2]][index[1]][index[0]];
      }
      CHECK_NEAR((double)float_of(out[i][0]), sum, 1e-6);
    }
  sol_emu_destroy(r.emu);
}

// ---- other forms ----

// tld4 of each channel, base and level, whole coordinates in two dimensions.
TEST(forms) {
  static const char *const ops[] = {"tld4.r.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]",
                                    "tld4.g.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]",
                                    "tld4.b.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]",
                                    "tld4.a.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]",
                                    "tex.base.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]",
                                    "tex.level.2d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}], %f3",
                                    "tex.2d.v4.u32.s32 {%r1,%r2,%r3,%r4}, [%x, {%r11,%r12}]"};
  static uint32_t image[6][8][4]; // texel (x, y) channel c is 100y + 10x + c
  static float at[24][4];
  uint32_t out[24][4];
  for (uint32_t i = 0; i < 6 * 8 * 4; i++)
    image[i / 32][i / 4 % 8][i % 4] = i / 32 * 100 + i / 4 % 8 * 10 + i % 4;
  for (int i = 0; i < 24; i++)
    at[i][0] = (float)(i % 6) + 1.0f,
    at[i][1] = (float)(i / 6) + 1.0f; // NOLINT(bugprone-integer-division): the row
  Rig r;
  if (!rig_open(&r, image, sizeof image)) return;
  if (!rig_texture(&r, (SolEmuTexture){.image = {.width = 8, .height = 6, .bits = 32, .channels = 4}}))
    return;
  for (uint32_t op = 0; op < 7; op++) {
    if (!sample(&r, ops[op], (const float(*)[4])at, 24, out)) break;
    for (int i = 0; i < 24; i++)
      for (uint32_t c = 0; c < 4; c++) {
        uint32_t x = (uint32_t)at[i][0], y = (uint32_t)at[i][1]; // between texels x - 1 and x, y - 1 and y
        uint32_t gather = (c == 0 || c == 1 ? y : y - 1) * 100 + (c == 1 || c == 2 ? x : x - 1) * 10 + op;
        CHECK_INT(out[i][c], op < 4 ? gather : y * 100 + x * 10 + c);
      }
  }
  sol_emu_destroy(r.emu);
}

// ---- cubes and slopes ----

enum { FACE = 4 };
typedef struct Point {
  double at[3];
} Point;

// The table of the CUDA programming guide, backwards: a place of a face, from -1 to 1, on the cube.
static Point on_cube(int face, double s, double t) {
  switch (face) {
  case 0: return (Point){{1, -t, -s}};
  case 1: return (Point){{-1, -t, s}};
  case 2: return (Point){{s, 1, t}};
  case 3: return (Point){{s, -1, -t}};
  case 4: return (Point){{s, -t, 1}};
  default: return (Point){{-s, -t, -1}};
  }
}
static double middle(int i) {
  return (2 * i + 1) / (double)FACE - 1;
}

// The texel whose middle is nearest, of all faces, to that of one beyond an edge when the edge is folded.
static float folded(float image[6][FACE][FACE], int face, int i, int j) {
  Point p = on_cube(face, middle(i), middle(j));
  double least = 1e9, beyond = 0;
  float found = -1;
  for (int c = 0; c < 3; c++)
    if (fabs(p.at[c]) > 1) beyond = fabs(p.at[c]) - 1, p.at[c] = p.at[c] < 0 ? -1 : 1;
  for (int c = 0; c < 3 && beyond > 0; c++) // the face's own axis goes back as far as the texel was beyond
    if (c == face / 2) p.at[c] *= 1 - beyond;
  for (int f = 0; f < 6; f++)
    for (int y = 0; y < FACE; y++)
      for (int x = 0; x < FACE; x++) {
        Point q = on_cube(f, middle(x), middle(y));
        double d = 0;
        for (int c = 0; c < 3; c++) d += (p.at[c] - q.at[c]) * (p.at[c] - q.at[c]);
        if (d < least) least = d, found = image[f][y][x];
      }
  return found;
}

static double seamless_at(float image[6][FACE][FACE], int face, double s, double t) {
  double u = (s + 1) / 2 * FACE - 0.5, v = (t + 1) / 2 * FACE - 0.5, a = u - floor(u), b = v - floor(v);
  double w[4] = {(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b}, sum = 0, missing = 0;
  bool there[4];
  for (int c = 0; c < 4; c++) {
    int i = (int)floor(u) + (c & 1), j = (int)floor(v) + (c >> 1);
    there[c] = (i >= 0 && i < FACE) || (j >= 0 && j < FACE);
    if (!there[c]) missing = w[c];
  }
  for (int c = 0; c < 4; c++) {
    int i = (int)floor(u) + (c & 1), j = (int)floor(v) + (c >> 1);
    if (there[c]) sum += (w[c] + missing / 3) * (double)folded(image, face, i, j);
  }
  return sum;
}

TEST(seamless_cubes) {
  static float image[6][FACE][FACE], at[6 * 64][4];
  static uint32_t out[6 * 64][4];
  uint64_t seed = 5;
  for (int i = 0; i < 6 * FACE * FACE; i++)
    image[i / 16][i / 4 % 4][i % 4] = (float)(body_random(&seed) % 1000);
  for (int i = 0; i < 6 * 64; i++) { // quarters of texels, so that 8 bits hold their weights
    Point p = on_cube(i / 64, (i % 8 * 2 + 1) / 8.0 - 1, (i / 8 % 8 * 2 + 1) / 8.0 - 1);
    for (int c = 0; c < 3; c++) at[i][c] = (float)p.at[c] * 3;
  }
  Rig r;
  SolEmuTexture t = {.image = {.width = FACE,
                               .height = FACE,
                               .layers = 6,
                               .cube = true,
                               .kind = SOL_EMU_FLOAT,
                               .bits = 32,
                               .channels = 1},
                     .sampler = {.linear = true, .normalized = true, .seamless = true}};
  if (rig_open(&r, image, sizeof image) && rig_texture(&r, t) &&
      sample(&r, "tex.cube.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2,%f3,%f3}]", (const float(*)[4])at,
             6 * 64, out))
    for (int i = 0; i < 6 * 64; i++)
      CHECK_NEAR((double)float_of(out[i][0]),
                 seamless_at(image, i / 64, (i % 8 * 2 + 1) / 8.0 - 1, (i / 8 % 8 * 2 + 1) / 8.0 - 1), 1e-3);
  sol_emu_destroy(r.emu);
}

// Every level of a mipmap holds its own number: what is read is the level of detail.
TEST(slopes_choose_the_level) {
  enum { COUNT = 40 };
  static const uint32_t sizes[] = {8, 4, 2, 1};
  static float image[64 + 16 + 4 + 1], at[COUNT][4];
  uint32_t out[COUNT][4], from = 0;
  Rig r;
  SolEmuTexture t = {.levels = 4, .sampler = {.normalized = true, .level_linear = true, .most_level = 100}};
  SolEmuImage level[4];
  uint32_t first[4];
  for (uint32_t n = 0; n < 4; n++) {
    first[n] = from;
    for (uint32_t i = 0; i < sizes[n] * sizes[n]; i++) image[from++] = (float)n;
  }
  for (int i = 0; i < COUNT; i++) {
    at[i][0] = 0.5f;
    at[i][2] = (float)pow(2, i / 8.0 - 3.5) * (i % 2 ? 1 : -1); // one derivative, and a shorter one
    at[i][3] = (float)pow(2, i / 8.0 - 4.25);
    if (i % 3 == 0) at[i][1] = at[i][2], at[i][2] = at[i][3], at[i][3] = at[i][1], at[i][1] = 0;
  }
  if (!rig_open(&r, image, sizeof image)) return;
  for (uint32_t n = 0; n < 4; n++)
    level[n] = (SolEmuImage){.address = r.address + 4 * first[n],
                             .width = sizes[n],
                             .height = sizes[n],
                             .kind = SOL_EMU_FLOAT,
                             .bits = 32,
                             .channels = 1};
  t.image = level[0];
  memcpy(t.smaller, level + 1, 3 * sizeof *level);
  if (rig_texture(&r, t) &&
      sample(&r, "tex.grad.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}], {%f3,%f2}, {%f2,%f4}",
             (const float(*)[4])at, COUNT, out))
    for (int i = 0; i < COUNT; i++) {
      double want = log2(8 * fmax(fabs((double)at[i][2]), fabs((double)at[i][3])));
      want = want < 0 ? 0 : want > 3 ? 3 : want;
      CHECK(fabs((double)float_of(out[i][0]) - want) < 1.01 / 256);
    }
  sol_emu_destroy(r.emu);
}

// ---- references, samplers, queries ----

TEST(texref_and_sampler) {
  float image[4] = {10, 20, 30, 40}, in[1] = {0};
  uint32_t out[32] = {0};
  uint64_t sampler, symbol, bytes;
  Rig r;
  if (!rig_open(&r, image, sizeof image)) return;
  SolEmuImage m = {.address = r.address, .width = 4, .kind = SOL_EMU_FLOAT, .bits = 32, .channels = 1};
  if (!rig_texture(&r, (SolEmuTexture){.image = m}) ||
      !CHECK(!sol_emu_sampler_create(r.emu, &(SolEmuSampler){.linear = true}, &sampler, &r.err)))
    return;
  const char *ptx =
      "mov.f32 %f1, 0f40000000;\ntex.1d.v4.f32.f32 {%f2,%f3,%f4,%f5}, [%x, {%f1}];\nld.global.u64 %rd1, "
      "[%in];\n"
      "tex.1d.v4.f32.f32 {%f6,%f7,%f8,%f9}, [%x, %rd1, {%f1}];\nst.global.v2.f32 [%all], {%f2,%f6};\n"
      "istypep.texref %p1, %x;\nistypep.samplerref %p2, %rd1;\nistypep.surfref %p3, %x;\nselp.u32 %r1, 1, 0, "
      "%p1;\nselp.u32 %r2, 1, 0, %p2;\nselp.u32 %r3, 1, 0, %p3;\n"
      "st.global.u32 [%all+8], %r1;\nst.global.u32 [%all+12], %r2;\nst.global.u32 [%all+16], %r3;\n";
  (void)in;
  Ran ran = run_body(&(Body){.ptx = ptx,
                             .in = &sampler,
                             .in_bytes = 8,
                             .out = out,
                             .out_bytes = sizeof out,
                             .x = r.handle,
                             .emu = r.emu});
  if (body_ok(&ran, ptx)) {
    CHECK_NEAR((double)float_of(out[0]), 30, 0);
    CHECK_NEAR((double)float_of(out[1]), 25, 0);
    CHECK_INT(out[2], 1);
    CHECK_INT(out[3], 1);
    CHECK_INT(out[4], 0);
  }
  // A .texref variable holds a handle.
  const char *module_text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .texref picture;\n.visible .entry "
      "k(.param .u64 o)\n{\n.reg .b64 %rd1;\n.reg .f32 %f<5>;\n"
      "ld.param.u64 %rd1, [o];\nmov.f32 %f0, 0f3fc00000;\ntex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [picture, "
      "{%f0}];\nst.global.f32 [%rd1], %f1;\nret;\n}\n";
  SolEmuModule *module;
  SolEmuResult result = {0};
  uint64_t o;
  if (CHECK_MSG(!sol_emu_load(r.emu, &(SolPtxSource){"texref", module_text, strlen(module_text)}, 1, &module,
                              &r.err),
                "%s", r.err.message) &&
      CHECK(!sol_emu_symbol(module, "picture", &symbol, &bytes, &r.err)) &&
      CHECK(!sol_emu_alloc(r.emu, 4, "o", &o, &r.err))) {
    CHECK_INT(bytes, 8);
    CHECK(!sol_emu_write(r.emu, symbol, &r.handle, 8, &r.err));
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .params = &o,
                           .param_bytes = 8};
    CHECK(!sol_emu_launch(r.emu, &launch, &result, &r.err));
    CHECK(!sol_emu_read(r.emu, out, o, 4, &r.err));
    CHECK_NEAR((double)float_of(out[0]), 20, 0);
    sol_emu_result_free(&result);
  }
  sol_emu_destroy(r.emu);
}

static uint32_t query(Rig *r, const char *attribute) {
  uint32_t out[1] = {0};
  char ptx[128];
  snprintf(ptx, sizeof ptx, "txq.%s.b32 %%r1, [%%x];\nst.global.u32 [%%all], %%r1;\n", attribute);
  Ran ran = run_body(&(Body){.ptx = ptx, .out = out, .out_bytes = 4, .x = r->handle, .emu = r->emu});
  body_ok(&ran, ptx);
  return out[0];
}
TEST(txq) {
  static uint8_t image[4096];
  Rig r;
  SolEmuTexture t = {
      .image = {.width = 7, .height = 5, .depth = 3, .kind = SOL_EMU_SIGNED, .bits = 16, .channels = 2},
      .read_normalized = true,
      .sampler = {.linear = true, .normalized = true, .edge = {SOL_EMU_WRAP, SOL_EMU_BORDER, SOL_EMU_CLAMP}}};
  if (!rig_open(&r, image, sizeof image) || !rig_texture(&r, t)) return;
  CHECK_INT(query(&r, "width"), 7);
  CHECK_INT(query(&r, "height"), 5);
  CHECK_INT(query(&r, "depth"), 3);
  CHECK_INT(query(&r, "array_size"), 0);
  CHECK_INT(query(&r, "channel_data_type"), 0x10d1); // CL_SNORM_INT16
  CHECK_INT(query(&r, "channel_order"), 0x10b2);     // CL_RG
  CHECK_INT(query(&r, "normalized_coords"), 1);
  CHECK_INT(query(&r, "filter_mode"), 1);
  CHECK_INT(query(&r, "addr_mode_0"), 0);
  CHECK_INT(query(&r, "addr_mode_1"), 4);
  CHECK_INT(query(&r, "addr_mode_2"), 3);
  CHECK_INT(query(&r, "num_mipmap_levels"), 1);
  sol_emu_destroy(r.emu);
}

// ---- counts, and what goes wrong ----

TEST(counts) {
  static float image[64];
  static float at[32][4];
  uint32_t out[32][4];
  Rig r;
  if (!rig_open(&r, image, sizeof image)) return;
  for (int pass = 0; pass < 2; pass++) {
    if (!rig_texture(&r,
                     (SolEmuTexture){.image = {.width = 64, .kind = SOL_EMU_FLOAT, .bits = 32, .channels = 1},
                                     .sampler = {.linear = pass == 1}}))
      break;
    for (int l = 0; l < 32; l++) at[l][0] = (float)l + 1;
    const char *ptx = "ld.global.f32 %f1, [%in];\n" TEX1 ";\n";
    Ran ran = run_body(&(Body){.ptx = ptx,
                               .in = at,
                               .in_bytes = sizeof at,
                               .in_stride = 16,
                               .out = out,
                               .out_bytes = sizeof out,
                               .x = r.handle,
                               .emu = r.emu});
    if (!body_ok(&ran, ptx)) break;
    CHECK_INT(ran.total.requests, 2);     // the coordinates are one
    CHECK_INT(ran.total.sectors, 16 + 5); // texels 1 to 32, 0 to 32
    CHECK_INT(ran.total.bytes, 32 * 4 + 32 * 4 * (pass + 1));
  }
  sol_emu_destroy(r.emu);
}

static void refused(Rig *r, SolEmuTexture t, const char *why) {
  uint64_t h;
  if (!t.image.address) t.image.address = r->address;
  CHECK_INT(sol_emu_texture_create(r->emu, &t, &h, &r->err), SOL_ERR_ARGUMENT);
  CHECK_HAS(r->err.message, why);
}
TEST(bad_textures) {
  static uint8_t image[1024];
  Rig r;
  if (!rig_open(&r, image, sizeof image)) return;
  refused(&r, (SolEmuTexture){.image = {.width = 4, .kind = SOL_EMU_FLOAT, .bits = 8, .channels = 1}},
          "bits");
  refused(&r, (SolEmuTexture){.image = {.width = 4, .bits = 8, .channels = 3}}, "channels");
  refused(&r, (SolEmuTexture){.image = {.width = 0, .bits = 8, .channels = 1}}, "width");
  refused(&r, (SolEmuTexture){.image = {.width = 1025, .bits = 8, .channels = 1}}, "allocation");
  refused(&r, (SolEmuTexture){.image = {.width = 16, .height = 16, .pitch = 8, .bits = 8, .channels = 1}},
          "do not fit");
  refused(&r,
          (SolEmuTexture){.image = {.width = 0xffffffff, .height = 0xffffffff, .bits = 32, .channels = 4}},
          "allocation");
  // Their bytes need more than 64 bits to count.
  refused(&r,
          (SolEmuTexture){.image = {.width = 4,
                                    .height = (1u << 24) + 1,
                                    .pitch = UINT64_C(1) << 40,
                                    .bits = 32,
                                    .channels = 4}},
          "allocation");
  refused(
      &r,
      (SolEmuTexture){
          .image = {.width = 1u << 6, .height = 1, .depth = 1u << 16, .slice = 1, .bits = 32, .channels = 4}},
      "allocation");
  refused(&r, (SolEmuTexture){.image = {.width = 4, .bits = 32, .channels = 1}, .read_normalized = true},
          "fractions");
  refused(&r, (SolEmuTexture){.image = {.width = 4, .bits = 8, .channels = 1}, .sampler = {.linear = true}},
          "filtered");
  refused(&r, (SolEmuTexture){.image = {.width = 4, .height = 4, .bits = 8, .channels = 1}, .buffer = true},
          "one dimension");
  refused(&r, (SolEmuTexture){.image = {.width = 4, .bits = 8, .channels = 1, .address = 12345}},
          "allocation");
  CHECK_INT(sol_emu_object_destroy(r.emu, 77, &r.err), SOL_ERR_NOT_FOUND);
  if (rig_texture(&r, (SolEmuTexture){.image = {.width = 4, .bits = 8, .channels = 1}})) {
    CHECK_INT(sol_emu_object_destroy(r.emu, r.handle, &r.err), SOL_OK);
    CHECK_INT(sol_emu_object_destroy(r.emu, r.handle, &r.err), SOL_ERR_NOT_FOUND);
    uint32_t out[4] = {0};
    Ran ran = run_body(&(Body){.ptx = "mov.f32 %f1, 0f00000000;\n" TEX1 ";\n",
                               .out = out,
                               .out_bytes = 16,
                               .x = r.handle,
                               .emu = r.emu,
                               .keep_going = true});
    if (CHECK(ran.findings == 1)) CHECK_INT(ran.finding.kind, SOL_EMU_BAD_USE);
  }
  sol_emu_destroy(r.emu);
}

CHECK_MAIN
