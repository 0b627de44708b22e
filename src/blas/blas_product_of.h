// C = alpha A B + beta C accumulated in T; blas_product.c includes this for each T, with
//   T, PRODUCT (the function's name), TO_T(BlasNumber), FROM_T(T); ROUND(T), if every 16 products the sum is rounded so
// B is taken in bands of columns, so that a band and a row of sums stay in the caches.
static bool PRODUCT(const BlasProduct *p) {
  enum { BAND = 256, CHUNK = 16 };
  T *band = malloc(sizeof(T) * (size_t)(p->k + 1) * BAND), *row = malloc(sizeof(T) * (size_t)(p->k + 1));
  bool scaled = p->alpha != 0;
  for (int64_t from = 0; band && row && from < p->n; from += BAND) {
    int64_t width = p->n - from < BAND ? p->n - from : BAND;
    for (int64_t l = 0; scaled && l < p->k; l++)
      for (int64_t j = 0; j < width; j++) band[l * BAND + j] = TO_T(blas_get(&p->b, l, from + j));
    for (int64_t i = 0; i < p->m; i++) {
      T sum[BAND] = {0};
      for (int64_t l = 0; scaled && l < p->k; l++) row[l] = TO_T(blas_get(&p->a, i, l));
      for (int64_t first = 0; scaled && first < p->k; first += CHUNK) {
        int64_t last = first + CHUNK < p->k ? first + CHUNK : p->k;
        for (int64_t l = first; l < last; l++)
          for (int64_t j = 0; j < width; j++) sum[j] += row[l] * band[l * BAND + j];
#ifdef ROUND
        for (int64_t j = 0; j < width; j++) sum[j] = ROUND(sum[j]);
#endif
      }
      for (int64_t j = 0; j < width; j++) blas_finish(p, i, from + j, FROM_T(sum[j]));
    }
  }
  free(band);
  free(row);
  return band && row;
}
#undef T
#undef PRODUCT
#undef TO_T
#undef FROM_T
#undef ROUND
