// Operations on Python's own array objects: no capsule is made, no shape is turned into Python objects. A call from Python
// costs what looking at its tensors costs, some tens of nanoseconds each.
#include "ops/dlpack_inside.h"

// As DLPack 1.2 lays it out.
typedef struct Exchange {
  struct {
    uint32_t major, minor;
  } version;
  void *previous;
  void *make, *take, *give;
  int (*look)(void *object, DLTensor *out); // what `out` points to is the object's
  int (*current_stream)(DLDeviceType type, int32_t id, void **out);
} Exchange;

// Of Python's stable interface; the interpreter that calls has them, other programs do not.
#define OF_PYTHON extern __attribute__((weak))
OF_PYTHON void *PyCapsule_GetPointer(void *capsule, const char *name);
OF_PYTHON double PyFloat_AsDouble(void *object);
OF_PYTHON void *PyLong_FromLong(long value);
OF_PYTHON void *PyErr_Occurred(void);
OF_PYTHON void PyErr_Clear(void);
OF_PYTHON void *PyEval_SaveThread(void);
OF_PYTHON void PyEval_RestoreThread(void *state);
OF_PYTHON char _Py_NoneStruct;

enum { MOST_TENSORS = 5, MOST_NUMBERS = 2 };
typedef struct Given {
  const DLTensor *t[MOST_TENSORS]; // NULL for None
  float f[MOST_NUMBERS];
} Given;

#define OPERATION(name, ...)                                                                                 \
  static SolStatus call_##name(SolContext *c, const Given *g, SolStream s) {                                 \
    const DLTensor *const *t = g->t;                                                                         \
    const float *f = g->f;                                                                                   \
    (void)f;                                                                                                 \
    return sol_##name##_dl(c, __VA_ARGS__, s);                                                               \
  }
OPERATION(rmsnorm, t[0], t[1], t[2], f[0], f[1])
OPERATION(add_rmsnorm, t[0], t[2], t[3], t[1], t[4], f[0], f[1])
OPERATION(layernorm, t[0], t[1], t[2], t[3], f[0], 0)
OPERATION(softmax, t[0], t[1])
OPERATION(log_softmax, t[0], t[1])
OPERATION(silu_mul, t[0], t[1], t[2])
OPERATION(gated_mul, t[0], t[1], t[2], NULL, (SolGate)f[0])
OPERATION(bias_gelu, t[0], t[1], t[2])
OPERATION(embedding, t[0], t[1], t[2], NULL)
OPERATION(cross_entropy, t[0], t[1], t[2], t[3], 1)

static int64_t rows_of(const DLTensor *t, int axes) {
  int64_t rows = 1;
  for (int i = 0; i + axes < t->ndim; i++) rows *= t->shape[i];
  return rows;
}

// Without positions the tables have a row for each token: longer and shorter ones are mistakes here.
static SolStatus call_rope(SolContext *c, const Given *g, SolStream s) {
  const DLTensor *const *t = g->t;
  if (!t[2] || rows_of(t[1], 2) != rows_of(t[2], 1)) return SOL_ERR_ARGUMENT;
  return sol_rope_dl(c, t[0], t[1], t[2], t[3], NULL, (int)g->f[0], s);
}

static const struct {
  const char *name;
  int tensors, numbers;
  SolStatus (*call)(SolContext *, const Given *, SolStream);
} operations[] = {
    {"rmsnorm", 3, 2, call_rmsnorm},
    {"add_rmsnorm", 5, 2, call_add_rmsnorm},
    {"layernorm", 4, 1, call_layernorm},
    {"softmax", 2, 0, call_softmax},
    {"log_softmax", 2, 0, call_log_softmax},
    {"silu_mul", 3, 0, call_silu_mul},
    {"gated_mul", 3, 1, call_gated_mul},
    {"bias_gelu", 3, 0, call_bias_gelu},
    {"rope", 4, 1, call_rope},
    {"embedding", 3, 0, call_embedding},
    {"cross_entropy", 4, 0, call_cross_entropy},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

int64_t sol_python_operation(const char *name) {
  for (int i = 0; name && i < OPERATIONS; i++)
    if (!strcmp(operations[i].name, name)) return i;
  return -1;
}

static SolContext *context_of(const SolPythonCall *call, DLDevice device) {
  int64_t at = device.device_type == kDLCPU ? 0 : device.device_type == kDLCUDA ? 1 + device.device_id : -1;
  return at >= 0 && at < call->count ? call->contexts[at] : NULL;
}

static bool read_arguments(const SolPythonCall *call, void *const *arguments, DLTensor *tensors, Given *out) {
  const Exchange *exchange = call->exchange;
  int count = operations[call->operation].tensors;
  for (int i = 0; i < count; i++) {
    if (arguments[i] == &_Py_NoneStruct) continue;
    if (exchange->look(arguments[i], &tensors[i])) return false;
    out->t[i] = &tensors[i];
  }
  for (int i = 0; i < operations[call->operation].numbers; i++)
    out->f[i] = (float)PyFloat_AsDouble(arguments[count + i]);
  return out->t[0] && out->t[1] && !PyErr_Occurred();
}

// Without the interpreter's lock: a launch may wait where many are queued, and the CPU computes.
static SolStatus run_unlocked(const SolPythonCall *call, const Given *given, SolContext *context,
                              void *stream) {
  void *state = PyEval_SaveThread();
  SolStatus status = operations[call->operation].call(context, given, stream);
  PyEval_RestoreThread(state);
  return status;
}

static SolStatus run_call(const SolPythonCall *call, void *const *arguments, intptr_t count) {
  DLTensor tensors[MOST_TENSORS];
  Given given = {0};
  if (call->operation < 0 || call->operation >= OPERATIONS) return SOL_ERR_ARGUMENT;
  if (count != operations[call->operation].tensors + operations[call->operation].numbers)
    return SOL_ERR_ARGUMENT;
  if (!read_arguments(call, arguments, tensors, &given)) return SOL_ERR_ARGUMENT;
  DLDevice device = given.t[1]->device;
  SolContext *context = context_of(call, device);
  if (!context) return SOL_ERR_UNSUPPORTED;
  void *stream = NULL;
  const Exchange *exchange = call->exchange;
  if (device.device_type != kDLCPU && exchange->current_stream(device.device_type, device.device_id, &stream))
    return SOL_ERR_UNSUPPORTED;
  return run_unlocked(call, &given, context, stream);
}

void *sol_python_call(void *self, void *const *arguments, intptr_t count) {
  const SolPythonCall *call = PyCapsule_GetPointer(self, "sol");
  if (!call) return NULL;
  SolStatus status = run_call(call, arguments, count);
  if (status && PyErr_Occurred()) PyErr_Clear(); // the status says it
  return PyLong_FromLong((long)status);
}
