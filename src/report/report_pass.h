// A model's pass on one GPU as facts: its kernels, its memory, what fusing and graphs would buy.
#ifndef SOL_REPORT_PASS_H
#define SOL_REPORT_PASS_H

#include "report/facts.h"
#include "sol/model.h"

SolStatus report_pass_facts(Fact *root, const SolDevice *d, const SolModelConfig *config,
                            const SolModelRun *run, SolError *err);

#endif
