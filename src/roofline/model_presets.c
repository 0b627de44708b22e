#include "base/error.h"
#include "base/text.h"
#include "sol/model.h"

static const SolModelConfig presets[] = {
#define PRESET(preset, other_names, params, from, ...)                                                       \
  {.name = preset, .aliases = other_names, .published_params = params, .source = from, __VA_ARGS__},
#include "roofline/presets.def"
#undef PRESET
};

int sol_model_preset_count(void) {
  return (int)SOL_COUNT(presets);
}

const SolModelConfig *sol_model_preset(int i) {
  return i >= 0 && i < sol_model_preset_count() ? &presets[i] : 0;
}

static const char *name_at(const void *ctx, int i) {
  (void)ctx;
  return presets[i].name;
}

SolStatus sol_model_find(const char *name, SolModelConfig *out, SolError *err) {
  if (!name || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "name and out must not be NULL");
  for (int i = 0; i < sol_model_preset_count(); i++) {
    if (!sol_same_name(name, presets[i].name) && !sol_name_in_list(name, presets[i].aliases)) continue;
    *out = presets[i];
    return SOL_OK;
  }
  return sol_fail_unknown(err, "model", name, name_at, 0, sol_model_preset_count());
}
