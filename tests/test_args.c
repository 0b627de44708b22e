// Kernel arguments as people type them (src/driver/args.c).
#include "check.h"
#include "driver/args.h"

static SolStatus parse(const char *text, SolKernelArg *out, SolError *err) {
  return sol_arg_parse(text, strlen(text), out, err);
}

TEST(buffers) {
  SolKernelArg a;
  CHECK_INT(parse("out:f32[8192*1024]", &a, NULL), SOL_OK);
  CHECK(a.buffer && a.type == PTX_F32 && a.count == 8192 * 1024 && a.bytes == a.count * 4);
  CHECK_STR(a.name, "out");
  CHECK_INT(a.init, SOL_INIT_VALUE);
  CHECK_INT(parse("bf16[64Ki]", &a, NULL), SOL_OK);
  CHECK(a.type == PTX_BF16 && a.bytes == 131072 && a.init == SOL_INIT_RANDOM && !a.name[0]);
  CHECK_INT(parse("ids:s64[10]=random:7", &a, NULL), SOL_OK);
  CHECK(a.init == SOL_INIT_RANDOM && a.value == 7);
  CHECK_INT(parse("x:u8[3]=@some/file", &a, NULL), SOL_OK);
  CHECK(a.init == SOL_INIT_FILE && a.rest_length == 9 && memcmp(a.rest, "some/file", 9) == 0);
  CHECK_INT(parse("f64[2]=-1.5", &a, NULL), SOL_OK);
  CHECK(a.init == SOL_INIT_VALUE && a.value == -1.5);
}

TEST(numbers) {
  SolKernelArg a;
  CHECK_INT(parse("8192", &a, NULL), SOL_OK);
  CHECK(!a.buffer && a.type == PTX_TYPE_NONE && a.is_whole && a.whole == 8192);
  CHECK_INT(parse("-3", &a, NULL), SOL_OK);
  CHECK(a.whole == -3 && a.value == -3);
  CHECK_INT(parse("f32:1.5e-3", &a, NULL), SOL_OK);
  CHECK(a.type == PTX_F32 && a.value == 1.5e-3 && !a.is_whole);
  CHECK_INT(parse("u64:18446744073709551615", &a, NULL), SOL_OK);
  CHECK((uint64_t)a.whole == UINT64_MAX);
  CHECK_INT(parse("64Ki", &a, NULL), SOL_OK);
  CHECK_INT(a.whole, 65536);
  CHECK_INT(parse("hex:00ffA1", &a, NULL), SOL_OK);
  CHECK_INT((int)a.rest_length, 6);
}

TEST(pointers) {
  SolKernelArg a;
  CHECK_INT(parse("@x", &a, NULL), SOL_OK);
  CHECK(a.pointer && !a.buffer && !a.is_whole && a.whole == 0 && a.rest_length == 1 && a.rest[0] == 'x');
  CHECK_INT(parse("@weight+64Ki", &a, NULL), SOL_OK);
  CHECK(a.pointer && a.whole == 65536 && a.rest_length == 6 && memcmp(a.rest, "weight", 6) == 0);
}

TEST(bad_text_is_refused_with_the_place) {
  static const struct {
    const char *text;
    int column;
  } bad[] = {{"", 1},          {"abc", 1},      {"f32[", 5},
             {"f32[]", 5},     {"f32[0]", 5},   {"f32[4", 6},
             {"f33[4]", 1},    {"x:f33[4]", 3}, {"f32[4*]", 7},
             {"f32[4]x", 7},   {"f32[4]=", 8},  {"f32[4]=maybe", 8},
             {"f32[1e13]", 5}, {"hex:0", 6},    {"hex:0g", 6},
             {"q:5", 1},       {"f32:", 5},     {"s32[4]=random:0", 15},
             {"--5", 2},       {"f32[-4]", 5},  {"f32[4]]", 7},
             {"f32[2.5]", 5},  {"@", 2},        {"@+4", 2},
             {"@x+", 4},       {"@x+-4", 4}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolKernelArg a;
    SolError err = {0};
    SolStatus status = parse(bad[i].text, &a, &err);
    CHECK_MSG(status && err.column == bad[i].column, "'%s': %s, column %d, expected %d", bad[i].text,
              sol_status_name(status), err.column, bad[i].column);
  }
}

TEST(filling) {
  SolKernelArg a;
  float f[64];
  CHECK_INT(parse("f32[64]", &a, NULL), SOL_OK);
  sol_arg_fill(&a, 1, f);
  double sum = 0, most = 0;
  for (int i = 0; i < 64; i++) sum += f[i], most = fmax(most, (double)fabsf(f[i]));
  CHECK(most < 1 && most > 0.5 && fabs(sum) < 25);
  float again[64];
  sol_arg_fill(&a, 1, again);
  CHECK(memcmp(f, again, sizeof f) == 0);
  sol_arg_fill(&a, 2, again);
  CHECK(memcmp(f, again, sizeof f) != 0);
  int16_t s[10];
  CHECK_INT(parse("s16[10]=iota", &a, NULL), SOL_OK);
  sol_arg_fill(&a, 1, s);
  for (int i = 0; i < 10; i++) CHECK_INT(s[i], i);
  uint32_t u[100];
  CHECK_INT(parse("u32[100]=random:5", &a, NULL), SOL_OK);
  sol_arg_fill(&a, 1, u);
  unsigned seen = 0;
  for (int i = 0; i < 100; i++) {
    CHECK(u[i] < 5);
    seen |= 1u << u[i];
  }
  CHECK_INT(seen, 31);
  uint16_t h[2];
  CHECK_INT(parse("f16[2]=1", &a, NULL), SOL_OK);
  sol_arg_fill(&a, 1, h);
  CHECK_INT(h[1], 0x3c00);
  char text[32];
  sol_arg_format(PTX_F16, h, text, sizeof text);
  CHECK_STR(text, "1");
  int8_t b = -5;
  sol_arg_format(PTX_S8, &b, text, sizeof text);
  CHECK_STR(text, "-5");
}

static const char ptx_text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p, .param .u32 n, .param .f32 f, .param .align 4 .b8 s[6])\n{ ret; }\n";

TEST(packing) {
  SolPtxModule *m = NULL;
  SolError err = {0};
  if (!CHECK_MSG(!sol_ptx_load(&(SolPtxSource){"t", ptx_text, sizeof ptx_text - 1}, 1, &m, &err), "%s",
                 err.message))
    return;
  const PtxFunction *f = sol_ptx_find_function(m, "k");
  uint8_t params[64] = {0};
  CHECK(f->param_size <= sizeof params);
  SolKernelArg a;
  CHECK_INT(parse("f32[4]", &a, NULL), SOL_OK);
  a.address = 0x123456789abcULL;
  CHECK_INT(sol_arg_pack(f, m, 0, &a, params, &err), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 1, &a, params, &err), SOL_ERR_ARGUMENT); // a buffer is no u32
  CHECK_INT(parse("@x+4", &a, NULL), SOL_OK);
  a.address = 0x123456789abcULL;
  CHECK_INT(sol_arg_pack(f, m, 0, &a, params, &err), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 1, &a, params, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(parse("7", &a, NULL), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 1, &a, params, &err), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 2, &a, params, &err), SOL_OK); // a whole number for a float
  CHECK_INT(parse("1.5", &a, NULL), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 1, &a, params, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_arg_pack(f, m, 2, &a, params, &err), SOL_OK);
  CHECK_INT(parse("hex:010203040506", &a, NULL), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 3, &a, params, &err), SOL_OK);
  CHECK_INT(sol_arg_pack(f, m, 1, &a, params, &err), SOL_ERR_ARGUMENT);
  uint64_t pointer;
  uint32_t n;
  float x;
  memcpy(&pointer, params, 8);
  memcpy(&n, params + 8, 4);
  memcpy(&x, params + 12, 4);
  CHECK(pointer == 0x123456789abcULL && n == 7 && x == 1.5f && params[16] == 1 && params[21] == 6);
  sol_ptx_free(m);
}

CHECK_MAIN
