#include "fleet/fleet_wire.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 2, ROOM = FLEET_PIECE - HEAD }; // a piece: kind, whether it is the last, text

bool fleet_inbox_open(FleetInbox *box, int size) {
  box->parts = calloc((size_t)size, sizeof *box->parts);
  box->whole = calloc((size_t)size, sizeof *box->whole);
  box->size = size;
  return box->parts && box->whole;
}

void fleet_inbox_close(FleetInbox *box) {
  for (int i = 0; box->parts && i < box->size; i++) sol_buffer_free(&box->parts[i]);
  free(box->parts);
  free(box->whole);
  *box = (FleetInbox){0};
}

void fleet_say(const FleetLink *link, int to, FleetKind kind, const char *text, size_t length) {
  char piece[FLEET_PIECE];
  for (size_t at = 0;;) {
    size_t n = length - at < ROOM ? length - at : ROOM;
    piece[0] = (char)kind;
    piece[1] = at + n == length;
    if (n) memcpy(piece + HEAD, text + at, n);
    link->send(to, piece, n + HEAD);
    at += n;
    if (at == length) return;
  }
}

bool fleet_hear(const FleetLink *link, FleetInbox *box, int *from, bool *heard, FleetKind *kind,
                SolBuffer **text) {
  char piece[FLEET_PIECE];
  size_t n = link->receive(from, piece);
  *heard = n >= HEAD && *from >= 0 && *from < box->size;
  if (!*heard) return false;
  SolBuffer *b = &box->parts[*from];
  if (box->whole[*from]) b->length = 0;
  sol_buffer_put(b, piece + HEAD, n - HEAD);
  box->whole[*from] = piece[1];
  if (!piece[1]) return false;
  *kind = (FleetKind)piece[0];
  *text = b;
  return true;
}

void fleet_write_result(int job, const FleetResult *r, SolBuffer *out) {
  sol_buffer_format(out, "%d %d %d %.6f %llu\n", job, r->exit, r->signal, r->seconds,
                    (unsigned long long)r->output.length);
  if (r->output.length) sol_buffer_put(out, r->output.text, r->output.length);
  if (r->errors.length) sol_buffer_put(out, r->errors.text, r->errors.length);
}

bool fleet_read_result(const SolBuffer *text, int *job, FleetResult *out) {
  if (!text->text) return false;
  char *p = text->text, *start = p;
  *job = (int)strtol(p, &p, 10);
  out->exit = (int)strtol(p, &p, 10);
  out->signal = (int)strtol(p, &p, 10);
  out->seconds = strtod(p, &p);
  size_t length = (size_t)strtoull(p, &p, 10), head = (size_t)(p - start) + 1;
  if (*p != '\n' || head > text->length || length > text->length - head) return false;
  sol_buffer_put(&out->output, p + 1, length);
  sol_buffer_put(&out->errors, p + 1 + length, text->length - head - length);
  out->done = true;
  return true;
}
