// Writing: numbers in arrays, zeros at their ends left out.
//   {"launch":ID,"name":..,"unit":..,"grid":[..],.., "new":[[place,line,unit,flags,flops,base,offset,"file","text",ptx line],..],
//    "insts":[[place,kind,[counts],[pattern],[machine],[example]],..],"touches":[[address,bytes,variable,..,"label"],..],"faults":[..]}
//   {"again":KEY,"graph":0,"unlike":0,"faults":[["message","kind","file",[numbers]],..]}
//   {"module":UNIT,"ptx":".."}
//   {"outside":0,"address":..,"bytes":..}
//   {"progress":0.25,"instructions":..,"kernel":".."}
#include "audit/audit_wire.h"

#include "audit/inside.h"
#include "base/heap.h"
#include "base/json_write.h"

void audit_sent_free(AuditSent *sent) {
  sol_heap_free(sent->places);
  *sent = (AuditSent){0};
}

static void put_numbers(SolBuffer *out, const double *values, size_t count) {
  while (count && values[count - 1] == 0) count--;
  sol_buffer_puts(out, "[");
  for (size_t i = 0; i < count; i++) {
    if (i) sol_buffer_puts(out, ",");
    sol_json_add_number(out, values[i]);
  }
  sol_buffer_puts(out, "]");
}

static void put_dims(SolBuffer *out, const char *key, const uint32_t d[3]) {
  sol_buffer_format(out, ",\"%s\":[%u,%u,%u]", key, d[0], d[1], d[2]);
}

static bool make_room(AuditSent *sent, uint32_t places) {
  if (places <= sent->count) return true;
  uint8_t *room = sol_heap_realloc(sent->places, places);
  if (!room) return false;
  memset(room + sent->count, 0, places - sent->count);
  sent->places = room;
  sent->count = places;
  return true;
}

static void put_new(const AuditLaunch *l, AuditSent *sent, SolBuffer *out) {
  sol_buffer_puts(out, ",\"new\":[");
  const char *comma = "";
  for (uint32_t i = 0; i < l->inst_count; i++) {
    const AuditInst *in = &l->insts[i];
    if (sent->places[in->place]) continue;
    sent->places[in->place] = 1;
    int flags = in->async | in->is_load << 1 | in->barrier << 2 | in->branch << 3 | in->waits << 4 |
                in->follows << 5 | in->real << 6 | in->read_only << 7 | in->indexing << 8 | in->bulk << 9 |
                in->tensor << 10 | in->prints << 11 | in->allocates << 12 | in->size << 13 | in->list << 21 |
                in->better << 22;
    sol_buffer_format(out, "%s[%u,%u,%d,%d,", comma, in->place, in->line, (int)in->unit, flags);
    sol_json_add_number(out, in->flops);
    sol_buffer_format(out, ",%llu,%lld,", (unsigned long long)in->base, (long long)in->offset);
    sol_json_add_text(out, in->file);
    sol_buffer_puts(out, ",");
    sol_json_add_text(out, in->text);
    sol_buffer_format(out, ",%u,", in->ptx_line);
    sol_json_add_text(out, in->inlined ? in->inlined : "");
    sol_buffer_puts(out, "]");
    comma = ",";
  }
  sol_buffer_puts(out, "]");
}

static void put_example(const SolEmuExample *e, SolBuffer *out) {
  double numbers[AUDIT_EXAMPLE_NUMBERS] = {(double)e->block, e->mask, e->sectors};
  if (!e->mask) return;
  for (int lane = 0; lane < 32; lane++) numbers[3 + lane] = e->lane[lane];
  sol_buffer_puts(out, ",");
  put_numbers(out, numbers, SOL_COUNT(numbers));
}

static void put_inst(const AuditInst *in, SolBuffer *out) {
  const SolEmuCounts *c = &in->counts;
  const SolEmuPattern *p = &in->pattern;
#define COUNT_VALUE(name)   (double)c->name,
#define PATTERN_VALUE(name) (double)p->name,
  const double counts[] = {SOL_EMU_COUNTS(COUNT_VALUE)};
  const double pattern[] = {AUDIT_PATTERN_NUMBERS(PATTERN_VALUE)};
#undef COUNT_VALUE
#undef PATTERN_VALUE
  sol_buffer_format(out, "[%u,%d,", in->place, (int)in->kind);
  put_numbers(out, counts, SOL_COUNT(counts));
  sol_buffer_puts(out, ",");
  put_numbers(out, pattern, SOL_COUNT(pattern));
#define MACHINE_VALUE(name) in->executed.name,
  const double machine[] = {AUDIT_MACHINE(MACHINE_VALUE)};
#undef MACHINE_VALUE
  sol_buffer_puts(out, ",");
  put_numbers(out, machine, SOL_COUNT(machine));
  put_example(&p->example, out);
  sol_buffer_puts(out, "]");
}

static void put_touch(const AuditTouch *t, SolBuffer *out) {
  const double numbers[] = {(double)t->address,
                            (double)t->bytes,
                            t->variable + 2 * t->host,
                            t->read,
                            t->written,
                            t->read_first,
                            t->read_sectors,
                            t->written_sectors,
                            t->partial_sectors,
                            t->moved,
                            t->moved_pages,
                            t->moved_blocks};
  sol_buffer_puts(out, "[");
  put_numbers(out, numbers, SOL_COUNT(numbers));
  sol_buffer_puts(out, ",");
  sol_json_add_text(out, t->label);
  sol_buffer_puts(out, "]");
}

static void put_fault(const AuditFault *f, SolBuffer *out) {
  const double numbers[AUDIT_FAULT_NUMBERS] = {
      f->line,      f->function,  f->inst,      f->block[0],        f->block[1],      f->block[2],
      f->thread[0], f->thread[1], f->thread[2], (double)f->address, (double)f->bytes, (double)f->times};
  sol_buffer_puts(out, "[");
  sol_json_add_text(out, f->message);
  sol_buffer_puts(out, ",");
  sol_json_add_text(out, f->kind);
  sol_buffer_puts(out, ",");
  sol_json_add_text(out, f->file);
  sol_buffer_puts(out, ",");
  put_numbers(out, numbers, SOL_COUNT(numbers));
  sol_buffer_puts(out, "]");
}

static void put_faults(const AuditFault *faults, uint32_t count, uint64_t left_out, SolBuffer *out) {
  sol_buffer_format(out, "\"left_out\":%llu,\"faults\":[", (unsigned long long)left_out);
  for (uint32_t i = 0; i < count; i++) {
    if (i) sol_buffer_puts(out, ",");
    put_fault(&faults[i], out);
  }
  sol_buffer_puts(out, "]");
}

void audit_write_launch(const AuditLaunch *l, uint32_t id, AuditSent *sent, SolBuffer *out) {
  if (!make_room(sent, l->inst_count ? l->insts[l->inst_count - 1].place + 1 : 0)) {
    out->failed = true;
    return;
  }
  sol_buffer_format(out, "{\"launch\":%u,\"name\":", id);
  sol_json_add_text(out, l->name);
  sol_buffer_format(out, ",\"unit\":%u", l->unit);
  put_dims(out, "grid", l->grid);
  put_dims(out, "block", l->block);
  put_dims(out, "cluster", l->cluster);
  double numbers[AUDIT_LAUNCH_NUMBERS] = {(double)l->dynamic_shared,
                                          (double)l->static_shared,
                                          (double)l->stack_bytes,
                                          (double)l->local_array_bytes,
                                          l->registers,
                                          l->registers_from,
                                          l->graph,
                                          l->end,
                                          (double)l->blocks,
                                          (double)l->flight.loads,
                                          (double)l->flight.bytes,
                                          (double)l->flight.async_bytes,
                                          l->flight.waits,
#define CHAIN_VALUE(name) l->chain.name,
                                          SOL_EMU_CHAIN(CHAIN_VALUE) l->machine,
                                          (double)l->left_dirty,
                                          (double)l->dirty_limit,
                                          (double)l->earlier_read,
                                          l->balance.longest,
                                          l->balance.busiest};
#undef CHAIN_VALUE
  for (uint32_t age = 0; age < SOL_AGES; age++) {
    numbers[AUDIT_LAUNCH_FOUND + age] = (double)l->earlier.found[age];
    numbers[AUDIT_LAUNCH_FOUND + SOL_AGES + age] = (double)l->earlier.written[age];
  }
  if (l->key) sol_buffer_format(out, ",\"key\":%llu", (unsigned long long)l->key);
  sol_buffer_puts(out, ",\"numbers\":");
  put_numbers(out, numbers, SOL_COUNT(numbers));
  put_new(l, sent, out);
  sol_buffer_puts(out, ",\"insts\":[");
  for (uint32_t i = 0; i < l->inst_count; i++) {
    if (i) sol_buffer_puts(out, ",");
    put_inst(&l->insts[i], out);
  }
  sol_buffer_puts(out, "],\"touches\":[");
  for (uint32_t i = 0; i < l->touch_count; i++) {
    if (i) sol_buffer_puts(out, ",");
    put_touch(&l->touches[i], out);
  }
  sol_buffer_puts(out, "],");
  if (l->trace) audit_write_trace(l->trace, out);
  put_faults(l->faults, l->fault_count, l->faults_left_out, out);
  sol_buffer_puts(out, "}\n");
}

void audit_write_module(uint32_t unit, const char *ptx, SolBuffer *out) {
  sol_buffer_format(out, "{\"module\":%u,\"ptx\":", unit);
  sol_json_add_text(out, ptx);
  sol_buffer_puts(out, "}\n");
}

void audit_write_again(const AuditAgain *a, SolBuffer *out) {
  sol_buffer_format(out, "{\"again\":%llu,\"graph\":%d,\"unlike\":%d,", (unsigned long long)a->key, a->graph,
                    a->unlike);
  if (a->counted) sol_buffer_puts(out, "\"counted\":1,");
  put_faults(a->faults, a->fault_count, a->faults_left_out, out);
  sol_buffer_puts(out, "}\n");
}

void audit_write_outside(AuditOutside what, uint64_t address, uint64_t bytes, SolBuffer *out) {
  sol_buffer_format(out, "{\"outside\":%d,\"address\":%llu,\"bytes\":%llu}\n", (int)what,
                    (unsigned long long)address, (unsigned long long)bytes);
}

void audit_write_missing(const char *what, SolBuffer *out) {
  sol_buffer_puts(out, "{\"missing\":");
  sol_json_add_text(out, what);
  sol_buffer_puts(out, "}\n");
}

void audit_write_library(const AuditLibraryCall *c, SolBuffer *out) {
  sol_buffer_puts(out, "{\"library\":");
  sol_json_add_text(out, c->name);
  sol_buffer_format(out, ",\"numbers\":[%.0f,%.0f,%.0f,%d,%d]}\n", c->read, c->written, c->flops,
                    (int)c->dtype, c->tensor);
}

void audit_write_progress(const SolEmuProgress *p, SolBuffer *out) {
  sol_buffer_format(out, "{\"progress\":%.4f,\"instructions\":%llu,\"kernel\":\"%.100s\"}\n", p->done,
                    (unsigned long long)p->instructions, p->kernel); // a PTX name needs no escapes
}
