// Givens rotations: their construction (rotg, rotmg), and the modified ones (rotm). Numbers that a call changes are the
// host's or the device's, by the handle's pointer mode, and are found where they stand when the call runs.
#include <math.h>

#include "blas/blas.h"

static BlasOperand number(void *at, int type) {
  BlasOperand o = blas_vector(at, type, 1, 1);
  o.wrote = true;
  return o;
}

static double real_of(const BlasView *v) {
  return creal(blas_get(v, 0, 0));
}

static void put(const BlasView *v, BlasNumber value) {
  blas_put(v, 0, 0, value);
}

// ---- rotg: a, b, c, s; a becomes r, and b of real numbers what c and s can be made of again ----

static void rotate_real(BlasView *v) {
  double a = real_of(&v[0]), b = real_of(&v[1]), c = 1, s = 0, r = 0, again = 0;
  double scale = fabs(a) + fabs(b);
  if (scale != 0) {
    r = copysign(scale * sqrt(a / scale * (a / scale) + b / scale * (b / scale)), fabs(a) > fabs(b) ? a : b);
    c = a / r, s = b / r;
    again = fabs(a) > fabs(b) ? s : c != 0 ? 1 / c : 1;
  }
  put(&v[0], r), put(&v[1], again), put(&v[2], c), put(&v[3], s);
}

static void rotate_complex(BlasView *v) {
  BlasNumber a = blas_get(&v[0], 0, 0), b = blas_get(&v[1], 0, 0);
  if (a == 0) {
    put(&v[0], b), put(&v[2], 0), put(&v[3], 1);
    return;
  }
  double norm = hypot(cabs(a), cabs(b));
  BlasNumber turn = a / cabs(a);
  put(&v[0], turn * norm), put(&v[2], cabs(a) / norm), put(&v[3], turn * conj(b) / norm);
}

static bool run_rotg(const BlasCall *c, BlasView *v) {
  if (c->extra)
    rotate_complex(v);
  else
    rotate_real(v);
  return true;
}

static int rotg(const BlasHandle *h, const char *name, int type, int c_type, int s_type, void *a, void *b,
                void *c, void *s) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!a || !b || !c || !s) return BLAS_BAD_VALUE;
  if (!blas_bytes(type) || !blas_bytes(c_type) || !blas_bytes(s_type)) return BLAS_NOT_SUPPORTED;
  BlasCall call = {.name = name,
                   .run = run_rotg,
                   .operands = {number(a, type), number(b, type), number(c, c_type), number(s, s_type)},
                   .count = 4,
                   .extra = blas_is_complex(type),
                   .flops = 8,
                   .dtype = blas_roof(type, false),
                   .anywhere = true};
  call.operands[2].unread = call.operands[3].unread = true;
  return blas_run(h, &call);
}

#define ROTG(L, T, R)                                                                                        \
  BLAS_API int cublas##L##rotg_v2(const BlasHandle *h, void *a, void *b, void *c, void *s) {                 \
    return rotg(h, "cublas" #L "rotg", T, R, T, a, b, c, s);                                                 \
  }
ROTG(S, BLAS_R32F, BLAS_R32F)
ROTG(D, BLAS_R64F, BLAS_R64F)
ROTG(C, BLAS_C32F, BLAS_R32F)
ROTG(Z, BLAS_C64F, BLAS_R64F)
BLAS_API int cublasRotgEx(const BlasHandle *h, void *a, void *b, int type, void *c, void *s, int c_type,
                          int in) {
  (void)in;
  return rotg(h, "cublasRotgEx", type, c_type, c_type, a, b, c, s);
}

// ---- rotmg: d1, d2, x1 and the five parameters of rotm ----

enum { FLAG, H11, H21, H12, H22, PARAMETERS };

typedef struct Modified {
  double d1, d2, x1, p[PARAMETERS];
} Modified;

static void give_up(Modified *m) {
  *m = (Modified){.p = {-1}};
}

// The elements that a flag of 0 or 1 leaves out are 1 and -1: they are written down, as scaling changes them.
static void write_all(Modified *m) {
  if (m->p[FLAG] == 0) m->p[H11] = m->p[H22] = 1;
  if (m->p[FLAG] == 1) m->p[H21] = -1, m->p[H12] = 1;
  m->p[FLAG] = -1;
}

// Keeps d within 2^-24 to 2^24; a row of H, and x1 with the first, are scaled the other way.
static void keep_scale(Modified *m, double *d, double *first, double *second, double *x) {
  const double step = 4096;
  while (*d != 0 && (fabs(*d) <= 1 / (step * step) || fabs(*d) >= step * step)) {
    double by = fabs(*d) <= 1 / (step * step) ? 1 / step : step;
    write_all(m);
    *d /= by * by;
    *first *= by, *second *= by;
    if (x) *x *= by;
  }
}

static void rotate_modified(Modified *m, double y1) {
  double p2 = m->d2 * y1, p1 = m->d1 * m->x1, q1 = p1 * m->x1, q2 = p2 * y1;
  if (m->d1 < 0) {
    give_up(m);
    return;
  }
  m->p[FLAG] = -2;
  if (p2 == 0) return;
  if (fabs(q1) > fabs(q2)) {
    m->p[H21] = -y1 / m->x1, m->p[H12] = p2 / p1;
    double u = 1 - m->p[H12] * m->p[H21];
    m->p[FLAG] = 0;
    if (u > 0) m->d1 /= u, m->d2 /= u, m->x1 *= u;
  } else if (q2 < 0) {
    give_up(m);
    return;
  } else {
    m->p[H11] = p1 / p2, m->p[H22] = m->x1 / y1;
    double u = 1 + m->p[H11] * m->p[H22], d1 = m->d1;
    m->p[FLAG] = 1;
    m->d1 = m->d2 / u, m->d2 = d1 / u, m->x1 = y1 * u;
  }
  keep_scale(m, &m->d1, &m->p[H11], &m->p[H12], &m->x1);
  keep_scale(m, &m->d2, &m->p[H21], &m->p[H22], NULL);
}

// Elements that the flag leaves out are not written.
static bool is_written(double flag, int k) {
  if (k == FLAG || flag == -1) return true;
  return flag == 0 ? k == H21 || k == H12 : flag == 1 && (k == H11 || k == H22);
}

static bool run_rotmg(const BlasCall *c, BlasView *v) {
  Modified m = {.d1 = real_of(&v[0]), .d2 = real_of(&v[1]), .x1 = real_of(&v[2])};
  rotate_modified(&m, creal(c->alpha.value));
  put(&v[0], m.d1), put(&v[1], m.d2), put(&v[2], m.x1);
  for (int k = 0; k < PARAMETERS; k++)
    if (is_written(m.p[FLAG], k)) blas_put(&v[3], k, 0, m.p[k]);
  return true;
}

typedef struct Typed { // a number, and its type
  void *at;
  int type;
} Typed;

static int rotmg(const BlasHandle *h, const char *name, Typed d1, Typed d2, Typed x1, const void *y1,
                 int y1_type, Typed param) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!d1.at || !d2.at || !x1.at || !y1 || !param.at) return BLAS_BAD_VALUE;
  if (!blas_bytes(d1.type) || !blas_bytes(d2.type) || !blas_bytes(x1.type) || !blas_bytes(y1_type) ||
      !blas_bytes(param.type))
    return BLAS_NOT_SUPPORTED;
  BlasCall call = {.name = name,
                   .run = run_rotmg,
                   .operands = {number(d1.at, d1.type), number(d2.at, d2.type), number(x1.at, x1.type),
                                blas_vector(param.at, param.type, PARAMETERS, 1)},
                   .count = 4,
                   .alpha = blas_scalar(h, y1, y1_type),
                   .flops = 20,
                   .dtype = blas_roof(param.type, false),
                   .anywhere = true};
  call.operands[3].wrote = call.operands[3].unread = true;
  return blas_run(h, &call);
}

#define ROTMG(L, T)                                                                                          \
  BLAS_API int cublas##L##rotmg_v2(const BlasHandle *h, void *d1, void *d2, void *x1, const void *y1,        \
                                   void *param) {                                                            \
    return rotmg(h, "cublas" #L "rotmg", (Typed){d1, T}, (Typed){d2, T}, (Typed){x1, T}, y1, T,              \
                 (Typed){param, T});                                                                         \
  }
ROTMG(S, BLAS_R32F)
ROTMG(D, BLAS_R64F)
BLAS_API int cublasRotmgEx(const BlasHandle *h, void *d1, int d1_type, void *d2, int d2_type, void *x1,
                           int x1_type, const void *y1, int y1_type, void *param, int param_type, int in) {
  (void)in;
  return rotmg(h, "cublasRotmgEx", (Typed){d1, d1_type}, (Typed){d2, d2_type}, (Typed){x1, x1_type}, y1,
               y1_type, (Typed){param, param_type});
}

// ---- rotm: x and y by the matrix H of its parameters ----

static void read_parameters(double *p, const void *at, int type) {
  BlasView v = {.at = (unsigned char *)(uintptr_t)at, .type = type, .down = 1};
  for (int k = 0; k < PARAMETERS; k++) p[k] = creal(blas_get(&v, k, 0));
}

static bool run_rotm(const BlasCall *c, BlasView *v) {
  Modified m = {0};
  for (int k = 0; k < PARAMETERS; k++) m.p[k] = c->modified[k];
  if (c->result) { // the device's
    const void *at = __cudaSolLibraryMemory(c->name, c->result, PARAMETERS * blas_bytes(c->result_type));
    if (!at) return false;
    read_parameters(m.p, at, c->result_type);
  }
  if (m.p[FLAG] == -2) return true;
  write_all(&m);
  for (int64_t i = 0; i < c->n; i++) {
    BlasNumber x = blas_get(&v[0], i, 0), y = blas_get(&v[1], i, 0);
    blas_put(&v[0], i, 0, m.p[H11] * x + m.p[H12] * y);
    blas_put(&v[1], i, 0, m.p[H21] * x + m.p[H22] * y);
  }
  return true;
}

static int rotm(const BlasHandle *h, const char *name, int64_t n, BlasOperand x, BlasOperand y,
                const void *param, int type) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!param) return BLAS_BAD_VALUE;
  if (!blas_bytes(x.type) || !blas_bytes(y.type) || !blas_bytes(type)) return BLAS_NOT_SUPPORTED;
  if (n <= 0) return BLAS_OK;
  BlasCall c = {.name = name,
                .run = run_rotm,
                .operands = {x, y},
                .count = 2,
                .n = n,
                .result_type = type,
                .flops = 6.0 * (double)n,
                .dtype = blas_roof(x.type, false)};
  c.operands[0].wrote = c.operands[1].wrote = true;
  if (h->pointers)
    c.result = (void *)(uintptr_t)param;
  else
    read_parameters(c.modified, param, type);
  return blas_run(h, &c);
}

#define ROTM(L, T, I, S)                                                                                     \
  BLAS_API int cublas##L##rotm_v2##S(const BlasHandle *h, I n, void *x, I incx, void *y, I incy,             \
                                     const void *param) {                                                    \
    return rotm(h, "cublas" #L "rotm", n, blas_vector(x, T, n, incx), blas_vector(y, T, n, incy), param, T); \
  }
BLAS_REAL(ROTM)
#define ROTM_TYPED(I, S)                                                                                     \
  BLAS_API int cublasRotmEx##S(const BlasHandle *h, I n, void *x, int x_type, I incx, void *y, int y_type,   \
                               I incy, const void *param, int type, int in) {                                \
    (void)in;                                                                                                \
    return rotm(h, "cublasRotmEx", n, blas_vector(x, x_type, n, incx), blas_vector(y, y_type, n, incy),      \
                param, type);                                                                                \
  }
ROTM_TYPED(int, )
ROTM_TYPED(int64_t, _64)
