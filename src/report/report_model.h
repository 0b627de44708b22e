// The constants of the machine as facts: what the predictions of a GPU rest on, and where each is from.
#ifndef SOL_REPORT_MODEL_H
#define SOL_REPORT_MODEL_H

#include "machine/machine.h"
#include "report/facts.h"

// For machines: `model` {all, published, measured, compiler, assumed, constants [...]}.
void report_model_facts(Fact *parent, const SolDevice *device);
// For people: "of 43 constants 7 are published, 27 were measured on it, ...".
void report_model_sentence(char *out, size_t cap, const SolDevice *device);
// For people: a table of all of them.
void report_model_table(Fact *parent, const SolDevice *device);

#endif
