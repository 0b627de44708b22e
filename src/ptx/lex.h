// Tokens of PTX text. Start with {.text, .length}, then sol_ptx_next; `token` is the current one.
#ifndef SOL_PTX_LEX_H
#define SOL_PTX_LEX_H

#include "base/port.h"

typedef enum TokenKind {
  TOKEN_END,
  TOKEN_NAME,    // foo, %r1, $L__BB0_1, _
  TOKEN_WORD,    // .reg: text starts after the dot
  TOKEN_INT,     // value; `is_unsigned` where written with U, or beyond 63 bits
  TOKEN_FLOAT,   // 1.5, 1e3: real
  TOKEN_FLOAT32, // 0f3F800000: value holds the bits, real the number
  TOKEN_FLOAT64, // 0d...: likewise
  TOKEN_STRING,  // text inside the quotes
  TOKEN_MARK,    // a punctuation character: mark
  TOKEN_BAD      // `message` says why
} TokenKind;

typedef struct Token {
  TokenKind kind;
  char mark; // also of two-character operators: '<' '<' is 'L', '>>' 'R', '<=' 'l', '>=' 'g', '==' 'e', '!='
             // 'n',
             // '&&' 'A', '||' 'O'
  bool is_unsigned;
  uint32_t line;
  size_t at, length; // of the text, without a word's dot or a string's quotes
  uint64_t value;
  double real;
  const char *message;
} Token;

typedef struct Lexer {
  const char *text;
  size_t length;
  size_t next;   // where the next token is looked for
  uint32_t line; // of `next`, from 1
  Token token;
} Lexer;

void sol_ptx_next(Lexer *lexer);
// Reads the current name and the dotted words after it as one opcode: "ld", ".global", ".u32" give
// "ld.global.u32" in `out`. The token after it becomes current. False: longer than `cap` allows.
bool sol_ptx_lex_opcode(Lexer *lexer, char *out, size_t cap, size_t *length);
// With '{' current: goes to the matching '}' without reading what is between; false where there is none.
bool sol_ptx_skip_braces(Lexer *lexer);

// The double nearest to a decimal number, 0 digits to a thousand; infinity beyond the range.
double sol_ptx_read_decimal(const char *text, size_t length);

#endif
