// Textures and surfaces: CUDA 13 made their descriptions longer, so that they are copied.
#include <string.h>

#include "shim12/shim12.h"

enum { RESOURCE12 = 64, VIEW12 = 48 }; // bytes; both begin as CUDA 13's do
_Static_assert(sizeof(struct cudaResourceDesc) >= RESOURCE12 && sizeof(struct cudaResourceViewDesc) >= VIEW12,
               "");

static struct cudaResourceDesc *resource(struct cudaResourceDesc *room, const void *from) {
  memset(room, 0, sizeof *room);
  return from ? memcpy(room, from, RESOURCE12) : NULL;
}
static struct cudaResourceViewDesc *view(struct cudaResourceViewDesc *room, const void *from) {
  memset(room, 0, sizeof *room);
  return from ? memcpy(room, from, VIEW12) : NULL;
}

OF13(cudaCreateTextureObject);
ENTRY12(cudaCreateTextureObject, cudaTextureObject_t *out, const void *what,
        const struct cudaTextureDesc *how, const void *seen) {
  struct cudaResourceDesc r;
  struct cudaResourceViewDesc v;
  return of13_cudaCreateTextureObject(out, resource(&r, what), how, view(&v, seen));
}

OF13(cudaCreateSurfaceObject);
ENTRY12(cudaCreateSurfaceObject, cudaSurfaceObject_t *out, const void *what) {
  struct cudaResourceDesc r;
  return of13_cudaCreateSurfaceObject(out, resource(&r, what));
}

OF13(cudaGetTextureObjectResourceDesc);
ENTRY12(cudaGetTextureObjectResourceDesc, void *out, cudaTextureObject_t texture) {
  struct cudaResourceDesc r;
  cudaError_t error = of13_cudaGetTextureObjectResourceDesc(out ? &r : NULL, texture);
  if (!error && out) memcpy(out, &r, RESOURCE12);
  return error;
}

OF13(cudaGetSurfaceObjectResourceDesc);
ENTRY12(cudaGetSurfaceObjectResourceDesc, void *out, cudaSurfaceObject_t surface) {
  struct cudaResourceDesc r;
  cudaError_t error = of13_cudaGetSurfaceObjectResourceDesc(out ? &r : NULL, surface);
  if (!error && out) memcpy(out, &r, RESOURCE12);
  return error;
}

OF13(cudaGetTextureObjectResourceViewDesc);
ENTRY12(cudaGetTextureObjectResourceViewDesc, void *out, cudaTextureObject_t texture) {
  struct cudaResourceViewDesc v;
  cudaError_t error = of13_cudaGetTextureObjectResourceViewDesc(out ? &v : NULL, texture);
  if (!error && out) memcpy(out, &v, VIEW12);
  return error;
}
