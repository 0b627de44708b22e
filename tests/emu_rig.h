// A texture over an image in the emulator's memory, and reading it at many places at once; for tests.
#ifndef EMU_RIG_H
#define EMU_RIG_H

#include "emu/texture.h"
#include "emu_body.h"

typedef struct Rig {
  SolEmu *emu;
  uint64_t address, handle;
  SolError err;
} Rig;
static inline bool rig_open(Rig *r, const void *texels, size_t bytes) {
  memset(r, 0, sizeof *r);
  return CHECK(!sol_emu_create(&(SolEmuMachine){.workers = 1}, &r->emu, &r->err) &&
               !sol_emu_alloc(r->emu, bytes, "image", &r->address, &r->err) &&
               !sol_emu_write(r->emu, r->address, texels, bytes, &r->err));
}
static inline bool rig_texture(Rig *r, SolEmuTexture t) {
  t.image.address = r->address;
  SolStatus status = sol_emu_texture_create(r->emu, &t, &r->handle, &r->err);
  return CHECK_MSG(!status, "texture: %s", r->err.message);
}

// Coordinates of up to 1024 threads; four results each.
static inline bool sample(Rig *r, const char *op, const float (*at)[4], int count, uint32_t (*out)[4]) {
  char ptx[1024];
  snprintf(ptx, sizeof ptx,
           "ld.global.v4.f32 {%%f1,%%f2,%%f3,%%f4}, [%%in];\ncvt.rzi.s32.f32 %%r11, %%f1;\ncvt.rzi.s32.f32 "
           "%%r12, %%f2;\ncvt.rzi.s32.f32 %%r13, %%f3;\n"
           "%s;\nst.global.v4.u32 [%%out], {%%r1,%%r2,%%r3,%%r4};\n",
           op);
  Ran ran = run_body(&(Body){.ptx = ptx,
                             .threads = count,
                             .in = at,
                             .in_bytes = (size_t)count * 16,
                             .in_stride = 16,
                             .out = out,
                             .out_bytes = (size_t)count * 16,
                             .out_stride = 16,
                             .x = r->handle,
                             .emu = r->emu});
  return body_ok(&ran, ptx);
}
static inline float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

#endif
