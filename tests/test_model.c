// Models: presets against their published counts, config.json against the presets.
#include "check.h"
#include "model_check.h"

// Presets

TEST(presets_match_their_published_counts) {
  int exact = 0;
  CHECK(sol_model_preset_count() > 40);
  for (int i = 0; i < sol_model_preset_count(); i++) {
    const SolModelConfig *c = sol_model_preset(i);
    SolModelWeights w = weights(c);
    double off = w.params / (double)c->published_params - 1;
    CHECK(c->source && c->source[0] && c->name[0] && c->published_params > 0);
    CHECK_MSG(fabs(off) < 0.01, "%s: %.0f parameters, published %lld", c->name, w.params,
              (long long)c->published_params);
    if (w.params == (double)c->published_params)
      exact++;
    else
      printf("%s: %+.4f%% off its published count\n", c->name, 100 * off);
    CHECK(w.params == w.embedding_params + w.attention_params + w.mlp_params + w.norm_params + w.head_params);
    CHECK(w.active_params <= w.params);
  }
  CHECK_INT(exact, sol_model_preset_count());
  CHECK(!sol_model_preset(-1) && !sol_model_preset(sol_model_preset_count()));
}

TEST(active_parameters) {
  // As the cards give them. gpt-oss leaves the embedding table out, the others count it.
  static const struct {
    const char *name;
    double active;
    bool embedding;
  } known[] = {
      {"mixtral-8x7b", 12.9e9, true},  {"mixtral-8x22b", 39e9, true},      {"qwen3-30b-a3b", 3.3e9, true},
      {"qwen3-235b-a22b", 22e9, true}, {"deepseek-v3", 37e9, true},        {"gpt-oss-20b", 3.61e9, false},
      {"gpt-oss-120b", 5.13e9, false}, {"qwen1.5-moe-a2.7b", 2.7e9, true}, {"llama-3-8b", 8.03e9, true}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    SolModelConfig c = find(known[i].name);
    SolModelWeights w = weights(&c);
    double active = w.active_params - (known[i].embedding ? 0 : w.embedding_params);
    CHECK_MSG(fabs(active / known[i].active - 1) < 0.02, "%s: %.4g active", known[i].name, active);
  }
}

TEST(finding) {
  SolModelConfig c;
  SolError err = {0};
  CHECK_STR(find("Llama_3 8B").name, "llama-3-8b");
  CHECK_STR(find("deepseek-r1").name, "deepseek-v3");
  CHECK_STR(find("llama-3.3-70b").name, "llama-3.1-70b");
  CHECK_INT(sol_model_find("lama-3-8b", &c, &err), SOL_ERR_NOT_FOUND);
  CHECK_HAS(err.hint, "llama-3-8b");
  CHECK_INT(sol_model_find("", &c, &err), SOL_ERR_NOT_FOUND);
  CHECK_INT(sol_model_find(0, &c, &err), SOL_ERR_ARGUMENT);
  // No name or alias finds two presets.
  for (int i = 0; i < sol_model_preset_count(); i++)
    CHECK_STR(find(sol_model_preset(i)->name).name, sol_model_preset(i)->name);
}

// config.json

static char text[1 << 16];

static size_t read_data(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "tests/data/%s.json", name);
  FILE *file = fopen(path, "rb");
  if (!CHECK_MSG(file, "cannot open %s", path)) return 0;
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);
  return length;
}

static SolStatus parse(const char *json, SolModelConfig *c, SolError *err) {
  // Placed so that it ends with its block: the sanitizers see a read past the end.
  size_t length = strlen(json);
  char *copy = malloc(length + 1);
  char *shifted = copy + 1;
  for (size_t i = 0; i < length; i++) shifted[i] = json[i];
  *err = (SolError){0};
  SolStatus status = sol_model_parse(copy + 1, length, c, err);
  free(copy);
  return status;
}

TEST(configs_equal_the_presets) {
  static const char *names[] = {
      "llama-3-8b",   "gpt2",        "mixtral-8x7b",     "mistral-7b-v0.1", "qwen2.5-7b", "gemma-2-9b",
      "gemma-3-27b",  "deepseek-v3", "deepseek-v2-lite", "gpt-oss-20b",     "falcon-7b",  "opt-6.7b",
      "phi-2",        "pythia-6.9b", "gpt-j-6b",         "olmo-2-7b",       "phi-3-mini", "qwen1.5-moe-a2.7b",
      "qwen3-30b-a3b"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    SolModelConfig parsed = {0}, preset = find(names[i]);
    SolError err = {0};
    size_t length = read_data(names[i]);
    SolStatus status = sol_model_parse(text, length, &parsed, &err);
    if (!CHECK_MSG(status == SOL_OK, "%s: %d:%d %s", names[i], err.line, err.column, err.message)) continue;
    SolModelWeights a = weights(&parsed), b = weights(&preset);
    CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s: %.0f parameters, the preset has %.0f", names[i], a.params,
              b.params);
    CHECK_INT(parsed.max_positions == preset.max_positions || strcmp(names[i], "falcon-7b") == 0, 1);
    for (int phase = 0; phase < 4; phase++) {
      SolModelRun options = {.phase = (SolPhase)(phase & 1),
                             .batch = 3,
                             .context = 900,
                             .fused = phase >> 1,
                             .dtype = SOL_FP16,
                             .weight_dtype = SOL_FP16};
      SolModelReport of_parsed = *run("h100", &parsed, options), of_preset = *run("h100", &preset, options);
      CHECK_INT(of_parsed.count, of_preset.count);
      CHECK(of_parsed.bytes == of_preset.bytes && of_parsed.flops == of_preset.flops);
      CHECK(of_parsed.kv_bytes == of_preset.kv_bytes && of_parsed.total_us == of_preset.total_us);
    }
  }
}

#define TINY  "\"vocab_size\":100,\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4"
#define LLAMA "\"model_type\":\"llama\"," TINY ",\"intermediate_size\":256"

TEST(what_was_assumed_is_said) {
  SolModelConfig c;
  SolError err;
  CHECK_INT(parse("{" LLAMA "}", &c, &err), SOL_OK);
  CHECK_STR(c.assumed, "");
  CHECK_STR(c.name, "llama");
  CHECK_INT(c.kv_heads, 4);
  CHECK_INT(c.head_dim, 16);
  CHECK_INT(parse("{\"model_type\":\"newthing\"," TINY ",\"intermediate_size\":256}", &c, &err), SOL_OK);
  CHECK_HAS(c.assumed, "'newthing'");
  CHECK(c.gated_mlp && c.norm == SOL_NORM_RMS);
  CHECK_INT(parse("{" TINY ",\"intermediate_size\":256,\"_name_or_path\":\"org/My-Model\"}", &c, &err),
            SOL_OK);
  CHECK_HAS(c.assumed, "no model_type");
  CHECK_STR(c.name, "My-Model");
  CHECK_INT(parse("{" LLAMA
                  ",\"_name_or_path\":\"/a/rather/long/path/to/where/somebody/keeps/the/files/of/it/name/\"}",
                  &c, &err),
            SOL_OK);
  CHECK_STR(c.name, "name");
  CHECK_INT(
      parse("{\"model_type\":\"llava\",\"tie_word_embeddings\":true,\"text_config\":{" LLAMA "}}", &c, &err),
      SOL_OK);
  CHECK_HAS(c.assumed, "text_config");
  CHECK_INT(c.tied_embeddings, 1);
  CHECK_INT(parse("{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":4,\"hidden_size\":64,\"intermediate_"
                  "size\":128}",
                  &c, &err),
            SOL_OK);
  CHECK_HAS(c.assumed, "262208");
  CHECK_INT(c.head_dim, 256);
  CHECK_INT(parse("{" LLAMA ",\"attention_chunk_size\":8,\"num_nextn_predict_layers\":1}", &c, &err), SOL_OK);
  CHECK_HAS(c.assumed, "chunks");
  CHECK_HAS(c.assumed, "further tokens");
  // Terminal escapes and quotes from a file do not reach the screen.
  CHECK_INT(parse("{\"model_type\":\"\\u001b[31mx\"," TINY ",\"intermediate_size\":256}", &c, &err), SOL_OK);
  CHECK_HAS(c.assumed, "'?[31mx'");
}

TEST(keys_by_family) {
  SolModelConfig c;
  SolError err;
  CHECK_INT(parse("{\"model_type\":\"falcon\"," TINY ",\"num_kv_heads\":2,\"new_decoder_architecture\":true}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.kv_heads, 2);
  CHECK_INT(c.parallel_block, 2);
  CHECK_INT(c.intermediate, 256);
  CHECK_INT(parse("{\"model_type\":\"gpt_bigcode\"," TINY ",\"n_positions\":8}", &c, &err), SOL_OK);
  CHECK_INT(c.kv_heads, 1);
  CHECK_INT(c.learned_positions, 8);
  CHECK_INT(parse("{\"model_type\":\"mpt\",\"vocab_size\":100,\"n_layers\":2,\"d_model\":64,\"n_heads\":4,"
                  "\"expansion_ratio\":3,\"no_bias\":true}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.intermediate, 192);
  CHECK(!c.qkv_bias && !c.mlp_bias && c.no_rope);
  CHECK_INT(
      parse("{\"model_type\":\"starcoder2\"," TINY ",\"intermediate_size\":256,\"use_bias\":true}", &c, &err),
      SOL_OK);
  CHECK(c.qkv_bias && c.out_bias && c.mlp_bias && c.tied_embeddings && !c.gated_mlp);
  CHECK_INT(parse("{\"model_type\":\"glm4\"," TINY
                  ",\"intermediate_size\":256,\"attention_bias\":true,\"partial_rotary_factor\":0.5}",
                  &c, &err),
            SOL_OK);
  CHECK(c.qkv_bias && !c.out_bias && c.norm_place == SOL_NORM_AROUND);
  CHECK_INT(c.rope_dim, 8);
  CHECK_INT(parse("{\"model_type\":\"stablelm\"," TINY ",\"intermediate_size\":256,\"use_qkv_bias\":true}",
                  &c, &err),
            SOL_OK);
  CHECK(c.qkv_bias && !c.out_bias && c.norm == SOL_NORM_LAYER && !c.parallel_block);
  CHECK_INT(
      parse("{\"model_type\":\"cohere\"," TINY ",\"intermediate_size\":256,\"use_qk_norm\":true}", &c, &err),
      SOL_OK);
  CHECK(c.parallel_block == 1 && c.qk_norm == SOL_QK_NORM_WIDTH && c.tied_embeddings);
  // Every second layer, and not those listed; Llama 4's widths.
  CHECK_INT(
      parse("{" LLAMA ",\"num_experts\":8,\"num_experts_per_tok\":2,\"decoder_sparse_step\":2}", &c, &err),
      SOL_OK);
  CHECK_INT(c.moe_layers, 1);
  CHECK_INT(
      parse("{" LLAMA ",\"num_experts\":8,\"num_experts_per_tok\":2,\"mlp_only_layers\":[0,0,9]}", &c, &err),
      SOL_OK);
  CHECK_INT(c.moe_layers, 1);
  CHECK_INT(parse("{\"model_type\":\"llama4_text\"," TINY
                  ",\"intermediate_size\":32,\"intermediate_size_mlp\":96,\"num_local_experts\":4,\"num_"
                  "experts_per_tok\":1,\"interleave_moe_layer_step\":2}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.intermediate, 96);
  CHECK_INT(c.expert_intermediate, 32);
  CHECK_INT(c.shared_intermediate, 32);
  // A null under the better name does not hide the value under the other.
  CHECK_INT(parse("{\"model_type\":\"gpt2\",\"vocab_size\":100,\"num_hidden_layers\":null,\"n_layer\":3,\"n_"
                  "embd\":64,\"n_head\":4,\"n_positions\":8}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.layers, 3);
}

TEST(windows) {
  SolModelConfig c;
  SolError err;
  static const struct {
    const char *type, *more;
    int64_t window, layers;
  } cases[] = {
      {"mistral", ",\"sliding_window\":32", 32, 6},
      {"mistral", ",\"sliding_window\":0", 0, 0},
      {"mistral", ",\"sliding_window\":null", 0, 0},
      {"qwen2", ",\"sliding_window\":32,\"max_window_layers\":2", 0, 0},
      {"qwen2", ",\"sliding_window\":32,\"max_window_layers\":2,\"use_sliding_window\":true", 32, 4},
      {"qwen2", ",\"sliding_window\":32,\"max_window_layers\":99,\"use_sliding_window\":true", 32, 0},
      {"gemma2", ",\"sliding_window\":32", 32, 3},
      {"gemma3_text", ",\"sliding_window\":32", 32, 5},
      {"gemma3_text", ",\"sliding_window\":32,\"sliding_window_pattern\":3", 32, 4},
      {"cohere2", ",\"sliding_window\":32,\"sliding_window_pattern\":\"LLLG\"", 32, 5},
      {"gpt_oss",
       ",\"sliding_window\":32,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_attention\","
       "\"sliding_attention\",\"full_attention\",\"full_attention\"]",
       32, 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char json[512];
    snprintf(json, sizeof json,
             "{\"model_type\":\"%s\",\"vocab_size\":100,\"num_hidden_layers\":6,\"hidden_size\":64,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":64%s}",
             cases[i].type, cases[i].more);
    SolStatus status = parse(json, &c, &err);
    CHECK_MSG(status == SOL_OK && c.sliding_window == cases[i].window && c.sliding_layers == cases[i].layers,
              "%s: window %lld on %lld layers %s", json, (long long)c.sliding_window,
              (long long)c.sliding_layers, err.message);
  }
}

TEST(dtypes_from_the_file) {
  SolModelConfig c;
  SolError err;
  CHECK_INT(parse("{" LLAMA ",\"torch_dtype\":\"float16\"}", &c, &err), SOL_OK);
  CHECK_INT(run("h100", &c, (SolModelRun){0})->run.dtype, SOL_FP16);
  CHECK_INT(run("h100", &c, (SolModelRun){.dtype = SOL_FP8})->run.weight_dtype, SOL_FP8);
  CHECK_INT(parse("{" LLAMA
                  ",\"dtype\":\"float32\",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(run("h100", &c, (SolModelRun){0})->run.dtype, SOL_BF16);
  CHECK_INT(report.run.weight_dtype, SOL_FP4);
  CHECK_HAS(c.assumed, "4 bits");
  CHECK_INT(parse("{" LLAMA
                  ",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.weight_dtype, SOL_INT8);
  CHECK_INT(parse("{" LLAMA
                  ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,64]}}",
                  &c, &err),
            SOL_OK);
  CHECK(c.weight_dtype == SOL_FP8 && c.scale_block == 128 * 64 && c.narrow_products);
  CHECK_INT(parse("{" LLAMA
                  ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[1e99,-1]}}",
                  &c, &err),
            SOL_OK);
  CHECK_INT(c.scale_block, 0);
  CHECK_INT(parse("{" LLAMA
                  ",\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}}",
                  &c, &err),
            SOL_OK);
  CHECK(c.weight_dtype == SOL_FP4 && c.scale_block == 128 && c.scale_bits == 20);
  CHECK_INT(parse("{" LLAMA ",\"quantization_config\":{\"quant_method\":\"odd\"}}", &c, &err), SOL_OK);
  CHECK_INT(c.weight_dtype, SOL_DTYPE_DEFAULT);
  CHECK_HAS(c.assumed, "(odd) is not understood");
  CHECK_INT(parse("{" LLAMA ",\"torch_dtype\":\"nonsense\",\"quantization_config\":7}", &c, &err), SOL_OK);
}

// Text that must be refused: the status, the place of the caret, and a word of the message.
TEST(bad_configs) {
  static const struct {
    const char *json;
    SolStatus status;
    int line, column;
    const char *says;
  } bad[] = {
      {"", SOL_ERR_SYNTAX, 1, 1, "value"},
      {"[]", SOL_ERR_SYNTAX, 1, 1, "object"},
      {"{\n\"a\": 1,}", SOL_ERR_SYNTAX, 2, 8, "name"},
      {"{}", SOL_ERR_SYNTAX, 1, 1, "num_hidden_layers"},
      {"{\"num_hidden_layers\": 2}", SOL_ERR_SYNTAX, 1, 1, "hidden_size"},
      {"{\"num_hidden_layers\": 2, \"hidden_size\": 64}", SOL_ERR_SYNTAX, 1, 1, "vocab_size"},
      {"{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"vocab_size\": 9}", SOL_ERR_SYNTAX, 1, 1,
       "num_attention_heads"},
      {"{" TINY "}", SOL_ERR_SYNTAX, 1, 1, "intermediate_size"},
      {"{\n  \"num_hidden_layers\": -1}", SOL_ERR_RANGE, 2, 24, "from 1 to 10000"},
      {"{\n  \"num_hidden_layers\": 0}", SOL_ERR_RANGE, 2, 24, "from 1"},
      {"{\"num_hidden_layers\": 10001}", SOL_ERR_RANGE, 1, 23, "10000"},
      {"{\"hidden_size\": 64.5}", SOL_ERR_RANGE, 1, 17, "whole"},
      {"{\"hidden_size\": 1e10}", SOL_ERR_RANGE, 1, 17, "2147483648"},
      {"{\"hidden_size\": 1e999}", SOL_ERR_RANGE, 1, 17, "whole"},
      {"{\"hidden_size\": 99999999999999999999999999}", SOL_ERR_RANGE, 1, 17, "whole"},
      {"{\"hidden_size\": \"64\"}", SOL_ERR_SYNTAX, 1, 17, "number"},
      {"{\"hidden_size\": [64]}", SOL_ERR_SYNTAX, 1, 17, "number"},
      {"{\"hidden_size\": true}", SOL_ERR_SYNTAX, 1, 17, "number"},
      {"{\"tie_word_embeddings\": 1}", SOL_ERR_SYNTAX, 1, 25, "true or false"},
      {"{\"model_type\": 5}", SOL_ERR_SYNTAX, 1, 16, "quotes"},
      {"{\"text_config\": 5}", SOL_ERR_SYNTAX, 1, 17, "object"},
      {"{\"text_config\": {\"hidden_size\": 0}}", SOL_ERR_RANGE, 1, 33, "whole"},
      {"{" LLAMA ",\"num_key_value_heads\":3}", SOL_ERR_RANGE, 1, 149, "evenly"},
      {"{\"num_hidden_layers\":2,\"hidden_size\":64,\"vocab_size\":9,\"num_attention_heads\":5}",
       SOL_ERR_RANGE, 1, 78, "divide"},
      {"{" LLAMA ",\"partial_rotary_factor\":0}", SOL_ERR_RANGE, 1, 151, "above 0"},
      {"{" LLAMA ",\"head_dim\":7}", SOL_ERR_RANGE, 1, 1, "even"},
      {"{" LLAMA ",\"rotary_dim\":32}", SOL_ERR_RANGE, 1, 1, "at most its width"},
      {"{" LLAMA ",\"num_experts\":8}", SOL_ERR_SYNTAX, 1, 1, "num_experts_per_tok"},
      {"{" LLAMA ",\"num_experts\":8,\"num_experts_per_tok\":9}", SOL_ERR_RANGE, 1, 165, "9 of 8"},
      {"{" LLAMA ",\"num_experts\":8,\"num_experts_per_tok\":1,\"mlp_only_layers\":[0.5]}", SOL_ERR_RANGE, 1,
       186, "mlp_only"},
      {"{" LLAMA ",\"num_experts\":8,\"num_experts_per_tok\":1,\"mlp_only_layers\":{}}", SOL_ERR_SYNTAX, 1,
       185, "list"},
      {"{" LLAMA ",\"kv_lora_rank\":8}", SOL_ERR_SYNTAX, 1, 1, "qk_rope_head_dim"},
      {"{" LLAMA ",\"layer_types\":[\"full_attention\"]}", SOL_ERR_RANGE, 1, 141, "1 layers of 2"},
      {"{" LLAMA ",\"layer_types\":[\"linear_attention\"]}", SOL_ERR_UNSUPPORTED, 1, 142, "linear"},
      {"{" LLAMA ",\"sliding_window_pattern\":-2}", SOL_ERR_RANGE, 1, 152, "pattern"},
      {"{\"model_type\":\"opt\"," TINY ",\"ffn_dim\":9}", SOL_ERR_SYNTAX, 1, 1, "max_position_embeddings"},
      {"{\"model_type\":\"opt\"," TINY ",\"word_embed_proj_dim\":32}", SOL_ERR_UNSUPPORTED, 1, 123,
       "narrower"},
      {"{\"model_type\": \"bert\"}", SOL_ERR_UNSUPPORTED, 1, 16, "'bert' is an encoder"},
      {"{\"model_type\": \"t5\"}", SOL_ERR_UNSUPPORTED, 1, 16, "encoder-decoder"},
      {"{\"model_type\": \"mamba\"}", SOL_ERR_UNSUPPORTED, 1, 16, "state-space"},
      {"{\"model_type\": \"clip\", \"text_config\": {}}", SOL_ERR_UNSUPPORTED, 1, 16, "vision"},
      {"{\"model_type\": \"whisper\"}", SOL_ERR_UNSUPPORTED, 1, 16, "audio"},
      {"{\"model_type\": \"x\", \"text_config\": {\"model_type\": \"qwen3_next\"}}", SOL_ERR_UNSUPPORTED, 1,
       51, "linear-attention"},
      {"{\"is_encoder_decoder\": true}", SOL_ERR_UNSUPPORTED, 1, 24, "encoder-decoder"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolModelConfig c = {.layers = 77};
    SolError err;
    SolStatus status = parse(bad[i].json, &c, &err);
    CHECK_MSG(status == bad[i].status && err.line == bad[i].line && err.column == bad[i].column,
              "%s\n  %s %d:%d %s", bad[i].json, sol_status_name(status), err.line, err.column, err.message);
    CHECK_HAS(err.message, bad[i].says);
    CHECK_INT(c.layers, 77); // untouched on failure
  }
}

TEST(huge_and_hostile_text) {
  SolModelConfig c;
  SolError err;
  size_t length = (4 << 20) + 1;
  char *big = malloc(length);
  memset(big, ' ', length);
  CHECK_INT(sol_model_parse(big, length, &c, &err), SOL_ERR_RANGE);
  CHECK_HAS(err.message, "4 MiB");
  memset(big, '[', length);
  CHECK_INT(sol_model_parse(big, length - 1, &c, &err), SOL_ERR_SYNTAX);
  // As many members as fit: one walk, not one per key.
  size_t n = 0;
  big[n++] = '{';
  while (n + 40 < length) n += (size_t)sprintf(big + n, "\"k%zu\":0,", n);
  n += (size_t)sprintf(big + n, "\"hidden_size\":1}");
  CHECK_INT(sol_model_parse(big, n, &c, &err), SOL_ERR_SYNTAX);
  CHECK_HAS(err.message, "num_hidden_layers");
  free(big);
  CHECK_INT(sol_model_parse(0, 0, &c, &err), SOL_ERR_ARGUMENT);
  CHECK_INT(sol_model_parse("{}", 2, &c, 0), SOL_ERR_SYNTAX);
  // The largest of everything is refused by the count, not by an overflow.
  CHECK_INT(parse("{\"vocab_size\":2147483648,\"num_hidden_layers\":10000,\"hidden_size\":2147483648,"
                  "\"num_attention_heads\":1048576,\"num_key_value_heads\":1048576,\"head_dim\":1048576,"
                  "\"intermediate_size\":2147483648,\"num_experts\":1048576,\"num_experts_per_tok\":1048576}",
                  &c, &err),
            SOL_OK);
  SolModelWeights w;
  CHECK_INT(sol_model_weights(&c, &w, &err), SOL_ERR_RANGE);
  SolModelRun options = {.phase = SOL_PHASE_PREFILL, .batch = 512, .context = 1LL << 31};
  CHECK_INT(sol_model_run(device("h100"), &c, &options, &report, &err), SOL_ERR_RANGE);
}

CHECK_MAIN
