// What the injected library writes (src/profile/profile_wire.c) reads back, and what is cut or not ours is refused.
#include "profile/profile_wire.h"

#include "check.h"

static const ProfileMetric metrics[] = {PROFILE_time, PROFILE_dram_read, PROFILE_occupancy_limit};

static void write_all(SolBuffer *out) {
  ProfileGpu gpu = {.name = "NVIDIA H200", .uuid = "GPU-1", .driver = "580.1", .cc = 90, .sms = 132};
  ProfileLaunch l;
  profile_launch_clear(&l);
  l.name = "quote \" and \\ and \n line";
  l.registers = 40;
  l.dynamic_shared = 256;
  l.grid[0] = 4294967295u, l.grid[1] = l.grid[2] = 1;
  l.block[0] = 256, l.block[1] = l.block[2] = 1;
  l.cluster[0] = 2, l.cluster[1] = l.cluster[2] = 1;
  l.graph = true;
  l.seconds = 1.5e-6;
  l.values[PROFILE_time] = 1500;
  l.values[PROFILE_dram_read] = 9007199254740991.0;
  profile_write_start(77, true, 130000, metrics, 3, out);
  profile_write_gpu(1, &gpu, out);
  profile_write_kernel(0, &l, out);
  profile_write_launch(0, 1, &l, metrics, 3, out);
  l.seconds = PROFILE_UNKNOWN; // then it is the counter's
  profile_write_launch(0, 1, &l, metrics, 3, out);
  profile_write_launch(0, 0, &l, metrics, 0, out);
  profile_write_trouble(PROFILE_FORBIDDEN, "no", "yes", 1, out);
  profile_write_end(9, 3, out);
}

// Reads the lines of a text; how many were taken.
static int read_all(const char *text, size_t length, ProfileMessage *heard, int cap, ProfileReader *r) {
  int count = 0;
  for (size_t at = 0; at < length;) {
    const char *end = memchr(text + at, '\n', length - at);
    size_t n = end ? (size_t)(end - (text + at)) : length - at;
    ProfileMessage line;
    SolError err = {0};
    SolStatus status = profile_read_line(r, text + at, n, &line, &err);
    if (!status && count < cap) heard[count] = line;
    if (!status) count++;
    if (status) CHECK_MSG(err.message[0], "a line is refused without a word");
    at += n + 1;
  }
  return count;
}

TEST(what_is_written_reads_back) {
  SolBuffer out = {0};
  ProfileReader r = {0};
  static ProfileMessage h[16];
  write_all(&out);
  if (!CHECK_INT(read_all(out.text, out.length, h, 16, &r), 8)) return;
  CHECK(h[0].kind == PROFILE_LINE_START && h[0].pid == 77 && h[0].counters && h[0].version == 130000);
  CHECK(h[1].kind == PROFILE_LINE_GPU && h[1].device == 1 && h[1].gpu.cc == 90 && h[1].gpu.sms == 132);
  CHECK_STR(h[1].gpu.uuid, "GPU-1");
  CHECK_INT(h[2].kind, PROFILE_LINE_KERNEL);
  const ProfileLaunch *l = &h[3].launch;
  CHECK_STR(l->name, "quote \" and \\ and \n line");
  CHECK(l->grid[0] == 4294967295u && l->block[0] == 256 && l->cluster[0] == 2 && l->graph);
  CHECK(l->registers == 40 && l->dynamic_shared == 256 && !profile_known(l->static_shared));
  CHECK_NEAR(l->seconds, 1.5e-6, 1e-12);
  CHECK(l->values[PROFILE_dram_read] == 9007199254740991.0);
  CHECK(!profile_known(l->values[PROFILE_occupancy_limit]) && !profile_known(l->values[PROFILE_cycles]));
  CHECK_NEAR(h[4].launch.seconds, 1.5e-6, 1e-12);
  CHECK(!profile_known(h[5].launch.seconds) && !profile_known(h[5].launch.values[PROFILE_time]));
  CHECK(h[6].kind == PROFILE_LINE_TROUBLE && h[6].trouble == PROFILE_FORBIDDEN);
  CHECK_STR(h[6].hint, "yes");
  CHECK(h[7].kind == PROFILE_LINE_END && h[7].seen == 9 && h[7].reported == 3 && r.ended);
  profile_reader_free(&r);
  sol_buffer_free(&out);
}

TEST(a_file_cut_anywhere_gives_its_whole_lines) {
  SolBuffer out = {0};
  static ProfileMessage h[16];
  write_all(&out);
  int lines = 0;
  for (size_t n = 0; n <= out.length; n++) {
    if (n && out.text[n - 1] == '\n') lines++;
    ProfileReader r = {0};
    char *copy = malloc(n + 1); // so that reading past the end is seen
    memcpy(copy, out.text, n);
    int got = read_all(copy, n, h, 16, &r);
    // A line that lacks its newline alone is whole.
    CHECK_MSG(got == lines || (n < out.length && out.text[n] == '\n' && got == lines + 1),
              "cut at %zu: %d lines, not %d", n, got, lines);
    free(copy);
    profile_reader_free(&r);
  }
  sol_buffer_free(&out);
}

TEST(what_is_not_ours_is_refused) {
  static const char start[] = "{\"sol_profile\":1,\"pid\":1,\"metrics\":[\"dram__bytes_read.sum\"]}";
  static const char kernel[] = "{\"kernel\":0,\"name\":\"f\"}";
  static const char *const bad[] = {
      "",
      "x",
      "[]",
      "{}",
      "{\"launch\":1,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1]}",
      "{\"launch\":-1,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1]}",
      "{\"launch\":0.5,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1]}",
      "{\"launch\":0,\"grid\":[1,1,1],\"block\":[1,1,1]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1],\"block\":[1,1,1]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,1,1],\"block\":[1,1,1]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,-1],\"block\":[1,1,1]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,4294967296],\"block\":[1,1,1]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1],\"values\":[]}",
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1],\"values\":[1,2]}",
      "{\"kernel\":2,\"name\":\"g\"}",
      "{\"kernel\":1}",
      "{\"kernel\":1,\"name\":3}",
      "{\"gpu\":-1}",
      "{\"trouble\":\"of another kind\"}",
      start};
  ProfileReader r = {0};
  ProfileMessage heard;
  SolError err;
  CHECK(profile_read_line(&r, kernel, strlen(kernel), &heard, &err) == SOL_ERR_SYNTAX); // no start before it
  CHECK(profile_read_line(&r, "{\"sol_profile\":2}", 17, &heard, &err) == SOL_ERR_UNSUPPORTED);
  CHECK(profile_read_line(&r, start, strlen(start), &heard, &err) == SOL_OK);
  CHECK(profile_read_line(&r, kernel, strlen(kernel), &heard, &err) == SOL_OK);
  for (size_t i = 0; i < SOL_COUNT(bad); i++)
    CHECK_MSG(profile_read_line(&r, bad[i], strlen(bad[i]), &heard, &err) == SOL_ERR_SYNTAX, "taken: %s",
              bad[i]);
  static const char more[] =
      "{\"launch\":0,\"gpu\":0,\"grid\":[1,1,1],\"block\":[1,1,1],\"values\":[7],\"newer\":{}}";
  CHECK(profile_read_line(&r, more, strlen(more), &heard, &err) == SOL_OK);
  CHECK(heard.launch.values[PROFILE_dram_read] == 7);
  profile_reader_free(&r);
}

CHECK_MAIN
