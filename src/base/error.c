#include "base/error.h"

#include "base/format.h"
#include "base/text.h"

const char *sol_status_name(SolStatus status) {
  switch (status) {
  case SOL_OK: return "ok";
  case SOL_ERR_ARGUMENT: return "argument";
  case SOL_ERR_NOT_FOUND: return "not_found";
  case SOL_ERR_SYNTAX: return "syntax";
  case SOL_ERR_RANGE: return "range";
  case SOL_ERR_UNSUPPORTED: return "unsupported";
  case SOL_ERR_UNKNOWN: return "unknown";
  case SOL_ERR_NO_SPACE: return "no_space";
  case SOL_ERR_IO: return "io";
  }
  return "?";
}

static void reset(SolError *err, SolStatus status, const char *format, va_list args) {
  *err = (SolError){.status = status, .offset = -1};
  sol_vformat(err->message, sizeof err->message, format, args);
  for (char *p = err->message; *p; p++) // a message is one line, whatever names it quotes
    if (*p == '\n') *p = ' ';
}

#undef sol_fail // here is the function, not what error.h shows the analyzer
SolStatus sol_fail(SolError *err, SolStatus status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  reset(err, status, format, args);
  va_end(args);
  return status;
}

SolStatus sol_fail_at(SolError *err, SolStatus status, const char *text, size_t length, size_t offset,
                      const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  reset(err, status, format, args);
  va_end(args);
  if (offset > length) offset = length;
  err->offset = (int64_t)offset;
  err->line = err->column = 1;
  for (size_t i = 0; i < offset; i++) {
    if (text[i] == '\n')
      err->line++, err->column = 1;
    else
      err->column++;
  }
  return status;
}

void sol_hint(SolError *err, const char *format, ...) {
  if (!err) return;
  va_list args;
  va_start(args, format);
  sol_vformat(err->hint, sizeof err->hint, format, args);
  va_end(args);
}

SolStatus sol_fail_unknown(SolError *err, const char *kind, const char *name, SolNameAt *name_at,
                           const void *ctx, int count) {
  SolStatus status = sol_fail(err, SOL_ERR_NOT_FOUND, "unknown %s '%.80s'", kind, name);
  if (!err) return status;
  enum { OFFER = 3 };
  int best[OFFER], distance[OFFER], found = 0;
  for (int i = 0; i < count; i++) {
    int d = sol_name_distance(name, name_at(ctx, i));
    int at = found;
    while (at > 0 && distance[at - 1] > d) at--;
    if (at == OFFER) continue;
    if (found < OFFER) found++;
    for (int k = found - 1; k > at; k--) best[k] = best[k - 1], distance[k] = distance[k - 1];
    best[at] = i, distance[at] = d;
  }
  // Offer only what resembles the name: further off than half its length is a guess, not a typing error.
  int limit = 1 + (int)strlen(name) / 2;
  size_t used = 0;
  for (int k = 0; k < found && (k == 0 || distance[k] <= limit); k++) {
    const char *before = k == 0 ? "nearest: " : ", ";
    if (used >= sizeof err->hint) break;
    used += sol_format(err->hint + used, sizeof err->hint - used, "%s%s", before, name_at(ctx, best[k]));
  }
  return status;
}
