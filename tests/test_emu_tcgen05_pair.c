// tcgen05 of two blocks (cta_group::2) on the emulator: products against sums in whole numbers, in the manual's layouts A and B;
// tensor copies that arrive at the even block's mbarrier; what is wrong with pairs.
#include "emu_body.h"

COVERS(TCGEN05_ALLOC, TCGEN05_DEALLOC, TCGEN05_RELINQUISH, TCGEN05_CP, TCGEN05_MMA, TCGEN05_COMMIT)

enum { BLOCKS = 2, LANES = 128, K = 16, MOST_N = 64, B_AT = 4096, IMAGE = 8192 };

typedef struct Work {
  int a[BLOCKS * LANES][K], b[MOST_N][K];
  uint8_t image[BLOCKS][IMAGE];
  float out[BLOCKS][LANES][MOST_N];
} Work;
static Work work;

typedef struct Args {
  uint64_t image, out, a, b;
  uint32_t i;
} Args;

// K-major, without swizzling: core matrices of eight rows of 16 bytes.
static void put(int block, uint32_t start, int row, int k, int v) {
  static const uint16_t halves[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000}; // -2 to 2
  uint32_t r = (uint32_t)row, byte = (uint32_t)k * 2;
  memcpy(work.image[block] + start + r % 8 * 16 + r / 8 * 256 + byte % 16 + byte / 16 * 128, &halves[v + 2],
         2);
}

static void fill(int m, int n, uint64_t seed) {
  memset(&work, 0, sizeof work);
  for (int k = 0; k < K; k++) {
    for (int r = 0; r < m; r++) {
      work.a[r][k] = (int)(body_random(&seed) >> 8) % 5 - 2;
      put(r / (m / BLOCKS), 0, r % (m / BLOCKS), k, work.a[r][k]);
    }
    for (int c = 0; c < n; c++) {
      work.b[c][k] = (int)(body_random(&seed) >> 8) % 5 - 2;
      put(c / (n / BLOCKS), B_AT, c % (n / BLOCKS), k, work.b[c][k]);
    }
  }
}

#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define ALLOC                                                                                                \
  "setp.lt.u32 %p, %t, 32; @!%p bra READY;\ntcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%slot], 64;\nREADY: "
#define COMMIT                                                                                               \
  "@%lead tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %both;\n"
#define PRODUCT "@%lead tcgen05.mma.cta_group::2.kind::f16 [%tm], %da, %db, %i, %no;\n" COMMIT

// Four warps of each block; shared memory: the block's image, an mbarrier, the address of 64 columns of tensor memory. The even
// block's first thread multiplies.
static const char kernel[] =
    ".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
    ".visible .entry k(.param .u64 image, .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 i)\n{\n"
    ".reg .pred %p, %no, %one, %lead; .reg .b16 %both; .reg .b32 %d<8>, %t, %rank, %r<8>, %tm, %i, %bar, %slot;\n"
    ".reg .b64 %da, %db, %image, %out, %rd0;\n"
    "ld.param.u64 %image, [image]; ld.param.u64 %out, [out]; ld.param.u64 %da, [a]; ld.param.u64 %db, [b];\n"
    "ld.param.u32 %i, [i]; mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.b16 %both, 3;\n"
    "mul.wide.u32 %rd0, %rank, 8192; add.u64 %image, %image, %rd0; mad.lo.u32 %r0, %rank, 128, %t;\n"
    "mul.wide.u32 %rd0, %r0, 256; add.u64 %out, %out, %rd0; setp.eq.u32 %one, %t, 0; setp.eq.u32 %lead, %r0, 0;\n"
    "setp.ne.u32 %no, %t, %t; mov.u32 %r1, %t; mov.u32 %r7, tile;\n"
    "COPY: shl.b32 %r2, %r1, 4; cvt.u64.u32 %rd0, %r2; add.u64 %rd0, %image, %rd0;\n"
    "ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd0]; add.u32 %r2, %r2, %r7; st.shared.v4.u32 [%r2], {%r3,%r4,%r5,%r6};\n"
    "add.u32 %r1, %r1, 128; setp.lt.u32 %p, %r1, 512; @%p bra COPY;\n"
    "add.u32 %bar, %r7, 8192; add.u32 %slot, %r7, 8200; @%one mbarrier.init.shared.b64 [%bar], 1;\n" ALLOC
    "fence.proxy.async; bar.sync 0; ld.shared.u32 %tm, [%slot]; tcgen05.fence::before_thread_sync;\n" MEET
    "tcgen05.fence::after_thread_sync;\n" PRODUCT
    "AGAIN: mbarrier.try_wait.parity.shared.b64 %p, [%bar], 0; @!%p bra AGAIN;\ntcgen05.fence::after_thread_sync;\n"
    "shr.u32 %r0, %t, 5; shl.b32 %r0, %r0, 21; add.u32 %r0, %r0, %tm; mov.u32 %r1, 0;\n"
    "READ: tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, [%r0];\n"
    "tcgen05.wait::ld.sync.aligned; st.global.v4.b32 [%out], {%d0,%d1,%d2,%d3}; st.global.v4.b32 [%out+16], {%d4,%d5,%d6,%d7};\n"
    "add.u64 %out, %out, 32; add.u32 %r0, %r0, 8; add.u32 %r1, %r1, 8; setp.lt.u32 %p, %r1, 64; @%p bra READ;\n"
    "bar.sync 0; setp.lt.u32 %p, %t, 32; @!%p bra DONE;\n"
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tm, 64;\nDONE: ret;\n}\n";

static char text[sizeof kernel + 2048];

// The kernel, with something else where `old` is in it.
static void write_kernel(const char *old, const char *new) {
  const char *at = strstr(kernel, old);
  if (!at || strlen(new) > 2048) abort();
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - kernel), kernel, new, at + strlen(old));
}

static Ran run_text(int m, int n, uint64_t order, uint32_t cluster) {
  Ran r = {0};
  SolEmu *emu = NULL;
  const uint64_t layout = UINT64_C(128) / 16 << 16 | UINT64_C(256) / 16 << 32 | UINT64_C(1) << 46;
  Args args = {
      .a = layout, .b = layout | B_AT / 16, .i = 1u << 4 | (uint32_t)n / 8 << 17 | (uint32_t)m / 16 << 24};
  r.status = sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.image, "image", &args.image, &r.err);
  if (!r.status) r.status = sol_emu_alloc(emu, sizeof work.out, "out", &args.out, &r.err);
  if (!r.status) r.status = sol_emu_write(emu, args.image, work.image, sizeof work.image, &r.err);
  body_launch(&r, emu, (SolPtxSource){"pair", text, strlen(text)},
              (SolEmuLaunch){.grid = {cluster, 1, 1},
                             .block = {LANES, 1, 1},
                             .cluster = {cluster, 1, 1},
                             .dynamic_shared = IMAGE + 16,
                             .params = &args,
                             .param_bytes = sizeof args,
                             .async_order = order});
  if (!r.status) r.status = sol_emu_read(emu, work.out, args.out, sizeof work.out, &r.err);
  sol_emu_destroy(emu);
  return r;
}

// Of 256 rows a block's lanes are its rows; of 128 its 64 rows are in lanes 0 to 63, and the right half of their columns in the others.
static int wrong_sums(int m, int n) {
  int wrong = 0;
  for (int row = 0; row < m; row++)
    for (int column = 0; column < n; column++) {
      int sum = 0, each = m / BLOCKS, right = m == 128 && column >= n / 2;
      for (int k = 0; k < K; k++) sum += work.a[row][k] * work.b[column][k];
      wrong += work.out[row / each][row % each + right * 64][column - right * n / 2] != (float)sum;
    }
  return wrong;
}

TEST(products_of_two_blocks) {
  for (int m = 128; m <= 256; m += 128)
    for (int n = 32; n <= 64; n += 32)
      for (uint64_t order = 0; order < 4; order++) {
        char what[64];
        snprintf(what, sizeof what, "m%dn%d, order %d", m, n, (int)order);
        fill(m, n, (uint64_t)(m + n) + order);
        write_kernel("", "");
        Ran r = run_text(m, n, order, BLOCKS);
        if (body_ok(&r, what)) CHECK_MSG(!wrong_sums(m, n), "%s: %d are wrong", what, wrong_sums(m, n));
      }
}

// The first two words leave out lanes of the even block, the next of the odd one.
TEST(lanes_of_both_blocks_are_left_out) {
  fill(256, 32, 5);
  write_kernel("%i, %no;", "%i, {%r1,%r2,%r2,%r2,%r2,%r2,%r2,%r1}, %no;");
  char *at = strstr(text, "@%lead tcgen05.mma");
  memmove(at + 34, at, strlen(at) + 1);
  memcpy(at, "mov.b32 %r1, 1; mov.b32 %r2, 0;   ",
         34); // NOLINT(bugprone-not-null-terminated-result): inside of a text
  Ran r = run_text(256, 32, 0, BLOCKS);
  if (!body_ok(&r, "with lanes left out")) return;
  for (int lane = 0; lane < BLOCKS * LANES; lane++) {
    float sum = 0;
    for (int k = 0; k < K; k++) sum += (float)(work.a[lane][k] * work.b[3][k]);
    bool left = lane == 0 || lane == LANES + 96; // what nobody has written is a NaN
    CHECK(left ? work.out[lane / LANES][lane % LANES][3] != sum
               : work.out[lane / LANES][lane % LANES][3] == sum);
  }
}

// 32 rows of 16 bytes to all quarters of both blocks' lanes, each of its own shared memory.
TEST(copies_of_two_blocks) {
  fill(256, 32, 6);
  write_kernel(PRODUCT, "@%lead tcgen05.cp.cta_group::2.32x128b.warpx4 [%tm], %da;\n" COMMIT);
  Ran r = run_text(256, 32, 2, BLOCKS);
  if (!body_ok(&r, "copies")) return;
  for (int b = 0; b < BLOCKS; b++)
    for (int lane = 0; lane < LANES; lane++)
      CHECK(!memcmp(work.out[b][lane], work.image[b] + lane % 32 / 8 * 256 + lane % 8 * 16, 16));
}

static bool found(const Ran *r, const char *what) {
  return r->findings && strstr(r->finding.message, what);
}

TEST(what_is_wrong_with_pairs_is_found) {
  static const struct {
    const char *old, *new, *finding;
    uint32_t cluster;
  } cases[] = {{"", "", "they must be pairs", 1},
               {"setp.lt.u32 %p, %t, 32; @!%p bra READY;", "setp.lt.u32 %p, %r0, 32; @!%p bra READY;",
                "other block's tensor memory", BLOCKS},
               {"multicast::cluster.b64 [%bar], %both", "b64 [%bar]", "wait for ever", BLOCKS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fill(256, 32, 8);
    write_kernel(cases[i].old, cases[i].new);
    Ran r = run_text(256, 32, 0, cases[i].cluster);
    CHECK_MSG(found(&r, cases[i].finding), "%s: %s", cases[i].finding,
              r.findings ? r.finding.message : r.err.message);
  }
}

TEST(one_kernel_has_one_kind_of_group) {
  write_kernel("tcgen05.relinquish_alloc_permit.cta_group::2",
               "tcgen05.relinquish_alloc_permit.cta_group::1");
  Ran r = run_text(256, 32, 0, BLOCKS);
  CHECK_MSG(r.status == SOL_ERR_UNSUPPORTED && strstr(r.err.message, "both cta_group"), "%s", r.err.message);
}

CHECK_MAIN
