// A forward pass (src/roofline/model_run.c and its parts) against ceilings and counts worked out by hand.
#include "check.h"
#include "model_check.h"

TEST(decode_ceiling_of_llama_3_8b) {
  SolModelReport r =
      run_preset("h100", "llama-3-8b", (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 1, .context = 1});
  double gathered = 128256.0 * 4096 * 2;
  CHECK_INT(r.weight_bytes, 8030261248LL * 2);
  CHECK_NEAR(r.bytes, r.weight_bytes - gathered, 0.001); // every weight once, but of the embedding one row
  double kernels_us = r.total_us - r.launch_us;
  CHECK_NEAR(kernels_us, (r.weight_bytes - gathered) / 3.35e12 * 1e6, 0.002);
  CHECK(1e6 / kernels_us > 215 && 1e6 / kernels_us < 230);
  CHECK_NEAR(r.tokens_per_s, 1e6 / r.total_us, 1e-12);
  for (int i = 0; i < r.count; i++) CHECK_INT(r.kernels[i].bound, SOL_BOUND_MEMORY);
}

TEST(decode_moves_weights_and_cache) {
  static const char *names[] = {"llama-3-8b", "llama-2-70b", "mistral-7b", "qwen3-8b", "gemma-2-9b",
                                "phi-4",      "opt-6.7b",    "gpt-j-6b",   "olmo-2-7b"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    SolModelConfig c = find(names[i]);
    const SolModelReport *r =
        run("b200", &c, (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 1, .context = 2000});
    SolModelWeights w = weights(&c);
    double read = 2 * (w.params - (c.tied_embeddings ? 0 : w.embedding_params)) + r->kv_bytes;
    CHECK_MSG(fabs(r->bytes / read - 1) < 0.03, "%s: %.4g bytes, weights and cache %.4g", names[i], r->bytes,
              read);
  }
}

TEST(prefill_flops) {
  // Two a parameter and token, and attention's half square; the head runs on one position.
  static const char *names[] = {"llama-3-8b", "mixtral-8x7b", "qwen3-30b-a3b",    "deepseek-v3",
                                "gpt2-xl",    "gpt-oss-20b",  "qwen1.5-moe-a2.7b"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    SolModelConfig c = find(names[i]);
    const SolModelReport *r = run("h200", &c, (SolModelRun){.batch = 2, .context = 1000});
    SolModelWeights w = weights(&c);
    double t = 2000, v = (double)(c.v_head_dim ? c.v_head_dim : c.head_dim);
    double head = c.tied_embeddings ? 0 : w.head_params;
    double matrices =
        2 * t * (w.active_params - w.embedding_params - head) + 2 * 2 * (double)(c.vocab * c.hidden);
    double pairs = 1000.0 * 1001 / 2, near = 128.0 * 129 / 2 + (1000 - 128) * 128.0;
    double seen = (double)(c.layers - c.sliding_layers) * pairs + (double)c.sliding_layers * near;
    double attention = 2 * 2 * (double)c.heads * ((double)c.head_dim + v) * seen;
    CHECK_MSG(fabs(r->flops / (matrices + attention) - 1) < 0.05, "%s: %.4g FLOPs, expected %.4g", names[i],
              r->flops, matrices + attention);
  }
}

TEST(experts_reached) {
  SolModelReport one =
      run_preset("h100", "mixtral-8x7b", (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 1, .context = 1});
  SolModelReport many = run_preset("h100", "mixtral-8x7b",
                                   (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 512, .context = 1});
  double expert = 2.0 * 14336 * 4096 * 2;
  CHECK_NEAR(kernel(&one, "experts, gate and up")->bytes, 2 * expert, 0.001);
  CHECK_NEAR(kernel(&many, "experts, gate and up")->bytes, 8 * expert + 1024 * (4096.0 + 2 * 14336) * 2,
             1e-9);
  SolModelReport four =
      run_preset("h100", "mixtral-8x7b", (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 4, .context = 1});
  double reached = 8 * (1 - pow(0.75, 4));
  CHECK_NEAR(kernel(&four, "experts, gate and up")->bytes, reached * expert + 8 * (4096.0 + 2 * 14336) * 2,
             1e-9);
  CHECK_NEAR(kernel(&four, "experts, gate and up")->flops, 8 * 2.0 * 4096 * 2 * 14336, 1e-12);
}

TEST(latent_attention) {
  SolModelReport r = run_preset(
      "h200", "deepseek-v3",
      (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 8, .context = 4095, .weight_dtype = SOL_FP8});
  CHECK_INT(r.kv_bytes_per_token, 61 * (512 + 64) * 2);
  CHECK_INT(r.kv_bytes, 8LL * 4096 * 61 * 576 * 2);
  const SolModelKernel *k = kernel(&r, "attention");
  double cache = 8.0 * 4096 * 576 * 2, q = 8.0 * 128 * 576 * 2, o = 8.0 * 128 * 512 * 2;
  CHECK(k && k->bytes == cache + q + o); // the values are a part of the keys
  CHECK(k && k->flops == 2.0 * (576 + 512) * 8 * 128 * 4096);
  // Both halves of the kv up projection, once.
  double up = kernel(&r, "kv up projection on q")->bytes + kernel(&r, "kv up projection on output")->bytes;
  double held = 512.0 * 128 * (128 + 128), moved = 2 * 8.0 * 128 * (128 + 512) * 2;
  CHECK(up == held + moved);
  SolModelReport prefill =
      run_preset("h200", "deepseek-v3", (SolModelRun){.batch = 1, .context = 4096, .kv_dtype = SOL_FP8});
  CHECK(kernel(&prefill, "kv up projection") && !kernel(&prefill, "kv up projection on q"));
  CHECK(kernel(&prefill, "attention")->bytes == 4096.0 * 128 * (192 + 192 + 128 + 128) * 2);
  SolModelReport split = run_preset(
      "h200", "deepseek-v3", (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 8, .context = 4095, .tp = 8});
  CHECK_INT(split.kv_bytes, 8LL * 4096 * 61 * 576 * 2); // each GPU has the whole latent
}

TEST(windows_limit_the_cache) {
  SolModelRun options = {.phase = SOL_PHASE_DECODE, .batch = 2, .context = 8191};
  SolModelReport r = run_preset("h100", "gemma-2-9b", options);
  const SolModelKernel *all = kernel(&r, "attention"), *near = kernel(&r, "attention, windowed");
  CHECK(all && near && all->count == 21 && near->count == 21);
  double token = 2.0 * 8 * 256 * 2, qo = 2 * 2.0 * 16 * 256 * 2;
  CHECK(all->bytes == 2 * 8192 * token + qo && near->bytes == 2 * 4096 * token + qo);
  CHECK(r.kv_bytes == 2 * 21 * (8192 + 4096) * token);
  options.context = 100;
  r = run_preset("h100", "gemma-2-9b", options);
  CHECK(kernel(&r, "attention, windowed")->bytes == kernel(&r, "attention")->bytes);
}

TEST(tensor_parallel) {
  static const char *names[] = {"llama-3-8b",    "llama-3-70b",  "mixtral-8x7b",
                                "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    SolModelRun options = {.phase = SOL_PHASE_DECODE, .batch = 16, .context = 1024};
    SolModelReport one = run_preset("h100", names[i], options);
    options.tp = 8;
    SolModelReport eight = run_preset("h100", names[i], options);
    CHECK_MSG(fabs(eight.weight_bytes * 8 / one.weight_bytes - 1) < 0.02, "%s: %.4g of %.4g", names[i],
              eight.weight_bytes, one.weight_bytes);
    CHECK(one.link_bytes == 0 && eight.link_bytes > 0);
    CHECK(eight.total_us < one.total_us);
  }
  SolModelReport r = run_preset(
      "h100", "llama-3-8b", (SolModelRun){.phase = SOL_PHASE_DECODE, .batch = 16, .context = 1024, .tp = 4});
  const SolModelKernel *k = kernel(&r, "mlp all-reduce");
  double sent = 2.0 * 3 / 4 * 16 * 4096 * 2, rate = device("h100")->link_bandwidth.value;
  CHECK(k && k->count == 32 && k->bytes == sent && strcmp(k->part, "link") == 0);
  // Small: NCCL's LL protocol, half of whose bytes are flags, in six steps round the ring of four.
  CHECK_NEAR(k->time_us, 32 * (6.6 + 6 * 0.6 + 2 * sent / rate * 1e6), 1e-12);
  CHECK(r.link_us > 64 * k->time_us / 32 && r.link_us < r.total_us);
  CHECK_INT(r.kv_bytes_per_token, 131072 / 4);
  // Fewer kv heads than GPUs: a copy each, no fewer bytes than one head's.
  r = run_preset("h100", "qwen3-30b-a3b", (SolModelRun){.phase = SOL_PHASE_DECODE, .tp = 8});
  CHECK_INT(r.kv_bytes_per_token, 48 * 2 * 128 * 2);
  // A parallel block sums attention and MLP before it sends.
  SolModelConfig j = find("gpt-j-6b");
  run("h100", &j, (SolModelRun){.phase = SOL_PHASE_DECODE, .context = 10, .tp = 2});
  CHECK(kernel(&report, "block all-reduce") && !kernel(&report, "attention all-reduce"));
}

TEST(a_large_sum_is_bound_by_the_link) {
  SolModelReport r = run_preset("h100", "llama-3-8b", (SolModelRun){.batch = 8, .context = 8192, .tp = 4});
  const SolModelKernel *k = kernel(&r, "mlp all-reduce");
  double sent = 2.0 * 3 / 4 * 8 * 8192 * 4096 * 2, rate = device("h100")->link_bandwidth.value;
  CHECK_NEAR(k->time_us / 32, 8.4 + 6 * 3.4 + sent / rate * 1e6, 1e-12);
}

// The sizes of the published files: bytes of the tensors, "total_size" in their index.
TEST(checkpoints_have_their_published_size) {
  SolModelReport r = run_preset("h200", "gpt-oss-20b", (SolModelRun){0});
  CHECK_NEAR(r.weight_bytes, 13761264768.0, 1e-12);
  r = run_preset("h200", "gpt-oss-120b", (SolModelRun){0});
  CHECK_NEAR(r.weight_bytes, 65248815744.0, 1e-12);
  CHECK(r.fits);
  // DeepSeek-V3's layers are fp8, its embedding, head and router bf16; a type asked for counts for every weight.
  r = run_preset("h200", "deepseek-v3", (SolModelRun){.tp = 8});
  CHECK(r.fits && r.run.weight_dtype == SOL_FP8);
  SolModelReport all = run_preset("h200", "deepseek-v3", (SolModelRun){.weight_dtype = SOL_FP8});
  CHECK_NEAR(all.weight_bytes, 671026419200.0, 1e-12);
}

TEST(products_of_quantised_activations_run_at_the_narrow_peak) {
  SolModelRun options = {.batch = 1, .context = 8192, .tp = 8};
  SolModelReport hopper = run_preset("h200", "deepseek-v3", options);
  options.weight_dtype = SOL_BF16;
  SolModelReport wide = run_preset("h200", "deepseek-v3", options);
  double ratio = kernel(&wide, "output projection")->time_us / kernel(&hopper, "output projection")->time_us;
  CHECK_NEAR(ratio, device("h200")->peak_fp8.value / device("h200")->peak_bf16.value, 1e-9);
  SolModelReport ampere = run_preset("a100", "deepseek-v3", (SolModelRun){.context = 8192, .tp = 8});
  CHECK_INT(kernel(&ampere, "output projection")->bound, SOL_BOUND_COMPUTE); // at bf16's peak: it has no fp8
}

TEST(tensor_parallel_refusals) {
  static const struct {
    const char *gpu, *model;
    int64_t tp;
    SolStatus status;
    const char *says;
  } bad[] = {{"h100", "falcon-7b", 2, SOL_ERR_UNSUPPORTED, "71 attention heads"},
             {"h100", "llama-3-8b", 3, SOL_ERR_UNSUPPORTED, "32 attention heads"},
             {"h100", "phi-4", 4, SOL_ERR_UNSUPPORTED, "10 kv heads"},
             {"h100", "qwen2.5-14b", 20, SOL_ERR_UNSUPPORTED, "8 kv heads"},
             {"h100", "llama-3-8b", -1, SOL_ERR_ARGUMENT, "tp"},
             {"h100", "llama-3-8b", 1LL << 40, SOL_ERR_ARGUMENT, "tp"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    SolModelConfig c = find(bad[i].model);
    SolModelRun options = {.phase = SOL_PHASE_DECODE, .tp = bad[i].tp};
    SolError err = {0};
    CHECK_INT(sol_model_run(device(bad[i].gpu), &c, &options, &report, &err), bad[i].status);
    CHECK_HAS(err.message, bad[i].says);
  }
  SolDevice alone = *device("h100");
  alone.link_bandwidth = (SolFigure){0, 0};
  SolModelConfig c = find("llama-3-8b");
  SolError err = {0};
  SolModelRun two = {.tp = 2}, one = {.tp = 1};
  CHECK_INT(sol_model_run(&alone, &c, &two, &report, &err), SOL_ERR_UNKNOWN);
  CHECK_HAS(err.message, "link bandwidth");
  CHECK_INT(sol_model_run(&alone, &c, &one, &report, &err), SOL_OK);
}

TEST(fused_is_fewer_kernels_and_bytes) {
  for (int i = 0; i < sol_model_preset_count(); i++) {
    for (int phase = 0; phase < 4; phase++) {
      const SolModelConfig *c = sol_model_preset(i);
      SolModelRun options = {.phase = (SolPhase)(phase & 1), .batch = 4, .context = 1000, .tp = 1};
      if (phase & 2 && c->heads % 2 == 0) options.tp = 2;
      SolModelReport plain = *run("h100", c, options);
      options.fused = 1;
      const SolModelReport *fused = run("h100", c, options);
      CHECK_MSG(fused->launches < plain.launches && fused->bytes < plain.bytes,
                "%s: %.0f and %.0f launches, %.6g and %.6g bytes", c->name, fused->launches, plain.launches,
                fused->bytes, plain.bytes);
      CHECK_NEAR(fused->flops, plain.flops, 1e-9);
      CHECK(fused->weight_bytes == plain.weight_bytes && fused->kv_bytes == plain.kv_bytes);
    }
  }
}

TEST(fused_parts_of_llama) {
  SolModelRun options = {.phase = SOL_PHASE_DECODE, .batch = 4, .context = 100};
  SolModelReport plain = run_preset("h100", "llama-3-8b", options);
  options.fused = 1;
  SolModelReport fused = run_preset("h100", "llama-3-8b", options);
  // Per layer: norm, qkv, rope, append, attention, out, add, norm, gate and up, silu, down, add; and four
  // besides.
  CHECK_INT(plain.launches, 32 * 12 + 4);
  CHECK_INT(fused.launches, 32 * 8 + 3);
  double n = 4 * 4096 * 2;
  const SolModelKernel *rope = kernel(&plain, "rope"), *append = kernel(&plain, "kv append"),
                       *both = kernel(&fused, "rope, kv append");
  CHECK(rope && append && both &&
        rope->bytes + append->bytes - both->bytes == 2 * 4.0 * 8 * 128 * 2); // k, out and in
  CHECK(kernel(&fused, "add and mlp norm")->bytes == 4 * n + 4096 * 2);
  CHECK(kernel(&plain, "gate and up projection")->bytes - kernel(&fused, "gate and up projection")->bytes ==
        4.0 * 14336 * 2);
  CHECK_INT(kernel(&fused, "add and input norm")->count, 31);
}

TEST(sums_and_shares) {
  for (int i = 0; i < sol_model_preset_count(); i++) {
    SolModelRun options = {
        .phase = SOL_PHASE_DECODE, .batch = 2, .context = 500, .graph = i & 1, .fused = i >> 1 & 1};
    const SolModelReport *r = run("a100", sol_model_preset(i), options);
    double time = 0, bytes = 0, flops = 0, launches = 0, share = 0;
    for (int k = 0; k < r->count; k++) {
      const SolModelKernel *one = &r->kernels[k];
      CHECK(one->count >= 1 && one->time_us > 0 && one->name && one->op && one->part);
      time += one->time_us, bytes += one->count * one->bytes, flops += one->count * one->flops;
      launches += one->count, share += one->share;
      for (int other = 0; other < k; other++)
        CHECK_MSG(strcmp(one->name, r->kernels[other].name) != 0, "%s twice", one->name);
    }
    CHECK_NEAR(r->total_us, time + r->launch_us, 1e-9);
    CHECK_NEAR(r->bytes, bytes, 1e-9);
    CHECK_NEAR(r->flops, flops, 1e-9);
    CHECK(r->launches == launches);
    CHECK_NEAR(share, 1 - r->launch_us / r->total_us, 1e-9);
    CHECK(r->launch_us == (options.graph ? r->launch_graph_us : r->launch_stream_us));
    CHECK(r->layer_us * (double)sol_model_preset(i)->layers < time);
  }
}

TEST(memory) {
  SolModelReport r = run_preset("h100", "llama-3-70b", (SolModelRun){.phase = SOL_PHASE_DECODE});
  CHECK_INT(r.run.context, 4096);
  CHECK(!r.fits && r.max_batch == 0);
  SolModelRun options = {.phase = SOL_PHASE_DECODE, .context = 4096};
  r = run_preset("h100", "llama-3-8b", options);
  CHECK(r.fits && r.max_batch > 100);
  options.batch = (int64_t)r.max_batch;
  CHECK(run_preset("h100", "llama-3-8b", options).fits);
  options.batch++;
  CHECK(!run_preset("h100", "llama-3-8b", options).fits);
  // fp8 weights and cache, bf16 arithmetic.
  r = run_preset("h100", "llama-3-8b",
                 (SolModelRun){.batch = 1, .context = 8192, .weight_dtype = SOL_FP8, .kv_dtype = SOL_FP8});
  CHECK_INT(r.weight_bytes, 8030261248LL);
  CHECK_INT(r.kv_bytes_per_token, 65536);
  const SolModelKernel *k = kernel(&r, "down projection");
  CHECK_INT(k->bound, SOL_BOUND_COMPUTE);
  CHECK_NEAR(k->time_us, 32 * k->flops / device("h100")->peak_bf16.value * 1e6, 1e-9);
  SolModelReport eight =
      run_preset("h100", "llama-3-8b", (SolModelRun){.batch = 1, .context = 8192, .dtype = SOL_FP8});
  k = kernel(&eight, "down projection");
  CHECK_NEAR(k->time_us, 32 * k->flops / device("h100")->peak_fp8.value * 1e6, 1e-9);
  CHECK_INT(run_preset("b200", "llama-3-8b", (SolModelRun){.weight_dtype = SOL_FP4}).weight_bytes,
            8030261248LL / 2);
}

TEST(learned_positions_end) {
  SolModelConfig c = find("gpt2");
  SolError err = {0};
  CHECK_INT(run("h100", &c, (SolModelRun){.phase = SOL_PHASE_DECODE})->run.context, 1023);
  CHECK_INT(run("h100", &c, (SolModelRun){.phase = SOL_PHASE_PREFILL})->run.context, 1024);
  SolModelRun options = {.phase = SOL_PHASE_DECODE, .context = 1024};
  CHECK_INT(sol_model_run(device("h100"), &c, &options, &report, &err), SOL_ERR_ARGUMENT);
  CHECK_HAS(err.message, "1024 learned positions");
}

TEST(bad_runs) {
  SolModelConfig good = find("llama-3-8b");
  static const SolModelRun runs[] = {{.batch = -1},          {.context = -5},
                                     {.phase = (SolPhase)7}, {.dtype = (SolDtype)99},
                                     {.dtype = SOL_INT32},   {.kv_dtype = (SolDtype)-1},
                                     {.batch = 1LL << 40},   {.context = INT64_MAX},
                                     {.batch = INT64_MIN},   {.batch = 1LL << 31, .context = 1LL << 31}};
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
    SolError err = {0};
    SolStatus status = sol_model_run(device("h100"), &good, &runs[i], &report, &err);
    CHECK_MSG((status == SOL_ERR_ARGUMENT || status == SOL_ERR_RANGE) && err.message[0], "run %zu: %s", i,
              sol_status_name(status));
  }
  // A config made by hand is checked too.
  SolModelConfig bad[12];
  for (int i = 0; i < 12; i++) bad[i] = good;
  bad[0].layers = 0, bad[1].hidden = -1, bad[2].kv_heads = 7, bad[3].norm = (SolNorm)9,
  bad[4].qk_norm = (SolQkNorm)-1;
  bad[5].experts = 4, bad[5].moe_layers = 33, bad[6].sliding_layers = 3, bad[7].v_head_dim = 5,
  bad[8].kv_lora_rank = 5;
  bad[9].intermediate = 0, bad[10].learned_positions = -1, bad[11].heads = INT64_MAX;
  for (int i = 0; i < 12; i++) {
    SolModelWeights w;
    SolError err = {0};
    SolModelRun options = {0};
    CHECK_MSG(sol_model_weights(&bad[i], &w, &err) == SOL_ERR_ARGUMENT && err.message[0], "config %d passed",
              i);
    CHECK_INT(sol_model_run(device("h100"), &bad[i], &options, &report, &err), SOL_ERR_ARGUMENT);
  }
  CHECK_INT(sol_model_run(0, &good, &runs[0], &report, 0), SOL_ERR_ARGUMENT);
  SolDevice nameless = *device("h100");
  nameless.graph_launch_us = (SolFigure){0, 0};
  SolModelRun stream = {0}, graph = {.graph = 1};
  SolError err = {0};
  CHECK_INT(sol_model_run(&nameless, &good, &stream, &report, &err), SOL_OK);
  CHECK(isnan(report.launch_graph_us) && report.launch_stream_us > 0);
  CHECK_INT(sol_model_run(&nameless, &good, &graph, &report, &err), SOL_ERR_UNKNOWN);
}

CHECK_MAIN
