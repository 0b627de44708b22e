// Launches between processes, a line of JSON each: the program under audit writes them as they end, the
// auditor reads them, so that a program that dies leaves what it did so far. What is said once of a kernel is
// not repeated: a line says of an instruction what it is when it is first seen to run.
#ifndef SOL_AUDIT_WIRE_H
#define SOL_AUDIT_WIRE_H

#include "audit/audit.h"
#include "base/buffer.h"

// What was told of a kernel so far; starts as {0}, the writer's. Freed with audit_told_free.
typedef struct AuditTold {
  uint8_t *places; // by place: whether it was
  uint32_t count;
} AuditTold;
void audit_told_free(AuditTold *told);

// Appends one line, '\n' included. `id` tells the kernels of the program apart.
void audit_write_launch(const AuditLaunch *launch, uint32_t id, AuditTold *told, SolBuffer *out);
void audit_write_outside(AuditOutside what, uint64_t address, uint64_t bytes, SolBuffer *out);
// How far the launch at hand is, for whoever waits.
void audit_write_progress(const SolEmuProgress *progress, SolBuffer *out);

// Reading: starts as {0}.
typedef struct AuditReader {
  SolArena arena;   // what was said once
  SolArena scratch; // of the last line
  struct AuditHeard *kernels;
  uint32_t count, cap;
} AuditReader;
typedef enum AuditLineKind { AUDIT_LINE_LAUNCH, AUDIT_LINE_OUTSIDE, AUDIT_LINE_PROGRESS } AuditLineKind;
typedef struct AuditHeardLine {
  AuditLineKind kind;
  AuditLaunch launch; // valid until the next line
  AuditOutside what;
  uint64_t address, bytes;
  SolEmuProgress progress; // its kernel's name is valid until the next line
} AuditHeardLine;
// SOL_ERR_SYNTAX: not a line of ours, or cut.
SolStatus audit_read_line(AuditReader *reader, const char *line, size_t length, AuditHeardLine *out,
                          SolError *err);
void audit_reader_free(AuditReader *reader);

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
  X(queue_words)                                                                                             \
  X(allocation)                                                                                              \
  X(several)                                                                                                 \
  X(values)                                                                                                  \
  X(as_fp16)                                                                                                 \
  X(as_bf16)                                                                                                 \
  X(zeros)

#endif
