// suld, sust, sured, suq: every width, vector, geometry and edge against a reference that indexes bytes.
#include "emu/texture.h"
#include "emu_body.h"
COVERS(SULD, SUST, SURED, SUQ)

enum { W = 48, H = 4, D = 3, ROW = 64, SLICE = ROW * H + 32, THREADS = 64 }; // W in bytes

typedef struct At {
  int32_t x, y, z, layer;
  uint32_t data[8];
} At;
typedef struct Rig {
  SolEmu *emu;
  uint64_t address, handle;
  SolError err;
} Rig;

static bool rig_open(Rig *r, const uint8_t *bytes, const char *geom, bool float_pairs) {
  bool layered = geom[0] == 'a', flat = geom[layered] == '1', deep = geom[0] == '3';
  memset(r, 0, sizeof *r);
  if (!CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 2}, &r->emu, &r->err) &&
             !sol_emu_alloc(r->emu, SLICE * D, "image", &r->address, &r->err) &&
             !sol_emu_write(r->emu, r->address, bytes, SLICE * D, &r->err)))
    return false;
  SolEmuImage m = {.address = r->address,
                   .width = float_pairs ? W / 8 : W,
                   .height = flat ? 0 : H,
                   .depth = deep ? D : 0,
                   .layers = layered ? D : 0,
                   .pitch = ROW,
                   .slice = SLICE,
                   .kind = float_pairs ? SOL_EMU_FLOAT : SOL_EMU_UNSIGNED,
                   .bits = float_pairs ? 32 : 8,
                   .channels = float_pairs ? 2 : 1};
  return CHECK_MSG(!sol_emu_surface_create(r->emu, &m, &r->handle, &r->err), "%s", r->err.message);
}

static const char *coords(const char *geom) {
  if (!strcmp(geom, "1d")) return "{%r10}";
  if (!strcmp(geom, "2d")) return "{%r10,%r11}";
  if (!strcmp(geom, "3d")) return "{%r10,%r11,%r12,%r12}";
  return geom[1] == '1' ? "{%r13,%r10}" : "{%r13,%r10,%r11,%r11}";
}

// Where an access goes, -1: nowhere.
static int place(const char *geom, const At *a, int bytes, bool clamp) {
  bool layered = geom[0] == 'a', flat = geom[layered] == '1', deep = geom[0] == '3';
  int c[4] = {a->x, flat ? 0 : a->y, deep ? a->z : 0, layered ? a->layer : 0},
      most[4] = {W - bytes, H - 1, D - 1, D - 1};
  for (int i = 0; i < 4; i++) {
    if (c[i] >= 0 && c[i] <= most[i]) continue;
    if (!clamp) return -1;
    c[i] = c[i] < 0 ? 0 : most[i];
  }
  return (c[2] + c[3]) * SLICE + c[1] * ROW + c[0];
}

static void draw(At at[THREADS], int bytes, bool inside, uint64_t *seed) {
  for (int t = 0; t < THREADS; t++) {
    int slots = W / bytes, wild = inside ? 0 : 2;
    at[t].x = ((int)(body_random(seed) % (uint32_t)(slots + 2 * wild)) - wild) * bytes;
    at[t].y = (int)(body_random(seed) % (uint32_t)(H + 2 * wild)) - wild;
    at[t].z = (int)(body_random(seed) % (uint32_t)(D + 2 * wild)) - wild;
    at[t].layer = (int)(body_random(seed) % (uint32_t)(D + wild));
    for (int k = 0; k < 8; k++) at[t].data[k] = body_random(seed);
  }
}

static const char *reg(int bytes) {
  return bytes <= 2 ? "%h" : bytes == 4 ? "%r" : "%rd";
}
static void list(char *text, size_t cap, int bytes, int vec) {
  size_t at = 0;
  if (vec > 1) at += (size_t)snprintf(text + at, cap - at, "{");
  for (int e = 0; e < vec; e++)
    at += (size_t)snprintf(text + at, cap - at, "%s%s%d", e ? "," : "", reg(bytes), 1 + e);
  if (vec > 1) snprintf(text + at, cap - at, "}");
}

static void check_surface(const char *geom, int bytes, int vec, const char *edge, bool store,
                          uint64_t *seed) {
  static uint8_t image[SLICE * D], after[SLICE * D], out[THREADS][32];
  static At at[THREADS];
  char text[2048] = "", registers[64], vector[16] = "", *end = text + sizeof text;
  bool trap = !strcmp(edge, "trap"), clamp = !strcmp(edge, "clamp");
  for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)body_random(seed);
  draw(at, bytes * vec, trap, seed);
  memset(out, 0, sizeof out);
  list(registers, sizeof registers, bytes, vec);
  if (vec > 1) snprintf(vector, sizeof vector, ".v%d", vec);
  char *p = text + snprintf(text, sizeof text, "ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13}, [%%in];\n");
  const char *width = bytes == 1 ? "u8" : bytes == 2 ? "b16" : bytes == 4 ? "b32" : "b64";
  for (int e = 0; store && e < vec; e++)
    p += snprintf(p, (size_t)(end - p), "ld.global.%s %s%d, [%%in+%d];\n", width, reg(bytes), 1 + e,
                  16 + e * bytes);
  if (store)
    p += snprintf(p, (size_t)(end - p), "sust.b.%s%s.b%d.%s [%%x, %s], %s;\n", geom, vector, bytes * 8, edge,
                  coords(geom), registers);
  else
    p += snprintf(p, (size_t)(end - p), "suld.b.%s%s.b%d.%s %s, [%%x, %s];\n", geom, vector, bytes * 8, edge,
                  registers, coords(geom));
  for (int e = 0; !store && e < vec; e++)
    p += snprintf(p, (size_t)(end - p), "st.global.%s [%%out+%d], %s%d;\n", width, e * bytes, reg(bytes),
                  1 + e);
  Rig r;
  if (!rig_open(&r, image, geom, false)) return;
  Ran ran = run_body(&(Body){.ptx = text,
                             .threads = THREADS,
                             .in = at,
                             .in_bytes = sizeof at,
                             .in_stride = sizeof at[0],
                             .out = out,
                             .out_bytes = sizeof out,
                             .out_stride = 32,
                             .x = r.handle,
                             .emu = r.emu});
  bool ok = body_ok(&ran, text) && CHECK(!sol_emu_read(r.emu, after, r.address, sizeof after, &r.err));
  for (int t = 0; ok && t < THREADS; t++) {
    int to = place(geom, &at[t], bytes * vec, clamp);
    uint8_t want[32] = {0};
    if (to >= 0 && store) memcpy(image + to, at[t].data, (size_t)(bytes * vec)); // later lanes win
    if (to >= 0 && !store) memcpy(want, image + to, (size_t)(bytes * vec));
    if (!store)
      CHECK_MSG(!memcmp(out[t], want, (size_t)(bytes * vec)), "suld %s b%d v%d %s thread %d", geom, bytes * 8,
                vec, edge, t);
  }
  if (ok) CHECK_MSG(!memcmp(after, image, sizeof image), "%s", text);
  sol_emu_destroy(r.emu);
}

static const char *const geoms[] = {"1d", "2d", "3d", "a1d", "a2d"}, *const edges[] = {"trap", "clamp",
                                                                                       "zero"};

TEST(loads_and_stores) {
  uint64_t seed = 1;
  for (int g = 0; g < 5; g++)
    for (int e = 0; e < 3; e++)
      for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (int vec = 1; vec <= 4 && bytes * vec <= 16; vec *= 2)
          for (int store = 0; store < 2; store++) check_surface(geoms[g], bytes, vec, edges[e], store, &seed);
}

// ---- sured ----

static void check_sured(const char *op, const char *geom, const char *edge, uint64_t *seed) {
  static uint8_t image[SLICE * D], after[SLICE * D];
  static At at[THREADS];
  char text[512];
  int bytes = strstr(op, "64") ? 8 : 4;
  bool is_signed = strstr(op, ".s"), trap = !strcmp(edge, "trap");
  for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)body_random(seed);
  draw(at, bytes, trap, seed);
  snprintf(text, sizeof text,
           "ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13}, [%%in];\nld.global.b%d %s1, "
           "[%%in+16];\nsured.b.%.3s.%s%s.%s [%%x, %s], %s1;\n",
           bytes * 8, reg(bytes), op, geom, strchr(op, '.'), edge, coords(geom), reg(bytes));
  Rig r;
  if (!rig_open(&r, image, geom, false)) return;
  Ran ran = run_body(&(Body){.ptx = text,
                             .threads = THREADS,
                             .in = at,
                             .in_bytes = sizeof at,
                             .in_stride = sizeof at[0],
                             .x = r.handle,
                             .emu = r.emu});
  if (body_ok(&ran, text) && CHECK(!sol_emu_read(r.emu, after, r.address, sizeof after, &r.err))) {
    for (int t = 0; t < THREADS; t++) {
      int to = place(geom, &at[t], bytes, !strcmp(edge, "clamp")), shift = 64 - 8 * bytes;
      uint64_t old = 0, b = 0;
      if (to < 0) continue;
      memcpy(&old, image + to, (size_t)bytes), memcpy(&b, at[t].data, (size_t)bytes);
      bool less = is_signed ? (int64_t)(old << shift) < (int64_t)(b << shift) : old < b;
      if (!strncmp(op, "add", 3))
        old += b;
      else if (!strncmp(op, "min", 3))
        old = less ? old : b;
      else if (!strncmp(op, "max", 3))
        old = less ? b : old;
      else if (!strncmp(op, "and", 3))
        old &= b;
      else
        old |= b;
      memcpy(image + to, &old, (size_t)bytes);
    }
    CHECK_MSG(!memcmp(after, image, sizeof image), "%s", text);
  }
  sol_emu_destroy(r.emu);
}

TEST(reductions) {
  static const char *const ops[] = {"add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "min.u64",
                                    "min.s64", "max.u32", "max.s32", "max.u64", "max.s64", "and.b32"};
  uint64_t seed = 2;
  for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
    for (int g = 0; g < 3; g++)
      for (int e = 0; e < 3; e++) check_sured(ops[o], geoms[g], edges[e], &seed);
}

// "or" has two letters: its text is written out.
TEST(reduction_or) {
  static uint8_t image[SLICE * D];
  uint32_t got = 0;
  Rig r;
  if (!rig_open(&r, image, "1d", false)) return;
  Ran ran = run_body(&(Body){.ptx = "mov.u32 %r10, 8;\nmov.u32 %r1, 1;\nshl.b32 %r1, %r1, "
                                    "%t;\nsured.b.or.1d.b32.trap [%x, {%r10}], %r1;\n",
                             .x = r.handle,
                             .emu = r.emu});
  if (body_ok(&ran, "or") && CHECK(!sol_emu_read(r.emu, &got, r.address + 8, 4, &r.err)))
    CHECK_INT(got, 0xffffffffu);
  sol_emu_destroy(r.emu);
}

// ---- suq, findings ----

TEST(suq) {
  static uint8_t image[SLICE * D];
  uint32_t out[6] = {0};
  Rig r;
  if (!rig_open(&r, image, "2d", true)) return;
  const char *ptx = "suq.width.b32 %r1, [%x];\nsuq.height.b32 %r2, [%x];\nsuq.channel_data_type.b32 %r3, "
                    "[%x];\nsuq.channel_order.b32 %r4, [%x];\n"
                    "st.global.v4.u32 [%all], {%r1,%r2,%r3,%r4};\n";
  Ran ran = run_body(
      &(Body){.ptx = ptx, .threads = 1, .out = out, .out_bytes = sizeof out, .x = r.handle, .emu = r.emu});
  if (body_ok(&ran, ptx)) {
    CHECK_INT(out[0], W / 8);
    CHECK_INT(out[1], H);
    CHECK_INT(out[2], 0x10de); // CL_FLOAT
    CHECK_INT(out[3], 0x10b2); // CL_RG
  }
  sol_emu_destroy(r.emu);
}

static void check_finding(Rig *r, const char *ptx, SolEmuFindingKind kind) {
  Ran ran = run_body(&(Body){.ptx = ptx, .x = r->handle, .emu = r->emu, .keep_going = true});
  if (CHECK_MSG(ran.findings == 1, "%u findings, status %d: %s", ran.findings, ran.status, ptx))
    CHECK_INT(ran.finding.kind, kind);
}
TEST(findings) {
  static uint8_t image[SLICE * D];
  Rig r;
  if (!rig_open(&r, image, "2d", false)) return;
  check_finding(&r, "mov.u32 %r10, 48;\nmov.u32 %r11, 0;\nsuld.b.2d.b32.trap %r1, [%x, {%r10,%r11}];\n",
                SOL_EMU_OUT_OF_BOUNDS);
  check_finding(&r, "mov.u32 %r10, -4;\nmov.u32 %r11, 0;\nsust.b.2d.b32 [%x, {%r10,%r11}], %r1;\n",
                SOL_EMU_OUT_OF_BOUNDS);
  check_finding(&r, "mov.u32 %r10, 2;\nmov.u32 %r11, 0;\nsust.b.2d.b32.trap [%x, {%r10,%r11}], %r1;\n",
                SOL_EMU_MISALIGNED);
  check_finding(&r, "mov.u32 %r10, 0;\nmov.u64 %rd1, 99;\nsuld.b.1d.b32.trap %r1, [%rd1, {%r10}];\n",
                SOL_EMU_BAD_USE);
  sol_emu_destroy(r.emu);
}

CHECK_MAIN
