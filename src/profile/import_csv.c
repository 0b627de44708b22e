// Nsight Compute's CSV. A table starts with its line of column names; which page it is of shows in them.
#include "profile/import.h"

#include "base/error.h"
#include "base/format.h"
#include "base/heap.h"
#include "profile/ncu_launch.h"
#include "profile/ncu_value.h"

// What a column of the table holds, other than counters and facts (NcuThing).
typedef enum Column {
  COLUMN_OTHER,
  COLUMN_ID,
  COLUMN_PROCESS,
  COLUMN_NAME,
  COLUMN_GRID,
  COLUMN_BLOCK,
  COLUMN_CC,
  COLUMN_SECTION, // details page
  COLUMN_METRIC,
  COLUMN_UNIT,
  COLUMN_VALUE,
  COLUMNS
} Column;
static const char *const column_names[COLUMNS] = {
    "",   "ID",           "Process ID",  "Kernel Name", "Grid Size",   "Block Size",
    "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"};

enum { NOWHERE = -1, NAME_ROOM = 1 << 16 };

typedef struct Import {
  Profile *profile;
  ProfileFilter *filter;
  Csv csv;
  // The table.
  bool in_table, details;
  NcuThing *things; // raw page: what each column holds
  CsvField *units;
  bool has_units; // the line of units was read
  size_t column_count, column_cap;
  int at[COLUMNS]; // where it is; NOWHERE
  // The launch being put together.
  bool open;
  NcuLaunch now;
  char name[NAME_ROOM], id[64], process[64];
  double launches;
  int metrics, most_metrics; // details page: of this launch, of any
  // What was met on the way.
  bool of_active;
  bool saw_permission, saw_no_kernels, saw_text_page, saw_error;
} Import;

// ---- launches ----

static SolStatus end_launch(Import *m, SolError *err) {
  if (!m->open) return SOL_OK;
  m->open = false;
  m->launches++;
  if (m->metrics > m->most_metrics) m->most_metrics = m->metrics;
  ncu_use_rates(&m->now);
  if (m->filter && !profile_takes(m->filter, m->name)) return SOL_OK;
  return profile_add(m->profile, &m->now.launch, err);
}

static CsvField cell(const Import *m, Column column) {
  int at = m->at[column];
  return at >= 0 && (size_t)at < m->csv.count ? m->csv.fields[at] : (CsvField){m->csv.text, 0};
}

static SolStatus take_gpu(Import *m, SolError *err) {
  CsvField cc = cell(m, COLUMN_CC);
  double value;
  if (!cc.length) return SOL_OK;
  if (ncu_number(cc, &value, NULL) != NCU_NUMBER || value < 1 || value > 99)
    return import_fail(&m->csv, err, cc, "the compute capability (CC) has to be like 9.0", WRITE_AGAIN);
  int number = (int)(value * 10 + 0.5);
  if (m->profile->gpu.cc && m->profile->gpu.cc != number)
    return import_fail(&m->csv, err, cc, "launches on GPUs of different compute capability in one file",
                       "write one file for each: ncu --devices N");
  m->profile->gpu.cc = number;
  return SOL_OK;
}

static SolStatus start_launch(Import *m, SolError *err) {
  SolStatus status = end_launch(m, err);
  if (status) return status;
  CsvField name = cell(m, COLUMN_NAME), grid = cell(m, COLUMN_GRID), block = cell(m, COLUMN_BLOCK);
  if (!name.length)
    return import_fail(&m->csv, err, m->csv.fields[0], "a line without a kernel's name", WRITE_AGAIN);
  ncu_launch_clear(&m->now);
  m->metrics = 0;
  csv_copy(name, m->name, sizeof m->name);
  csv_copy(cell(m, COLUMN_ID), m->id, sizeof m->id);
  csv_copy(cell(m, COLUMN_PROCESS), m->process, sizeof m->process);
  m->now.launch.name = m->name;
  m->open = true;
  if (grid.length && !ncu_shape(grid, m->now.launch.grid))
    return import_fail(&m->csv, err, grid, "the grid has to be like (128, 1, 1)", WRITE_AGAIN);
  if (block.length && !ncu_shape(block, m->now.launch.block))
    return import_fail(&m->csv, err, block, "the block has to be like (256, 1, 1)", WRITE_AGAIN);
  return take_gpu(m, err);
}

// ---- the two pages ----

static bool contains(CsvField f, const char *text) {
  size_t n = strlen(text);
  for (size_t i = 0; i + n <= f.length; i++)
    if (memcmp(f.text + i, text, n) == 0) return true;
  return false;
}

static void look_for_active(Import *m, CsvField name) {
  bool throughput = csv_starts(name, "sm__throughput.") || csv_starts(name, "gpu__dram_throughput.");
  if (throughput && contains(name, "sustained_active")) m->of_active = true;
}

static SolStatus take_details(Import *m, SolError *err) {
  CsvField metric = cell(m, COLUMN_METRIC), id = cell(m, COLUMN_ID);
  char now[64], process[64];
  if ((size_t)m->at[COLUMN_VALUE] >= m->csv.count)
    return import_fail(&m->csv, err, m->csv.fields[0], "the line ends before its Metric Value", WRITE_AGAIN);
  csv_copy(id, now, sizeof now);
  csv_copy(cell(m, COLUMN_PROCESS), process, sizeof process);
  if (!m->open || strcmp(now, m->id) != 0 || strcmp(process, m->process) != 0) {
    SolStatus status = start_launch(m, err);
    if (status) return status;
  }
  if (!metric.length) return SOL_OK; // the text of one of ncu's rules
  look_for_active(m, metric);
  m->metrics++;
  NcuThing thing = ncu_thing(cell(m, COLUMN_SECTION), metric);
  return ncu_take(&m->now, thing, cell(m, COLUMN_VALUE), cell(m, COLUMN_UNIT), err);
}

static SolStatus take_raw(Import *m, SolError *err) {
  if (m->csv.count != m->column_count) {
    char message[160];
    sol_format(message, sizeof message, "the line has %zu fields, the table's first line %zu", m->csv.count,
               m->column_count);
    return import_fail(&m->csv, err, m->csv.fields[0], message,
                       "it is cut off, or something was printed into it: use ncu --log-file");
  }
  if (!m->has_units) {
    if (cell(m, COLUMN_ID).length || cell(m, COLUMN_NAME).length)
      return import_fail(&m->csv, err, m->csv.fields[0],
                         "the line of units is missing under the names of the columns", WRITE_AGAIN);
    memcpy(m->units, m->csv.fields, m->csv.count * sizeof *m->units);
    m->has_units = true;
    return SOL_OK;
  }
  SolStatus status = start_launch(m, err);
  for (size_t i = 0; i < m->column_count && !status; i++)
    status = ncu_take(&m->now, m->things[i], m->csv.fields[i], m->units[i], err);
  return status ? status : end_launch(m, err);
}

// ---- tables ----

static bool room_for_columns(Import *m, size_t count) {
  if (count <= m->column_cap) return true;
  sol_heap_free(m->things), sol_heap_free(m->units);
  m->things = sol_heap_alloc(count * sizeof *m->things);
  m->units = sol_heap_alloc(count * sizeof *m->units);
  m->column_cap = m->things && m->units ? count : 0;
  return m->column_cap > 0;
}

static bool is_header(const Csv *csv) {
  bool id = false, name = false;
  for (size_t i = 0; i < csv->count; i++) {
    id |= csv_is(csv->fields[i], "ID");
    name |= csv_is(csv->fields[i], "Kernel Name");
  }
  return id && name;
}

static SolStatus start_table(Import *m, SolError *err) {
  SolStatus status = end_launch(m, err);
  if (status) return status;
  if (!room_for_columns(m, m->csv.count)) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  for (int c = 0; c < COLUMNS; c++) m->at[c] = NOWHERE;
  m->column_count = m->csv.count;
  for (size_t i = 0; i < m->column_count; i++) {
    CsvField name = m->csv.fields[i];
    m->things[i] = ncu_thing((CsvField){"", 0}, name);
    look_for_active(m, name);
    for (int c = COLUMN_ID; c < COLUMNS; c++)
      if (m->at[c] == NOWHERE && csv_is(name, column_names[c])) m->at[c] = (int)i;
  }
  m->in_table = true;
  m->details = m->at[COLUMN_METRIC] >= 0;
  m->has_units = false;
  if (m->details && (m->at[COLUMN_UNIT] < 0 || m->at[COLUMN_VALUE] < 0 || m->at[COLUMN_SECTION] < 0))
    return import_fail(&m->csv, err, m->csv.fields[0],
                       "a details page without Section Name, Metric Unit or Metric Value", WRITE_AGAIN);
  return SOL_OK;
}

// A line that is no row: ncu's own messages, comments, nothing at all.
static bool is_aside(CsvField line) {
  return !line.length || csv_starts(line, "==") || csv_starts(line, "#");
}

static void look_at(Import *m, CsvField line) {
  m->saw_permission |= contains(line, "ERR_NVGPUCTRPERM");
  m->saw_no_kernels |= contains(line, "No kernels were profiled");
  m->saw_error |= csv_starts(line, "==ERROR==");
  m->saw_text_page |=
      contains(line, "Section: GPU Speed Of Light") || contains(line, "Section: Command line profiler");
}

static SolStatus check_header(Import *m, CsvField line, SolError *err) {
  if (is_header(&m->csv)) return start_table(m, err);
  if (contains(line, "Kernel Name;") || contains(line, "Kernel Name\";") || contains(line, "Kernel Name\t"))
    return import_fail(&m->csv, err, line, "the fields are not separated by commas",
                       "take ncu's output as it is, not as a spreadsheet has saved it");
  return SOL_OK;
}

static SolStatus take_line(Import *m, SolError *err) {
  size_t next;
  CsvField line = csv_line(&m->csv, &next);
  look_at(m, line);
  bool names = contains(line, "Kernel Name");
  if (is_aside(line) || (!m->in_table && !names)) {
    m->csv.at = next;
    return SOL_OK;
  }
  if (m->in_table && line.text[0] != '"' && !(line.text[0] >= '0' && line.text[0] <= '9') && !names)
    return import_fail(&m->csv, err, line, "neither a line of the table nor one of ncu's own messages",
                       "the program's output went into it: use ncu --log-file report.csv");
  SolStatus status = csv_read(&m->csv, err);
  if (status) return status;
  if (names && (!m->in_table || is_header(&m->csv))) return check_header(m, line, err);
  return m->details ? take_details(m, err) : take_raw(m, err);
}

// ---- the file ----

static SolStatus check_encoding(Import *m, SolError *err) {
  const unsigned char *t = (const unsigned char *)m->csv.text;
  size_t n = m->csv.length;
  if (n >= 4 && (memcmp(t, "NVR\0", 4) == 0 || memcmp(t, "NVRP", 4) == 0)) {
    sol_fail(err, SOL_ERR_SYNTAX, "this is a report of Nsight Compute, not its CSV");
    sol_hint(err, "make one: ncu --import FILE --csv --page raw > report.csv");
    return SOL_ERR_SYNTAX;
  }
  if (n >= 3 && t[0] == 0xef && t[1] == 0xbb && t[2] == 0xbf) m->csv.at = 3;
  bool wide = n >= 2 && ((t[0] == 0xff && t[1] == 0xfe) || (t[0] == 0xfe && t[1] == 0xff));
  for (size_t i = 0; i < n && !wide; i++) {
    if (t[i]) continue;
    sol_fail_at(err, SOL_ERR_SYNTAX, m->csv.text, n, i, "a zero byte: this is no text");
    sol_hint(err, WRITE_AGAIN);
    return SOL_ERR_SYNTAX;
  }
  if (!wide) return SOL_OK;
  sol_fail(err, SOL_ERR_SYNTAX, "the file is in UTF-16");
  sol_hint(err, "PowerShell's > writes it so: use ncu --log-file report.csv");
  return SOL_ERR_SYNTAX;
}

static SolStatus nothing_found(const Import *m, SolError *err) {
  if (m->saw_permission) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "ncu was not allowed to read the GPU's counters (ERR_NVGPUCTRPERM)");
    sol_hint(err, "run it as root, or load the driver's module with NVreg_RestrictProfilingToAdminUsers=0");
  } else if (m->saw_no_kernels) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "ncu reports that no kernels were profiled");
    sol_hint(err, "check that the program launches kernels, and that ncu's filters select them");
  } else if (m->in_table) {
    sol_fail(err, SOL_ERR_SYNTAX, "the table has its first line, but no launch: it is cut off");
    sol_hint(err, WRITE_AGAIN);
  } else if (m->saw_text_page) {
    sol_fail(err, SOL_ERR_SYNTAX, "this is ncu's plain text output, not CSV");
    sol_hint(err, "add --csv: ncu --csv --page raw --log-file report.csv PROGRAM");
  } else {
    sol_fail(err, SOL_ERR_SYNTAX,
             "no table of Nsight Compute's: no line has ID and Kernel Name among its columns%s",
             m->saw_error ? "; ncu reports an error" : "");
    sol_hint(err, WRITE_AGAIN);
  }
  return err ? err->status : SOL_ERR_SYNTAX;
}

static void say_what_was_met(Import *m) {
  Profile *p = m->profile;
  if (m->now.rounded)
    profile_note(
        p, "The file has rounded values (\"33.56 Mbyte\"); ncu --print-units base writes them exactly.");
  if (m->of_active)
    profile_note(p, "A throughput of the file is a share of active clocks, not of the kernel's whole time.");
  if (m->metrics < m->most_metrics)
    profile_note(p, "The last launch has %d metrics, another %d: the file may be cut off.", m->metrics,
                 m->most_metrics);
  if (m->now.mixed_gpus)
    profile_note(p, "The file has launches on different GPUs; they are taken as of one.");
  if (m->now.uncounted)
    profile_note(p, "%d value%s of the file %s empty or \"n/a\": not counted, or not available on this GPU.",
                 m->now.uncounted, m->now.uncounted > 1 ? "s" : "", m->now.uncounted > 1 ? "are" : "is");
}

SolStatus profile_import_csv(Profile *profile, const char *text, size_t length, ProfileFilter *filter,
                             SolError *err) {
  Import *m = sol_heap_alloc(sizeof *m);
  if (!m) return sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  *m = (Import){.profile = profile, .filter = filter, .csv = {.text = text, .length = length}};
  m->now.csv = &m->csv;
  m->now.profile = profile;
  SolStatus status = check_encoding(m, err);
  while (!status && m->csv.at < m->csv.length) status = take_line(m, err);
  if (!status) status = end_launch(m, err);
  if (!status && !(m->launches > 0)) status = nothing_found(m, err);
  if (!status && !profile->kernel_count) {
    status = sol_fail(err, SOL_ERR_NOT_FOUND, "none of the file's %.0f launches is selected", m->launches);
    sol_hint(err, "see --kernel, --launch-skip and --launch-count");
  }
  if (!status) say_what_was_met(m);
  csv_free(&m->csv);
  sol_heap_free(m->things), sol_heap_free(m->units);
  sol_heap_free(m);
  return status;
}
