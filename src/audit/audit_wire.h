// Sends launches from the audited program to the auditor, one line of JSON per launch, written when the launch
// ends: the launches of a program that crashes later are not lost. An instruction is described only in the
// first launch that executes it.
#ifndef SOL_AUDIT_WIRE_H
#define SOL_AUDIT_WIRE_H

#include "audit/audit.h"
#include "base/buffer.h"
#include "base/json_read.h"

// The writer's record of which instructions of a kernel it has described. Starts as {0}; freed with
// audit_sent_free.
typedef struct AuditSent {
  uint8_t *places; // by AuditInst.place: described
  uint32_t count;
} AuditSent;
void audit_sent_free(AuditSent *sent);

// Appends one line, '\n' included. `id` identifies the kernel in the program.
void audit_write_launch(const AuditLaunch *launch, uint32_t id, AuditSent *sent, SolBuffer *out);
// audit_wire_trace.c: a member of a launch's object, with the comma behind it; and reading its value.
void audit_write_trace(const SolEmuTrace *trace, SolBuffer *out);
bool audit_read_trace(SolArena *arena, SolJson list, const SolEmuTrace **out);
// The PTX of a module whose machine code is not known: the auditor may have it compiled.
void audit_write_module(uint32_t unit, const char *ptx, SolBuffer *out);
// A launch that was not counted: as the one that was sent with this key.
void audit_write_again(const AuditAgain *again, SolBuffer *out);
void audit_write_outside(AuditOutside what, uint64_t address, uint64_t bytes, SolBuffer *out);
// A call or kernels that did not run here: "cublasSgemm_v2", "kernels of libcufft.so.12".
void audit_write_missing(const char *what, SolBuffer *out);
// One call of a library that computed.
void audit_write_library(const AuditLibraryCall *call, SolBuffer *out);
// The progress of the running launch.
void audit_write_progress(const SolEmuProgress *progress, SolBuffer *out);

// Reading: starts as {0}.
typedef struct AuditReader {
  SolArena arena;   // descriptions of instructions
  SolArena scratch; // data of the last line
  struct AuditReadKernel *kernels;
  uint32_t count, cap;
} AuditReader;
typedef enum AuditLineKind {
  AUDIT_LINE_LAUNCH,
  AUDIT_LINE_AGAIN,
  AUDIT_LINE_MODULE,
  AUDIT_LINE_OUTSIDE,
  AUDIT_LINE_MISSING,
  AUDIT_LINE_LIBRARY,
  AUDIT_LINE_PROGRESS
} AuditLineKind;
typedef struct AuditMessage {
  AuditLineKind kind;
  AuditLaunch launch; // valid until the next line; its instructions may be changed
  AuditAgain again;   // the same
  uint32_t unit;      // the module, AuditLaunch.unit
  const char *ptx;    // its text; valid until the next line
  AuditOutside what;
  const char *missing;      // valid until the next line
  AuditLibraryCall library; // its name is valid until the next line
  uint64_t address, bytes;
  SolEmuProgress progress; // its kernel's name is valid until the next line
} AuditMessage;
// SOL_ERR_SYNTAX: the line was not written by audit_write_..., or is incomplete.
SolStatus audit_read_line(AuditReader *reader, const char *line, size_t length, AuditMessage *out,
                          SolError *err);
void audit_reader_free(AuditReader *reader);

// Numbers of a launch: 13 of its own, its chain, whether it is priced by machine code, three of L2, its balance, and
// SolL2Earlier.
enum {
  AUDIT_LAUNCH_FOUND = 19 + (int)(sizeof(SolEmuChain) / sizeof(double)),
  AUDIT_LAUNCH_NUMBERS = AUDIT_LAUNCH_FOUND + 2 * SOL_AGES
};
enum { AUDIT_FAULT_NUMBERS = 12 };
// Numbers of an example of an access, where there is one: block, mask, sectors, lanes.
enum { AUDIT_EXAMPLE_NUMBERS = 3 + 32 };
// Numbers of a pattern, in the order in which they are sent.
#define AUDIT_PATTERN_NUMBERS(X)                                                                             \
  X(width)                                                                                                   \
  X(seen)                                                                                                    \
  X(stride)                                                                                                  \
  X(stride_times)                                                                                            \
  X(strided)                                                                                                 \
  X(rows)                                                                                                    \
  X(uniform)                                                                                                 \
  X(scattered)                                                                                               \
  X(contiguous)                                                                                              \
  X(misaligned)                                                                                              \
  X(step)                                                                                                    \
  X(step_times)                                                                                              \
  X(steps)                                                                                                   \
  X(same)                                                                                                    \
  X(hottest)                                                                                                 \
  X(queue_lanes)                                                                                             \
  X(queue_packets)                                                                                           \
  X(queue_slice)                                                                                             \
  X(allocation)                                                                                              \
  X(several)                                                                                                 \
  X(values)                                                                                                  \
  X(as_fp16)                                                                                                 \
  X(as_bf16)                                                                                                 \
  X(zeros)                                                                                                   \
  X(swaps)                                                                                                   \
  X(swapped)                                                                                                 \
  X(held)

#endif
