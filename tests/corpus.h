// The corpus of self-checking CUDA kernels under tests/ptx: directives, data and verdicts, the same for every
// backend. tests/ptx/README.md says what the directives mean. For one file a runner does:
//
//   corpus_parse(&program, text, length, &message)       the //! lines; `text` must outlive the program
//   skip it where the module's architecture is below program.arch
//   for each alloc i: allocate allocs[i].bytes, keep the address; then corpus_fill() and copy to the device
//   for each launch i, in order: corpus_pack(), launch, wait
//   copy "errors" back, corpus_verdict()                 true, or what went wrong in `message`
#ifndef CORPUS_H
#define CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CORPUS_NAME = 64,
  CORPUS_MAX_ALLOCS = 24,
  CORPUS_MAX_LAUNCHES = 48,
  CORPUS_MAX_PRINTS = 160,
  CORPUS_MAX_ARGS = 64,
  CORPUS_ARG_BYTES = 32768, // more than any kernel's parameters
  CORPUS_ERROR_BYTES = 32   // least size of the buffer "errors"
};

typedef struct CorpusMessage {
  char text[320];
} CorpusMessage;

typedef struct CorpusText { // a piece of the source, not terminated
  const char *at;
  size_t length;
} CorpusText;

typedef enum CorpusData {
  CORPUS_UNINIT = 0, // never written by the host
  CORPUS_ZERO,
  CORPUS_POISON, // bytes 0xA5
  CORPUS_IOTA_U32,
  CORPUS_RANDOM_U32,   // below `bound`; 0: any
  CORPUS_RANDOM_F32,   // multiples of 2^-23 in [-1, 1): sums and products are exact in f64
  CORPUS_RANDOM_F64,   // multiples of 2^-52 in [-1, 1)
  CORPUS_RANDOM_F16,   // multiples of 2^-10 in [-1, 1)
  CORPUS_RANDOM_BF16,  // multiples of 2^-7 in [-1, 1)
  CORPUS_INTEGERS_F32, // whole numbers in [-bound, bound]
  CORPUS_INTEGERS_F16,
  CORPUS_PERMUTATION_U32, // of 0 .. n-1
  CORPUS_VALUES_U32,      // the words of `list`, then zeros
  CORPUS_POINTERS         // addresses of the buffers in `list`
} CorpusData;

typedef struct CorpusAlloc {
  char name[CORPUS_NAME];
  uint64_t bytes, bound, seed;
  CorpusData data;
  CorpusText list;
  int line;
} CorpusAlloc;

typedef struct CorpusLaunch {
  char kernel[CORPUS_NAME];
  uint32_t grid[3], block[3];
  uint32_t cluster[3]; // of the launch, not of the kernel's own attributes; all 0: none
  uint32_t smem;
  bool cooperative;
  bool dependent; // may start before the launch before it has ended (programmatic dependent launch)
  CorpusText args;
  int line;
} CorpusLaunch;

typedef struct CorpusProgram {
  int arch;             // 75, 80, 90: the least it needs
  uint64_t stack, heap; // bytes a thread's stack and the device heap need; 0: the usual
  uint64_t checks;      // fewer comparisons than this are a failure
  int alloc_count, launch_count, print_count;
  CorpusAlloc allocs[CORPUS_MAX_ALLOCS];
  CorpusLaunch launches[CORPUS_MAX_LAUNCHES];
  CorpusText prints[CORPUS_MAX_PRINTS]; // lines that printf must write, in any order
} CorpusProgram;

// A kernel's parameters as PTX lays them out: argument i is bytes[i] long at block + offsets[i].
typedef struct CorpusArgs {
  int count;
  size_t size, offsets[CORPUS_MAX_ARGS], bytes[CORPUS_MAX_ARGS];
  unsigned char block[CORPUS_ARG_BYTES];
} CorpusArgs;

// False with "line N: ..." in `message` for a directive that cannot be read or names what is not there.
bool corpus_parse(CorpusProgram *program, const char *text, size_t length, CorpusMessage *message);
// The alloc's number, or -1.
int corpus_find(const CorpusProgram *program, const char *name, size_t length);
// Writes the initial contents of alloc i, allocs[i].bytes of them. `addresses` are the device's, one per
// alloc. Nothing is written, and false returned, for CORPUS_UNINIT.
bool corpus_fill(const CorpusProgram *program, int i, const uint64_t *addresses, void *out);
// Packs the arguments of launch i. Never fails on a parsed program.
bool corpus_pack(const CorpusProgram *program, int i, const uint64_t *addresses, CorpusArgs *out,
                 CorpusMessage *message);
// `errors`: the buffer of that name after the last launch, on a little-endian host. `printed`: all that the
// kernels printed, or NULL where the backend cannot tell. On success `message` says how much was compared.
bool corpus_verdict(const CorpusProgram *program, const uint32_t *errors, const char *printed,
                    CorpusMessage *message);

#endif
