// libsolredirect.so: an auditor of the dynamic loader (rtld-audit(7)). nvcc links the CUDA runtime into programs
// by default; its functions then stand in the program's own symbol table. Before constructors run, the start of
// each is overwritten with a jump to the function of that name in Sol's libcudart. The same is done for
// shared objects with a copy of the runtime, also for those that are opened later.
//
// The loader keeps an auditor in a namespace of its own, with its own C library. This one holds no more state than a
// list of objects, and is only called with the loader's lock held.
#ifndef SOL_REDIRECT_REDIRECT_H
#define SOL_REDIRECT_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The ELF file of an object, mapped to be read.
typedef struct RedirectFile {
  const uint8_t *data;
  size_t size;
} RedirectFile;
bool redirect_open(const char *path, RedirectFile *out);
void redirect_close(RedirectFile *file);

typedef struct RedirectSymbol { // a function in the symbol table
  const char *name;
  uint64_t value; // address before the object is moved to where it is loaded
  uint64_t size;
  bool hidden;
} RedirectSymbol;
// Calls `visit` for each function that the file's symbol table of a kind (SHT_SYMTAB, SHT_DYNSYM) defines; false: it has
// none, or is damaged.
bool redirect_symbols(const RedirectFile *file, uint32_t kind,
                      void (*visit)(void *ctx, const RedirectSymbol *s), void *ctx);
// The bytes of the file that are loaded at an address; NULL: none, or fewer than wanted.
const uint8_t *redirect_loaded(const RedirectFile *file, uint64_t value, size_t bytes);

// The address of a symbol that a loaded object exports; 0: none. `dynamic` is its dynamic section.
uint64_t redirect_export(const void *dynamic, uint64_t base, const char *name);

// Where calls are led: to `target`; with `name` as the only argument where that is not NULL.
typedef struct RedirectJump {
  uint8_t *from;
  uint64_t room; // bytes of the function at `from`
  uint64_t target;
  const char *name;
} RedirectJump;
typedef enum RedirectEnd { REDIRECT_DONE, REDIRECT_TOO_SHORT, REDIRECT_REFUSED } RedirectEnd;
typedef struct RedirectVeneers { // memory to be unmapped once the object is closed; at NULL: none
  void *at;
  size_t size;
} RedirectVeneers;
// Writes all of them. What lies between the first and the last must be text of one object. TOO_SHORT: a function has no
// room for a jump, and is left as it is. REFUSED: the system lets no code be changed; nothing was.
RedirectEnd redirect_write(const RedirectJump *jumps, size_t count, RedirectVeneers *veneers);

#endif
