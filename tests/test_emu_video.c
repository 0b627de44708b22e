// Video instructions: random instructions of every opcode with random parts, types and second operations, on random and
// special operands, against references of their own: written from the PTX manual, in 128-bit arithmetic.
#include "emu_body.h"

COVERS(vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset, vmad, vadd2, vsub2, vavrg2, vabsdiff2, vmin2,
       vmax2, vset2, vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4, vset4)

enum { THREADS = 64, AT_ONCE = 40 };
typedef __int128 Wide;

typedef struct Video { // an instruction, as it is written
  const char *op;      // without "2" or "4"
  int ways;            // 1, 2, 4
  const char *type[3], *fn, *cmp, *mode, *scale;
  bool sat, po, minus[3];
  char part[3][8]; // of d, a, b: "b3", "h10"; "": none
} Video;

static uint64_t seed = 7;
static unsigned pick(unsigned below) {
  return body_random(&seed) % below;
}
static bool is(const char *a, const char *b) {
  return !strcmp(a, b);
}

// ---- the reference ----

static Wide number(uint32_t word, int bit, int bits, bool is_signed) {
  Wide v = (Wide)(word >> bit & (bits == 32 ? UINT32_MAX : (1u << bits) - 1));
  return is_signed && v >> (bits - 1) ? v - ((Wide)1 << bits) : v;
}
static Wide clamp(Wide v, int bits, bool is_signed) {
  Wide most = is_signed ? ((Wide)1 << (bits - 1)) - 1 : ((Wide)1 << bits) - 1,
       least = is_signed ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}
static bool signed_type(const Video *v, int n) {
  return v->type[n][0] == 's';
}
static int part_bits(const char *part) {
  return !part[0] ? 32 : part[0] == 'b' ? 8 : 16;
}
static Wide selected(const Video *v, int n, uint32_t word) { // of a scalar instruction
  const char *part = v->part[n];
  return number(word, part[0] ? (part[1] - '0') * part_bits(part) : 0, part_bits(part), signed_type(v, n));
}

static Wide first_operation(const Video *v, Wide x, Wide y) {
  if (is(v->op, "vadd")) return x + y;
  if (is(v->op, "vsub")) return x - y;
  if (is(v->op, "vabsdiff")) return x > y ? x - y : y - x;
  if (is(v->op, "vmin")) return x < y ? x : y;
  if (is(v->op, "vmax")) return x > y ? x : y;
  if (is(v->op, "vavrg")) return x + y >= 0 ? (x + y + 1) / 2 : (x + y - ((x + y) % 2 ? 1 : 0)) / 2;
  if (is(v->op, "vset"))
    return is(v->cmp, "eq")   ? x == y
           : is(v->cmp, "ne") ? x != y
           : is(v->cmp, "lt") ? x < y
           : is(v->cmp, "le") ? x <= y
           : is(v->cmp, "gt") ? x > y
                              : x >= y;
  Wide by = is(v->mode, "wrap") ? y & 31 : y > 32 ? 32 : y, power = (Wide)1 << by;
  if (is(v->op, "vshl")) return x * power;
  return x >= 0 ? x / power : -((-x + power - 1) / power);
}

static Wide second_operation(const Video *v, Wide t, Wide c) {
  if (is(v->fn, "add")) return t + c;
  if (is(v->fn, "min")) return t < c ? t : c;
  return t > c ? t : c;
}

static Wide cut33(Wide t) {
  Wide r = t & (((Wide)1 << 33) - 1);
  return r >> 32 ? r - ((Wide)1 << 33) : r;
}

static uint32_t scalar(const Video *v, uint32_t a, uint32_t b, uint32_t c) {
  int bits = part_bits(v->part[0]);
  Wide t = first_operation(v, selected(v, 1, a), selected(v, 2, b));
  if (v->sat) t = clamp(t, bits, signed_type(v, 0));
  t = cut33(t);
  if (v->fn[0]) return (uint32_t)second_operation(v, t, number(c, 0, 32, signed_type(v, 0)));
  if (bits == 32) return (uint32_t)t;
  int bit = (v->part[0][1] - '0') * bits;
  uint32_t ones = ((1u << bits) - 1) << bit;
  return (c & ~ones) | ((uint32_t)t << bit & ones);
}

static uint32_t product(const Video *v, uint32_t a, uint32_t b, uint32_t c) {
  bool product_minus = v->minus[0] != v->minus[1];
  bool is_signed = signed_type(v, 1) || signed_type(v, 2) || product_minus || v->minus[2];
  Wide t = selected(v, 1, a) * selected(v, 2, b);
  if (product_minus) t = -t;
  Wide added = v->minus[2] ? number(~c, 0, 32, true) + 1 : number(c, 0, 32, is_signed);
  t += added + v->po;
  t >>= v->scale[0] ? atoi(v->scale + 3) : 0;
  uint64_t low = (uint64_t)t;
  if (v->sat) return (uint32_t)clamp(is_signed ? (Wide)(int64_t)low : (Wide)low, 32, is_signed);
  return (uint32_t)low;
}

// Which of the parts of b:a the i-th is.
static Wide simd_part(const Video *v, int n, int i, uint32_t a, uint32_t b) {
  int bits = 32 / v->ways, from = v->part[n][0] ? v->part[n][v->ways - i] - '0' : i + (n == 2 ? v->ways : 0);
  return number(from >= v->ways ? b : a, from % v->ways * bits, bits, signed_type(v, n));
}

static uint32_t simd(const Video *v, uint32_t a, uint32_t b, uint32_t c) {
  int bits = 32 / v->ways;
  uint32_t d = c, ones = (1u << bits) - 1;
  for (int i = 0; i < v->ways; i++) {
    if (v->part[0][0] && !strchr(v->part[0] + 1, '0' + i)) continue;
    Wide t = first_operation(v, simd_part(v, 1, i, a, b), simd_part(v, 2, i, a, b));
    if (v->sat) t = clamp(t, bits, signed_type(v, 0));
    d = v->fn[0] ? d + (uint32_t)t : (d & ~(ones << i * bits)) | ((uint32_t)t & ones) << i * bits;
  }
  return d;
}

// ---- random instructions ----

static void random_parts(Video *v) {
  static const char *const one[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
  for (int n = 0; n < 3; n++) {
    if (v->ways == 1) {
      strcpy(v->part[n], one[n == 0 && (v->fn[0] || is(v->op, "vmad")) ? 0 : pick(7)]);
      continue;
    }
    int at = 0, count = pick(2) ? v->ways : 0;
    if (!count) continue;
    v->part[n][at++] = v->ways == 4 ? 'b' : 'h';
    for (int i = count; i-- > 0;)
      if (n || pick(2) || (i == 0 && at == 1))
        v->part[n][at++] = (char)('0' + (n ? (int)pick(2 * (unsigned)v->ways) : i));
  }
}

static Video random_video(void) {
  static const char *const ops[] = {"vadd",  "vsub", "vabsdiff", "vmin", "vmax",
                                    "vavrg", "vset", "vshl",     "vshr", "vmad"};
  static const char *const fns[] = {"", "add", "min", "max"}, *const cmps[] = {"eq", "ne", "lt",
                                                                               "le", "gt", "ge"};
  static const char *const scales[] = {"", "shr7", "shr15"};
  Video v = {.op = ops[pick(10)], .ways = 1 << pick(3), .fn = "", .cmp = "", .mode = "", .scale = ""};
  bool shift = is(v.op, "vshl") || is(v.op, "vshr"), mad = is(v.op, "vmad"), set = is(v.op, "vset");
  if (shift || mad) v.ways = 1;
  if (is(v.op, "vavrg") && v.ways == 1) v.ways = 2;
  for (int n = 0; n < 3; n++)
    v.type[n] = (set && n == 0) || (shift && n == 2) ? "u32" : pick(2) ? "s32" : "u32";
  if (!mad) v.fn = fns[pick(v.ways == 1 ? 4 : 2)];
  v.sat = !set && pick(2) && !(v.ways > 1 && v.fn[0]);
  if (set) v.cmp = cmps[pick(6)];
  if (shift) v.mode = pick(2) ? "wrap" : "clamp";
  if (mad) v.scale = scales[pick(3)], v.po = !pick(3);
  if (mad && !v.po) {
    if (pick(2))
      v.minus[pick(2)] = true;
    else
      v.minus[2] = pick(2);
  }
  random_parts(&v);
  return v;
}

static void write_video(const Video *v, char *out, size_t cap) {
  char types[16] = "";
  snprintf(types, sizeof types, ".%s.%s.%s", v->type[0], v->type[1], v->type[2]);
#define WORD(word) (word)[0] ? "." : "", word
  snprintf(out, cap, "%s%s%s%s%s%s%s%s%s%s%s%s%s %%r5%s%s, %s%%r1%s%s, %s%%r2%s%s%s%s;", v->op,
           v->ways == 2   ? "2"
           : v->ways == 4 ? "4"
                          : "",
           is(v->op, "vset") ? types + 4 : types, v->po ? ".po" : "", v->sat ? ".sat" : "", WORD(v->scale),
           WORD(v->cmp), WORD(v->mode), WORD(v->fn), WORD(v->part[0]), v->minus[0] ? "-" : "",
           WORD(v->part[1]), v->minus[1] ? "-" : "", WORD(v->part[2]),
           v->ways > 1 || v->fn[0] || v->part[0][0] || is(v->op, "vmad") ? ", " : "",
           v->ways > 1 || v->fn[0] || v->part[0][0] || is(v->op, "vmad") ? (v->minus[2] ? "-%r3" : "%r3")
                                                                         : "");
}

static uint32_t random_word(void) {
  static const uint32_t special[] = {0,      1,          0x7f,       0x80,       0x7fff,
                                     0x8000, 0x7fffffff, 0x80000000, UINT32_MAX, 0x80808080};
  return pick(4) ? body_random(&seed) : special[pick(10)];
}

static uint32_t want_of(const Video *v, const uint32_t in[4]) {
  if (is(v->op, "vmad")) return product(v, in[0], in[1], in[2]);
  return v->ways == 1 ? scalar(v, in[0], in[1], in[2]) : simd(v, in[0], in[1], in[2]);
}

// Many at once: each stores its result after the one before. Lanes with an odd fourth word are off.
static void check_some(void) {
  static uint32_t in[THREADS][4], out[THREADS][AT_ONCE];
  Video video[AT_ONCE];
  char text[AT_ONCE * 200], line[160];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%in]; and.b32 %%r6, %%r4, 1;\n"
                               "setp.eq.u32 %%p1, %%r6, 0;\n");
  for (int t = 0; t < THREADS * 4; t++) in[t / 4][t % 4] = random_word();
  for (int i = 0; i < AT_ONCE; i++) {
    video[i] = random_video();
    write_video(&video[i], line, sizeof line);
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "mov.u32 %%r5, 99; %s%s st.global.u32 [%%out+%d], %%r5;\n", i % 2 ? "@%p1 " : "",
                           line, i * 4);
  }
  Ran r = run_body(&(Body){.ptx = text,
                           .threads = THREADS,
                           .in = in,
                           .in_bytes = sizeof in,
                           .in_stride = sizeof in[0],
                           .out = out,
                           .out_bytes = sizeof out,
                           .out_stride = sizeof out[0]});
  if (!body_ok(&r, text)) return;
  for (int i = 0; i < AT_ONCE; i++)
    for (int t = 0; t < THREADS; t++) {
      uint32_t want = i % 2 && in[t][3] & 1 ? 99 : want_of(&video[i], in[t]);
      write_video(&video[i], line, sizeof line);
      CHECK_MSG(out[t][i] == want, "%s of %x, %x, %x: %x, not %x", line, in[t][0], in[t][1], in[t][2],
                out[t][i], want);
    }
}

TEST(random_instructions) {
  for (int i = 0; i < 60; i++) check_some();
}

// By hand, from the manual's examples of ranges.
TEST(known_results) {
  uint32_t in[4] = {0x80ff7f01, 0x7f017fff, 0x11223344, 0}, out[6] = {0};
  Ran r = run_body(
      &(Body){.ptx = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];\n"
                     "vadd4.s32.s32.s32.sat %r5, %r1, %r2, %r3; st.global.u32 [%out], %r5;\n"
                     "vabsdiff4.u32.u32.u32.add %r5.b20, %r1, %r2, %r3; st.global.u32 [%out+4], %r5;\n"
                     "vadd.s32.s32.s32.sat %r5.b1, %r1.b3, %r2.b3, %r3; st.global.u32 [%out+8], %r5;\n"
                     "vset2.s32.s32.lt %r5.h1, %r1, %r2, %r3; st.global.u32 [%out+12], %r5;\n"
                     "vmad.u32.u32.u32.sat %r5, %r1, %r2, %r3; st.global.u32 [%out+16], %r5;\n"
                     "vavrg2.s32.s32.s32 %r5, %r1.h10, %r1.h01, %r3; st.global.u32 [%out+20], %r5;\n",
              .threads = 1,
              .in = in,
              .in_bytes = sizeof in,
              .out = out,
              .out_bytes = sizeof out});
  if (!body_ok(&r, "known results")) return;
  CHECK_INT(out[0], 0xff007f00);               // -128+127, -1+1, 127+127 clamped, 1-1
  CHECK_INT(out[1], 0x11223344 + 0xfe + 0xfe); // bytes 2: |255-1|, 0: |1-255|
  CHECK_INT(out[2], 0x1122ff44);               // -128 + 127
  CHECK_INT(out[3], 0x00013344);               // the upper halves compare, the lower is c's
  CHECK_INT(out[4], UINT32_MAX);
  CHECK_INT(out[5], 0x00000000); // (-32513 + 32513) / 2
}

static void refused(const char *ptx) {
  Ran r = run_body(&(Body){.ptx = ptx});
  CHECK_MSG(r.status == SOL_ERR_SYNTAX || r.status == SOL_ERR_UNSUPPORTED, "%s was taken", ptx);
}

TEST(parts_that_do_not_exist) {
  refused("vadd.u32.u32.u32 %r5, %r1.b4, %r2;");
  refused("vadd.u32.u32.u32 %r5, %r1.h10, %r2;");
  refused("vadd.u32.u32.u32 %r5.b0, %r1, %r2;");
  refused("vadd.u32.u32.u32 %r5, %r1, %r2, %r3;");
  refused("vadd2.u32.u32.u32 %r5, %r1.b3210, %r2, %r3;");
  refused("vadd2.u32.u32.u32 %r5, %r1.h4, %r2, %r3;");
  refused("vadd4.u32.u32.u32 %r5.b01, %r1, %r2, %r3;");
  refused("vadd4.u32.u32.u32.sat.add %r5, %r1, %r2, %r3;");
  refused("vmad.u32.u32.u32 %r5, -%r1, %r2, -%r3;");
  refused("add.u32 %r5, -%r1, %r2;");
  refused("add.u32 %r5, %r1.b0, %r2;");
}

CHECK_MAIN
