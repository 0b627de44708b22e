#include <stdarg.h>

#include "base/error.h"
#include "base/format.h"
#include "roofline/model_parse.h"

typedef enum Kind { COUNT, FRACTION, FLAG, TEXT, ANY } Kind;

typedef struct Key {
  const char *names;
  Kind kind;
  double least, most;
  const char *field; // of SolModelConfig; NULL: none
  size_t offset;
} Key;

static const Key keys[SOL_CONFIG_KEYS] = {
#define FIELD(f)                                 #f, offsetof(SolModelConfig, f)
#define NOWHERE                                  0, 0
#define KEY(id, names, kind, least, most, field) {names, kind, least, most, field},
#include "roofline/model_keys.def"
#undef FIELD
#undef NOWHERE
};

SolStatus sol_config_fail(SolConfigText *t, SolJson at, SolStatus status, const char *format, ...) {
  char message[sizeof t->err->message];
  va_list args;
  va_start(args, format);
  sol_vformat(message, sizeof message, format, args);
  va_end(args);
  return sol_fail_at(t->err, status, at.text, at.length, at.at, "%s", message);
}

static size_t word_length(const char *words) {
  size_t n = 0;
  while (words[n] && words[n] != ' ') n++;
  return n;
}

SolStatus sol_config_missing(SolConfigText *t, SolConfigKey key) {
  const char *names = keys[key].names;
  size_t first = word_length(names);
  SolStatus status =
      sol_config_fail(t, t->object, SOL_ERR_SYNTAX, "the key '%.*s' is missing", (int)first, names);
  if (names[first]) sol_hint(t->err, "other names for it: %s", names + first + 1);
  return status;
}

void sol_config_text(SolJson value, char *out, size_t cap) {
  out[0] = 0;
  if (!value.text || !sol_json_string(value, out, cap)) return;
  for (char *s = out; *s; s++)
    if (*s < ' ' || *s > '~') *s = '?';
}

// Which of the space-separated words `name` is; -1: none.
static int word_rank(const char *words, const char *name) {
  size_t n = strlen(name);
  for (int rank = 0;; rank++) {
    size_t word = word_length(words);
    if (word == n && memcmp(words, name, n) == 0) return rank;
    if (!words[word]) return -1;
    words += word + 1;
  }
}

static void place(SolConfigSlot *slot, int rank, const char *name, SolJson value) {
  bool null = sol_json_kind(value) == SOL_JSON_NULL;
  // A better name stays; a null under a better name does not hide a value.
  if (slot->found && (slot->rank < rank || (null && slot->rank > rank))) return;
  *slot = (SolConfigSlot){.found = !null, .rank = rank, .value = value};
  sol_format(slot->name, sizeof slot->name, "%s", name);
}

void sol_config_collect(SolConfigText *t, SolJson object) {
  t->object = object;
  SolJsonIter it = {object, 0};
  SolJson name, value;
  char text[40];
  while (sol_json_next(&it, &name, &value)) {
    if (!sol_json_string(name, text, sizeof text)) continue;
    for (int k = 0; k < SOL_CONFIG_KEYS; k++) {
      int rank = word_rank(keys[k].names, text);
      if (rank < 0) continue;
      place(&t->slot[k], rank, text, value);
      break;
    }
  }
}

static SolStatus read_number(SolConfigText *t, const Key *key, SolConfigSlot *s) {
  if (sol_json_kind(s->value) != SOL_JSON_NUMBER)
    return sol_config_fail(t, s->value, SOL_ERR_SYNTAX, "%s must be a number", s->name);
  bool finite = sol_json_number(s->value, &s->number);
  if (key->kind == FRACTION) {
    if (finite && s->number > 0 && s->number <= key->most) return SOL_OK;
    return sol_config_fail(t, s->value, SOL_ERR_RANGE, "%s must be above 0 and at most 1", s->name);
  }
  bool whole = finite && s->number == __builtin_floor(s->number);
  if (whole && s->number >= key->least && s->number <= key->most) return SOL_OK;
  return sol_config_fail(t, s->value, SOL_ERR_RANGE, "%s must be a whole number from %.0f to %.0f", s->name,
                         key->least, key->most);
}

static SolStatus read_slot(SolConfigText *t, const Key *key, SolConfigSlot *s) {
  bool on = false;
  switch (key->kind) {
  case COUNT:
  case FRACTION: return read_number(t, key, s);
  case FLAG:
    if (!sol_json_bool(s->value, &on))
      return sol_config_fail(t, s->value, SOL_ERR_SYNTAX, "%s must be true or false", s->name);
    s->number = on;
    return SOL_OK;
  case TEXT:
    if (sol_json_kind(s->value) == SOL_JSON_STRING) return SOL_OK;
    return sol_config_fail(t, s->value, SOL_ERR_SYNTAX, "%s must be text in quotes", s->name);
  case ANY: break;
  }
  return SOL_OK;
}

SolStatus sol_config_read(SolConfigText *t, SolModelConfig *c) {
  for (int k = 0; k < SOL_CONFIG_KEYS; k++) {
    SolConfigSlot *s = &t->slot[k];
    if (!s->found) continue;
    SolStatus status = read_slot(t, &keys[k], s);
    if (status) return status;
    int64_t whole = (int64_t)s->number;
    if (keys[k].field) memcpy((char *)c + keys[k].offset, &whole, sizeof whole);
  }
  return SOL_OK;
}

bool sol_config_has(const SolConfigText *t, SolConfigKey key) {
  return t->slot[key].found;
}

int64_t sol_config_count(const SolConfigText *t, SolConfigKey key, int64_t fallback) {
  return t->slot[key].found ? (int64_t)t->slot[key].number : fallback;
}

bool sol_config_flag(const SolConfigText *t, SolConfigKey key, bool fallback) {
  return t->slot[key].found ? t->slot[key].number != 0 : fallback;
}

// Checking a config, wherever it comes from

static SolStatus check_fields(const SolModelConfig *c, SolError *err) {
  for (int k = 0; k < SOL_CONFIG_KEYS; k++) {
    const Key *key = &keys[k];
    if (!key->field) continue;
    int64_t whole;
    memcpy(&whole, (const char *)c + key->offset, sizeof whole);
    double v = (double)whole;
    // The fields up to head_dim are what every model has; of the others 0 says that there is none.
    if (v == 0 && key->offset > offsetof(SolModelConfig, head_dim)) continue;
    if (v >= key->least && v <= key->most) continue;
    return sol_fail(err, SOL_ERR_ARGUMENT, "%s must be from %.0f to %.0f, not %.0f", key->field, key->least,
                    key->most, v);
  }
  bool enums = (unsigned)c->norm <= SOL_NORM_LAYER_PLAIN && (unsigned)c->norm_place <= SOL_NORM_AFTER &&
               (unsigned)c->qk_norm <= SOL_QK_NORM_WIDTH && (unsigned)c->parallel_block <= 2;
  if (!enums)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "norm, norm_place, qk_norm or parallel_block is none of its values");
  if (c->learned_positions < 0 || c->learned_positions > 4294967296)
    return sol_fail(err, SOL_ERR_ARGUMENT, "learned_positions must be from 0 to 2^32");
  if ((unsigned)c->quantised > SOL_QUANTISED_EXPERTS || c->scale_block < 0 || c->scale_block > 4294967296 ||
      c->scale_bits < 0 || c->scale_bits > 64)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "quantised, scale_block (up to 2^32) or scale_bits (up to 64) is out of range");
  return SOL_OK;
}

static SolStatus check_attention(const SolModelConfig *c, SolError *err) {
  if (c->heads % c->kv_heads)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%lld attention heads cannot share %lld kv heads evenly",
                    (long long)c->heads, (long long)c->kv_heads);
  int64_t rope = c->rope_dim ? c->rope_dim : c->head_dim;
  if (!c->no_rope && (rope % 2 || rope > c->head_dim))
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "the rotated part of a head must be even and at most its width %lld",
                    (long long)c->head_dim);
  if (c->kv_lora_rank && (c->v_head_dim < 1 || c->rope_dim < 1 || c->rope_dim >= c->head_dim || c->no_rope))
    return sol_fail(err, SOL_ERR_ARGUMENT, "latent attention needs v_head_dim, and rope_dim within head_dim");
  if (!c->kv_lora_rank && c->v_head_dim && c->v_head_dim != c->head_dim)
    return sol_fail(err, SOL_ERR_ARGUMENT, "v_head_dim may differ from head_dim only in latent attention");
  if (c->sliding_layers < 0 || c->sliding_layers > c->layers || (c->sliding_layers && !c->sliding_window))
    return sol_fail(err, SOL_ERR_ARGUMENT, "windowed layers must be among the layers and have a window");
  return SOL_OK;
}

static SolStatus check_mlp(const SolModelConfig *c, SolError *err) {
  if (c->moe_layers < 0 || c->moe_layers > c->layers || (c->moe_layers && !c->experts))
    return sol_fail(err, SOL_ERR_ARGUMENT, "mixture layers must be among the layers and have experts");
  if (c->moe_layers && (c->experts_per_token < 1 || c->experts_per_token > c->experts))
    return sol_fail(err, SOL_ERR_ARGUMENT, "experts per token must be from 1 to %lld", (long long)c->experts);
  if (c->moe_layers && c->expert_intermediate < 1)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the width of an expert must be at least 1");
  if (c->moe_layers < c->layers && c->intermediate < 1)
    return sol_fail(err, SOL_ERR_ARGUMENT, "the width of the MLP must be at least 1");
  return SOL_OK;
}

SolStatus sol_model_check(const SolModelConfig *config, SolError *err) {
  SolStatus status = check_fields(config, err);
  if (!status) status = check_attention(config, err);
  return status ? status : check_mlp(config, err);
}
