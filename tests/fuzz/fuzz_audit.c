// Lines of a program under audit from any bytes: those that read are billed, rules and all.
#include <string.h>

#include "audit/audit_wire.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  AuditProgram program;
  AuditReader reader = {0};
  const SolDevice *device;
  if (sol_device_find("h200", &device, NULL) || audit_start(&program, device, NULL)) return 0;
  for (size_t from = 0; from < size;) {
    const char *line = (const char *)data + from, *end = memchr(line, '\n', size - from);
    size_t length = end ? (size_t)(end - line) : size - from;
    AuditMessage heard;
    if (!audit_read_line(&reader, line, length, &heard, NULL)) {
      if (heard.kind == AUDIT_LINE_LAUNCH)
        audit_add(&program, &heard.launch, NULL);
      else if (heard.kind == AUDIT_LINE_AGAIN)
        audit_add_again(&program, &heard.again, NULL);
      else if (heard.kind == AUDIT_LINE_OUTSIDE)
        audit_outside(&program, heard.what, heard.address, heard.bytes);
    }
    from += length + 1;
  }
  audit_finish(&program, NULL);
  audit_free(&program);
  audit_reader_free(&reader);
  return 0;
}
