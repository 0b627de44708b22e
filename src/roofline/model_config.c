// Reading a Hugging Face config.json. The keys are in model_keys.def, what a model_type implies in
// model_families.def; the functions here are the rules by which the two make a SolModelConfig.
#include <stdarg.h>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "roofline/model_parse.h"

enum { TEXT_MOST = 4 << 20, LAYERS_MOST = 10000 };
enum { BIAS_QKV = 1, BIAS_OUT = 2, BIAS_MLP = 4, BIAS_ALL = 7 };
enum { WINDOW_OFF = 1, MULTI_QUERY = 2, LEARNED_POSITIONS = 4, SHARED_LIKE_EXPERT = 8 };

typedef struct FamilyMore {
  int mlp_times;          // an MLP of unstated width is so many times as wide as the hidden state
  int window_pattern;     // of so many layers in a row, all but one are windowed
  int parallel;           // norms of a parallel block, where a key says that there is one
  int position_extra;     // rows of the position table beyond the positions stated
  int attention_bias_key; // what "attention_bias" switches; 0: q, k, v and output
  int bias_key;           // what "bias" switches; 0: all
  SolQkNorm qk_norm;      // what "use_qk_norm" switches on; none: per head
  int flags; // WINDOW_OFF: no window unless use_sliding_window; MULTI_QUERY: one kv head by default
} FamilyMore;

typedef struct Family {
  const char *types;
  FamilyMore more;
  SolModelConfig base;
} Family;

static const Family families[] = {
#define MORE(...)                                                                                            \
  { __VA_ARGS__ }
#define FAMILY(types, more, ...) {types, more, {__VA_ARGS__}},
#include "roofline/model_families.def"
#undef MORE
};

static const struct {
  const char *types, *why;
} refused[] = {
    {"bert roberta xlm-roberta albert electra deberta deberta-v2 distilbert modernbert mpnet camembert xlm "
     "longformer big_bird ernie esm nomic_bert eurobert",
     "is an encoder"},
    {"t5 mt5 umt5 longt5 bart mbart pegasus m2m_100 marian blenderbot led prophetnet switch_transformers "
     "nllb-moe t5gemma encoder-decoder",
     "is an encoder-decoder"},
    {"clip clip_text_model clip_vision_model siglip siglip_vision_model vit vit_mae deit swin dinov2 "
     "convnext resnet detr sam beit blip vision-encoder-decoder",
     "is a vision model"},
    {"whisper wav2vec2 hubert speecht5 encodec seamless_m4t musicgen bark", "is an audio model"},
    {"mamba mamba2 falcon_mamba rwkv rwkv5 rwkv7 xlstm jamba zamba zamba2 bamba falcon_h1 granitemoehybrid "
     "nemotron_h recurrent_gemma qwen3_next kimi_linear lfm2 minimax",
     "has state-space or linear-attention layers"},
    {"mllama mllama_text_model", "has cross-attention layers"},
};

typedef struct Parse {
  SolConfigText text;
  const Family *family;
  SolModelConfig *c;
} Parse;

#define HAS(key)                sol_config_has(&p->text, SOL_KEY_##key)
#define COUNT_OF(key, fallback) sol_config_count(&p->text, SOL_KEY_##key, fallback)
#define IS_ON(key, fallback)    sol_config_flag(&p->text, SOL_KEY_##key, fallback)
#define VALUE(key)              p->text.slot[SOL_KEY_##key].value
#define MISSING(key)            sol_config_missing(&p->text, SOL_KEY_##key)
#define BAD(key, status, ...)   sol_config_fail(&p->text, VALUE(key), status, __VA_ARGS__)

static void note(SolModelConfig *c, const char *format, ...) SOL_PRINTF(2, 3);
static void note(SolModelConfig *c, const char *format, ...) {
  size_t used = strlen(c->assumed), most = sizeof c->assumed;
  if (used) used += sol_format(c->assumed + used, most - used, "; ");
  if (used >= most) return;
  va_list args;
  va_start(args, format);
  sol_vformat(c->assumed + used, most - used, format, args);
  va_end(args);
}

static SolStatus refuse_type(Parse *p) {
  char type[48];
  sol_config_text(VALUE(MODEL_TYPE), type, sizeof type);
  for (size_t i = 0; i < SOL_COUNT(refused); i++)
    if (sol_name_in_list(type, refused[i].types))
      return BAD(MODEL_TYPE, SOL_ERR_UNSUPPORTED,
                 "model_type '%s' %s: only decoder-only transformers are counted", type, refused[i].why);
  bool encodes = false;
  if (HAS(ENCODER_DECODER) && sol_json_bool(VALUE(ENCODER_DECODER), &encodes) && encodes)
    return BAD(ENCODER_DECODER, SOL_ERR_UNSUPPORTED,
               "an encoder-decoder: only decoder-only transformers are counted");
  return SOL_OK;
}

// A multimodal model keeps its decoder in a separate object; a few keys may be outside it.
static SolStatus enter_text_config(Parse *p) {
  if (!HAS(TEXT_CONFIG)) return SOL_OK;
  SolJson inner = VALUE(TEXT_CONFIG);
  if (sol_json_kind(inner) != SOL_JSON_OBJECT)
    return BAD(TEXT_CONFIG, SOL_ERR_SYNTAX, "%s must be an object", p->text.slot[SOL_KEY_TEXT_CONFIG].name);
  static const SolConfigKey outside[] = {SOL_KEY_TIED, SOL_KEY_DTYPE, SOL_KEY_QUANTIZATION, SOL_KEY_NAME,
                                         SOL_KEY_MODEL_TYPE};
  SolConfigText outer = p->text;
  memset(p->text.slot, 0, sizeof p->text.slot);
  sol_config_collect(&p->text, inner);
  for (size_t i = 0; i < SOL_COUNT(outside); i++)
    if (!p->text.slot[outside[i]].found) p->text.slot[outside[i]] = outer.slot[outside[i]];
  p->text.slot[SOL_KEY_TEXT_CONFIG].found = false;
  note(p->c, "only the decoder in %s is counted", outer.slot[SOL_KEY_TEXT_CONFIG].name);
  return refuse_type(p);
}

static void choose_family(Parse *p) {
  char type[48];
  sol_config_text(VALUE(MODEL_TYPE), type, sizeof type);
  size_t i = SOL_COUNT(families);
  while (i > 0 && !sol_name_in_list(type, families[i - 1].types)) i--;
  p->family = &families[i ? i - 1 : 0];
  char assumed[sizeof p->c->assumed];
  memcpy(assumed, p->c->assumed, sizeof assumed);
  *p->c = p->family->base;
  memcpy(p->c->assumed, assumed, sizeof assumed);
  if (!type[0])
    note(p->c, "no model_type: taken as llama-like");
  else if (!i)
    note(p->c, "model_type '%s' is not known: taken as llama-like", type);

  char path[512];
  sol_config_text(VALUE(NAME), path, sizeof path);
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') path[--end] = 0;
  while (end > 0 && path[end - 1] != '/') end--;
  const char *name = path + end;
  sol_format(p->c->name, sizeof p->c->name, "%s", *name ? name : *type ? type : "config");
}

static SolStatus set_attention(Parse *p) {
  SolModelConfig *c = p->c;
  bool one_kv = IS_ON(MULTI_QUERY, (p->family->more.flags & MULTI_QUERY) != 0);
  if (p->family->more.flags & MULTI_QUERY) {
    // Falcon's older files carry a kv head count that means nothing.
    if (!IS_ON(NEW_DECODER, false)) c->kv_heads = one_kv ? 1 : c->heads;
  } else if (HAS(MULTI_QUERY) && (!one_kv || !HAS(KV_HEADS))) {
    c->kv_heads = one_kv ? 1 : c->heads;
  }
  if (!c->kv_heads) c->kv_heads = c->heads;
  if (!c->head_dim) {
    if (c->heads < 1 || c->hidden % c->heads)
      return BAD(HEADS, SOL_ERR_RANGE,
                 "%lld heads do not divide the hidden size %lld, and no head_dim is given",
                 (long long)c->heads, (long long)c->hidden);
    c->head_dim = c->hidden / c->heads;
  }
  if (HAS(KV_HEADS) && (c->kv_heads < 1 || c->heads % c->kv_heads))
    return BAD(KV_HEADS, SOL_ERR_RANGE, "%lld attention heads cannot share %lld kv heads evenly",
               (long long)c->heads, (long long)c->kv_heads);
  if (HAS(ROPE_PART)) {
    // A millionth more, so that 0.1 of 80 is not 7.99...
    c->rope_dim = (int64_t)(p->text.slot[SOL_KEY_ROPE_PART].number * (double)c->head_dim + 1e-6);
    if (!c->rope_dim) c->no_rope = 1;
  }
  if (IS_ON(ALIBI, false)) c->no_rope = 1;
  if (IS_ON(QK_NORM, false))
    c->qk_norm = p->family->more.qk_norm ? p->family->more.qk_norm : SOL_QK_NORM_HEAD;
  else if (HAS(QK_NORM))
    c->qk_norm = SOL_QK_NORM_NONE;
  if (!c->kv_lora_rank) return SOL_OK;
  if (!HAS(ROPE_HEAD)) return MISSING(ROPE_HEAD);
  if (!HAS(NOPE_HEAD)) return MISSING(NOPE_HEAD);
  if (!HAS(V_HEAD)) return MISSING(V_HEAD);
  c->kv_heads = c->heads;
  c->rope_dim = COUNT_OF(ROPE_HEAD, 0);
  c->head_dim = c->rope_dim + COUNT_OF(NOPE_HEAD, 0);
  return SOL_OK;
}

// How many layers are mixtures, by the rules of Qwen, DeepSeek and Llama 4.
static SolStatus count_mixtures(Parse *p) {
  SolModelConfig *c = p->c;
  uint8_t dense[LAYERS_MOST] = {0};
  if (HAS(DENSE_LIST)) {
    if (sol_json_kind(VALUE(DENSE_LIST)) != SOL_JSON_ARRAY)
      return BAD(DENSE_LIST, SOL_ERR_SYNTAX, "mlp_only_layers must be a list");
    SolJsonIter it = {VALUE(DENSE_LIST), 0};
    SolJson item;
    double layer = 0;
    while (sol_json_next(&it, 0, &item)) {
      if (!sol_json_number(item, &layer) || layer < 0 || layer >= LAYERS_MOST ||
          layer != __builtin_floor(layer))
        return sol_config_fail(&p->text, item, SOL_ERR_RANGE,
                               "mlp_only_layers must list whole numbers from 0 up");
      dense[(int)layer] = 1;
    }
  }
  int64_t from = COUNT_OF(DENSE_FIRST, 0), every = COUNT_OF(MOE_EVERY, 1);
  // DeepSeek counts its every-so-many from layer 0, the others from the first multiple.
  int64_t phase = HAS(DENSE_FIRST) ? 0 : 1;
  for (int64_t i = from; i < c->layers; i++) c->moe_layers += (i + phase) % every == 0 && !dense[i];
  return SOL_OK;
}

static SolStatus set_mlp(Parse *p) {
  SolModelConfig *c = p->c;
  int64_t times = COUNT_OF(EXPANSION, p->family->more.mlp_times);
  if (!c->intermediate) c->intermediate = times * c->hidden;
  if (!c->experts) {
    c->experts_per_token = c->expert_intermediate = c->shared_intermediate = 0;
    return c->intermediate ? SOL_OK : MISSING(INTERMEDIATE);
  }
  if (!c->experts_per_token) return MISSING(PER_TOKEN);
  if (c->experts_per_token > c->experts)
    return BAD(PER_TOKEN, SOL_ERR_RANGE, "a token cannot visit %lld of %lld experts",
               (long long)c->experts_per_token, (long long)c->experts);
  if (!c->expert_intermediate) c->expert_intermediate = c->intermediate;
  if (!c->expert_intermediate) return MISSING(EXPERT_WIDTH);
  c->intermediate = COUNT_OF(DENSE_INTERMEDIATE, c->intermediate);
  int64_t shared = COUNT_OF(SHARED_EXPERTS, (p->family->more.flags & SHARED_LIKE_EXPERT) != 0);
  if (!c->shared_intermediate) c->shared_intermediate = shared * c->expert_intermediate;
  SolStatus status = count_mixtures(p);
  if (!status && c->moe_layers < c->layers && !c->intermediate) return MISSING(INTERMEDIATE);
  return status;
}

// How many layers layer_types calls windowed.
static SolStatus count_windowed(Parse *p, int64_t *windowed) {
  if (sol_json_kind(VALUE(LAYER_TYPES)) != SOL_JSON_ARRAY)
    return BAD(LAYER_TYPES, SOL_ERR_SYNTAX, "layer_types must be a list");
  int64_t all = 0;
  SolJsonIter it = {VALUE(LAYER_TYPES), 0};
  SolJson item;
  char type[32];
  while (sol_json_next(&it, 0, &item)) {
    sol_config_text(item, type, sizeof type);
    if (strcmp(type, "linear_attention") == 0)
      return sol_config_fail(&p->text, item, SOL_ERR_UNSUPPORTED, "linear-attention layers are not counted");
    *windowed += strcmp(type, "sliding_attention") == 0;
    all++;
  }
  if (all == p->c->layers) return SOL_OK;
  return BAD(LAYER_TYPES, SOL_ERR_RANGE, "layer_types lists %lld layers of %lld", (long long)all,
             (long long)p->c->layers);
}

static SolStatus set_window(Parse *p) {
  SolModelConfig *c = p->c;
  if (!IS_ON(USE_WINDOW, !(p->family->more.flags & WINDOW_OFF))) c->sliding_window = 0;
  int64_t listed = 0;
  SolStatus status = HAS(LAYER_TYPES) ? count_windowed(p, &listed) : SOL_OK;
  if (status) return status;
  double pattern = p->family->more.window_pattern;
  if (HAS(WINDOW_PATTERN) && sol_json_number(VALUE(WINDOW_PATTERN), &pattern) &&
      (pattern < 1 || pattern > LAYERS_MOST || pattern != __builtin_floor(pattern)))
    return BAD(WINDOW_PATTERN, SOL_ERR_RANGE, "sliding_window_pattern must be a whole number from 1 up");
  if (!c->sliding_window) return SOL_OK;
  c->sliding_layers = c->layers;
  if (HAS(LAYER_TYPES))
    c->sliding_layers = listed;
  else if (pattern >= 1)
    c->sliding_layers = c->layers - c->layers / (int64_t)pattern;
  else if (HAS(WINDOW_FROM)) {
    int64_t from = COUNT_OF(WINDOW_FROM, 0);
    c->sliding_layers = from < c->layers ? c->layers - from : 0;
  }
  return SOL_OK;
}

static void set_bias(SolModelConfig *c, int which, int on) {
  if (which & BIAS_QKV) c->qkv_bias = on;
  if (which & BIAS_OUT) c->out_bias = on;
  if (which & BIAS_MLP) c->mlp_bias = on;
}

static void set_switches(Parse *p) {
  SolModelConfig *c = p->c;
  const FamilyMore *more = &p->family->more;
  const struct {
    SolConfigKey key;
    int which, not ;
  } biases[] = {
      {SOL_KEY_USE_BIAS, BIAS_ALL, 0},
      {SOL_KEY_BIAS, more->bias_key ? more->bias_key : BIAS_ALL, 0},
      {SOL_KEY_NO_BIAS, BIAS_ALL, 1},
      {SOL_KEY_ATTENTION_BIAS, more->attention_bias_key ? more->attention_bias_key : BIAS_QKV | BIAS_OUT, 0},
      {SOL_KEY_QKV_BIAS, BIAS_QKV, 0},
      {SOL_KEY_OUT_BIAS, BIAS_OUT, 0},
      {SOL_KEY_MLP_BIAS, BIAS_MLP, 0}};
  for (size_t i = 0; i < SOL_COUNT(biases); i++)
    if (sol_config_has(&p->text, biases[i].key))
      set_bias(c, biases[i].which, sol_config_flag(&p->text, biases[i].key, false) != biases[i].not );
  c->head_bias = IS_ON(HEAD_BIAS, c->head_bias);
  c->tied_embeddings = IS_ON(TIED, c->tied_embeddings);
  if (IS_ON(NEW_DECODER, false)) c->parallel_block = 2;
  if (HAS(PARALLEL)) {
    if (!IS_ON(PARALLEL, false))
      c->parallel_block = 0;
    else if (!c->parallel_block)
      c->parallel_block = more->parallel ? more->parallel : 1;
  }
  if (c->parallel_block) c->parallel_block = (int)COUNT_OF(PARALLEL_NORMS, c->parallel_block);
}

static double quantization_number(Parse *p, const char *key) {
  SolJson value;
  double number = 0;
  if (sol_json_get(VALUE(QUANTIZATION), key, &value)) sol_json_number(value, &number);
  return number;
}

static bool quantization_flag(Parse *p, const char *key) {
  SolJson value;
  bool on = false;
  if (sol_json_get(VALUE(QUANTIZATION), key, &value)) sol_json_bool(value, &on);
  return on;
}

// Weights that share a scale by "weight_block_size": [128, 128]; 0: none, or it makes no sense.
static int64_t block_of(Parse *p) {
  SolJson list, item;
  double side, product = 1;
  if (!sol_json_get(VALUE(QUANTIZATION), "weight_block_size", &list)) return 0;
  SolJsonIter it = {.container = list};
  for (int i = 0; i < 2; i++, product *= side)
    if (!sol_json_next(&it, 0, &item) || !sol_json_number(item, &side) || side < 1 || side > 65536) return 0;
  return (int64_t)product;
}

static void set_quantised(SolModelConfig *c, SolDtype dtype, int64_t block, int bits) {
  c->weight_dtype = dtype;
  c->quantised = SOL_QUANTISED_LAYERS;
  c->scale_block = block;
  c->scale_bits = bits;
}

// GPTQ and AWQ keep a 16-bit scale and a zero point of the weights' width for each group.
static void set_grouped(Parse *p, SolDtype dtype, int width) {
  double group = quantization_number(p, "group_size");
  set_quantised(p->c, dtype, group >= 1 && group <= 65536 ? (int64_t)group : 0, 16 + width);
}

// Weights narrower than the activations, as the methods store them: the layers' matrices with their scales.
static void set_dtypes(Parse *p) {
  SolModelConfig *c = p->c;
  char text[40];
  sol_config_text(VALUE(DTYPE), text, sizeof text);
  if (text[0]) sol_dtype_find(text, &c->dtype, 0);
  SolJson method;
  if (!HAS(QUANTIZATION) || !sol_json_get(VALUE(QUANTIZATION), "quant_method", &method)) return;
  sol_config_text(method, text, sizeof text);
  double width = quantization_number(p, "bits");
  if (sol_name_in_list(text, "fp8 fbgemm_fp8")) {
    set_quantised(c, SOL_FP8, block_of(p), 32);
    c->narrow_products = 1;
  } else if (sol_same_name(text, "mxfp4")) {
    set_quantised(c, SOL_FP4, 32, 8);
    if (c->experts) c->quantised = SOL_QUANTISED_EXPERTS;
  } else if (quantization_flag(p, "load_in_4bit")) {
    set_quantised(c, SOL_FP4, 64, 32); // bitsandbytes' block and scale
  } else if (width == 4) {
    set_grouped(p, SOL_FP4, 4);
  } else if (quantization_flag(p, "load_in_8bit") || width == 8) {
    set_grouped(p, SOL_INT8, 8);
  }
  if (c->weight_dtype)
    note(c, "the %s matrices %d bits wide as in quantization_config (%s), the rest as dtype says",
         c->quantised == SOL_QUANTISED_EXPERTS ? "experts'" : "layers'", sol_dtype_bits(c->weight_dtype),
         text);
  else
    note(c, "quantization_config (%s) is not understood and left out", text);
}

static SolStatus apply_rules(Parse *p) {
  SolModelConfig *c = p->c;
  SolStatus status = sol_config_read(&p->text, c);
  if (status) return status;
  if (!c->layers) return MISSING(LAYERS);
  if (!c->hidden) return MISSING(HIDDEN);
  if (!c->vocab) return MISSING(VOCAB);
  if (!c->heads) return MISSING(HEADS);
  if (!HAS(VOCAB)) note(c, "no vocab_size: %lld, the family's default", (long long)c->vocab);
  if (!HAS(HEADS)) note(c, "no num_attention_heads: %lld, the family's default", (long long)c->heads);
  if (COUNT_OF(CHUNK, 0)) note(c, "attention in chunks is counted as attention to all tokens");
  if (COUNT_OF(PREDICTION, 0)) note(c, "the layers that predict further tokens are left out");
  if (HAS(EMBED_WIDTH) && COUNT_OF(EMBED_WIDTH, 0) != c->hidden)
    return BAD(EMBED_WIDTH, SOL_ERR_UNSUPPORTED, "embeddings narrower than the hidden state are not counted");
  if (p->family->more.flags & LEARNED_POSITIONS) {
    if (!HAS(POSITIONS)) return MISSING(POSITIONS);
    c->learned_positions = c->max_positions + p->family->more.position_extra;
  }
  if (!status) status = set_attention(p);
  if (!status) status = set_mlp(p);
  if (!status) status = set_window(p);
  if (status) return status;
  set_switches(p);
  set_dtypes(p);
  SolError why = {0};
  if (sol_model_check(c, &why))
    return sol_config_fail(&p->text, p->text.object, SOL_ERR_RANGE, "%s", why.message);
  return SOL_OK;
}

SolStatus sol_model_parse(const char *json, size_t length, SolModelConfig *out, SolError *err) {
  if (!json || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "json and out must not be NULL");
  if (length > TEXT_MOST) return sol_fail(err, SOL_ERR_RANGE, "a config of more than 4 MiB is not read");
  SolModelConfig config = {0};
  Parse parse = {.text.err = err, .c = &config}, *p = &parse;
  SolJson root;
  SolStatus status = sol_json_check(json, length, &root, err);
  if (status) return status;
  if (sol_json_kind(root) != SOL_JSON_OBJECT)
    return sol_config_fail(&p->text, root, SOL_ERR_SYNTAX, "a config must be an object: {...}");
  sol_config_collect(&p->text, root);
  if ((status = refuse_type(p)) || (status = enter_text_config(p))) return status;
  choose_family(p);
  if ((status = apply_rules(p))) return status;
  *out = config;
  return SOL_OK;
}
