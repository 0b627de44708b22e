// tex and tld4 against what an H200 read, bit by bit.
#include "emu_rig.h"
COVERS(TEX, TLD4)

typedef struct Row {
  char tag[8];
  uint32_t v[6];
} Row;
static Row rows[2048];
static int row_count;
static uint32_t image_a[16], image_b[64];

static void read_rows(void) {
  if (row_count) return;
  FILE *f = fopen("tests/data/h200-texture.csv", "r");
  char line[256];
  if (!CHECK(f)) return;
  while (fgets(line, sizeof line, f) && row_count < 2048) {
    Row r = {0};
    if (line[0] == '#') continue;
    if (sscanf(line, "%7[^,],%x,%x,%x,%x,%x,%x", r.tag, &r.v[0], &r.v[1], &r.v[2], &r.v[3], &r.v[4],
               &r.v[5]) != 7)
      continue;
    if (!strcmp(r.tag, "texelA"))
      image_a[r.v[0]] = r.v[2];
    else if (!strcmp(r.tag, "texelB"))
      image_b[r.v[0]] = r.v[2];
    else
      rows[row_count++] = r;
  }
  fclose(f);
  CHECK(row_count > 800);
}

typedef struct Setup {
  const char *tag;
  char image;             // A, B, s(tep), 8 (bytes 0 to 255), 6 (256 values of 16 bits)
  uint32_t width, height; // height 0: one row
  uint8_t kind, bits, channels;
  bool linear, normalized;
  uint8_t edge;
  bool fractions, buffer;
  const char *op;
} Setup;
#define TEX1  "tex.1d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1}]"
#define TEX1U "tex.1d.v4.u32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1}]"
#define TEX2  "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]"
#define F32   SOL_EMU_FLOAT, 32
#define EDGES(prefix, linear, normalized)                                                                    \
  {prefix "c", 'A', 13, 0, F32, 1, linear, normalized, SOL_EMU_CLAMP, 0, 0, TEX1},                           \
      {prefix "w", 'A', 13, 0, F32, 1, linear, normalized, SOL_EMU_WRAP, 0, 0, TEX1},                        \
      {prefix "m", 'A', 13, 0, F32, 1, linear, normalized, SOL_EMU_MIRROR, 0, 0, TEX1}, {                    \
    prefix "b", 'A', 13, 0, F32, 1, linear, normalized, SOL_EMU_BORDER, 0, 0, TEX1                           \
  }
static const Setup setups[] = {
    {"step", 's', 16, 0, F32, 1, true, false, SOL_EMU_CLAMP, 0, 0, TEX1},
    {"lin1", 'A', 16, 0, F32, 1, true, false, SOL_EMU_CLAMP, 0, 0, TEX1},
    {"linb", 'A', 16, 0, F32, 1, true, false, SOL_EMU_BORDER, 0, 0, TEX1},
    {"lin2", 'B', 8, 8, F32, 1, true, false, SOL_EMU_CLAMP, 0, 0, TEX2},
    {"tld4", 'B', 8, 8, F32, 1, true, false, SOL_EMU_CLAMP, 0, 0,
     "tld4.r.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%x, {%f1,%f2}]"},
    EDGES("nl", true, true),
    EDGES("np", false, true),
    EDGES("up", false, false),
    {"un8", '8', 256, 0, SOL_EMU_UNSIGNED, 8, 1, false, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"sn8", '8', 256, 0, SOL_EMU_SIGNED, 8, 1, false, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"un16", '6', 256, 0, SOL_EMU_UNSIGNED, 16, 1, false, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"sn16", '6', 256, 0, SOL_EMU_SIGNED, 16, 1, false, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"h16", '6', 256, 0, SOL_EMU_FLOAT, 16, 1, false, false, SOL_EMU_CLAMP, 0, 0, TEX1},
    {"u8", '8', 256, 0, SOL_EMU_UNSIGNED, 8, 1, false, false, SOL_EMU_CLAMP, 0, 0, TEX1U},
    {"s8", '8', 256, 0, SOL_EMU_SIGNED, 8, 1, false, false, SOL_EMU_CLAMP, 0, 0, TEX1U},
    {"un8l", '8', 256, 0, SOL_EMU_UNSIGNED, 8, 1, true, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"sn16l", '6', 256, 0, SOL_EMU_SIGNED, 16, 1, true, false, SOL_EMU_CLAMP, true, 0, TEX1},
    {"h16l", '6', 120, 0, SOL_EMU_FLOAT, 16, 1, true, false, SOL_EMU_CLAMP, 0, 0, TEX1},
    {"ch2f", 'A', 4, 0, F32, 2, false, false, SOL_EMU_CLAMP, 0, 0, TEX1},
    {"ch2u", '8', 4, 0, SOL_EMU_UNSIGNED, 8, 2, false, false, SOL_EMU_CLAMP, 0, 0, TEX1U},
    {"ch4u", '8', 4, 0, SOL_EMU_UNSIGNED, 8, 4, false, false, SOL_EMU_CLAMP, 0, 0, TEX1U},
    {"brdu", '8', 4, 0, SOL_EMU_UNSIGNED, 8, 1, false, false, SOL_EMU_BORDER, 0, 0, TEX1U},
    {"buf", 'A', 16, 0, F32, 1, false, false, SOL_EMU_CLAMP, 0, true,
     "tex.1d.v4.u32.s32 {%r1,%r2,%r3,%r4}, [%x, {%r11}]"},
};

static void check_setup(const Setup *s) {
  static uint8_t image[1024];
  static float at[64][4];
  static uint32_t out[64][4];
  const Row *mine[64];
  int count = 0;
  memset(image, 0, sizeof image);
  for (uint32_t i = 0; i < 256; i++) {
    uint16_t h = (uint16_t)(i * 257 + (i & 1));
    float step = i >= 3;
    if (s->image == '8') image[i] = (uint8_t)i;
    if (s->image == '6') memcpy(image + 2 * i, &h, 2);
    if (s->image == 's') memcpy(image + 4 * i, &step, 4);
  }
  if (s->image == 'A') memcpy(image, image_a, sizeof image_a);
  if (s->image == 'B') memcpy(image, image_b, sizeof image_b);
  for (int i = 0; i < row_count && count < 64; i++)
    if (!strcmp(rows[i].tag, s->tag)) {
      at[count][0] = float_of(rows[i].v[0]), at[count][1] = float_of(rows[i].v[1]);
      mine[count++] = &rows[i];
    }
  if (!CHECK_MSG(count > 0, "no rows for %s", s->tag)) return;
  Rig r;
  SolEmuTexture t = {.image = {.width = s->width,
                               .height = s->height,
                               .kind = s->kind,
                               .bits = s->bits,
                               .channels = s->channels},
                     .sampler = {.linear = s->linear,
                                 .normalized = s->normalized,
                                 .edge = {s->edge, s->edge, s->edge},
                                 .border = {7, 8, 9, 10}},
                     .read_normalized = s->fractions,
                     .buffer = s->buffer};
  if (rig_open(&r, image, sizeof image) && rig_texture(&r, t) &&
      sample(&r, s->op, (const float(*)[4])at, count, out))
    for (int i = 0; i < count; i++)
      for (int c = 0; c < 4; c++)
        CHECK_MSG(out[i][c] == mine[i]->v[2 + c], "%s at %g, %g channel %d: %08x, not %08x", s->tag,
                  (double)at[i][0], (double)at[i][1], c, out[i][c], mine[i]->v[2 + c]);
  sol_emu_destroy(r.emu);
}

TEST(as_on_an_h200) {
  read_rows();
  for (size_t s = 0; s < sizeof setups / sizeof setups[0]; s++) check_setup(&setups[s]);
}

CHECK_MAIN
