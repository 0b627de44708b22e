// What joins the GPUs of a model that is split over several: a level inside a machine and one between machines.
// A preset by name ("nvlink4", "nvlink4,ib400"), or a JSON file:
//
//   {"name": "our pod", "overlap": 0,
//    "inside": {"kind": "nvlink", "bandwidth": 450e9, "gpus": 8, "latency_us": 0.6, "one_shot": true},
//    "between": {"kind": "network", "bandwidth": 50e9}}
#ifndef SOL_FABRIC_H
#define SOL_FABRIC_H

#include <stddef.h>

#include "sol/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SolLinkKind { SOL_LINK_NVLINK = 0, SOL_LINK_PCIE, SOL_LINK_NETWORK } SolLinkKind;

typedef struct SolFabricLevel {
  SolLinkKind kind;
  double bandwidth;  // bytes/s that one GPU sends; 0: there is no such level
  double latency_us; // of one step with the smallest message; 0: NCCL's for the kind
  int64_t gpus;      // inside: of one machine; 0: any number
  int one_shot;      // every GPU can write to every other: small sums are sent whole, in one step
} SolFabricLevel;

typedef struct SolFabric {
  char name[64];
  SolFabricLevel inside, between;
  double overlap; // share of the collectives' time that other kernels hide, 0 to 1
} SolFabric;

// The names of the presets; NULL outside [0, count).
SOL_API int sol_fabric_preset_count(void);
SOL_API const char *sol_fabric_preset_name(int i);
// One preset, or two separated by a comma: inside a machine, and between machines.
SOL_API SolStatus sol_fabric_find(const char *name, SolFabric *out, SolError *err);
// Parses a JSON file's text. `err` names the field that is wrong.
SOL_API SolStatus sol_fabric_parse(const char *json, size_t length, SolFabric *out, SolError *err);

#ifdef __cplusplus
}
#endif
#endif
