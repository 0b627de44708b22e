"""The C library from Python, by ctypes. Structures and enums are read from include/sol, so that there is
nothing here to keep in step with them.

    from sol_c import Sol
    sol = Sol("build/libsol.so")              # a context on the GPU, or backend="cpu"
    args = sol.struct("SolRmsnorm", y=y.data_ptr(), x=x.data_ptr(), m=8, n=4096, dtype=sol.SOL_BF16, eps=1e-6)
    sol.call("sol_rmsnorm", args, stream)     # raises SolFailure with the library's message

python3 bench/sol_c.py prints C that holds every structure's layout against the compiler's.
"""

import ctypes
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

HEADERS = ["status", "dtype", "device", "op", "context", "ops"]  # in the order they include each other
PLAIN = {
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "unsigned": ctypes.c_uint,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "char": ctypes.c_char,
    "SolStream": ctypes.c_void_p,
}


def _without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = text.replace("\\\n", " ")
    return re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)


def _enum_values(body):
    value, out = -1, {}
    for item in body.split(","):
        name, _, given = item.partition("=")
        if not name.strip():
            continue
        if not name.strip().isidentifier():  # a list made by a macro
            return {}
        try:
            value = int(given, 0) if given.strip() else value + 1
        except ValueError:  # an expression: 1 << 3 and the like; not needed here
            return {}
        out[name.strip()] = value
    return out


def _fields(body, known):
    """[(name, ctypes type)] of a structure's declarations; None where it has one that is not understood."""
    out = []
    for declaration in body.split(";"):
        declaration = " ".join(declaration.replace("const ", " ").split())
        if not declaration:
            continue
        match = re.match(r"(\w+)\s*(.*)$", declaration)
        if not match or not match.group(2):
            return None
        base = known.get(match.group(1))
        for declarator in match.group(2).split(","):
            parts = re.match(r"^\s*(\**)\s*(\w+)\s*(?:\[(\d+)\])?\s*$", declarator)
            if not parts:
                return None
            kind = ctypes.c_void_p if parts.group(1) or match.group(1) == "void" else base
            if kind is None:
                return None
            out.append((parts.group(2), kind * int(parts.group(3)) if parts.group(3) else kind))
    return out


def read_headers(folder=None):
    """(structures by name, constants by name) of the public headers."""
    structs, constants, known = {}, {}, dict(PLAIN)
    for header in HEADERS:
        path = os.path.join(folder or os.path.join(ROOT, "include", "sol"), header + ".h")
        with open(path, encoding="utf-8") as f:
            text = _without_comments(f.read())
        for match in re.finditer(r"typedef\s+(enum|struct)\s+(\w+)\s*\{([^{}]*)\}\s*\2\s*;", text):
            kind, name, body = match.groups()
            if kind == "enum":
                constants.update(_enum_values(body))
                known[name] = ctypes.c_int
                continue
            fields = _fields(body, known)
            if fields:
                structs[name] = known[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return structs, constants


class SolFailure(Exception):
    pass


class Sol:
    def __init__(self, library, backend="cuda", trust_pointers=False):
        self.structs, self.constants = read_headers()
        self.lib = ctypes.CDLL(library)
        self._error = self.structs["SolError"]()
        self.lib.sol_last_error.restype = ctypes.POINTER(self.structs["SolError"])
        options = self.struct("SolContextOptions", backend=self.constants["SOL_BACKEND_" + backend.upper()])
        options.trust_pointers = int(trust_pointers)
        self.context = ctypes.c_void_p()
        create = self.lib.sol_context_create
        create.argtypes = [ctypes.c_void_p] * 3
        status = create(ctypes.addressof(options), ctypes.addressof(self.context), ctypes.addressof(self._error))
        if status:
            raise SolFailure(self._error.message.decode())
        self._functions = {}

    def __getattr__(self, name):  # sol.SOL_BF16
        try:
            return self.__dict__["constants"][name]
        except KeyError:
            raise AttributeError(name) from None

    def struct(self, name, **fields):
        out = self.structs[name]()
        for key, value in fields.items():
            if not hasattr(out, key):
                raise TypeError(f"{name} has no field {key}")
            setattr(out, key, value)
        return out

    def has(self, function):
        return hasattr(self.lib, function)

    def function(self, name):
        """The operation as a function of (context, address of the arguments, stream)."""
        if name not in self._functions:
            f = getattr(self.lib, name)
            f.argtypes, f.restype = [ctypes.c_void_p] * 3, ctypes.c_int
            self._functions[name] = f
        return self._functions[name]

    def failure(self):
        return SolFailure(self.lib.sol_last_error().contents.message.decode())

    def call(self, name, args, stream=None):
        if self.function(name)(self.context, ctypes.addressof(args), stream):
            raise self.failure()

    def close(self):
        self.lib.sol_context_destroy.argtypes = [ctypes.c_void_p]
        self.lib.sol_context_destroy(self.context)
        self.context = None


def layout_check():
    """C that compiles only if every structure has the layout that ctypes gives it."""
    structs, constants = read_headers()
    lines = ["#include <stddef.h>", "#include <sol/sol.h>"]
    for name, struct in structs.items():
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");')
        for field, _ in struct._fields_:
            at = getattr(struct, field).offset
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {at}, "{name}.{field}");')
    for name, value in constants.items():
        lines.append(f'_Static_assert({name} == {value}, "{name}");')
    return "\n".join(lines + ["int main(void) { return 0; }", ""])


if __name__ == "__main__":
    print(layout_check(), end="")
