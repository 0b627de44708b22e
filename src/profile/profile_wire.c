// Writing:
//   {"sol_profile":1,"pid":..,"counters":true,"cupti":130000,"metrics":["dram__bytes_read.sum",..]}
//   {"gpu":0,"name":..,"uuid":..,"driver":..,"cc":90,"sms":132}
//   {"kernel":0,"name":..,"registers":..,"static_shared":..,"local":..}
//   {"launch":0,"gpu":0,"grid":[..],"block":[..],"cluster":[..],"shared":..,"graph":true,"ns":..,"values":[..,null]}
//   {"trouble":"forbidden","text":..,"hint":..,"times":1}
//   {"end":true,"seen":..,"told":..}
#include "profile/profile_wire.h"

#include "base/json_write.h"

static void put_field(SolBuffer *out, const char *key, double value) {
  if (!profile_known(value)) return;
  sol_buffer_format(out, ",\"%s\":", key);
  sol_json_add_number(out, value);
}

static void put_named(SolBuffer *out, const char *key, const char *text) {
  sol_buffer_format(out, ",\"%s\":", key);
  sol_json_add_text(out, text);
}

static void put_dims(SolBuffer *out, const char *key, const uint32_t d[3]) {
  sol_buffer_format(out, ",\"%s\":[%u,%u,%u]", key, d[0], d[1], d[2]);
}

void profile_write_start(long pid, bool counters, unsigned cupti, const ProfileMetric *metrics, int count,
                         SolBuffer *out) {
  sol_buffer_format(out, "{\"sol_profile\":%d,\"pid\":%ld,\"counters\":%s,\"cupti\":%u,\"metrics\":[",
                    PROFILE_WIRE, pid, counters ? "true" : "false", cupti);
  for (int i = 0; i < count; i++) {
    if (i) sol_buffer_puts(out, ",");
    sol_json_add_text(out, profile_metric(metrics[i])->name);
  }
  sol_buffer_puts(out, "]}\n");
}

void profile_write_gpu(int device, const ProfileGpu *gpu, SolBuffer *out) {
  sol_buffer_format(out, "{\"gpu\":%d", device);
  put_named(out, "name", gpu->name);
  put_named(out, "uuid", gpu->uuid);
  put_named(out, "driver", gpu->driver);
  sol_buffer_format(out, ",\"cc\":%d,\"sms\":%d}\n", gpu->cc, gpu->sms);
}

void profile_write_kernel(uint32_t id, const ProfileLaunch *l, SolBuffer *out) {
  sol_buffer_format(out, "{\"kernel\":%u", id);
  put_named(out, "name", l->name);
  put_field(out, "registers", l->registers);
  put_field(out, "static_shared", l->static_shared);
  put_field(out, "local", l->local_bytes);
  sol_buffer_puts(out, "}\n");
}

void profile_write_launch(uint32_t id, int device, const ProfileLaunch *l, const ProfileMetric *metrics,
                          int count, SolBuffer *out) {
  sol_buffer_format(out, "{\"launch\":%u,\"gpu\":%d", id, device);
  put_dims(out, "grid", l->grid);
  put_dims(out, "block", l->block);
  if (l->cluster[0]) put_dims(out, "cluster", l->cluster);
  put_field(out, "shared", l->dynamic_shared);
  if (l->graph) sol_buffer_puts(out, ",\"graph\":true");
  put_field(out, "ns", l->seconds * 1e9);
  for (int i = 0; i < count; i++) {
    sol_buffer_puts(out, i ? "," : ",\"values\":[");
    sol_json_add_number(out, l->values[metrics[i]]); // null where it is not known
  }
  sol_buffer_puts(out, count ? "]}\n" : "}\n");
}

void profile_write_trouble(ProfileTrouble what, const char *text, const char *hint, double times,
                           SolBuffer *out) {
#define TROUBLE(name, word) word,
  static const char *const words[] = {PROFILE_TROUBLES(TROUBLE)};
#undef TROUBLE
  sol_buffer_format(out, "{\"trouble\":\"%s\"", words[what]);
  put_named(out, "text", text);
  put_named(out, "hint", hint);
  put_field(out, "times", times);
  sol_buffer_puts(out, "}\n");
}

void profile_write_end(double seen, double reported, SolBuffer *out) {
  sol_buffer_puts(out, "{\"end\":true");
  put_field(out, "seen", seen);
  put_field(out, "told", reported);
  sol_buffer_puts(out, "}\n");
}
