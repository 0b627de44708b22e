// A pass split over GPUs, prompts in parts, speculation: against what follows by hand, and against the same pass whole.
#include "model_check.h"

static const SolModelRun decode16 = {.phase = SOL_PHASE_DECODE, .batch = 16, .context = 1024};

static SolFabric fabric(const char *name) {
  SolFabric f = {0};
  SolError err = {0};
  CHECK_MSG(sol_fabric_find(name, &f, &err) == SOL_OK, "%s: %s", name, err.message);
  return f;
}

static void refused(const char *model, SolModelRun run, SolStatus status, const char *says) {
  SolModelConfig c = find(model);
  SolError err = {0};
  CHECK_INT(sol_model_run(device("h100"), &c, &run, &report, &err), status);
  CHECK_HAS(err.message, says);
}

TEST(impossible_splits_name_the_field) {
  refused("llama-3-8b", (SolModelRun){.pp = 33}, SOL_ERR_UNSUPPORTED,
          "pp: 33 stages are more than the model's 32");
  refused("llama-3-8b", (SolModelRun){.tp = 3}, SOL_ERR_UNSUPPORTED, "tp: 32 attention heads");
  refused("llama-3-8b", (SolModelRun){.tp = 2, .ep = 2}, SOL_ERR_UNSUPPORTED,
          "ep: llama-3-8b has no experts");
  refused("mixtral-8x7b", (SolModelRun){.dp = 16, .ep = 16}, SOL_ERR_UNSUPPORTED, "ep: 8 experts");
  refused("mixtral-8x7b", (SolModelRun){.tp = 8, .ep = 3}, SOL_ERR_UNSUPPORTED, "ep: 3 must divide tp (8)");
  refused("mixtral-8x7b", (SolModelRun){.tp = 2, .dp = 3, .ep = 4}, SOL_ERR_UNSUPPORTED, "tp x dp (6)");
  refused("llama-3-8b", (SolModelRun){.cp = -2}, SOL_ERR_ARGUMENT, "cp must be 1 to 65536");
  refused("llama-3-8b", (SolModelRun){.context = 100, .prefix = 100}, SOL_ERR_ARGUMENT, "prefix: 100");
  refused("llama-3-8b", (SolModelRun){.context = 100000, .chunk = 1}, SOL_ERR_RANGE, "chunk: 1");
  refused("llama-3-8b", (SolModelRun){.draft_tokens = 2000}, SOL_ERR_ARGUMENT, "draft_tokens");
  refused("llama-3-8b", (SolModelRun){.draft_tokens = 2, .acceptance = 1.5}, SOL_ERR_ARGUMENT, "acceptance");
  SolFabric one = fabric("nvlink4");
  refused("llama-3-70b", (SolModelRun){.tp = 8, .pp = 2, .fabric = &one}, SOL_ERR_UNSUPPORTED,
          "fabric: 16 GPUs are more than the 8 of one machine, and \"between\" is missing");
}

TEST(what_a_server_adds) {
  SolModelRun run = {.phase = SOL_PHASE_DECODE, .batch = 16, .context = 4096, .tp = 4, .host_us = 3000};
  SolModelRun bare = run;
  bare.host_us = 0;
  SolModelReport with = run_preset("h100", "llama-3-70b", run),
                 without = run_preset("h100", "llama-3-70b", bare);
  CHECK_NEAR(with.total_us, without.total_us + 3000, 1e-12);
  CHECK_NEAR(with.host_us, 3000, 0);
  CHECK(with.launches == without.launches);
  SolModelRun prompt = {.context = 8192, .chunk = 2048, .tp = 4, .host_us = 10}; // four passes
  CHECK_NEAR(run_preset("h100", "llama-3-70b", prompt).host_us, 40, 0);
  SolModelConfig draft = find("llama-3.2-1b");
  run.draft_tokens = 4, run.draft = &draft;
  CHECK_NEAR(run_preset("h100", "llama-3-70b", run).host_us, 5 * 3000.0, 0);
  // 64 query heads share 8 kv heads: attention reads eight times the cache, and holds no more.
  bare.ungrouped = 1;
  SolModelReport apart = run_preset("h100", "llama-3-70b", bare);
  CHECK_NEAR(apart.bytes - without.bytes, 7 * without.kv_bytes, 0.001);
  CHECK_NEAR(apart.kv_bytes, without.kv_bytes, 0);
  bare.phase = SOL_PHASE_PREFILL;
  SolModelReport all = run_preset("h100", "llama-3-70b", bare);
  bare.ungrouped = 0;
  CHECK_NEAR(run_preset("h100", "llama-3-70b", bare).bytes, all.bytes,
             0); // prompts share them in shared memory
  refused("llama-3-8b", (SolModelRun){.host_us = -1}, SOL_ERR_ARGUMENT, "host_us must not be negative");
}

TEST(sums_are_sent_in_16_bits_at_least) {
  SolModelRun run = {.tp = 4, .dtype = SOL_FP8, .weight_dtype = SOL_FP8};
  SolModelReport narrow = run_preset("h100", "llama-3-70b", run);
  run.dtype = SOL_BF16;
  SolModelReport wide = run_preset("h100", "llama-3-70b", run);
  CHECK_NEAR(kernel(&narrow, "mlp all-reduce")->bytes, kernel(&wide, "mlp all-reduce")->bytes, 0);
  run.dtype = SOL_FP32;
  SolModelReport wider = run_preset("h100", "llama-3-70b", run);
  CHECK_NEAR(kernel(&wider, "mlp all-reduce")->bytes, 2 * kernel(&wide, "mlp all-reduce")->bytes, 0);
}

TEST(bad_fabric_files_name_the_field) {
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"[]", "must be a JSON object"},
      {"{}", "inside is missing"},
      {"{\"inside\": 3}", "inside must be an object"},
      {"{\"inside\": {}}", "inside.bandwidth is missing"},
      {"{\"inside\": {\"bandwidth\": 0}}", "inside.bandwidth must be a number from 1"},
      {"{\"inside\": {\"bandwidth\": -5}}", "inside.bandwidth"},
      {"{\"inside\": {\"bandwidth\": \"fast\"}}", "inside.bandwidth"},
      {"{\"inside\": {\"bandwidth\": 1e9, \"latency_us\": 0}}", "inside.latency_us"},
      {"{\"inside\": {\"bandwidth\": 1e9, \"gpus\": 2.5}}", "inside.gpus must be a whole number"},
      {"{\"inside\": {\"bandwidth\": 1e9, \"kind\": \"rope\"}}", "inside.kind must be \"nvlink\""},
      {"{\"inside\": {\"bandwidth\": 1e9, \"one_shot\": 1}}", "inside.one_shot must be true or false"},
      {"{\"inside\": {\"bandwidth\": 1e9, \"colour\": 1}}", "inside.colour is no field"},
      {"{\"inside\": {\"bandwidth\": 1e9}, \"between\": {\"gpus\": 8}}", "between.bandwidth is missing"},
      {"{\"inside\": {\"bandwidth\": 1e9}, \"overlap\": 2}", "overlap must be a number from 0 to 1"},
      {"{\"inside\": {\"bandwidth\": 1e9}, \"name\": 7}", "name must be a text"},
      {"{\"inside\": {\"bandwidth\": 1e9}, \"weather\": 7}", "weather is no field"},
      {"{\"inside\": {\"bandwidth\": 1e9}", ""}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolFabric f;
    SolError err = {0};
    CHECK_MSG(sol_fabric_parse(bad[i].text, strlen(bad[i].text), &f, &err) != SOL_OK, "%s", bad[i].text);
    CHECK_HAS(err.message, bad[i].says);
  }
  SolFabric f;
  SolError err = {0};
  CHECK(sol_fabric_find("nvlink9", &f, &err) != SOL_OK && sol_fabric_find("nvlink4,", &f, &err) != SOL_OK);
  CHECK_HAS(err.message, "unknown fabric");
}

// Small sums go in one shot, large ones round the ring; over machines a tree has fewer steps.
TEST(sums_choose_their_algorithm_by_size) {
  SolFabric nvlink = fabric("nvlink4"), pod = fabric("nvlink4,ib400");
  SolModelRun run = decode16;
  run.tp = 8, run.fabric = &nvlink;
  SolModelReport small = run_preset("h100", "llama-3-8b", run);
  const SolModelKernel *k = kernel(&small, "mlp all-reduce");
  CHECK_STR(k->how, "one-shot");
  CHECK_INT(k->bound, SOL_BOUND_LINK);
  double vector = 16 * 4096 * 2;
  CHECK_NEAR(k->time_us / 32, 3.3 + 2 * 0.6 + 7 * vector / 450e9 * 1e6, 1e-12);
  run.phase = SOL_PHASE_PREFILL;
  SolModelReport large = run_preset("h100", "llama-3-8b", run);
  CHECK_STR(kernel(&large, "mlp all-reduce")->how, "ring, Simple");
  SolFabric far = {.inside = {.bandwidth = 450e9, .gpus = 1},
                   .between = {.kind = SOL_LINK_NETWORK, .bandwidth = 50e9}};
  run.phase = SOL_PHASE_DECODE, run.fabric = &far, run.batch = 256;
  SolModelReport tree = run_preset("h100", "llama-3-8b", run);
  CHECK_STR(kernel(&tree, "mlp all-reduce")->how, "ring, LL128"); // it sends fewer bytes
  run.batch = 1;
  tree = run_preset("h100", "llama-3-8b", run);
  k = kernel(&tree, "mlp all-reduce");
  CHECK_STR(k->how, "tree, LL");
  CHECK_NEAR(k->time_us / 32, 6.8 + 2 * 3 * 5.0 + 2 * 8192 / (50e9 * 0.5) * 1e6, 1e-12);
  // Two machines of eight: inside with all bytes, between with an eighth of them.
  run = decode16;
  run.tp = 16, run.fabric = &pod;
  SolModelReport both = run_preset("h100", "llama-3-70b", run);
  run.tp = 8;
  SolModelReport inside = run_preset("h100", "llama-3-70b", run);
  CHECK(kernel(&both, "mlp all-reduce")->time_us > kernel(&inside, "mlp all-reduce")->time_us + 80 * 6.6);
}

TEST(overlap_hides_a_share) {
  SolFabric f = fabric("nvlink4");
  SolModelRun run = {.batch = 4, .context = 2048, .tp = 4, .fabric = &f};
  SolModelReport none = run_preset("h100", "llama-3-8b", run);
  f.overlap = 0.5;
  SolModelReport half = run_preset("h100", "llama-3-8b", run);
  const SolModelKernel *k = kernel(&half, "mlp all-reduce");
  CHECK_NEAR(k->hidden_us, k->time_us / 2, 1e-12);
  CHECK(none.total_us > half.total_us && none.link_us == half.link_us);
}

TEST(replicas_share_the_batch_and_nothing_else) {
  SolModelReport one = run_preset("h100", "llama-3-8b", decode16);
  SolModelRun run = decode16;
  run.batch = 64, run.dp = 4;
  SolModelReport four = run_preset("h100", "llama-3-8b", run);
  CHECK_NEAR(four.tokens_per_s, 4 * one.tokens_per_s, 1e-12);
  CHECK(four.weight_bytes == one.weight_bytes && four.kv_bytes == one.kv_bytes && four.link_bytes == 0);
  CHECK_INT(four.gpus, 4);
}

TEST(a_pipeline_waits_for_its_first_microbatch) {
  SolModelRun run = {.batch = 8, .context = 512, .pp = 4, .microbatches = 8};
  SolModelReport prompt = run_preset("h100", "llama-3-8b", run);
  CHECK_NEAR(prompt.bubble_us / prompt.total_us, 3.0 / (8 + 3), 1e-9);
  CHECK_INT(kernel(&prompt, "qkv projection")->count, 8 * 8); // 8 layers, 8 microbatches
  CHECK(kernel(&prompt, "send to the next stage")->count == 8);
  run.phase = SOL_PHASE_DECODE;
  SolModelReport full = run_preset("h100", "llama-3-8b", run);
  CHECK(full.bubble_us == 0);
  run.batch = 1;
  SolModelReport lone = run_preset("h100", "llama-3-8b", run); // three of four stages wait
  CHECK_NEAR(lone.bubble_us / lone.total_us, 3.0 / 4, 1e-9);
  // Four stages of 8 layers hold what one GPU does, but for the embedding, which the first one has, and the head.
  SolModelConfig c = find("llama-3-8b");
  SolModelWeights w = weights(&c);
  double layers = (w.attention_params + w.mlp_params) / 4 + 8 * 2 * 4096.0 + 4096;
  CHECK_NEAR(lone.weight_bytes, 2 * (layers + w.head_params), 1e-12);
}

TEST(experts_on_their_own_gpus) {
  SolModelRun run = decode16;
  run.batch = 256, run.tp = 8;
  SolModelReport columns = run_preset("h100", "mixtral-8x7b", run);
  run.ep = 8;
  SolModelReport whole = run_preset("h100", "mixtral-8x7b", run);
  CHECK(whole.weight_bytes == columns.weight_bytes && !kernel(&whole, "dispatch to experts"));
  CHECK(columns.imbalance == 0);
  double mean = 256 * 2 / 8.0;
  CHECK_NEAR(whole.imbalance, 1 + sqrt(2 * log(8) / mean), 1e-9);
  // Experts over replicas: tokens are sent, twice, to (1 - (7/8)^2) of the seven others.
  run.tp = 1, run.dp = 8;
  SolModelReport sent = run_preset("h100", "mixtral-8x7b", run);
  const SolModelKernel *k = kernel(&sent, "dispatch to experts");
  CHECK(k && k->count == 32);
  CHECK_NEAR(k->bytes, 32 * 4096 * 2 * 7 * (1 - 49.0 / 64), 1e-9);
  CHECK(kernel(&sent, "return from experts") && !kernel(&sent, "mlp all-reduce"));
  CHECK_NEAR(sent.imbalance, whole.imbalance, 1e-12);
}

TEST(a_sequence_over_gpus) {
  SolModelRun run = {.batch = 1, .context = 32768};
  SolModelReport one = run_preset("h100", "llama-3-8b", run);
  run.cp = 4;
  SolModelReport four = run_preset("h100", "llama-3-8b", run);
  CHECK_NEAR(kernel(&four, "attention")->flops * 4, kernel(&one, "attention")->flops, 1e-12);
  CHECK_NEAR(four.kv_bytes * 4, one.kv_bytes, 1e-12);
  const SolModelKernel *k = kernel(&four, "pass keys and values round");
  CHECK_NEAR(k->bytes, 3 * 8192 * 8 * 256 * 2.0, 1e-12);
  CHECK(k->hidden_us > 0 && k->hidden_us <= k->time_us);
  run.phase = SOL_PHASE_DECODE;
  SolModelReport split = run_preset("h100", "llama-3-8b", run);
  run.cp = 1;
  SolModelReport all = run_preset("h100", "llama-3-8b", run);
  CHECK(kernel(&split, "attention")->bytes < kernel(&all, "attention")->bytes / 3.9);
  CHECK(kernel(&split, "gather partial attention") != 0);
}

// However a prompt is cut, the products are the same; weights are read once for each pass.
TEST(chunks_and_prefixes_add_up) {
  static const char *names[] = {"llama-3-8b", "gemma-2-9b", "mixtral-8x7b"};
  for (size_t i = 0; i < 3; i++) {
    SolModelRun run = {.batch = 2, .context = 6000};
    SolModelReport whole = run_preset("h100", names[i], run);
    run.chunk = 512;
    SolModelReport cut = run_preset("h100", names[i], run);
    CHECK_MSG(fabs(cut.flops / whole.flops - 1) < 1e-9, "%s: %.6g of %.6g", names[i], cut.flops, whole.flops);
    CHECK_INT(kernel(&cut, "output projection")->count, 12 * kernel(&whole, "output projection")->count);
    CHECK(kernel(&cut, "lm head")->count == 1 && cut.bytes > whole.bytes && cut.tokens == whole.tokens);
    run = (SolModelRun){.batch = 2, .context = 6000, .prefix = 2000};
    SolModelReport rest = run_preset("h100", names[i], run);
    run = (SolModelRun){.batch = 2, .context = 2000};
    SolModelReport first = run_preset("h100", names[i], run);
    double head = kernel(&whole, "lm head")->flops + kernel(&whole, "argmax")->flops;
    CHECK_MSG(fabs((first.flops + rest.flops - head) / whole.flops - 1) < 1e-9, "%s", names[i]);
    CHECK(rest.kv_bytes == whole.kv_bytes && rest.tokens == 8000);
  }
}

TEST(speculation) {
  SolModelReport plain = run_preset("h100", "llama-3-70b", decode16);
  SolModelRun run = decode16;
  run.draft_tokens = 4, run.acceptance = 0.8;
  SolModelReport fast = run_preset("h100", "llama-3-70b", run);
  CHECK_NEAR(fast.accepted, (1 - pow(0.8, 5)) / (1 - 0.8), 1e-12);
  CHECK_NEAR(fast.tokens, 16 * fast.accepted, 1e-12);
  CHECK_NEAR(kernel(&fast, "qkv projection")->flops, 5 * kernel(&plain, "qkv projection")->flops, 1e-12);
  CHECK(kernel(&fast, "attention")->bytes < 1.1 * kernel(&plain, "attention")->bytes);
  CHECK(fast.tokens_per_s > 3 * plain.tokens_per_s);
  SolModelConfig draft = find("llama-3.2-1b");
  run.draft = &draft;
  SolModelReport with = run_preset("h100", "llama-3-70b", run);
  SolModelReport alone = run_preset("h100", "llama-3.2-1b", decode16);
  CHECK_NEAR(with.draft_us, 4 * (alone.total_us - alone.launch_us), 1e-12);
  CHECK_NEAR(with.total_us, fast.total_us + 4 * alone.total_us, 1e-12);
  CHECK_NEAR(with.weight_bytes, fast.weight_bytes + alone.weight_bytes, 1e-12);
  CHECK(with.launches == fast.launches + 4 * alone.launches);
}

TEST(measured_rates_replace_the_memory_roof) {
  SolMeasuredOp slow = {"silu_mul", 1e12};
  SolModelRun run = decode16;
  run.measured = &slow, run.measured_count = 1;
  SolModelReport r = run_preset("h100", "llama-3-8b", run);
  const SolModelKernel *k = kernel(&r, "activation");
  CHECK(k->measured && !kernel(&r, "rope")->measured);
  CHECK_NEAR(k->time_us / k->count, k->bytes / 1e12 * 1e6, 1e-12);
}

CHECK_MAIN
