#include "image/units.h"

#include <string.h>

#include "base/heap.h"
#include "image/fatbin.h"

SolStatus sol_units_add(SolUnits *u, const char *ptx, size_t length) {
  static const char mark = SOL_UNIT_MARK;
  while (length && !ptx[length - 1]) length--;
  if (!length || memchr(ptx, 0, length) || memchr(ptx, mark, length)) return SOL_ERR_SYNTAX;
  sol_buffer_put(&u->text, &mark, 1);
  sol_buffer_put(&u->text, ptx, length);
  u->count++;
  return u->text.failed ? SOL_ERR_NO_SPACE : SOL_OK;
}

SolStatus sol_units_add_fat(SolUnits *u, const void *data, size_t size, int cc, SolError *err) {
  SolFatbin fat;
  SolFatEntry entry;
  char *text;
  size_t length;
  SolStatus status = sol_fatbin_open(data, size, &fat, err);
  if (!status) status = sol_fatbin_choose_ptx(&fat, cc, &entry, err);
  if (!status) status = sol_fatbin_text(&entry, &text, &length, err);
  if (status) return status;
  status = sol_units_add(u, text, length);
  sol_heap_free(text);
  return status;
}

const char *sol_units_image(const SolUnits *u, size_t *size) {
  size_t skip = u->count == 1; // the mark
  *size = u->count ? u->text.length - skip + 1 : 0;
  return u->count ? u->text.text + skip : NULL;
}
