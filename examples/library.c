// The kernel library without a GPU: one normalisation, one softmax, what they must move, and what a mistake
// looks like. Runs on `cpu` (plain C) or on `emu`, which executes the GPU kernels' PTX:
//
//   cc examples/library.c $(pkg-config --cflags --libs sol) -o library && ./library emu
#include <math.h>
#include <stdio.h>

#include <sol/sol.h>

enum { ROWS = 4, WIDTH = 1000 };

static int fail(const char *what, const SolError *err) {
  fprintf(stderr, "%s: %s %s\n", what, err->message, err->hint);
  return 1;
}

static double mean_square(const float *row) {
  double sum = 0;
  for (int i = 0; i < WIDTH; i++) sum += (double)row[i] * (double)row[i];
  return sum / WIDTH;
}

int main(int argc, char **argv) {
  SolContextOptions options = {.backend = SOL_BACKEND_CPU};
  SolContext *ctx;
  SolError err;
  if (argc > 1 && sol_backend_find(argv[1], &options.backend, &err)) return fail("backend", &err);
  if (sol_context_create(&options, &ctx, &err)) return fail("context", &err);
  printf("running on %s\n", sol_backend_name(sol_context_backend(ctx)));

  // Memory that the operations can reach: plain memory on cpu, the emulated GPU's on emu.
  static float x[ROWS][WIDTH], y[ROWS][WIDTH], weight[WIDTH];
  void *d_x, *d_y, *d_weight;
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < WIDTH; i++) x[r][i] = (float)((i * 7 % 13 - 6) * (r + 1));
  for (int i = 0; i < WIDTH; i++) weight[i] = 1;
  if (sol_context_alloc(ctx, sizeof x, &d_x, &err) || sol_context_alloc(ctx, sizeof y, &d_y, &err) ||
      sol_context_alloc(ctx, sizeof weight, &d_weight, &err) ||
      sol_context_write(ctx, d_x, x, sizeof x, &err) ||
      sol_context_write(ctx, d_weight, weight, sizeof weight, &err))
    return fail("memory", &err);

  // y = x / sqrt(mean(x^2) + eps) * weight. Strides and types left at 0 mean dense, and as the input.
  SolRmsnorm norm = {
      .y = d_y, .x = d_x, .weight = d_weight, .m = ROWS, .n = WIDTH, .dtype = SOL_FP32, .eps = 1e-6f};
  if (sol_rmsnorm(ctx, &norm, NULL)) return fail("rmsnorm", sol_last_error());
  if (sol_context_read(ctx, y, d_y, sizeof y, &err)) return fail("memory", &err);
  for (int r = 0; r < ROWS; r++)
    printf("row %d: mean square %8.3f before, %.6f after\n", r, mean_square(x[r]), mean_square(y[r]));

  // In place: the output may be exactly the input.
  SolSoftmax soft = {.y = d_y, .x = d_y, .m = ROWS, .n = WIDTH, .dtype = SOL_FP32};
  if (sol_softmax(ctx, &soft, NULL)) return fail("softmax", sol_last_error());
  if (sol_context_read(ctx, y, d_y, sizeof y, &err)) return fail("memory", &err);
  double worst = 0;
  for (int r = 0; r < ROWS; r++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)y[r][i];
    if (fabs(sum - 1) > worst) worst = fabs(sum - 1);
  }
  printf("softmax: rows sum to 1 within %.1e\n", worst);

  // The fewest bytes this call can move, and what that takes on a GPU at its published bandwidth.
  const SolDevice *h100;
  SolCost cost;
  SolRoofline roof;
  if (sol_rmsnorm_cost(&norm, &cost, &err) || sol_device_find("h100-sxm", &h100, &err))
    return fail("cost", &err);
  SolWork work = sol_work_of_cost(&cost);
  if (sol_roofline(h100, &work, NULL, &roof, &err)) return fail("roofline", &err);
  printf("rmsnorm moves %.0f bytes: at least %.2f us on an %s\n", work.bytes, roof.time_us, h100->name);

  // A mistake is a status and a message; nothing has run.
  norm.m = ROWS - 1;
  norm.y = (float *)d_x + WIDTH; // one row further on
  if (!sol_rmsnorm(ctx, &norm, NULL)) return 1;
  printf("as it should be refused: %s (%s)\n", sol_last_error()->message,
         sol_status_name(sol_last_error()->status));

  sol_context_free(ctx, d_x, NULL);
  sol_context_free(ctx, d_y, NULL);
  sol_context_free(ctx, d_weight, NULL);
  sol_context_destroy(ctx);
  return worst < 1e-5 ? 0 : 1;
}
