// Sums, names, the diagnosis and its rules, measured beside emulated.
#include "check.h"

#include "profile/against.h"
#include "profile/diagnose.h"

static const SolDevice *h200(void) {
  const SolDevice *device = NULL;
  sol_device_find("h200", &device, NULL);
  return device;
}

typedef struct Rig {
  Profile p;
  ProfileRoofs roofs;
  ProfileLaunch l;
} Rig;

// One launch of 1 ms that moves 1 GB in and 1 GB out by 4-byte accesses side by side: everything counted,
// nothing wrong.
static void start(Rig *r) {
  profile_start(&r->p, PROFILE_FROM_NCU);
  r->p.gpu.device = h200();
  r->p.gpu.sms = 132;
  r->roofs = profile_roofs(h200());
  profile_launch_clear(&r->l);
  r->l.name = "k";
  r->l.grid[0] = 132 * 800, r->l.grid[1] = r->l.grid[2] = 1;
  r->l.block[0] = 256, r->l.block[1] = r->l.block[2] = 1;
  r->l.registers = 32, r->l.static_shared = r->l.dynamic_shared = 0;
  double *v = r->l.values;
  for (int m = 0; m < PROFILE_METRICS; m++) v[m] = 0;
  v[PROFILE_time] = 1e6;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 2.1e9;
  v[PROFILE_dram_pct] = v[PROFILE_memory_pct] = 87.5;
  v[PROFILE_l2_pct] = 40, v[PROFILE_l1_pct] = 20, v[PROFILE_sm_pct] = 15, v[PROFILE_issue_pct] = 15;
  v[PROFILE_cycles] = v[PROFILE_active_cycles] = 1.7e6;
  v[PROFILE_load_requests] = v[PROFILE_store_requests] = 16e6;
  v[PROFILE_load_sectors] = v[PROFILE_store_sectors] = 64e6;
  v[PROFILE_load_use] = v[PROFILE_store_use] = 32;
  v[PROFILE_l2_sectors] = 128e6, v[PROFILE_l2_hits] = 64e6;
  v[PROFILE_occupancy] = v[PROFILE_occupancy_limit] = 95;
  v[PROFILE_instructions] = 1e8, v[PROFILE_lanes] = 32;
  v[PROFILE_wait_load] = 10;
  // Only some files have these.
  v[PROFILE_shared_passes] = v[PROFILE_shared_passes_ideal] = PROFILE_UNKNOWN;
  v[PROFILE_global_sectors] = v[PROFILE_global_sectors_ideal] = PROFILE_UNKNOWN;
}

static const ProfileDiagnosis *judge(Rig *r) {
  SolError err = {0};
  CHECK_MSG(!profile_add(&r->p, &r->l, &err) && !profile_finish(&r->p, &err), "%s", err.message);
  CHECK_MSG(!profile_diagnose(&r->p, &r->roofs, &err), "%s", err.message);
  return r->p.kernels[0].diagnosis;
}

static bool has(const ProfileDiagnosis *d, const char *rule) {
  for (uint32_t i = 0; i < d->finding_count; i++)
    if (strcmp(d->findings[i].rule, rule) == 0) return true;
  return false;
}

TEST(titles) {
  static const char *const cases[][2] = {
      {"transpose(float *, const float *)", "transpose"},
      {"void ns::f<float, 4>(const float *, int)", "ns::f<float,4>"},
      {"_ZN2ns1fIfLi4EEEvPKfi", "ns::f<float,4>"},
      {"__nv_static_30__7b723fbe_9_jacobi_cu_3dc991e0__Z12JacobiMethodPKfPKdfPdS3_S3_", "JacobiMethod"},
      {"void f<(int)4, (unsigned int)2, float *>(T1 *)", "f<4,2,float *>"},
      {"void (anonymous namespace)::g<int (*)(int)>(int (*)(int))", "(anonymous namespace)::g<int (*)(int)>"},
      {"std::enable_if<(bool)1, void>::type h<int>(int)", "h<int>"},
      {"plain_c", "plain_c"},
      {"sm90_xmma_gemm_f16f16_tn_n_tilesize128x128x64", "sm90_xmma_gemm_f16f16_tn_n_tilesize128x128x64"},
      {"", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char title[200];
    profile_title(cases[i][0], title, sizeof title);
    CHECK_STR(title, cases[i][1]);
  }
  char small[4];
  profile_title("void abcdef(int)", small, sizeof small);
  CHECK_STR(small, "abc");
}

TEST(sums) {
  Profile p;
  ProfileLaunch l;
  SolError err = {0};
  profile_start(&p, PROFILE_FROM_CUPTI);
  for (int i = 0; i < 1000; i++) { // 500 kernels twice: timed always, counted the first time
    char name[16];
    snprintf(name, sizeof name, "k%d", i % 500);
    profile_launch_clear(&l);
    l.name = name;
    l.grid[0] = 4;
    l.seconds = i < 500 ? 1e-6 : 3e-6;
    if (i < 500) l.values[PROFILE_dram_read] = 100, l.values[PROFILE_occupancy] = 50;
    if (i >= 500) l.values[PROFILE_occupancy] = 90;
    CHECK(!profile_add(&p, &l, &err));
  }
  l.name = "k499";
  l.grid[0] = 5; // another shape
  CHECK(!profile_add(&p, &l, &err));
  CHECK(!profile_finish(&p, &err));
  CHECK(profile_add(&p, &l, &err)); // no longer
  CHECK_INT(p.kernel_count, 501);
  CHECK_INT(p.launches, 1001);
  CHECK_NEAR(p.seconds, 500 * 4e-6 + 3e-6, 1e-9);
  const ProfileKernel *k = &p.kernels[0];
  CHECK_STR(k->name, "k0"); // equals in the order in which they came
  CHECK_INT(k->launches, 2);
  CHECK_NEAR(k->seconds, 4e-6, 1e-9);
  CHECK_NEAR(profile_value(k, PROFILE_dram_read), 200, 1e-12); // the other launch taken to be like it
  CHECK_INT(k->counted[PROFILE_dram_read], 1);
  CHECK_NEAR(profile_value(k, PROFILE_occupancy), (50 * 1 + 90 * 3) / 4.0, 1e-12); // by time
  CHECK(!profile_known(profile_value(k, PROFILE_dram_write)));
  CHECK_NEAR(k->share, 4e-6 / p.seconds, 1e-9);
  CHECK_INT(p.kernels[500].launches, 1); // least time, last
  profile_free(&p);
}

TEST(metrics_are_found_by_name) {
  for (int m = 0; m < PROFILE_METRICS; m++) {
    const char *name = profile_metric((ProfileMetric)m)->name;
    CHECK_INT(profile_metric_find(name, strlen(name)), m);
  }
  CHECK_INT(profile_metric_find("dram__bytes_op_read.sum", 23), PROFILE_dram_read);
  CHECK_INT(profile_metric_find("dram__bytes_read", 16), PROFILE_METRICS);
}

TEST(a_good_kernel) {
  Rig r;
  start(&r);
  const ProfileDiagnosis *d = judge(&r);
  CHECK_STR(d->kind, "memory");
  CHECK_INT(d->bound, MACHINE_DRAM);
  CHECK_INT(d->band, PROFILE_EXCELLENT);
  CHECK_NEAR(d->share, 4.2e12 / 4.8e12, 1e-9);
  CHECK_NEAR(d->dram_rate, 4.2e12, 1e-9);
  CHECK_NEAR(d->load_sectors, 4, 1e-12);
  for (int s = 0; s < PROFILE_STEPS; s++) {
    CHECK_INT(d->steps[s].verdict, PROFILE_FINE);
    CHECK(d->steps[s].used_count > 0 && d->steps[s].missing_count == 0);
  }
  CHECK_INT(d->finding_count, 0);
  profile_free(&r.p);
}

TEST(bands) {
  static const struct {
    double rate; // of 4.8
    ProfileBand band;
  } cases[] = {{0.81, PROFILE_EXCELLENT}, {0.80, PROFILE_GOOD},     {0.60, PROFILE_GOOD},
               {0.59, PROFILE_WASTEFUL},  {0.30, PROFILE_WASTEFUL}, {0.29, PROFILE_POOR}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig r;
    start(&r);
    r.l.values[PROFILE_l2_pct] = 10;
    r.l.values[PROFILE_memory_pct] = cases[i].rate * 100;
    r.l.values[PROFILE_l2_sectors] = 1e6;
    r.l.values[PROFILE_dram_read] = r.l.values[PROFILE_dram_write] = cases[i].rate * 4.8e12 * 1e-3 / 2;
    CHECK_INT(judge(&r)->band, cases[i].band);
    profile_free(&r.p);
  }
}

TEST(the_measured_roof_by_mix) {
  Rig r;
  start(&r);
  r.roofs.measured = true;
  r.roofs.read = (SolFigure){4.5e12, "measured"}, r.roofs.write = (SolFigure){4.3e12, "measured"};
  r.roofs.copy = (SolFigure){4.2e12, "measured"};
  const ProfileDiagnosis *d = judge(&r);
  CHECK_NEAR(d->share, 1, 1e-9);
  CHECK_HAS(d->roof, "measured");
  profile_free(&r.p);
  start(&r);
  r.roofs.read = (SolFigure){4.5e12, "measured"};
  r.l.values[PROFILE_dram_read] = 2.25e9, r.l.values[PROFILE_dram_write] = 0;
  CHECK_NEAR(judge(&r)->share, 0.5, 1e-9);
  profile_free(&r.p);
}

TEST(compute_latency_and_both) {
  Rig r;
  start(&r);
  double *v = r.l.values;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e8, v[PROFILE_l2_sectors] = 1e6;
  v[PROFILE_l2_pct] = v[PROFILE_dram_pct] = v[PROFILE_memory_pct] = 5, v[PROFILE_sm_pct] = 85;
  const ProfileDiagnosis *d = judge(&r);
  CHECK_STR(d->kind, "compute");
  CHECK_INT(d->bound, MACHINE_ISSUE);
  CHECK_INT(d->band, PROFILE_EXCELLENT);
  profile_free(&r.p);
  v[PROFILE_tensor_pct] = 84, v[PROFILE_issue_pct] = 20;
  Rig t;
  start(&t);
  t.l = r.l;
  d = judge(&t);
  CHECK_INT(d->bound, MACHINE_TENSOR);
  profile_free(&t.p);
  start(&t);
  t.l = r.l;
  t.l.values[PROFILE_tensor_pct] = 0, t.l.values[PROFILE_sm_pct] = 20, t.l.values[PROFILE_l1_pct] = 10;
  d = judge(&t);
  CHECK_STR(d->kind, "latency");
  CHECK_INT(d->bound, MACHINE_LATENCY);
  CHECK_INT(d->band, PROFILE_POOR);
  CHECK(has(d, "in_flight"));
  CHECK_INT(d->steps[PROFILE_STEP_BOUND].verdict, PROFILE_BAD);
  profile_free(&t.p);
  start(&t);
  t.l.values[PROFILE_sm_pct] = 70;
  CHECK_STR(judge(&t)->kind, "both");
  profile_free(&t.p);
}

// A file may have only part of it: no unit is named that was not looked at.
TEST(units_that_were_not_counted) {
  Rig r;
  start(&r);
  double *v = r.l.values;
  v[PROFILE_l2_pct] = v[PROFILE_l1_pct] = v[PROFILE_l2_sectors] = PROFILE_UNKNOWN;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e8, v[PROFILE_dram_pct] = 4, v[PROFILE_memory_pct] = 90;
  const ProfileDiagnosis *d = judge(&r);
  CHECK_STR(d->kind, "memory");
  CHECK_INT(profile_bound(d), MACHINE_RESOURCES);
  CHECK_HAS(d->steps[PROFILE_STEP_BOUND].text, "which unit was not counted");
  profile_free(&r.p);
  start(&r);
  v[PROFILE_l2_pct] = v[PROFILE_l1_pct] = v[PROFILE_l2_sectors] = v[PROFILE_memory_pct] = PROFILE_UNKNOWN;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e8, v[PROFILE_dram_pct] = 4;
  d = judge(&r);
  CHECK_STR(d->kind, "latency");
  CHECK_HAS(d->steps[PROFILE_STEP_BOUND].text, "may be what is busy");
  profile_free(&r.p);
  start(&r); // nothing of the SMs: memory at its limit binds all the same
  v[PROFILE_sm_pct] = v[PROFILE_issue_pct] = v[PROFILE_tensor_pct] = PROFILE_UNKNOWN;
  CHECK_STR(judge(&r)->kind, "memory");
  profile_free(&r.p);
}

// L2 or L1 at its limit is no merit where what passes through is waste, or may be.
TEST(a_busy_cache_is_judged_by_what_passes) {
  Rig r;
  start(&r);
  double *v = r.l.values;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e8, v[PROFILE_dram_pct] = 4, v[PROFILE_memory_pct] = 90;
  v[PROFILE_l2_pct] = 90;
  ProfileLaunch clean = r.l;
  const ProfileDiagnosis *d = judge(&r);
  CHECK_INT(d->bound, MACHINE_L2);
  CHECK_INT(d->band, PROFILE_EXCELLENT); // all of each sector is used
  profile_free(&r.p);
  for (int how = 0; how < 4; how++) {
    start(&r);
    r.l = clean;
    if (how == 0) r.l.values[PROFILE_load_sectors] = 512e6, r.l.values[PROFILE_load_use] = 4;
    if (how == 1) r.l.values[PROFILE_local_load_sectors] = 1e6;
    if (how == 2) r.l.values[PROFILE_load_requests] = PROFILE_UNKNOWN; // nobody looked
    if (how == 3)
      r.l.values[PROFILE_shared_load_wavefronts] = 10, r.l.values[PROFILE_shared_load_conflicts] = 5;
    d = judge(&r);
    CHECK_INT(d->bound, MACHINE_L2);
    CHECK_INT(d->band, PROFILE_POOR);
    CHECK_INT(d->roof_of, MACHINE_DRAM);
    profile_free(&r.p);
  }
}

TEST(rules) {
  static const struct {
    const char *rule;
    int count;
    struct {
      ProfileMetric metric;
      double value;
    } set[4];
  } cases[] = {
      {"uncoalesced", 2, {{PROFILE_load_sectors, 512e6}, {PROFILE_load_use, 4}}},
      {"uncoalesced", 2, {{PROFILE_store_sectors, 320e6}, {PROFILE_store_use, PROFILE_UNKNOWN}}},
      {"misaligned", 2, {{PROFILE_load_sectors, 80e6}, {PROFILE_load_use, 25.6}}},
      {"spill", 1, {{PROFILE_local_store_sectors, 5}}},
      {"bank_conflict", 2, {{PROFILE_shared_load_wavefronts, 100}, {PROFILE_shared_load_conflicts, 11}}},
      {"divergence", 1, {{PROFILE_lanes, 20}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig r;
    start(&r);
    for (int s = 0; s < cases[i].count; s++) r.l.values[cases[i].set[s].metric] = cases[i].set[s].value;
    const ProfileDiagnosis *d = judge(&r);
    CHECK_MSG(has(d, cases[i].rule), "case %zu: %s is not found", i, cases[i].rule);
    CHECK_MSG(d->finding_count == 1, "case %zu: %u findings", i, d->finding_count);
    CHECK(d->finding_count && d->findings[0].fix[0] && d->findings[0].evidence[0]);
    CHECK(!profile_known(d->findings[0].gain)); // counters alone do not say
    profile_free(&r.p);
  }
}

// Counted by instruction they are exact, and win over the pipe's own counters, which see other traffic too.
TEST(counters_by_instruction) {
  Rig r;
  start(&r);
  double *v = r.l.values;
  v[PROFILE_shared_load_wavefronts] = 100, v[PROFILE_shared_load_conflicts] = 30;
  v[PROFILE_shared_passes] = v[PROFILE_shared_passes_ideal] = 70;
  v[PROFILE_global_sectors] = 100, v[PROFILE_global_sectors_ideal] = 40;
  const ProfileDiagnosis *d = judge(&r);
  CHECK(d->conflicts == 0 && !has(d, "bank_conflict"));
  CHECK_INT(d->steps[PROFILE_STEP_SHARED].verdict, PROFILE_FINE);
  CHECK_INT(d->steps[PROFILE_STEP_COALESCING].verdict, PROFILE_BAD);
  CHECK_HAS(d->steps[PROFILE_STEP_COALESCING].text, "60% of all sectors");
  profile_free(&r.p);
}

// 16 sectors a request are right for 16-byte accesses: without the bytes used nothing is claimed.
TEST(no_rule_without_evidence) {
  Rig r;
  start(&r);
  r.l.values[PROFILE_load_sectors] = 256e6;
  r.l.values[PROFILE_load_use] = PROFILE_UNKNOWN;
  CHECK(!has(judge(&r), "uncoalesced"));
  profile_free(&r.p);
  start(&r);
  for (int m = 0; m < PROFILE_METRICS; m++) r.l.values[m] = PROFILE_UNKNOWN;
  r.l.seconds = 1e-3;
  const ProfileDiagnosis *d = judge(&r);
  CHECK_INT(d->finding_count, 0);
  CHECK_INT(d->band, PROFILE_NO_BAND);
  CHECK(!d->kind);
  for (int s = 0; s < PROFILE_STEPS; s++) CHECK_INT(d->steps[s].verdict, PROFILE_NOT_COUNTED);
  profile_free(&r.p);
}

TEST(rules_of_the_launch) {
  Rig r;
  SolError err = {0};
  start(&r);
  r.l.grid[0] = 20;
  CHECK(has(judge(&r), "small_grid"));
  profile_free(&r.p);
  start(&r); // 8 blocks of 256 threads an SM: 1.1 waves
  r.l.grid[0] = 132 * 9;
  double *v = r.l.values;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e9, v[PROFILE_memory_pct] = v[PROFILE_dram_pct] = 45;
  CHECK(has(judge(&r), "tail"));
  profile_free(&r.p);
  start(&r);
  v[PROFILE_occupancy] = 20, v[PROFILE_occupancy_limit] = 25, r.l.registers = 255;
  v[PROFILE_dram_read] = v[PROFILE_dram_write] = 1e9, v[PROFILE_memory_pct] = v[PROFILE_dram_pct] = 45;
  v[PROFILE_l2_sectors] = 1e6;
  const ProfileDiagnosis *d = judge(&r);
  CHECK(has(d, "occupancy"));
  for (uint32_t i = 0; i < d->finding_count; i++)
    if (strcmp(d->findings[i].rule, "occupancy") == 0) CHECK_HAS(d->findings[i].fix, "registers");
  profile_free(&r.p);
  start(&r);
  r.l.seconds = 1e-6;
  v[PROFILE_time] = 1e3;
  for (int i = 0; i < 20; i++) CHECK(!profile_add(&r.p, &r.l, &err));
  CHECK(has(judge(&r), "launch_bound"));
  profile_free(&r.p);
}

TEST(roofline_point) {
  Rig r;
  start(&r);
  r.l.values[PROFILE_ffma] = 1e9, r.l.values[PROFILE_fadd] = 2e8;
  const ProfileDiagnosis *d = judge(&r);
  CHECK_NEAR(d->flops, 2.2e9, 1e-12);
  CHECK_NEAR(d->intensity, 2.2e9 / 4.2e9, 1e-12);
  CHECK_NEAR(d->attainable, 2.2 / 4.2 * 4.8e12, 1e-9);
  profile_free(&r.p);
}

// ---- measured beside emulated ----

#define BILL(device, kernels) "{\"device\": \"" device "\", \"kernels\": [" kernels "]}"
#define KERNEL                                                                                               \
  "{\"name\": \"k\", \"symbol\": \"_Z1kv\", \"launches\": 2, \"sampled\": 1, \"global_load\": "              \
  "{\"requests\": 32000000, "                                                                                \
  "\"sectors\": 128000000}, \"dram_read_bytes\": 4e9, \"time_us\": 2100, \"occupancy\": 1, \"registers\": "  \
  "30}"

static const AgainstRow *row(const Against *a, const char *key) {
  for (int i = 0; a->kernel_count && i < a->kernels[0].row_count; i++)
    if (strcmp(a->kernels[0].rows[i].key, key) == 0) return &a->kernels[0].rows[i];
  return NULL;
}

TEST(against) {
  Rig r;
  Against a;
  SolError err = {0};
  const char *bill = "[" BILL("h100-sxm", "") ", " BILL("h200", KERNEL) "]";
  start(&r);
  judge(&r);
  CHECK_MSG(!profile_against(&r.p, bill, strlen(bill), &a, &err), "%s", err.message);
  CHECK_STR(a.device, "h200");
  CHECK_INT(a.kernel_count, 1);
  CHECK_INT(a.kernels[0].emulated_launches, 2);
  const AgainstRow *sectors = row(&a, "load_sectors"), *dram = row(&a, "dram_read_bytes"),
                   *time = row(&a, "time_us");
  if (CHECK(sectors && dram && time)) {
    CHECK_NEAR(sectors->measured, 64e6, 0);
    CHECK_NEAR(sectors->emulated, 64e6, 0); // of one launch, as measured
    CHECK(sectors->exact && !dram->exact);
    CHECK_NEAR(dram->emulated, 2e9, 0);
    CHECK_NEAR(time->measured, 1000, 1e-9);
    CHECK_NEAR(time->emulated, 1050, 1e-9);
  }
  CHECK(!row(&a, "atomic_sectors")); // neither has any
  CHECK_NEAR(row(&a, "registers")->emulated, 30, 0);
  profile_free(&r.p);
}

TEST(against_finds_kernels_by_name) {
  static const struct {
    const char *measured, *kernels;
    int found;
  } cases[] = {
      {"_Z1kv", "{\"name\": \"x\", \"symbol\": \"_Z1kv\"}", 1},
      {"void k<float, 4>(int)", "{\"name\": \"k<float, 4>\", \"symbol\": \"s\"}", 1},
      {"void k<float, 4>(int)", "{\"name\": \"k\", \"symbol\": \"s\"}", 1},
      {"k", "{\"name\": \"k<1>\", \"symbol\": \"s\"}, {\"name\": \"k<2>\", \"symbol\": \"t\"}", 0},
      {"k<2>", "{\"name\": \"k<1>\", \"symbol\": \"s\"}, {\"name\": \"k<2>\", \"symbol\": \"t\"}", 1},
      {"other", "{\"name\": \"k\", \"symbol\": \"s\"}", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Rig r;
    Against a;
    SolError err = {0};
    char bill[400];
    start(&r);
    r.l.name = cases[i].measured;
    judge(&r);
    snprintf(bill, sizeof bill, "{\"device\": \"h200\", \"kernels\": [%s]}", cases[i].kernels);
    CHECK_MSG(!profile_against(&r.p, bill, strlen(bill), &a, &err), "%s", err.message);
    CHECK_MSG(a.kernel_count == (uint32_t)cases[i].found, "case %zu: %u", i, a.kernel_count);
    CHECK_INT(r.p.note_count, cases[i].found ? 0 : 1);
    profile_free(&r.p);
  }
}

TEST(against_bad_bills) {
  static const char *const bad[] = {"", "{", "[]", "{}", "3", "{\"kernels\": 3}", "[{\"device\": \"h200\"}]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    Rig r;
    Against a;
    SolError err = {0};
    start(&r);
    judge(&r);
    CHECK_MSG(profile_against(&r.p, bad[i], strlen(bad[i]), &a, &err), "%s was taken", bad[i]);
    CHECK(err.message[0]);
    profile_free(&r.p);
  }
}

CHECK_MAIN
