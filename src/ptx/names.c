// Names, what they stand for in which scope, and the dense numbering of registers.
#include "base/heap.h"
#include "ptx/internal.h"

void *sol_ptx_vec_add(Vec *vec, size_t size) {
  if (vec->count == vec->cap) {
    uint32_t cap = vec->cap ? vec->cap * 2 : 16;
    if (vec->cap > UINT32_MAX / 4 || cap > SIZE_MAX / 2 / size) return 0;
    void *data = sol_heap_realloc(vec->data, cap * size);
    if (!data) return 0;
    vec->data = data;
    vec->cap = cap;
  }
  return memset((char *)vec->data + vec->count++ * size, 0, size);
}

void sol_ptx_vec_free(Vec *vec) {
  sol_heap_free(vec->data);
  *vec = (Vec){0};
}

// ---- interning ----

static uint32_t hash_text(const char *text, size_t length) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
  return h ^ h >> 15;
}

static bool grow(Names *n) {
  uint32_t cap = n->cap ? n->cap * 2 : 1024;
  if (n->cap > UINT32_MAX / 4) return false;
  Name **slots = sol_heap_alloc(cap * sizeof(void *));
  if (!slots) return false;
  memset(slots, 0, cap * sizeof(void *));
  for (uint32_t i = 0; i < n->cap; i++) {
    Name *name = n->slots[i];
    if (!name) continue;
    uint32_t at = name->hash & (cap - 1);
    while (slots[at]) at = (at + 1) & (cap - 1);
    slots[at] = name;
  }
  sol_heap_free(n->slots);
  n->slots = slots;
  n->cap = cap;
  return true;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "%r12" is the 12th of %r<...>; "%r012" and "%r" are separate names.
static bool split_number(Names *names, Name *name) {
  uint32_t digits = 0;
  while (digits < name->length && is_digit(name->text[name->length - 1 - digits])) digits++;
  uint32_t prefix = name->length - digits;
  if (!digits || !prefix || digits > 10 || (digits > 1 && name->text[prefix] == '0')) return true;
  uint64_t number = 0;
  for (uint32_t i = prefix; i < name->length; i++) number = number * 10 + (uint64_t)(name->text[i] - '0');
  if (number > INT32_MAX) return true;
  name->number = (uint32_t)number;
  name->prefix = sol_ptx_intern(names, name->text, prefix);
  return name->prefix != 0;
}

Name *sol_ptx_intern(Names *n, const char *text, size_t length) {
  if (n->count * 2 >= n->cap && !grow(n)) return 0;
  uint32_t hash = hash_text(text, length);
  uint32_t at = hash & (n->cap - 1);
  for (; n->slots[at]; at = (at + 1) & (n->cap - 1)) {
    Name *name = n->slots[at];
    if (name->hash == hash && name->length == length && !memcmp(name->text, text, length)) return name;
  }
  Name *name = sol_arena_alloc(n->arena, sizeof *name);
  char *copy = sol_arena_alloc(n->arena, length + 1);
  if (!name || !copy) return 0;
  memcpy(copy, text, length);
  *name = (Name){.text = copy, .length = (uint32_t)length, .hash = hash};
  n->slots[at] = name;
  n->count++;
  return split_number(n, name) ? name : 0;
}

void sol_ptx_names_free(Names *n) {
  sol_heap_free(n->slots);
  *n = (Names){0};
}

// ---- scopes ----

bool sol_ptx_open_scope(Parser *p) {
  if (p->depth + 1 == MAX_SCOPES)
    return sol_ptx_fail(p, SOL_ERR_UNSUPPORTED, p->lex.token.at, "blocks are nested more than %d deep",
                        MAX_SCOPES - 1);
  p->scopes[++p->depth] = (Scope){.param_top = p->param_top, .pending_mark = p->pending.count};
  return true;
}

static void patch(Parser *p, const Pending *use, const Label *label) {
  if (use->in_table)
    *VEC_AT(&p->table_targets, uint32_t, use->operand) = label->index;
  else
    VEC_AT(&p->operands, PtxOperand, use->operand)->index = label->index;
}

// Labels used in the scope that it does not have are looked for in the next one out.
static bool resolve_labels(Parser *p, const Scope *scope) {
  uint32_t kept = scope->pending_mark;
  for (uint32_t i = scope->pending_mark; i < p->pending.count; i++) {
    Pending *use = VEC_AT(&p->pending, Pending, i);
    const Label *label = use->name->label;
    if (label && label->depth == p->depth) {
      if (label->kind != LABEL_INST)
        return sol_ptx_fail(p, SOL_ERR_SYNTAX, use->at, "'%.80s' is no place to go to", use->name->text);
      patch(p, use, label);
    } else {
      *VEC_AT(&p->pending, Pending, kept++) = *use;
    }
  }
  p->pending.count = kept;
  if (p->depth > 1 || !kept) return true;
  const Pending *lost = VEC_AT(&p->pending, Pending, 0);
  return sol_ptx_fail(p, SOL_ERR_SYNTAX, lost->at, "there is no label '%.80s' in this function",
                      lost->name->text);
}

bool sol_ptx_close_scope(Parser *p) {
  Scope *scope = &p->scopes[p->depth];
  if (p->depth && !resolve_labels(p, scope)) return false;
  for (Label *l = scope->labels; l; l = l->older) l->name->label = l->shadowed;
  for (Binding *b = scope->bindings; b; b = b->older) {
    if (b->kind == BIND_REGS && b->count != PTX_NONE)
      b->name->set = b->shadowed;
    else
      b->name->bound = b->shadowed;
    b->gone = true;
  }
  p->param_top = scope->param_top;
  if (p->depth)
    p->depth--;
  else
    *scope = (Scope){0};
  return true;
}

static Binding *bind(Parser *p, Name *name, BindKind kind, Binding **place, size_t at) {
  if (*place && (*place)->depth == p->depth) {
    sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "'%.80s' is declared a second time", name->text);
    return 0;
  }
  Binding *b = sol_arena_alloc(&p->scratch, sizeof *b);
  if (!b) return sol_ptx_fail_memory(p), NULL;
  Scope *scope = &p->scopes[p->depth];
  *b = (Binding){.name = name,
                 .shadowed = *place,
                 .older = scope->bindings,
                 .index = PTX_NONE,
                 .count = PTX_NONE,
                 .depth = p->depth,
                 .kind = (uint8_t)kind,
                 .vec = 1};
  *place = scope->bindings = b;
  return b;
}

Binding *sol_ptx_bind(Parser *p, Name *name, BindKind kind, size_t at) {
  return bind(p, name, kind, &name->bound, at);
}

Binding *sol_ptx_bind_function(Parser *p, Name *name, Binding **place) {
  Binding *b = sol_arena_alloc(&p->scratch, sizeof *b);
  if (!b) return sol_ptx_fail_memory(p), NULL;
  *b = (Binding){
      .name = name, .shadowed = *place, .older = p->scopes[0].bindings, .kind = BIND_FUNC, .vec = 1};
  *place = p->scopes[0].bindings = b;
  return b;
}

Binding *sol_ptx_bind_set(Parser *p, Name *prefix, uint32_t count, size_t at) {
  Binding *b = bind(p, prefix, BIND_REGS, &prefix->set, at);
  if (b) b->count = count;
  return b;
}

bool sol_ptx_bind_label(Parser *p, Name *name, LabelKind kind, uint32_t index, size_t at) {
  if (name->label && name->label->depth == p->depth)
    return sol_ptx_fail(p, SOL_ERR_SYNTAX, at, "label '%.80s' is defined twice", name->text);
  Label *l = sol_arena_alloc(&p->scratch, sizeof *l);
  if (!l) return sol_ptx_fail_memory(p);
  Scope *scope = &p->scopes[p->depth];
  *l = (Label){name, name->label, scope->labels, index, p->depth, (uint8_t)kind};
  name->label = scope->labels = l;
  return true;
}

// ---- registers ----

static uint32_t add_regs(Parser *p, const Binding *b, const Name *name) {
  uint32_t first = p->regs.count;
  const char *text = sol_ptx_keep_name(p, b->name);
  if (!text) return PTX_NONE;
  for (int i = 0; i < b->vec; i++) {
    PtxReg *reg = sol_ptx_vec_add(&p->regs, sizeof *reg);
    if (!reg) return sol_ptx_fail_memory(p), PTX_NONE;
    *reg = (PtxReg){text, b->count == PTX_NONE ? PTX_NONE : name->number, b->type};
  }
  return first;
}

// The member of `set` that `name` is, drawing a number for it on first use. Members of sets that are out of
// scope are dropped in passing, so the list is as long as the sets of that name nested around this place.
static uint32_t find_member(Parser *p, Name *name, const Binding *set) {
  Member **at = &name->members;
  while (*at) {
    if ((*at)->set == set) return (*at)->reg;
    if ((*at)->set->gone)
      *at = (*at)->next;
    else
      at = &(*at)->next;
  }
  Member *m = sol_arena_alloc(&p->scratch, sizeof *m);
  if (!m) return sol_ptx_fail_memory(p), PTX_NONE;
  *m = (Member){set, name->members, add_regs(p, set, name)};
  name->members = m;
  return m->reg;
}

uint32_t sol_ptx_find_reg(Parser *p, Name *name, const Binding **binding) {
  Binding *plain = name->bound, *set = name->prefix ? name->prefix->set : NULL;
  while (set && name->number >= set->count) set = set->shadowed;
  if (plain && (!set || plain->depth >= set->depth)) {
    if (plain->kind != BIND_REGS) return PTX_NONE;
    *binding = plain;
    if (plain->index == PTX_NONE) plain->index = add_regs(p, plain, name);
    return plain->index;
  }
  if (!set) return PTX_NONE;
  *binding = set;
  return find_member(p, name, set);
}
