// Text that somebody else chose (names of kernels and files, messages), made safe to show. Control
// characters, and characters that reorder or hide other text, are escaped.
#ifndef SOL_BASE_PLAIN_H
#define SOL_BASE_PLAIN_H

#include "base/buffer.h"

// The character at the start of text: its length in bytes and its code; 0 where the bytes are no UTF-8.
size_t sol_utf8_next(const char *text, size_t length, uint32_t *code);
// Control characters, those that change the direction of text, and those that nothing shows.
bool sol_code_is_hidden(uint32_t code);

// Adds text with control bytes and invalid UTF-8 as \xNN, other hidden characters as \uNNNN. `lines`: ends of
// lines stay.
void sol_buffer_plain(SolBuffer *out, const char *text, size_t length, bool lines);
bool sol_text_is_plain(const char *text, size_t length, bool lines); // as it would be added unchanged
// The longest beginning of at most `most` bytes that ends between two characters.
size_t sol_text_cut(const char *text, size_t most);

#endif
