// What nvcc puts into a program: containers of entries, each PTX text or machine code for one architecture,
// plain or compressed. Nothing outside the given bytes is ever read.
//
//   SolFatbin fat;
//   if (sol_fatbin_open(data, size, &fat, &err)) ...
//   if (sol_fatbin_choose_ptx(&fat, 90, &entry, &err)) ...      the newest PTX that sm_90 runs
//   if (sol_fatbin_text(&entry, &text, &length, &err)) ...      freed with sol_heap_free
#ifndef SOL_IMAGE_FATBIN_H
#define SOL_IMAGE_FATBIN_H

#include "base/port.h"
#include "sol/status.h"

typedef struct SolFatbin {
  const uint8_t *data; // of all entries
  uint64_t size;
} SolFatbin;

typedef enum SolFatKind { SOL_FAT_OTHER, SOL_FAT_PTX, SOL_FAT_ELF } SolFatKind;
typedef enum SolFatPacking { SOL_FAT_PLAIN, SOL_FAT_LZ4, SOL_FAT_ZSTD } SolFatPacking;
typedef struct SolFatEntry {
  SolFatKind kind;
  SolFatPacking packing;
  int arch;    // 90
  char suffix; // 'a': that architecture alone, 'f': its family, 0: all newer ones too
  const uint8_t *data;
  uint64_t size;     // of data
  uint64_t unpacked; // of the text; packing PLAIN: size
  uint64_t next;     // where the next entry starts
} SolFatEntry;

enum { SOL_FATBIN_HEADER = 16 };
#define SOL_FATBIN_MAX_TEXT (UINT64_C(1) << 30) // unpacked bytes of an entry; more is taken for damage

// Bytes the container has by its own header, or 0 where it is none; reads SOL_FATBIN_HEADER bytes.
uint64_t sol_fatbin_size(const void *header);
SolStatus sol_fatbin_open(const void *data, uint64_t size, SolFatbin *out, SolError *err);
// Steps through the entries: starts with *entry = {0}. False at the end; damage ends it too, with *err.
bool sol_fatbin_next(const SolFatbin *fat, SolFatEntry *entry, SolError *err);
// cc: 90 for sm_90. SOL_ERR_NOT_FOUND where no PTX runs there; the error names what there is and nvcc's flags.
SolStatus sol_fatbin_choose_ptx(const SolFatbin *fat, int cc, SolFatEntry *out, SolError *err);
// What a GPU loads: machine code that runs there, otherwise PTX, which its driver compiles.
SolStatus sol_fatbin_choose(const SolFatbin *fat, int cc, SolFatEntry *out, SolError *err);
// The machine code whose architecture is nearest to cc, older ones first; false where there is none.
bool sol_fatbin_choose_elf(const SolFatbin *fat, int cc, SolFatEntry *out);
// What the entry holds, unpacked, with a NUL after it. *text is freed with sol_heap_free.
SolStatus sol_fatbin_text(const SolFatEntry *entry, char **text, size_t *length, SolError *err);

// lz4.c: one LZ4 block into exactly `size` bytes; false where it is damaged or of another size.
bool sol_lz4_unpack(const uint8_t *from, size_t from_size, uint8_t *to, size_t size);
// zstd.c: the same of one zstd frame.
SolStatus sol_zstd_unpack(const uint8_t *from, size_t from_size, uint8_t *to, size_t size, SolError *err);

// cubin.c: registers a thread of the kernel takes, from the machine code; 0: unknown.
int sol_cubin_registers(const void *elf, size_t size, const char *kernel);
// Bytes of a thread's stack, spilled registers and local arrays; 0: none, or unknown.
int sol_cubin_stack(const void *elf, size_t size, const char *kernel);

#endif
