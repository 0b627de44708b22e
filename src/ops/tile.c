#include "ops/tile.h"

// Rows of `bytes`, each as far beyond 16 bytes as it is in global memory.
static int64_t pitch_of(int64_t bytes, bool dense) {
  return dense ? 0 : (bytes + 30) / 16 * 16;
}

static int64_t room_of(int64_t rows, int64_t bytes, int64_t pitch) {
  return ((pitch ? rows * pitch : rows * bytes + 15) + 15) / 16 * 16;
}

TileShape tile_shape(const SolContext *ctx, TileNeed t, OpsLaunch *l) {
  enum {
    WAVES = 8,
    SLACK = 64
  }; // blocks of an SM, if there are rows for so many; bytes that rows need beside their own
  int64_t steps = ops_ceil_div(t.n, t.step), most = (t.bytes - SLACK) / (t.step * (t.in + t.out));
  int64_t segments = most > 0 ? ops_ceil_div(steps, most) : steps;
  int64_t columns = ops_ceil_div(steps, segments) * t.step, rows = 1;
  segments = ops_ceil_div(t.n, columns);
  if (segments == 1) {
    int64_t fair = t.m / (ctx->sms * WAVES) + 1;
    columns = t.n;
    rows = t.bytes / (t.n * (t.in + t.out) + SLACK);
    rows = rows < 1 ? 1 : rows > fair ? fair : rows;
    if (rows > t.turn) rows -= rows % t.turn;
  }
  TileShape s = {.rows = (int32_t)rows,
                 .columns = (int32_t)columns,
                 .segments = elementwise_divider((uint64_t)segments)};
  s.x_pitch = (int32_t)pitch_of(columns * t.in, segments == 1 && t.x_stride == t.n);
  s.y_pitch = (int32_t)pitch_of(columns * t.out, segments == 1 && t.y_stride == t.n);
  s.y_place = (int32_t)room_of(rows, columns * t.in, s.x_pitch);
  l->shared = (uint32_t)(s.y_place + (t.out ? room_of(rows, columns * t.out, s.y_pitch) : 0));
  ops_grid(l->grid, (uint64_t)(ops_ceil_div(t.m, rows) * segments), 1);
  return s;
}
