#include "base/text.h"

#include "base/error.h"

static char fold(char c) {
  if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
  return c == '_' || c == ' ' || c == '.' ? '-' : c;
}

bool sol_same_name(const char *a, const char *b) {
  while (*a && fold(*a) == fold(*b)) a++, b++;
  return *a == *b;
}

bool sol_name_in_list(const char *name, const char *list) {
  if (!list) return false;
  size_t n = strlen(name);
  while (*list) {
    size_t word = 0;
    while (list[word] && list[word] != ' ') word++;
    size_t i = 0;
    while (i < n && i < word && fold(name[i]) == fold(list[i])) i++;
    if (n && i == n && i == word) return true;
    list += word;
    while (*list == ' ') list++;
  }
  return false;
}

int sol_name_distance(const char *a, const char *b) {
  enum { MOST = 40 }; // enough to rank names; longer ones are compared by their beginnings
  int n = (int)strlen(a), m = (int)strlen(b);
  if (n > MOST) n = MOST;
  if (m > MOST) m = MOST;
  int row[3][MOST + 1];
  for (int j = 0; j <= m; j++) row[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      bool same = fold(a[i - 1]) == fold(b[j - 1]);
      int best = last[j - 1] + !same;
      if (last[j] + 1 < best) best = last[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]);
      if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
      now[j] = best;
    }
  }
  int distance = row[n % 3][m];
  // "h100" against "h100-sxm", "norm" against "rmsnorm": the text is a substring of the name.
  for (int at = 0; n > 1 && at + n <= m; at++) {
    int k = 0;
    while (k < n && fold(a[k]) == fold(b[at + k])) k++;
    if (k == n) return at == 0 ? 1 : 2;
  }
  return distance;
}

static const double power_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scale_by_ten(double v, int exponent) {
  for (; exponent > 22; exponent -= 22) {
    v *= 1e22;
    if (v > 1e300) return v * 1e22;
  }
  for (; exponent < -22 && v > 0; exponent += 22) v /= 1e22;
  if (exponent < -22) return 0;
  return exponent < 0 ? v / power_of_ten[-exponent] : v * power_of_ten[exponent];
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The suffix at text[*at]: K M G T P by thousands, Ki Mi ... by 1024, then perhaps B. 1 where there is none.
static double read_suffix(const char *text, size_t length, size_t *at) {
  double factor = 1;
  if (*at < length) {
    const char *units = "KMGTP";
    char c = text[*at] == 'k' ? 'K' : text[*at];
    for (int i = 0; units[i]; i++) {
      if (c != units[i]) continue;
      bool binary = *at + 1 < length && text[*at + 1] == 'i';
      for (int k = 0; k <= i; k++) factor *= binary ? 1024 : 1000;
      *at += binary ? 2 : 1;
      break;
    }
  }
  if (*at < length && text[*at] == 'B') *at += 1;
  return factor;
}

// Reads a number from text[*at] on and moves *at past it; no check of what follows.
static SolStatus read_number(const char *text, size_t length, size_t *at, double *out, SolError *err) {
  size_t start = *at, p = start;
  if (p < length && text[p] == '-')
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, p, "must not be negative");
  uint64_t mantissa = 0;
  int exponent = 0, digits = 0;
  for (; p < length && is_digit(text[p]); p++, digits++) {
    if (mantissa < 1000000000000000000u)
      mantissa = mantissa * 10 + (uint64_t)(text[p] - '0');
    else if (exponent < 100000)
      exponent++;
  }
  if (p < length && text[p] == '.') {
    for (p++; p < length && is_digit(text[p]); p++, digits++) {
      if (mantissa < 1000000000000000000u) mantissa = mantissa * 10 + (uint64_t)(text[p] - '0'), exponent--;
    }
  }
  if (!digits) return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, start, "expected a number");
  if (p < length && (text[p] == 'e' || text[p] == 'E')) {
    size_t q = p + 1;
    bool minus = q < length && text[q] == '-';
    if (q < length && (text[q] == '-' || text[q] == '+')) q++;
    if (q >= length || !is_digit(text[q]))
      return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, q, "expected digits after the exponent's 'e'");
    int e = 0;
    for (; q < length && is_digit(text[q]); q++)
      if (e < 100000) e = e * 10 + (text[q] - '0');
    exponent += minus ? -e : e;
    p = q;
  }
  double v = mantissa ? scale_by_ten((double)mantissa, exponent) : 0;
  v *= read_suffix(text, length, &p);
  if (!__builtin_isfinite(v))
    return sol_fail_at(err, SOL_ERR_RANGE, text, length, start, "number is too large");
  *at = p;
  *out = v;
  return SOL_OK;
}

SolStatus sol_parse_number(const char *text, size_t length, double *out, SolError *err) {
  size_t at = 0;
  double v = 0;
  SolStatus status = read_number(text, length, &at, &v, err);
  if (status) return status;
  if (at < length)
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, at, "unexpected text after the number");
  *out = v;
  return SOL_OK;
}

static SolStatus to_count(const char *text, size_t length, size_t start, double v, int64_t least,
                          int64_t *out, SolError *err) {
  if (v > SOL_EXACT) return sol_fail_at(err, SOL_ERR_RANGE, text, length, start, "larger than 2^53");
  if (v != __builtin_floor(v))
    return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, start, "must be a whole number");
  if (v < (double)least)
    return sol_fail_at(err, SOL_ERR_RANGE, text, length, start, "must be at least %lld", (long long)least);
  *out = (int64_t)v;
  return SOL_OK;
}

SolStatus sol_parse_count(const char *text, size_t length, int64_t least, int64_t *out, SolError *err) {
  double v = 0;
  SolStatus status = sol_parse_number(text, length, &v, err);
  return status ? status : to_count(text, length, 0, v, least, out, err);
}

SolStatus sol_parse_shape(const char *text, size_t length, int most, int64_t *dims, int *rank,
                          SolError *err) {
  size_t at = 0;
  for (int n = 0;; n++) {
    size_t start = at;
    if (n == most)
      return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, at, "more than %d dimension%s", most,
                         most == 1 ? "" : "s");
    double v = 0;
    SolStatus status = read_number(text, length, &at, &v, err);
    if (!status) status = to_count(text, length, start, v, 1, &dims[n], err);
    if (status) return status;
    if (at == length) {
      *rank = n + 1;
      return SOL_OK;
    }
    if (text[at] != 'x' && text[at] != 'X')
      return sol_fail_at(err, SOL_ERR_SYNTAX, text, length, at, "expected 'x' between dimensions");
    at++;
  }
}

bool sol_matches(const char *pattern, const char *text) {
  const char *star = 0, *from = 0; // the last '*', and where what it stands for ends so far
  while (*text) {
    if (*pattern == '*') {
      star = pattern++;
      from = text;
    } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
      pattern++, text++;
    } else if (star) {
      pattern = star + 1;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return !*pattern;
}
