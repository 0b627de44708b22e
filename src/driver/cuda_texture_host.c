// Textures of the CUDA backend, over plain rows or over an array that holds a copy of them; and tensor maps.
#include "driver/cuda.h"

static size_t row_bytes(const SolDriverImage *image) {
  return (size_t)image->width * sizeof(float);
}

static CuResult make(Cuda *c, const SolDriverImage *image, SolDriverTexture *out) {
  CuResource resource = {.kind = RESOURCE_ROWS,
                         .of.rows = {.at = image->address,
                                     .format = FORMAT_FLOAT,
                                     .channels = 1,
                                     .width = image->width,
                                     .height = image->height,
                                     .pitch = row_bytes(image)}};
  CuSampler sampler = {.edge = {EDGE_CLAMP, EDGE_CLAMP, EDGE_CLAMP}};
  CuArrayShape shape = {image->width, image->height, FORMAT_FLOAT, 1};
  unsigned long long handle = 0;
  size_t bytes;
  CuResult result = c->address_range(&out->base, &bytes, image->address);
  if (!result && image->array) {
    result = c->array_create(&out->array, &shape);
    resource = (CuResource){.kind = RESOURCE_ARRAY, .of.array = out->array};
  }
  if (!result) result = c->texture_create(&handle, &resource, &sampler, NULL);
  out->handle = handle;
  return result;
}

SolStatus sol_cuda_texture(void *state, const SolDriverImage *image, SolDriverTexture *out, SolError *err) {
  Cuda *c = state;
  *out = (SolDriverTexture){0};
  if (!c->address_range || !c->array_create || !c->array_destroy || !c->copy_2d || !c->texture_create ||
      !c->texture_destroy)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old: it lacks textures");
  bool entered = cuda_enter(c);
  CuResult result = make(c, image, out);
  if (result && out->array) c->array_destroy(out->array);
  cuda_leave(c, entered);
  return cuda_check(c, result, "a texture", err);
}

SolStatus sol_cuda_texture_copy(void *state, const SolDriverImage *image, void *array, SolError *err) {
  Cuda *c = state;
  CuCopy2d copy = {
      .from = {.kind = MEMORY_ON_DEVICE, .device = image->address, .pitch = row_bytes(image)},
      .to = {.kind = MEMORY_ARRAY, .array = array},
      .width_bytes = row_bytes(image),
      .height = image->height,
  };
  bool entered = cuda_enter(c);
  CuResult result = c->copy_2d(&copy);
  cuda_leave(c, entered);
  return cuda_check(c, result, "copying to a texture", err);
}

void sol_cuda_texture_free(void *state, SolDriverTexture *texture) {
  Cuda *c = state;
  if (c->lost) return;
  bool entered = cuda_enter(c);
  c->texture_destroy(texture->handle);
  if (texture->array) c->array_destroy(texture->array);
  cuda_leave(c, entered);
}

SolStatus sol_cuda_tensor_map(void *state, const SolTensorMap *m, uint8_t *out, SolError *err) {
  Cuda *c = state;
  if (!c->tensor_map_encode)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "the CUDA driver is too old: it lacks tensor maps");
  // SolTensorMap numbers types and swizzles as CUDA does. The innermost dimension's stride is not given.
  bool entered = cuda_enter(c);
  CuResult result = c->tensor_map_encode(out, m->type, m->rank, (void *)(uintptr_t)m->base, m->dims,
                                         m->strides + 1, m->box, m->steps, m->interleave, m->swizzle,
                                         m->unpromoted ? PROMOTE_NONE : PROMOTE_256, m->nan_fill);
  cuda_leave(c, entered);
  return cuda_check(c, result, "a tensor map", err);
}
