// Memory that host and kernels share at one address: mapped, unmapped, managed variables.
#include "check.h"
#include "emu/core/state.h"
#include "emu/emu.h"

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared_count = 5;\n"
    ".visible .global .align 8 .u64 where = shared_count;\n"
    ".visible .entry bump(.param .u64 p) {\n"
    "  .reg .u64 %rd<4>; .reg .u32 %r<4>;\n"
    "  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
    "  ld.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1; st.u32 [%rd1], %r2;\n"
    "  atom.global.add.u32 %r3, [shared_count], 1; ret;\n}\n";

static SolEmu *emu;
static SolEmuModule *module;
static uint32_t words[3][64];

static void *managed(void *ctx, uint64_t bytes) {
  CHECK(ctx == words && bytes == 4);
  return words[2];
}

static void open_emu(void) {
  SolError err = {0};
  CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1}, &emu, &err));
  sol_emu_managed_from(emu, managed, words);
  CHECK_MSG(!sol_emu_load(emu, &(SolPtxSource){"map", ptx, sizeof ptx - 1}, 1, &module, &err), "%s",
            err.message);
}

static SolEmuResult run(const void *at) {
  uint64_t address = (uint64_t)(uintptr_t)at;
  SolEmuResult r = {0};
  SolError err = {0};
  SolEmuLaunch launch = {.kernel = sol_emu_kernel(module, "bump"), .grid = {1, 1, 1}, .block = {32, 1, 1}};
  launch.params = &address;
  launch.param_bytes = sizeof address;
  CHECK_MSG(!sol_emu_launch(emu, &launch, &r, &err), "%s", err.message);
  return r;
}

TEST(kernels_use_the_hosts_own_memory) {
  open_emu();
  memset(words, 0, sizeof words);
  uint64_t used = sol_emu_bytes_used(emu), before, after;
  CHECK(!sol_emu_alloc(emu, 64, "before", &before, NULL));
  CHECK(!sol_emu_map(emu, words[0], 128, "shared", NULL));
  CHECK(!sol_emu_alloc(emu, 64, "after", &after, NULL)); // lower than what is mapped, and found all the same
  CHECK_INT(sol_emu_bytes_used(emu), used + 128);        // mapped memory is the host's
  SolEmuResult r = run(words[0]);
  CHECK_INT(r.end, SOL_EMU_DONE);
  CHECK(words[0][0] == 0 && words[0][31] == 31);
  sol_emu_result_free(&r);
  SolEmuRange range;
  CHECK(sol_emu_range(emu, (uint64_t)(uintptr_t)&words[0][5], &range) && range.mapped && range.bytes == 128);
  CHECK(range.address == (uint64_t)(uintptr_t)words[0] && !range.variable);
  CHECK(sol_emu_range(emu, before, &range) && !range.mapped && range.bytes == 64);
  CHECK(sol_emu_range(emu, after, &range));
  CHECK(!sol_emu_range(emu, (uint64_t)(uintptr_t)&words[0][32], &range));
  r = run(&words[0][1]); // one word too far
  CHECK_INT(r.end, SOL_EMU_FAULT);
  CHECK(r.finding_count && r.findings[0].kind == SOL_EMU_OUT_OF_BOUNDS);
  CHECK_HAS(r.findings[0].message, "past the end of shared");
  sol_emu_result_free(&r);
  sol_emu_destroy(emu);
}

TEST(unmapped) {
  open_emu();
  SolError err;
  CHECK(!sol_emu_map(emu, words[0], 128, NULL, NULL));
  CHECK_INT(sol_emu_map(emu, &words[0][10], 4, NULL, &err), SOL_ERR_ARGUMENT); // twice
  CHECK_HAS(err.message, "mapped already");
  CHECK_INT(sol_emu_unmap(emu, (uint64_t)(uintptr_t)&words[0][1], &err), SOL_ERR_ARGUMENT);
  CHECK(!sol_emu_unmap(emu, (uint64_t)(uintptr_t)words[0], NULL));
  CHECK_INT(sol_emu_unmap(emu, (uint64_t)(uintptr_t)words[0], &err), SOL_ERR_ARGUMENT);
  SolEmuResult r = run(words[0]);
  CHECK(r.finding_count && r.findings[0].kind == SOL_EMU_AFTER_FREE);
  sol_emu_result_free(&r);
  CHECK(!sol_emu_map(emu, &words[0][8], 256, "again", NULL)); // over part of what was
  r = run(&words[0][8]);
  CHECK_INT(r.end, SOL_EMU_DONE);
  sol_emu_result_free(&r);
  CHECK_INT(sol_emu_map(emu, NULL, 4, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_emu_map(emu, words[1], 0, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_emu_map(emu, words[1], UINT64_MAX, NULL, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_emu_map(emu, (void *)(uintptr_t)0x710000001000u, 64, NULL, &err), SOL_ERR_UNSUPPORTED);
  sol_emu_destroy(emu);
}

TEST(managed_variables) {
  memset(words, 0, sizeof words);
  open_emu();
  uint64_t address, bytes, pointer;
  CHECK(!sol_emu_symbol(module, "shared_count", &address, &bytes, NULL));
  CHECK(address == (uint64_t)(uintptr_t)words[2] && bytes == 4);
  CHECK_INT(words[2][0], 5);
  CHECK(!sol_emu_symbol(module, "where", &address, NULL, NULL) &&
        !sol_emu_read(emu, &pointer, address, 8, NULL));
  CHECK(pointer == (uint64_t)(uintptr_t)words[2]); // initialisers point to it, too
  CHECK(!sol_emu_map(emu, words[0], 128, NULL, NULL));
  words[2][0] = 100;
  SolEmuResult r = run(words[0]);
  CHECK_INT(r.end, SOL_EMU_DONE);
  CHECK_INT(words[2][0], 132);
  sol_emu_result_free(&r);
  sol_emu_destroy(emu);
}

TEST(variables_stay) {
  open_emu();
  uint64_t address;
  SolError err = {0};
  CHECK(!sol_emu_symbol(module, "shared_count", &address, NULL, NULL));
  CHECK_INT(sol_emu_unmap(emu, (uint64_t)(uintptr_t)words[2], &err), SOL_ERR_ARGUMENT);
  CHECK(!sol_emu_symbol(module, "where", &address, NULL, NULL));
  CHECK_INT(sol_emu_free(emu, address, &err), SOL_ERR_ARGUMENT);
  sol_emu_destroy(emu);
}

// What was freed is known as such for a while, not for ever: memory would grow with every pair.
TEST(allocations_that_come_and_go) {
  open_emu();
  uint64_t first = 0, last = 0;
  SolEmuRange range;
  for (int k = 0; k < 100000; k++) {
    CHECK(!sol_emu_alloc(emu, 64, NULL, &last, NULL));
    if (!k) first = last;
    if (k) CHECK(!sol_emu_free(emu, last, NULL));
  }
  CHECK(sol_emu_range(emu, first, &range) && !sol_emu_range(emu, last, &range));
  CHECK(emu->alloc_count <= EMU_FREED_KEPT * 3);
  CHECK_INT(sol_emu_free(emu, last, NULL), SOL_ERR_ARGUMENT);
  sol_emu_destroy(emu);
}

// Whatever may write to memory is noticed, and another byte is another digest, also where two changes could undo each other.
TEST(digests_of_memory) {
  open_emu();
  static uint64_t page[12], host[5];
  uint64_t at[2], digests[8];
  SolEmuRange range[2];
  for (int k = 0; k < 2; k++) {
    CHECK(!sol_emu_alloc(emu, sizeof page + 3, NULL, &at[k], NULL));
    CHECK(!sol_emu_write(emu, at[k], page, sizeof page, NULL));
    CHECK(sol_emu_range(emu, at[k], &range[k]));
  }
  uint64_t first = sol_emu_digest(emu, range, 2), changes = sol_emu_changes(emu);
  CHECK(first && first == sol_emu_digest(emu, range, 2) && first != sol_emu_digest(emu, range, 1));
  CHECK(sol_emu_changes(emu) == changes);
  for (uint32_t k = 0; k < 8; k++) {
    memset(page, 0, sizeof page);
    page[k] = page[k + 4] = UINT64_C(1) << 63; // words that are hashed one after another
    CHECK(!sol_emu_write(emu, at[0], page, sizeof page, NULL));
    digests[k] = sol_emu_digest(emu, range, 2);
    for (uint32_t j = 0; j < k; j++) CHECK(digests[j] != digests[k] && digests[j] != first);
  }
  CHECK(sol_emu_changes(emu) == changes + 8);
  memset(page, 0, sizeof page);
  CHECK(!sol_emu_fill(emu, at[0], page, 8, 12, NULL) && sol_emu_changes(emu) == changes + 9);
  CHECK(sol_emu_digest(emu, range, 2) == first);
  *((uint8_t *)sol_emu_host(emu, at[1], sizeof page + 3) + sizeof page + 2) = 1; // the last byte
  CHECK(sol_emu_digest(emu, range, 2) != first && sol_emu_changes(emu) == changes + 10);
  CHECK(!sol_emu_copy(emu, at[1], at[0], sizeof page + 3, NULL) && sol_emu_digest(emu, range, 2) == first);
  CHECK(sol_emu_changes(emu) == changes + 11);
  CHECK(!sol_emu_map(emu, host, sizeof host, NULL, NULL));
  SolEmuResult r = run(page); // a launch that faults may have written, too
  CHECK(sol_emu_changes(emu) == changes + 12);
  sol_emu_result_free(&r);
  CHECK(sol_emu_range(emu, (uint64_t)(uintptr_t)host, &range[1]) && !sol_emu_digest(emu, range, 2));
  CHECK(!sol_emu_free(emu, at[0], NULL) && sol_emu_changes(emu) == changes + 13);
  CHECK(!sol_emu_digest(emu, range, 1));
  sol_emu_destroy(emu);
}

TEST(registers) {
  open_emu();
  uint32_t count = sol_emu_kernel_registers(sol_emu_kernel(module, "bump"));
  CHECK(count >= 4 && count < 64); // two addresses and a few words are alive
  sol_emu_destroy(emu);
}

CHECK_MAIN
