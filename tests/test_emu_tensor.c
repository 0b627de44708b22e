// Tensor copies on the emulator, against indices computed element by element; tensor maps; what is wrong with them.
#include "emu/tensor_map.h"
#include "emu_body.h"

COVERS(CP_TENSOR, CP_TENSOR_STORE, CP_TENSOR_REDUCE, CP_TENSOR_PREFETCH, PREFETCH_TENSORMAP,
       TENSORMAP_REPLACE, TENSORMAP_COPY, CLUSTER_TRY_CANCEL, CLUSTER_QUERY_CANCEL)

enum { TENSOR = 1 << 20, SHARED = 32 << 10, BOX_AT = 1024 };

typedef struct Args {
  _Alignas(64) uint8_t map[SOL_TENSOR_MAP_BYTES];
  uint64_t out;
  int32_t at[5];
  uint32_t bytes;
  uint64_t tensor;
} Args;

typedef struct Job {
  SolTensorMap map;
  int32_t at[5];
  const char *body; // the instructions; %map, %at0 to %at4, %box, %bar, %t, %p
  uint64_t order;   // SolEmuLaunch.async_order
  uint32_t cluster; // 0: none
  unsigned checks;
  const uint8_t *raw_map; // in place of the packed one
} Job;

static uint8_t tensor[TENSOR], shared_out[2 * SHARED];
static SolEmuCounts counts_of_copy;

static const char head[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 all[];\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .align 4 .b8 at[20], .param .u32 bytes, .param .u64 tensor)\n{\n"
    ".reg .pred %p, %one; .reg .b32 %at<5>, %box, %bar, %t, %r<8>, %bytes, %rank; .reg .b64 %map, %out, %rd<4>; "
    ".reg .b16 %h<2>;\n"
    "mov.b64 %rd0, map; cvta.param.u64 %map, %rd0; ld.param.u64 %out, [out]; ld.param.u32 %bytes, [bytes];\n"
    "ld.param.b32 %at0, [at]; ld.param.b32 %at1, [at+4]; ld.param.b32 %at2, [at+8]; ld.param.b32 %at3, [at+12]; "
    "ld.param.b32 %at4, [at+16];\n"
    "mov.u32 %bar, all; add.u32 %box, %bar, 1024; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0; mov.u32 %rank, "
    "%cluster_ctarank;\n"
    "mov.u32 %r1, %t;\nFILL: shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %box; mul.lo.u32 %r3, %r1, 0x01010101; "
    "st.shared.u32 [%r2], %r3; add.u32 %r1, %r1, 64; setp.lt.u32 %p, %r1, 7680; @%p bra FILL;\n"
    "@%one mbarrier.init.shared.b64 [%bar], 1;\nfence.proxy.async;\nbarrier.cluster.arrive; barrier.cluster.wait;\n";
// The box of each block goes to out + rank * 32768.
static const char tail[] =
    "bar.sync 0;\nmul.wide.u32 %rd1, %rank, 32768; add.u64 %out, %out, %rd1; mov.u32 %r1, %t;\n"
    "SHOW: shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd1, %r2; add.u64 %rd1, %out, %rd1; add.u32 %r2, %r2, %box; ld.shared.u32 "
    "%r3, [%r2]; st.global.u32 [%rd1], %r3; add.u32 %r1, %r1, 64; setp.lt.u32 %p, %r1, 7680; @%p bra SHOW;\nret;\n}\n";

#define EXPECT        "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %bytes;\n"
#define AWAIT(parity) "W: mbarrier.try_wait.parity.shared.b64 %p, [%bar], " parity ";\n@!%p bra W;\n"
static const char *const coordinates[] = {
    "", "{%at0}", "{%at0,%at1}", "{%at0,%at1,%at2}", "{%at0,%at1,%at2,%at3}", "{%at0,%at1,%at2,%at3,%at4}"};

static Ran run_job(const Job *j) {
  Ran r = {0};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolEmuResult result = {0};
  uint64_t base = 0;
  Args args = {.bytes = (uint32_t)sol_tensor_box_bytes(&j->map)};
  static char text[8192];
  snprintf(text, sizeof text, "%s%s%s", head, j->body, tail);
  memcpy(args.at, j->at, sizeof args.at);
  r.status = sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, TENSOR, "tensor", &base, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof shared_out, "out", &args.out, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, base, tensor, TENSOR, &r.err);
  if (!r.status)
    r.status = sol_emu_load(emu, &(SolPtxSource){"tensor", text, strlen(text)}, 1, &module, &r.err);
  if (!r.status) {
    SolTensorMap map = j->map;
    map.base += base;
    args.tensor = base;
    sol_tensor_map_pack(&map, args.map);
    if (j->raw_map) memcpy(args.map, j->raw_map, sizeof args.map);
    uint32_t blocks = j->cluster ? j->cluster : 1;
    SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "k"),
                           .grid = {blocks, 1, 1},
                           .block = {64, 1, 1},
                           .cluster = {blocks, 1, 1},
                           .dynamic_shared = SHARED,
                           .params = &args,
                           .param_bytes = sizeof args,
                           .async_order = j->order,
                           .checks = j->checks,
                           .max_instructions = 4000000};
    r.status = sol_emu_launch(emu, &launch, &result, &r.err);
    r.end = result.end;
    r.findings = result.finding_count;
    if (result.finding_count) r.finding = result.findings[0];
    for (uint32_t k = 0; k < result.inst_count; k++)
      if (!strncmp(sol_emu_ptx(module)->functions[0].insts[result.insts[k].inst].code->text, "cp.", 3) &&
          result.insts[k].counts.requests)
        counts_of_copy = result.insts[k].counts;
  }
  if (!r.status) r.status = sol_emu_read(emu, shared_out, args.out, sizeof shared_out, &r.err);
  if (!r.status) r.status = sol_emu_read(emu, tensor, base, TENSOR, &r.err);
  sol_emu_result_free(&result);
  sol_emu_destroy(emu);
  return r;
}

// ---- the reference ----

static uint8_t filled(uint32_t byte) { // what the kernel filled shared memory with
  return (uint8_t)(byte / 4);
}

// The byte of the box's place in shared memory at which element e (of its own packed order) starts.
static uint32_t in_shared(const SolTensorMap *m, uint64_t e, uint32_t size) {
  static const uint32_t chunks[] = {16, 16, 16, 16, 32, 0, 64}, masks[] = {0, 1, 3, 7, 3, 0, 1}; // by swizzle
  uint32_t address = BOX_AT + (uint32_t)(e * size), chunk = chunks[m->swizzle], line = address / 128 % 8;
  return address / 128 * 128 + (address % 128 / chunk ^ (line & masks[m->swizzle])) * chunk +
         address % chunk - BOX_AT;
}

static uint64_t elements_of(const SolTensorMap *m) {
  uint64_t n = m->box[0];
  for (uint32_t k = 1; k < m->rank; k++) n *= (m->box[k] + m->steps[k] - 1) / m->steps[k];
  return n;
}

// Where element e of the box is in the tensor; -1: outside.
static int64_t in_tensor(const SolTensorMap *m, const int32_t *at, uint64_t e, uint32_t size) {
  int64_t byte = (int64_t)m->base;
  for (uint32_t k = 0; k < m->rank; k++) {
    uint64_t count = k ? (m->box[k] + m->steps[k] - 1) / m->steps[k] : m->box[0];
    int64_t index = at[k] + (int64_t)(e % count * (k ? m->steps[k] : 1));
    if (index < 0 || index >= (int64_t)m->dims[k]) return -1;
    byte += index * (int64_t)(k ? m->strides[k] : size);
    e /= count;
  }
  return byte;
}

static int wrong_after_load(const Job *j, const uint8_t *tensor_was) {
  const SolTensorMap *m = &j->map;
  uint32_t size = sol_tensor_type_bytes(m->type);
  int wrong = 0;
  for (uint64_t e = 0; e < elements_of(m); e++) {
    int64_t from = in_tensor(m, j->at, e, size);
    uint8_t zeros[8] = {0}, nan[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    nan[size - 1] = 0x7f;
    if (size > 1) nan[size - 2] = 0xf7;
    const uint8_t *want = from >= 0 ? tensor_was + from : m->nan_fill ? nan : zeros;
    wrong += memcmp(shared_out + in_shared(m, e, size), want, size) != 0;
  }
  return wrong;
}

// ---- maps ----

static void fill_tensor(void) {
  uint64_t random = 3;
  for (size_t k = 0; k < TENSOR; k += 4) {
    uint32_t v = body_random(&random);
    memcpy(tensor + k, &v, 4);
  }
}

static uint32_t below(uint64_t *random, uint32_t n) {
  return (body_random(random) >> 4) % n;
}

static SolTensorMap draw_map(uint64_t *random, uint32_t rank) {
  static const uint8_t types[] = {SOL_TENSOR_U8, SOL_TENSOR_BF16, SOL_TENSOR_F32, SOL_TENSOR_F64};
  static const uint8_t swizzles[] = {
      0, 1, 2, 3, SOL_TENSOR_SWIZZLE_128B_ATOM_32B, SOL_TENSOR_SWIZZLE_128B_ATOM_64B};
  SolTensorMap m = {.rank = rank, .type = types[below(random, 4)], .swizzle = swizzles[below(random, 6)]};
  uint32_t size = sol_tensor_type_bytes(m.type), span = m.swizzle && m.swizzle < 3 ? 16u << m.swizzle : 128;
  m.nan_fill = m.type >= SOL_TENSOR_F16 && below(random, 2);
  m.base = 16 * below(random, 4);
  m.box[0] = (1 + below(random, span / 16)) * 16 / size;
  m.dims[0] = 1 + below(random, m.box[0] * 2);
  m.strides[0] = size, m.steps[0] = 1;
  uint64_t pitch = (m.dims[0] * size + 15) / 16 * 16 + 16 * below(random, 2);
  for (uint32_t k = 1; k < SOL_TENSOR_DIMS; k++) {
    bool used = k < rank;
    m.dims[k] = used ? 1 + below(random, 9) : 1;
    m.box[k] = used ? 1 + below(random, rank > 3 ? 3 : 8) : 1;
    m.steps[k] = used ? 1 + below(random, 3) : 1;
    m.strides[k] = used ? pitch : 0;
    pitch *= m.dims[k];
  }
  return m;
}

static void load_text(char *text, size_t cap, const Job *j, const char *after) {
  snprintf(
      text, cap,
      "%s@%%one cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%box], "
      "[%%map, %s], [%%bar];\n%s",
      EXPECT, j->map.rank, coordinates[j->map.rank], after);
}
#define LOAD(j, after)                                                                                       \
  char body[1024];                                                                                           \
  load_text(body, sizeof body, j, after);                                                                    \
  (j)->body = body

TEST(loads_of_any_box) {
  uint64_t random = 17;
  fill_tensor();
  for (int k = 0; k < 120; k++) {
    Job j = {.map = draw_map(&random, 1 + (uint32_t)k % 5),
             .order = (uint64_t)k % 3,
             .checks = SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_SYNC};
    for (int d = 0; d < 5; d++) j.at[d] = (int32_t)below(&random, 9) - 4;
    LOAD(&j, AWAIT("0"));
    const char *why = sol_tensor_map_problem(&j.map);
    if (!CHECK_MSG(!why, "map %d: %s", k, why)) continue;
    Ran r = run_job(&j);
    if (body_ok(&r, body)) CHECK_MSG(!wrong_after_load(&j, tensor), "box %d of rank %u", k, j.map.rank);
  }
}

// 128 elements of rows 2 to 4, from 128 on: with gaps each 16 of them begin 16 bytes further on.
TEST(elements_of_less_than_a_byte) {
  static const uint8_t types[] = {SOL_TENSOR_U4, SOL_TENSOR_U4_SPREAD, SOL_TENSOR_U6_SPREAD};
  for (int k = 0; k < 6; k++) {
    uint8_t type = types[k / 2];
    uint32_t bits = sol_tensor_type_bits(type), group = bits * 2, pitch = 256 * bits / 8 + 32;
    uint32_t apart = type == SOL_TENSOR_U4 ? group : 16;
    bool swizzled = k % 2 && type != SOL_TENSOR_U4;
    Job j = {.map = {.type = type,
                     .rank = 2,
                     .dims = {256, 6, 1, 1, 1},
                     .strides = {1, pitch},
                     .box = {128, 3, 1, 1, 1},
                     .steps = {1, 1, 1, 1, 1}},
             .at = {128, 2, 0, 0, 0}};
    if (swizzled) j.map.swizzle = SOL_TENSOR_SWIZZLE_128B;
    j.body = EXPECT
        "@%one cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%box], [%map, {%at0,%at1}], "
        "[%bar];\n" AWAIT("0");
    for (uint32_t i = 0; i < TENSOR; i++) tensor[i] = (uint8_t)(i * 37 + i / 251);
    Ran r = run_job(&j);
    if (!body_ok(&r, "narrow")) continue;
    int wrong = 0;
    for (uint32_t row = 0; row < 3; row++)
      for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *from = tensor + (row + 2) * pitch + (8 + g) * group;
        uint32_t to = row * 8 * apart + (swizzled ? g ^ row : g) * apart;
        wrong += memcmp(shared_out + to, from, group) != 0;
      }
    CHECK_MSG(!wrong, "type %d, swizzle %d: %d groups are wrong", type, j.map.swizzle, wrong);
  }
}

TEST(stores_write_what_is_inside) {
  uint64_t random = 23;
  static uint8_t want[TENSOR];
  for (int k = 0; k < 60; k++) {
    fill_tensor();
    memcpy(want, tensor, TENSOR);
    Job j = {.map = draw_map(&random, 1 + (uint32_t)k % 5), .order = (uint64_t)k % 3};
    char body[512];
    snprintf(body, sizeof body,
             "@%%one cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group [%%map, %s], [%%box];\n"
             "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n",
             j.map.rank, coordinates[j.map.rank]);
    for (int d = 0; d < 5; d++) j.at[d] = (int32_t)below(&random, 7) - 3;
    j.body = body;
    uint32_t size = sol_tensor_type_bytes(j.map.type);
    for (uint64_t e = 0; e < elements_of(&j.map); e++) {
      int64_t to = in_tensor(&j.map, j.at, e, size);
      for (uint32_t b = 0; to >= 0 && b < size; b++) want[to + b] = filled(in_shared(&j.map, e, size) + b);
    }
    Ran r = run_job(&j);
    if (body_ok(&r, body)) CHECK_MSG(!memcmp(want, tensor, TENSOR), "store %d of rank %u", k, j.map.rank);
  }
}

// ---- im2col ----

// All pixels' coordinates in the order in which copies take them, image by image; returns how many.
enum { MOST_WALKED = 4096 };
static uint32_t walk(const SolTensorMap *m, int32_t pixels[MOST_WALKED][5]) {
  uint32_t count = 0;
  int64_t end[3], first[3];
  for (uint32_t k = 0; k < 3; k++) {
    bool used = k + 2 < m->rank;
    first[k] = used ? m->lower[k] : 0, end[k] = used ? (int64_t)m->dims[k + 1] + m->upper[k] : 1;
  }
  for (int32_t n = 0; n < (int32_t)m->dims[m->rank - 1] + 2; n++) // two images beyond the last
    for (int64_t d = first[2]; d < end[2]; d += m->steps[3])
      for (int64_t h = first[1]; h<end[1]; h += m->rank> 3 ? m->steps[2] : 1)
        for (int64_t w = first[0]; w < end[0] && count < MOST_WALKED; w += m->steps[1], count++) {
          int32_t all[5] = {0, (int32_t)w, (int32_t)h, (int32_t)d, 0};
          all[m->rank - 1] = n;
          memcpy(pixels[count], all, sizeof all);
        }
  return count;
}

static SolTensorMap draw_pixels(uint64_t *random, uint32_t rank) {
  SolTensorMap m = draw_map(random, rank);
  m.im2col = true;
  for (uint32_t k = 1; k < rank; k++) m.box[k] = 1;
  m.box[1] = 1 + below(random, 40);
  for (uint32_t k = 1; k + 1 < rank; k++) {
    m.lower[k - 1] = (int16_t)((int)below(random, 4) - 2);
    m.upper[k - 1] = (int16_t)((int)below(random, 4) - 2);
    while ((int64_t)m.dims[k] + m.upper[k - 1] <= m.lower[k - 1]) m.upper[k - 1]++;
  }
  m.steps[rank - 1] = 1;
  return m;
}

static int wrong_pixels(const Job *j, int32_t pixels[MOST_WALKED][5], uint32_t first,
                        const uint32_t *offsets) {
  const SolTensorMap *m = &j->map;
  SolTensorMap one = *m; // a box of one pixel, of a tiled map
  uint32_t size = sol_tensor_type_bytes(m->type);
  int wrong = 0;
  for (uint32_t k = 1; k < SOL_TENSOR_DIMS; k++) one.box[k] = one.steps[k] = 1;
  for (uint32_t p = 0; p < m->box[1]; p++) {
    int32_t at[5];
    memcpy(at, pixels[first + p], sizeof at);
    at[0] = j->at[0];
    for (uint32_t k = 1; k + 1 < m->rank; k++) at[k] += (int32_t)offsets[k - 1];
    for (uint32_t e = 0; e < m->box[0]; e++) {
      int64_t from = in_tensor(&one, at, e, size);
      uint8_t zeros[8] = {0}, nan[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
      nan[size - 1] = 0x7f;
      if (size > 1) nan[size - 2] = 0xf7;
      const uint8_t *want = from >= 0 ? tensor + from : m->nan_fill ? nan : zeros;
      wrong += memcmp(shared_out + in_shared(m, (uint64_t)p * m->box[0] + e, size), want, size) != 0;
    }
  }
  return wrong;
}

TEST(im2col_takes_pixel_after_pixel) {
  static int32_t pixels[MOST_WALKED][5];
  static const char *const offsets_of[] = {"", "", "", "{%h0}", "{%h0,%h1}", "{%h0,%h1,3}"};
  uint64_t random = 71;
  fill_tensor();
  for (int k = 0; k < 90; k++) {
    Job j = {.map = draw_pixels(&random, 3 + (uint32_t)k % 3),
             .order = (uint64_t)k % 3,
             .checks = SOL_EMU_CHECK_RACE};
    uint32_t rank = j.map.rank, count = walk(&j.map, pixels),
             last = count > j.map.box[1] ? count - j.map.box[1] : 0, first = below(&random, last + 1),
             offsets[] = {below(&random, 4), below(&random, 3), 3};
    if (count < j.map.box[1]) continue;
    memcpy(j.at, pixels[first], sizeof j.at);
    j.at[0] = (int32_t)below(&random, 5) - 2;
    char body[1024];
    snprintf(
        body, sizeof body,
        "mov.b16 %%h0, %u; mov.b16 %%h1, %u;\n%s"
        "@%%one cp.async.bulk.tensor.%ud.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%%box], [%%map, %s], "
        "[%%bar], %s;\n@%%one cp.async.bulk.prefetch.tensor.%ud.L2.global.im2col [%%map, %s], %s;\n%s",
        offsets[0], offsets[1], EXPECT, rank, coordinates[rank], offsets_of[rank], rank, coordinates[rank],
        offsets_of[rank], AWAIT("0"));
    j.body = body;
    const char *why = sol_tensor_map_problem(&j.map);
    if (!CHECK_MSG(!why, "map %d: %s", k, why)) continue;
    Ran r = run_job(&j);
    if (body_ok(&r, body))
      CHECK_MSG(!wrong_pixels(&j, pixels, first, offsets), "case %d of rank %u", k, rank);
  }
}

TEST(im2col_stores_have_no_offsets) {
  static int32_t pixels[MOST_WALKED][5];
  static uint8_t want[TENSOR];
  uint64_t random = 73;
  for (int k = 0; k < 30; k++) {
    Job j = {.map = draw_pixels(&random, 3 + (uint32_t)k % 3), .order = (uint64_t)k % 2};
    uint32_t rank = j.map.rank, size = sol_tensor_type_bytes(j.map.type), most = 1024 / (j.map.box[0] * size);
    if (j.map.box[1] > most) j.map.box[1] = most; // `filled` holds for so many bytes
    if (walk(&j.map, pixels) < j.map.box[1]) continue;
    fill_tensor();
    memcpy(want, tensor, TENSOR);
    memcpy(j.at, pixels[0], sizeof j.at);
    SolTensorMap one = j.map;
    for (uint32_t d = 1; d < SOL_TENSOR_DIMS; d++) one.box[d] = one.steps[d] = 1;
    for (uint32_t p = 0; p < j.map.box[1]; p++)
      for (uint32_t e = 0; e < j.map.box[0]; e++) {
        int64_t to = in_tensor(&one, pixels[p], e, size);
        uint64_t element = (uint64_t)p * j.map.box[0] + e;
        for (uint32_t b = 0; to >= 0 && b < size; b++)
          want[to + b] = filled(in_shared(&j.map, element, size) + b);
      }
    char body[512];
    snprintf(
        body, sizeof body,
        "@%%one cp.async.bulk.tensor.%ud.global.shared::cta.im2col_no_offs.bulk_group [%%map, %s], [%%box];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
        rank, coordinates[rank]);
    j.body = body;
    Ran r = run_job(&j);
    if (body_ok(&r, body)) CHECK_MSG(!memcmp(want, tensor, TENSOR), "store %d of rank %u", k, rank);
  }
}

TEST(maps_of_pixels_and_of_tiles_are_told_apart) {
  uint64_t random = 79;
  Job j = {.map = draw_pixels(&random, 4)};
  LOAD(&j, AWAIT("0"));
  Ran r = run_job(&j);
  CHECK_HAS(r.finding.message, "the copy is of tiles");
  SolTensorMap m = j.map;
  m.upper[0] = (int16_t)(m.lower[0] - (int)m.dims[1]);
  CHECK_HAS(sol_tensor_map_problem(&m), "empty");
  m = j.map, m.lower[1] = 128;
  CHECK_HAS(sol_tensor_map_problem(&m), "corner");
  m = j.map, m.rank = 2;
  CHECK_HAS(sol_tensor_map_problem(&m), "3 to 5 dimensions");
  m = j.map, m.box[1] = 1025;
  CHECK_HAS(sol_tensor_map_problem(&m), "pixels of a column");
}

static SolTensorMap matrix(uint8_t type, uint32_t columns, uint32_t rows) {
  uint32_t size = sol_tensor_type_bytes(type);
  return (SolTensorMap){.rank = 2,
                        .type = type,
                        .dims = {300, 200, 1, 1, 1},
                        .strides = {size, (300 * size + 15) / 16 * 16, 0, 0, 0},
                        .box = {columns, rows, 1, 1, 1},
                        .steps = {1, 1, 1, 1, 1}};
}

TEST(reductions) {
  static const char *const fns[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (size_t k = 0; k < 8; k++) {
    Job j = {.map = matrix(SOL_TENSOR_U32, 8, 4), .at = {296, 198, 0, 0, 0}, .order = k % 2};
    char body[512];
    snprintf(
        body, sizeof body,
        "@%%one cp.reduce.async.bulk.tensor.2d.global.shared::cta.%s.bulk_group [%%map, {%%at0,%%at1}], [%%box];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
        fns[k]);
    j.body = body;
    fill_tensor();
    uint32_t was[4][8], b, got;
    for (int row = 0; row < 2; row++) memcpy(was[row], tensor + (198 + row) * 1200 + 296 * 4, 16);
    Ran r = run_job(&j);
    if (!body_ok(&r, body)) continue;
    for (uint32_t row = 0; row < 2; row++)
      for (uint32_t col = 0; col < 4; col++) {
        uint32_t a = was[row][col];
        b = (row * 8 + col) * 0x01010101;
        uint32_t want = k == 0   ? a + b
                        : k == 1 ? (a < b ? a : b)
                        : k == 2 ? (a > b ? a : b)
                        : k == 3 ? (a >= b ? 0 : a + 1)
                        : k == 4 ? (a == 0 || a > b ? b : a - 1)
                        : k == 5 ? (a & b)
                        : k == 6 ? (a | b)
                                 : (a ^ b);
        memcpy(&got, tensor + (198 + row) * 1200 + (296 + col) * 4, 4);
        CHECK_MSG(got == want, "%s: %08x %08x gives %08x", fns[k], a, b, got);
      }
  }
  Job j = {
      .map = matrix(SOL_TENSOR_U8, 16, 1),
      .body =
          "@%one cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {%at0,%at1}], [%box];\n"};
  Ran r = run_job(&j);
  CHECK(r.findings && r.finding.kind == SOL_EMU_BAD_USE);
}

TEST(multicast_reaches_each_block) {
  for (uint64_t order = 0; order < 3; order++) {
    Job j = {.map = matrix(SOL_TENSOR_F16, 64, 8), .at = {40, 7, 0, 0, 0}, .cluster = 2, .order = order};
    j.map.swizzle = SOL_TENSOR_SWIZZLE_128B;
    j.body = EXPECT
        "setp.eq.u32 %p, %rank, 0; and.pred %p, %p, %one; mov.b16 %h0, 3;\n"
        "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%box], [%map, {%at0,%at1}], [%bar], %h0;\n" AWAIT(
            "0") "barrier.cluster.arrive; barrier.cluster.wait;\n";
    fill_tensor();
    Ran r = run_job(&j);
    if (!body_ok(&r, "multicast")) continue;
    CHECK_INT(wrong_after_load(&j, tensor), 0);
    CHECK(!memcmp(shared_out, shared_out + SHARED, 64 * 8 * 2));
    CHECK_INT((int)counts_of_copy.requests, 1);
    CHECK_INT((int)counts_of_copy.bytes, 64 * 8 * 2); // read once
  }
}

// cta_group::2: clearing the rank's lowest bit in the address of its mbarrier, a block arrives at that of the even block.
TEST(copies_of_pairs_arrive_at_the_even_block) {
  static const char *const bodies[] = {
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%box], "
      "[%map, {%at0,%at1}], [%r4];\n",
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 "
      "[%box], [%map, {%at0,%at1}], [%r4], %h0;\n"};
  for (uint64_t order = 0; order < 4; order++)
    for (int multicast = 0; multicast < 2; multicast++) {
      char body[1024];
      Job j = {.map = matrix(SOL_TENSOR_F16, 64, 8), .at = {40, 7, 0, 0, 0}, .cluster = 2, .order = order};
      snprintf(body, sizeof body, "%s%s @%%p %s%s",
               "and.b32 %r4, %bar, 0xfeffffff; setp.eq.u32 %p, %rank, 0; and.pred %p, %p, %one;\n"
               "add.u32 %r5, %bytes, %bytes; @%p mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %r5;\n",
               multicast ? "setp.eq.u32 %p, %rank, 1; and.pred %p, %p, %one; mov.b16 %h0, 3;"
                         : "and.pred %p, %one, %one;",
               bodies[multicast],
               "setp.ne.u32 %p, %rank, 0; @%p bra MET;\n" AWAIT(
                   "0") "MET: barrier.cluster.arrive; barrier.cluster.wait;\n");
      j.body = body;
      fill_tensor();
      Ran r = run_job(&j);
      if (!body_ok(&r, multicast ? "multicast of pairs" : "copies of pairs")) continue;
      CHECK_INT(wrong_after_load(&j, tensor), 0);
      CHECK(!memcmp(shared_out, shared_out + SHARED, 64 * 8 * 2));
    }
}

TEST(gather_and_scatter) {
  Job j = {.map = matrix(SOL_TENSOR_F32, 16, 1), .at = {5, 70, -1, 3, 199}};
  j.body =
      "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;\n"
      "@%one cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%box], "
      "[%map, {%at0,%at1,%at2,%at3,%at4}], [%bar];\n" AWAIT("0");
  fill_tensor();
  Ran r = run_job(&j);
  if (!body_ok(&r, "gather4")) return;
  uint8_t zeros[64] = {0};
  for (int row = 0; row < 4; row++) {
    int32_t y = j.at[1 + row];
    CHECK(!memcmp(shared_out + row * 64, y < 0 ? zeros : tensor + y * 1200 + 20, 64));
  }
  j.body =
      "@%one cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
      "[%map, {%at0,%at1,%at2,%at3,%at4}], [%box];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  r = run_job(&j);
  if (!body_ok(&r, "scatter4")) return;
  for (int row = 0; row < 4; row++)
    for (uint32_t b = 0; b < 64 && j.at[1 + row] >= 0; b++)
      CHECK(tensor[j.at[1 + row] * 1200 + 20 + (int)b] == filled((uint32_t)row * 64 + b));
}

TEST(traffic_is_that_of_the_rows) { // 8 rows of 128 bytes, on whole sectors: 32 of them, one request
  Job j = {.map = matrix(SOL_TENSOR_F32, 32, 8)};
  j.map.dims[0] = 320, j.map.strides[1] = 1280;
  LOAD(&j, AWAIT("0"));
  Ran r = run_job(&j);
  body_ok(&r, "traffic");
  CHECK_INT((int)counts_of_copy.requests, 1);
  CHECK_INT((int)counts_of_copy.sectors, 32);
  CHECK_INT((int)counts_of_copy.bytes, 1024);
  CHECK_INT((int)counts_of_copy.dram_read, 1024);
  j.at[0] = 316, j.at[1] = 198; // a corner: 4 columns of 2 rows are inside
  r = run_job(&j);
  CHECK_INT((int)counts_of_copy.bytes, 32);
}

// ---- asynchrony ----

TEST(broken_twins_are_seen_under_every_seed) {
  for (uint64_t order = 1; order <= 16; order++) {
    Job j = {.map = matrix(SOL_TENSOR_F16, 64, 16), .order = order};
    fill_tensor();
    LOAD(&j, AWAIT("0"));
    Ran r = run_job(&j);
    CHECK(body_ok(&r, "waits") && !wrong_after_load(&j, tensor));
    load_text(body, sizeof body, &j, "");
    r = run_job(&j);
    CHECK_MSG(wrong_after_load(&j, tensor) && r.findings, "no wait, order %d", (int)order);
    CHECK_HAS(r.finding.message, "before anything has waited");
    load_text(body, sizeof body, &j, AWAIT("1")); // the phase before
    r = run_job(&j);
    CHECK_MSG(wrong_after_load(&j, tensor), "a wrong phase, order %d", (int)order);
    j.body =
        "@%one cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {%at0,%at1}], [%box];\n"
        "cp.async.bulk.commit_group;\nbar.sync 0; shl.b32 %r2, %t, 4; add.u32 %r2, %r2, %box; "
        "st.shared.v4.u32 [%r2], {%t,%t,%t,%t};\ncp.async.bulk.wait_group.read 0;\n"; // overwritten too soon
    r = run_job(&j);
    bool same = true;
    for (uint32_t b = 0; b < 16; b++) same = same && tensor[b] == filled(b);
    CHECK_MSG(!same, "a store whose source was overwritten, order %d", (int)order);
  }
}

TEST(too_few_bytes_expected_hang) {
  for (uint64_t order = 0; order < 3; order++) {
    Job j = {.map = matrix(SOL_TENSOR_F16, 64, 16), .order = order};
    j.body = "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 4096;\n"
             "@%one cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%box], "
             "[%map, {%at0,%at1}], [%bar];\n" AWAIT("0");
    Ran r = run_job(&j);
    CHECK(r.findings && r.finding.kind == SOL_EMU_DEADLOCK);
  }
}

// ---- tensor maps ----

TEST(packing_keeps_what_it_says) {
  uint64_t random = 5;
  for (int k = 0; k < 50; k++) {
    SolTensorMap m = draw_map(&random, 1 + (uint32_t)k % 5), back;
    uint8_t bytes[SOL_TENSOR_MAP_BYTES];
    m.base |= UINT64_C(0xfffffffff0000); // every bit of it
    sol_tensor_map_pack(&m, bytes);
    bytes[10] &= 0xdf; // as CUTLASS does for small tensors: bit 21 of the second word
    CHECK(sol_tensor_map_unpack(bytes, &back) && !sol_tensor_map_problem(&back));
    CHECK(back.base == m.base && back.rank == m.rank && back.swizzle == m.swizzle &&
          back.nan_fill == m.nan_fill);
    CHECK(!memcmp(back.dims, m.dims, sizeof m.dims) && !memcmp(back.box, m.box, sizeof m.box) &&
          !memcmp(back.steps, m.steps, sizeof m.steps) && !memcmp(back.strides, m.strides, sizeof m.strides));
  }
}

TEST(problems_are_named) {
  const SolTensorMap good = matrix(SOL_TENSOR_F16, 64, 16);
  CHECK(!sol_tensor_map_problem(&good));
#define BAD(change, why)                                                                                     \
  do {                                                                                                       \
    SolTensorMap m = good;                                                                                   \
    change;                                                                                                  \
    const char *got = sol_tensor_map_problem(&m);                                                            \
    CHECK_MSG(got &&strstr(got, why), "%s: %s", #change, got ? got : "nothing");                             \
  } while (0)
  BAD(m.type = SOL_TENSOR_TYPES, "data type");
  BAD(m.rank = 0, "rank");
  BAD(m.rank = 6, "rank");
  BAD(m.interleave = 1, "interleaved");
  BAD(m.swizzle = SOL_TENSOR_SWIZZLE_128B_ATOM_32B_FLIP_8B, "swizzle");
  BAD(m.swizzle = SOL_TENSOR_SWIZZLES, "swizzle");
  BAD(m.base = 8, "address");
  BAD(m.dims[1] = 0, "dimension");
  BAD(m.box[1] = 257, "box");
  BAD(m.box[0] = 7, "multiple of 16");
  BAD(m.steps[1] = 9, "element stride");
  BAD(m.strides[1] = 600 + 20, "stride");
  BAD(m.strides[1] = UINT64_C(1) << 40, "stride");
  BAD(m.swizzle = SOL_TENSOR_SWIZZLE_64B, "longer than its swizzle");
  BAD((m.type = SOL_TENSOR_U16, m.nan_fill = true), "NaN");
  BAD((m.type = SOL_TENSOR_U4, m.dims[0] = 33), "odd number");
  BAD((m.type = SOL_TENSOR_U4_SPREAD, m.dims[0] = 64), "multiple of 128");
  BAD((m.type = SOL_TENSOR_U6_SPREAD, m.dims[0] = m.box[0] = 128, m.swizzle = SOL_TENSOR_SWIZZLE_64B),
      "swizzle");
}

// The map is copied to shared memory, changed there and used from global memory.
static void replace_in(const uint8_t raw[SOL_TENSOR_MAP_BYTES]) {
  Job j = {.map = matrix(SOL_TENSOR_F16, 64, 16), .at = {8, 3, 0, 0, 0}};
  j.map.box[1] = 9, j.map.dims[1] = 10, j.map.strides[1] = 1600;
  j.body =
      ".reg .b32 %m; .reg .b64 %g; add.u32 %m, %bar, 128; add.u64 %g, %out, 61440; setp.lt.u32 %p, %t, 32; "
      "shl.b32 %r1, %t, 2; add.u32 %r2, %m, %r1; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd1, %map;\n"
      "@%p ld.u32 %r3, [%rd1]; @%p st.shared.u32 [%r2], %r3; bar.sync 0;\n"
      "prefetch.tensormap [%map]; ld.param.u64 %rd2, [tensor];\n"
      "@%one tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%m], %rd2;\n"
      "@%one tensormap.replace.tile.rank.shared::cta.b1024.b32 [%m], 1;\n"
      "@%one tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%m], 6;\n"
      "@%one tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%m], 0, 64;\n"
      "@%one tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%m], 1, 9;\n"
      "@%one tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%m], 0, 300;\n"
      "@%one tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%m], 1, 10;\n"
      "@%one tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%m], 0, 1;\n"
      "@%one tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%m], 1, 1;\n"
      "@%one tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%m], 0, 1600;\n"
      "bar.sync 0; @%p tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%g], [%m], 128;\n"
      "bar.sync 0; fence.proxy.tensormap::generic.acquire.gpu [%g], 128; cp.async.bulk.prefetch.tensor.2d.L2.global "
      "[%g, {%at0,%at1}];\n" EXPECT
      "@%one cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%box], [%g, "
      "{%at0,%at1}], [%bar];\n" AWAIT("0");
  j.raw_map = raw;
  fill_tensor();
  Ran r = run_job(&j);
  if (body_ok(&r, j.body)) CHECK_INT(wrong_after_load(&j, tensor), 0);
}

TEST(fields_are_replaced) {
  SolTensorMap start = matrix(SOL_TENSOR_F32, 32, 16);
  uint8_t raw[SOL_TENSOR_MAP_BYTES];
  start.rank = 3;
  sol_tensor_map_pack(&start, raw);
  replace_in(raw);
}

TEST(a_map_is_made_of_zeros) { // as Triton does for a descriptor that a kernel makes
  static const uint8_t zeros[SOL_TENSOR_MAP_BYTES];
  replace_in(zeros);
}

TEST(cluster_launch_control_grants_nothing) {
  for (uint64_t order = 0; order < 3; order++) {
    Job j = {.map = matrix(SOL_TENSOR_F16, 64, 16), .order = order, .cluster = 2};
    j.body =
        "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;\n"
        "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p, %rank, 1; and.pred %p, %p, %one;\n"
        "@%p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes."
        "multicast::cluster::all.b128 [%box+16], [%bar];\n" AWAIT(
            "0") ".reg .b128 %q; .reg .pred %got; .reg .b32 %x, %y;\n"
                 "ld.shared.b128 %q, [%box+16]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %got, %q;\n"
                 "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %q;\n"
                 "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r4,%r5,%r6,_}, %q;\n"
                 "selp.u32 %y, 7, 8, %got; add.u32 %y, %y, %x; add.u32 %y, %y, %r5; @%one st.shared.u32 [%box], %y;\n"
                 "barrier.cluster.arrive; barrier.cluster.wait;\n";
    Ran r = run_job(&j);
    if (!body_ok(&r, j.body)) continue;
    for (int rank = 0; rank < 2; rank++) {
      const uint8_t *got = shared_out + rank * SHARED;
      CHECK(got[0] == 8 && !got[1] && !got[16] && !got[31] && got[32] == filled(32));
    }
  }
}

TEST(hostile_maps_end_in_findings) {
  uint64_t random = 41;
  for (int k = 0; k < 400; k++) {
    Job j = {.map = draw_map(&random, 1 + (uint32_t)k % 5), .order = (uint64_t)k % 2, .checks = 7};
    uint8_t raw[SOL_TENSOR_MAP_BYTES];
    sol_tensor_map_pack(&j.map, raw);
    for (uint32_t n = 1 + below(&random, 6); n > 0; n--)
      raw[8 + below(&random, 100)] = (uint8_t)body_random(&random);
    for (int d = 0; d < 5; d++)
      j.at[d] = (int32_t)(below(&random, 3) ? below(&random, 9) : body_random(&random));
    j.raw_map = raw;
    char body[1024];
    if (k % 3 == 0)
      snprintf(
          body, sizeof body,
          "@%%one cp.reduce.async.bulk.tensor.%ud.global.shared::cta.add.bulk_group [%%map, %s], [%%box];\n",
          j.map.rank, coordinates[j.map.rank]);
    else
      load_text(body, sizeof body, &j, AWAIT("0"));
    j.body = body;
    Ran r = run_job(&j);
    CHECK_MSG(!r.status && (r.end == SOL_EMU_DONE || r.findings), "map %d: %s", k, r.err.message);
  }
  Job j = {.map = matrix(SOL_TENSOR_F16, 64, 16)};
  uint8_t zeros[SOL_TENSOR_MAP_BYTES] = {0};
  j.raw_map = zeros;
  LOAD(&j, AWAIT("0"));
  Ran r = run_job(&j);
  CHECK(r.findings && r.finding.kind == SOL_EMU_BAD_USE);
  CHECK_HAS(r.finding.message, "cuTensorMapEncodeTiled");
  j.raw_map = NULL;
  j.body = "@%one cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%box], [%map, "
           "{%at0,%at1,%at2}], [%bar];\n";
  r = run_job(&j);
  CHECK_HAS(r.finding.message, "number of dimensions");
  j.body =
      "add.u32 %box, %box, 64; @%one cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%box], [%map, {%at0,%at1}], [%bar];\n";
  r = run_job(&j);
  CHECK(r.findings && r.finding.kind == SOL_EMU_MISALIGNED);
}

CHECK_MAIN
