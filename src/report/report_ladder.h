// The output of `sol ladder`: facts, the comparison of predictions with a measured run, markdown.
#ifndef SOL_REPORT_LADDER_H
#define SOL_REPORT_LADDER_H

#include "base/json_read.h"
#include "ladder/ladder_run.h"
#include "report/facts.h"

typedef struct LadderRow {
  const LadderRung *rung;
  double bytes;            // that have to move
  bool emulated, measured; // was tried; the figures have the result
  LadderFigures emu, gpu;
} LadderRow;

typedef struct LadderAnswer {
  const Ladder *ladder;
  LadderCase c;
  LadderRow *rows;
  int count;
  SolStatus status; // of opening it: no memory, no kernels
  char message[256];
} LadderAnswer;

// Where the figures are from.
typedef struct LadderWhere {
  const SolDevice *device;            // predicted for; NULL: nothing is predicted
  char gpu[96], driver[32], date[32]; // measured on; empty: nothing is
  size_t width;                       // columns of the terminal, for drawings; 0: any
  bool source;                        // show the rungs' code
} LadderWhere;

void report_ladder_shape_text(const Ladder *ladder, const int64_t dim[4], char *out,
                              size_t cap); // "8192x4096"
// The row that `rung` is compared with: `against`, or the one before; NULL: there is none.
const LadderRow *report_ladder_before(const LadderAnswer *a, const LadderRow *row);

// Whether what was seen on one GPU (LadderRung.seen) belongs to the figures shown.
bool ladder_seen(const LadderRung *rung, const LadderWhere *where);

typedef enum LadderVerdict { LADDER_UNDECIDED, LADDER_AS_EXPECTED, LADDER_NOT_AS_EXPECTED } LadderVerdict;
// Whether the times show what the ladder expects; gpu: the measured ones. A predicted difference that is within
// the model's error decides nothing.
LadderVerdict report_ladder_verdict(const LadderAnswer *a, const LadderRow *row, bool gpu);

// The list of all: `sol ladder`.
void report_ladder_list_facts(Fact *root);
// "ladders": one object for each answer.
void report_ladder_facts(Fact *root, const LadderAnswer *answers, int count, const LadderWhere *where);

// Takes figures of an earlier --json into the rows they belong to. predictions: those, too, not only what was
// measured. false: it has nothing of this ladder at this shape and type.
bool report_ladder_read(LadderAnswer *a, SolJson root, bool predictions);

// Compares predictions with measurements, in every row that has both.
typedef struct LadderComparison {
  int rows, counts, differ; // counts: exact in both; differ: of those
  int dram_rows, time_rows;
  double dram_median, dram_worst, time_median, time_worst; // off by: max(p/m, m/p) - 1
  char worst_time[96], worst_dram[96];                     // which
} LadderComparison;
LadderComparison report_ladder_compare(const LadderAnswer *answers, int count);
void report_ladder_compare_facts(Fact *root, const LadderAnswer *answers, int count,
                                 const LadderWhere *where);
void report_ladder_compare_markdown(SolBuffer *out, const LadderAnswer *answers, int count,
                                    const LadderWhere *where);

// docs/ladders/NAME.md.
void report_ladder_markdown(SolBuffer *out, const LadderAnswer *a, const LadderWhere *where);

#endif
