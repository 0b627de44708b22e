// What all parts of the parser use: failures, tokens, and what is kept for the module.
#include "base/format.h"
#include "ptx/internal.h"

static const char *source_name(const Parser *p) {
  return p->source->name ? p->source->name : "ptx";
}

bool sol_ptx_fail(Parser *p, SolStatus status, size_t at, const char *format, ...) {
  if (p->status) return false;
  p->status = status;
  char message[200];
  va_list args;
  va_start(args, format);
  sol_vformat(message, sizeof message, format, args);
  va_end(args);
  if (p->source_count > 1)
    sol_fail_at(p->err, status, p->source->text, p->source->length, at, "%.80s: %s", source_name(p), message);
  else
    sol_fail_at(p->err, status, p->source->text, p->source->length, at, "%s", message);
  return false;
}

bool sol_ptx_fail_memory(Parser *p) {
  if (!p->status) p->status = sol_fail(p->err, SOL_ERR_NO_SPACE, "out of memory while loading PTX");
  return false;
}

bool sol_ptx_fail_expected(Parser *p, const char *what) {
  const Token *t = &p->lex.token;
  if (t->kind == TOKEN_BAD) return sol_ptx_fail(p, SOL_ERR_SYNTAX, t->at, "%s", t->message);
  if (t->kind == TOKEN_END)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, t->at, "expected %s, but the text ends here", what);
  int shown = t->length > 60 ? 60 : (int)t->length;
  const char *dot = t->kind == TOKEN_WORD ? "." : "";
  size_t at = t->at - (t->kind == TOKEN_WORD || t->kind == TOKEN_STRING);
  return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "expected %s, not '%s%.*s'", what, dot, shown,
                      p->lex.text + t->at);
}

bool sol_ptx_is_mark(const Parser *p, char mark) {
  return p->lex.token.kind == TOKEN_MARK && p->lex.token.mark == mark;
}

bool sol_ptx_is_word(const Parser *p, const char *word) {
  const Token *t = &p->lex.token;
  return t->kind == TOKEN_WORD && strlen(word) == t->length && !memcmp(p->lex.text + t->at, word, t->length);
}

bool sol_ptx_take(Parser *p, char mark) {
  if (!sol_ptx_is_mark(p, mark)) return false;
  sol_ptx_next(&p->lex);
  return true;
}

bool sol_ptx_expect(Parser *p, char mark) {
  if (sol_ptx_take(p, mark)) return true;
  char what[] = {'\'', mark, '\'', 0};
  return sol_ptx_fail_expected(p, what);
}

bool sol_ptx_take_word(Parser *p, const char *word) {
  if (!sol_ptx_is_word(p, word)) return false;
  sol_ptx_next(&p->lex);
  return true;
}

Name *sol_ptx_take_name(Parser *p, const char *what) {
  const Token *t = &p->lex.token;
  if (t->kind != TOKEN_NAME) return sol_ptx_fail_expected(p, what), NULL;
  Name *name = sol_ptx_intern(&p->names, p->lex.text + t->at, t->length);
  if (!name) sol_ptx_fail_memory(p);
  sol_ptx_next(&p->lex);
  return name;
}

void *sol_ptx_keep_copy(Parser *p, const void *from, size_t size) {
  void *copy = sol_arena_alloc(p->keep, size);
  if (!copy) return sol_ptx_fail_memory(p), NULL;
  return size ? memcpy(copy, from, size) : copy;
}

char *sol_ptx_keep_text(Parser *p, const char *text, size_t length) {
  char *copy = sol_arena_alloc(p->keep, length + 1);
  if (!copy) return sol_ptx_fail_memory(p), NULL;
  if (length) memcpy(copy, text, length);
  return copy;
}

bool sol_ptx_take_type(Parser *p, PtxType *type) {
  const Token *t = &p->lex.token;
  *type = t->kind == TOKEN_WORD ? sol_ptx_type_of(p->lex.text + t->at, t->length) : PTX_TYPE_NONE;
  if (*type == PTX_TYPE_NONE) return sol_ptx_fail_expected(p, "a type");
  sol_ptx_next(&p->lex);
  return true;
}

const char *sol_ptx_keep_name(Parser *p, Name *name) {
  if (!name->kept) name->kept = sol_ptx_keep_text(p, name->text, name->length);
  return name->kept;
}
