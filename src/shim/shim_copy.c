// Every copy is a cudaMemcpy3DParms, every fill a ShimSet; this is where they are carried out. Host memory is
// reached as it is, the device's through the emulator, which checks it against the allocations.
#include <string.h>

#include "shim/shim.h"
#include "shim/shim_array.h"

typedef struct Side {
  uint8_t *at; // where the host finds it
  size_t pitch, slice;
  uint64_t address; // as the program has it
} Side;
typedef struct Box {
  size_t width, height, depth; // bytes, rows, slices
} Box;

// Bytes from the first to the last of a box. False: more than there can be.
static bool span(const Box *b, size_t pitch, size_t slice, uint64_t *out) {
  uint64_t rows, slices;
  if (__builtin_mul_overflow((uint64_t)(b->height - 1), (uint64_t)pitch, &rows) ||
      __builtin_mul_overflow((uint64_t)(b->depth - 1), (uint64_t)slice, &slices))
    return false;
  return !__builtin_add_overflow(rows, slices, out) && !__builtin_add_overflow(*out, (uint64_t)b->width, out);
}

typedef enum Place { ANYWHERE, ON_DEVICE } Place;

static void report_bad(const char *side, uint64_t address, uint64_t bytes, const char *why) {
  shim_note("copy: %s [0x%llx, +%llu) %s", side, (unsigned long long)address, (unsigned long long)bytes, why);
}

// Where the direction says device, plain host memory is an error; where it says host, anything will do: so it
// is on a GPU. base is the pointer that the program gave, from which the copy's position leads to the address:
// however far that is, device memory does not become the host's.
static uint8_t *reach(uint64_t base, uint64_t address, uint64_t bytes, Place place, const char *side) {
  SolEmuRange range;
  bool known = sol_emu_range(shim.emu, address, &range);
  if (!known && (place == ON_DEVICE || sol_emu_owns(shim.emu, address) || sol_emu_owns(shim.emu, base)))
    return report_bad(side, address, bytes, "is not allocated device memory"), NULL;
  if (known && bytes > range.bytes - (address - range.address) && (!range.mapped || place == ON_DEVICE))
    return report_bad(side, address, bytes, "goes beyond its allocation"), NULL;
  return known && !range.mapped ? sol_emu_host(shim.emu, address, bytes) : shim_pointer(address);
}

static bool array_side(const ShimArray *a, struct cudaPos pos, const Box *b, Side *out) {
  size_t texel = shim_texel_bytes(&a->format), row = a->extent.width * texel;
  size_t rows = shim_array_rows(a), slices = shim_array_slices(a), x = pos.x * texel;
  if (pos.x > a->extent.width || b->width > row - x || pos.y > rows || b->height > rows - pos.y ||
      pos.z > slices || b->depth > slices - pos.z)
    return false;
  out->pitch = (size_t)a->pitch;
  out->slice = (size_t)a->slice;
  uint64_t bytes;
  if (!span(b, out->pitch, out->slice, &bytes)) return false;
  out->address = a->address + pos.z * a->slice + pos.y * a->pitch + x;
  out->at = sol_emu_host(shim.emu, out->address, bytes);
  return out->at != NULL;
}

static bool linear_side(struct cudaPitchedPtr p, struct cudaPos pos, const Box *b, Place place,
                        const char *name, Side *out) {
  uint64_t bytes;
  out->pitch = p.pitch ? p.pitch : b->width;
  if (b->height > 1 && out->pitch < b->width) return false;
  if (__builtin_mul_overflow(out->pitch, p.ysize ? p.ysize : b->height, &out->slice)) return false;
  if (!p.ptr || !span(b, out->pitch, out->slice, &bytes)) return false;
  uint64_t address = shim_address(p.ptr) + pos.z * out->slice + pos.y * out->pitch + pos.x;
  out->address = address;
  out->at = reach(shim_address(p.ptr), address, bytes, place, name);
  return out->at != NULL;
}

static Place place_of(enum cudaMemcpyKind kind, bool source) {
  bool device =
      kind == cudaMemcpyDeviceToDevice || kind == (source ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice);
  return device ? ON_DEVICE : ANYWHERE;
}

static cudaError_t arrays_of(const struct cudaMemcpy3DParms *c, const ShimArray **from,
                             const ShimArray **to) {
  *from = c->srcArray ? shim_find(c->srcArray, SHIM_ARRAY) : NULL;
  *to = c->dstArray ? shim_find(c->dstArray, SHIM_ARRAY) : NULL;
  if ((c->srcArray && !*from) || (c->dstArray && !*to)) return cudaErrorInvalidResourceHandle;
  if ((c->srcArray && c->srcPtr.ptr) || (c->dstArray && c->dstPtr.ptr)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t shim_check_copy(const struct cudaMemcpy3DParms *c) {
  const ShimArray *from, *to;
  cudaError_t error = arrays_of(c, &from, &to);
  if (error) return error;
  if ((unsigned)c->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!c->extent.width || !c->extent.height || !c->extent.depth) return cudaSuccess;
  return (from || c->srcPtr.ptr) && (to || c->dstPtr.ptr) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t shim_run_copy(const struct cudaMemcpy3DParms *c) {
  const ShimArray *from, *to;
  cudaError_t error = shim_check_copy(c);
  if (!error) error = arrays_of(c, &from, &to);
  if (error) return error;
  Box b = {c->extent.width, c->extent.height, c->extent.depth};
  if (!b.width || !b.height || !b.depth) return cudaSuccess;
  size_t unit = from ? shim_texel_bytes(&from->format) : to ? shim_texel_bytes(&to->format) : 1;
  if (b.width > SIZE_MAX / unit) return cudaErrorInvalidValue;
  b.width *= unit; // extents count elements as soon as an array takes part
  Side s, d;
  bool ok = from ? array_side(from, c->srcPos, &b, &s)
                 : linear_side(c->srcPtr, c->srcPos, &b, place_of(c->kind, true), "its source", &s);
  if (!ok) return cudaErrorInvalidValue;
  ok = to ? array_side(to, c->dstPos, &b, &d)
          : linear_side(c->dstPtr, c->dstPos, &b, place_of(c->kind, false), "its destination", &d);
  if (!ok) return cudaErrorInvalidValue;
  for (size_t z = 0; z < b.depth; z++)
    for (size_t y = 0; y < b.height; y++) {
      size_t to_row = z * d.slice + y * d.pitch, from_row = z * s.slice + y * s.pitch;
      memmove(d.at + to_row, s.at + from_row, b.width);
      sol_emu_wrote(shim.emu, d.address + to_row, s.address + from_row, b.width);
    }
  return cudaSuccess;
}

struct cudaMemcpy3DParms shim_flat_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  return (struct cudaMemcpy3DParms){.srcPtr = {(void *)(uintptr_t)from, bytes, bytes, 1},
                                    .dstPtr = {to, bytes, bytes, 1},
                                    .extent = {bytes, 1, 1},
                                    .kind = kind};
}

cudaError_t shim_run_set(const ShimSet *s) {
  if (!s->width || !s->height || !s->depth) return cudaSuccess;
  if (s->width > SIZE_MAX / s->element) return cudaErrorInvalidValue;
  Box b = {s->width * s->element, s->height, s->depth};
  uint64_t bytes;
  if ((b.height > 1 && s->pitch < b.width) || !span(&b, s->pitch, s->slice, &bytes))
    return cudaErrorInvalidValue;
  uint8_t *at = reach(shim_address(s->to), shim_address(s->to), bytes, ON_DEVICE, "the filled memory");
  if (!at) return cudaErrorInvalidValue;
  for (size_t z = 0; z < b.depth; z++)
    for (size_t y = 0; y < b.height; y++) {
      uint8_t *row = at + z * s->slice + y * s->pitch;
      if (s->element == 1) memset(row, (int)(s->value & 255), b.width);
      for (size_t x = 0; s->element > 1 && x < b.width; x += s->element)
        memcpy(row + x, &s->value, s->element);
      sol_emu_wrote(shim.emu, shim_address(s->to) + z * s->slice + y * s->pitch, 0, b.width);
    }
  return cudaSuccess;
}
