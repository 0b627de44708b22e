// The lines of the injected library: whatever is in the file.
#include "fuzz.h"
#include "profile/profile_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ProfileReader r = {0};
  ProfileMessage heard;
  Profile p;
  SolError err;
  profile_start(&p, PROFILE_FROM_CUPTI);
  for (size_t at = 0, n; at < size; at += n + 1) {
    for (n = 0; at + n < size && data[at + n] != '\n';) n++;
    if (!profile_read_line(&r, (const char *)data + at, n, &heard, &err) && heard.kind == PROFILE_LINE_LAUNCH)
      profile_add(&p, &heard.launch, &err);
  }
  profile_finish(&p, &err);
  profile_free(&p);
  profile_reader_free(&r);
  return 0;
}
