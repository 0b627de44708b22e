# Sol. The two commands that matter: `make demo` and `make test`. `make help` lists the rest.
# B is where everything built goes; another folder makes another, independent build: make B=build/other ...
B       ?= build
CLANG   ?= clang
CFLAGS  ?= -O2 -g
LDFLAGS ?=
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
# What the tool alone loads: the shim and the libraries for `sol profile` and `sol fleet`.
PRIVATE ?= $(LIBDIR)/sol
DESTDIR ?=
FUZZ_SECONDS ?= 60
V       ?= 0
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)

# The folders in their dependency order; scripts/check-layers holds the includes to it.
# src/emu itself holds the headers that other folders include.
EMU_DIRS  := emu emu/core emu/watch emu/isa
LIB_DIRS  := base image device machine roofline ptx mem $(EMU_DIRS) sass audit driver ops measure
WASM_DIRS := base device machine roofline ptx mem $(EMU_DIRS) sass audit
TOOL_DIRS := ladder profile report fleet cli

VERSION   := $(shell sed -n 's/^.define SOL_VERSION "\(.*\)"/\1/p' include/sol/version.h)
# What an interface is called by: before 1.0 the second number changes with it too.
SONAME    := libsol.so.$(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
WARN      := -Wall -Wextra -Wshadow -Wconversion -Wvla
FLAGS     := -std=c17 $(WARN) -Iinclude -Isrc -I.
LIB_FLAGS  = $(FLAGS) -fvisibility=hidden -fPIC -ffile-prefix-map='$(CURDIR)'=. $(CFLAGS)
DEPS       = -MMD -MP -MF $@.d -MT $@
LIBS      := -lm -ldl -lpthread
PACK_DEBUG := -Wl,--compress-debug-sections=zlib # a third of the size; debuggers read it so
SANITIZE  := -O2 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CUDA_INC  := $(shell scripts/cuda-env include)
NVCC      := $(shell scripts/cuda-env nvcc)

sources    = $(sort $(foreach d,$(1),$(wildcard src/$(d)/*.c)))
HOST_ONLY := $(wildcard src/*/*_host.c src/*/*/*_host.c) # they need a C library
WASM_ONLY := $(wildcard src/*/*_wasm.c src/*/*/*_wasm.c)
LIB_SRC   := $(filter-out $(WASM_ONLY),$(call sources,$(LIB_DIRS)))
# fleet_mpi.c alone is compiled against MPI, as a library that the tool loads under mpirun.
TOOL_SRC  := $(filter-out src/fleet/fleet_mpi.c,$(call sources,$(TOOL_DIRS)))
MPI_FLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags ompi-c 2>/dev/null || mpicc --showme:compile 2>/dev/null))
MPI_LIBS  := $(shell pkg-config --libs ompi-c 2>/dev/null || mpicc --showme:link 2>/dev/null)
FLEET     := $(if $(MPI_LIBS),$(B)/fleet/libsolfleet.so)
TEST_SRC  := $(sort $(wildcard tests/test_*.c))
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC := $(sort $(wildcard bench/bench_*.c))

# Hot instruction handlers are compiled once more for AVX2 and chosen at run time (src/emu/isa/isa.h): a plain x86-64
# build runs everywhere. Sanitized builds have the plain ones alone, so that the tests run both.
AVX2_OPS  := approx bits compare cvt float half int memory minmax mul
HAS_AVX2  := $(if $(findstring -fsanitize,$(CFLAGS)),,$(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null)))
AVX2_OBJ  := $(if $(HAS_AVX2),$(AVX2_OPS:%=$(B)/obj/src/emu/isa/ops_%_avx2.o))

# The runtime on the emulator takes the toolkit's headers.
SHIM_SRC  := $(call sources,shim libcuda)
SHIM_OBJ  := $(SHIM_SRC:%.c=$(B)/obj/%.o)
SHIM_LIB  := $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(WASM_ONLY),$(call sources,base image device machine roofline ptx mem $(EMU_DIRS) sass audit driver))) $(AVX2_OBJ)
SHIM      := $(if $(CUDA_INC),$(B)/shim/libcudart.so.13 $(B)/shim/libcudart.so.12 $(B)/shim/libcuda.so.1 $(B)/shim/libnvJitLink.so.13 $(B)/shim/libsolredirect.so $(patsubst %,$(B)/shim/lib%,cublas.so.13 cublas.so.12 cublasLt.so.13 cublasLt.so.12 curand.so.10 cusparse.so.12 cufft.so.12 cufft.so.11))

# What the driver loads into a program under `sol profile`: hidden but for one name, with its own copy of what it uses.
INJECT_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(call sources,inject))
INJECT     := $(B)/inject/libsolprofile.so

MAIN_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/cli/main.c))
# Every kernels/OP/OP.cu is one module, embedded in the library; kernels/OP/rungs.cu (module OP_rungs) and
# kernels/sweeps/NAME.cu (sweeps_NAME) are the ladders', embedded in the tool alone. The images do not depend on how
# the C code is built: other builds of the same tree (asan, fuzz) share them.
KERNELS   ?= $(B)/kernels
# ARCHS=all compiles them for every GPU; ARCHS=test for what tests and the emulator read, in less than half the time. `make test` and
# `make demo` begin with the latter, a build folder keeps what it has, and whatever is installed or packed has all.
KEPT_ARCHS := $(shell cat $(KERNELS)/stamp/archs 2>/dev/null)
ifeq ($(origin ARCHS),undefined)
ARCHS     := $(or $(if $(filter install deb wheel,$(MAKECMDGOALS)),all),$(KEPT_ARCHS),all)
endif
FOR_TESTS  = ARCHS=$(or $(KEPT_ARCHS),test)
MODULES   := $(if $(NVCC),$(sort $(foreach d,$(notdir $(wildcard kernels/*)),$(if $(wildcard kernels/$(d)/$(d).cu),$(d)))))
RUNGS     := $(if $(NVCC),$(sort $(patsubst kernels/%/rungs.cu,%_rungs,$(wildcard kernels/*/rungs.cu)) \
               $(patsubst kernels/sweeps/%.cu,sweeps_%,$(wildcard kernels/sweeps/*.cu))))
EMBED_OBJ := $(B)/obj/kernels/images.o
RUNGS_OBJ := $(B)/obj/kernels/ladder_images.o
RUNG_TEXTS := $(sort $(wildcard kernels/*/rungs.cu kernels/sweeps/*.cu))
TEXTS_OBJ := $(B)/obj/kernels/ladder_sources.o
# What HTML reports are made of (src/report/html.h).
WEB_TEXTS := $(filter-out web/page% web/expression.%,$(sort $(wildcard web/*.html web/*.css web/*.js)))
WEB_OBJ   := $(B)/obj/web/web_sources.o
LIB_OBJ   := $(LIB_SRC:%.c=$(B)/obj/%.o) $(AVX2_OBJ) $(EMBED_OBJ)
TOOL_OBJ  := $(filter-out $(MAIN_OBJ),$(TOOL_SRC:%.c=$(B)/obj/%.o)) $(RUNGS_OBJ) $(TEXTS_OBJ) $(WEB_OBJ)
WASM_OBJ  := $(patsubst %.c,$(B)/wasm/%.o,$(filter-out $(HOST_ONLY),$(call sources,$(WASM_DIRS))))
# The page: the accountant with the questions that web/page.js asks, and what renders the answers.
PAGE_SRC  := $(wildcard src/page/*.c) src/driver/args.c src/driver/emu.c \
             $(patsubst %,src/report/%.c,facts json report_access report_audit report_audit_words report_audit_library report_audit_lines report_model report_occupancy report_pass report_roofline report_roofs report_source report_timeline)
PAGE_OBJ  := $(PAGE_SRC:%.c=$(B)/wasm/%.o)
PAGE_HOST := $(filter-out $(WASM_ONLY),$(wildcard src/page/*.c))
TESTS     := $(TEST_SRC:tests/%.c=$(B)/tests/%)
REPLAYS   := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=$(B)/tests/replay_%)
FUZZERS   := $(patsubst tests/fuzz/%.c,$(B)/%,$(if $(SHIM),$(FUZZ_SRC),$(filter-out %/fuzz_shim.c %/fuzz_libcuda.c,$(FUZZ_SRC))))
BENCHES   := $(BENCH_SRC:bench/%.c=$(B)/bench/%)
FAKE_CUDA := $(B)/tests/fake/libcuda.so.1
FAKE_NCCL := $(B)/tests/fake/libnccl.so.2
FAKE_GPU  := $(B)/tests/gpu/libcuda.so.1 $(B)/tests/gpu/program
SOL       := $(if $(MAIN_OBJ),$(B)/sol)
SHARE     := $(if $(MAIN_OBJ),$(B)/share/made)

, := ,
# Sub-makes run in parallel unless the caller has already said how many jobs.
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))
# Says which file is being made; with V=1 shows the whole command.
Q = $(if $(filter-out 0,$(V)),,@echo '  $@';)
# What is linked is written beside its place and moved there: whoever runs or loads it meanwhile never finds half of it.
LINKED = -o $@.new && mv $@.new $@
export B CC CXX CLANG CUDA_INC
export DIRS := $(LIB_DIRS) $(TOOL_DIRS)

.PHONY: all no-shim help setup demo test asan tests sanitized fuzz fuzz-merge fuzzers lint format bench wasm page site pictures reference wheel deb dist check-layers install uninstall clean distclean FORCE
.DELETE_ON_ERROR:

all: $(SOL) $(B)/libsol.so $(B)/libsol.a $(SHARE) $(if $(SHIM),$(SHIM),no-shim) $(INJECT) $(FLEET) ## build the tool and the library (default)

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "make %-13s %s\n", $$1, $$2 }'
	@echo "variables: B=build  ARCHS=all|test  PREFIX=/usr/local  DESTDIR=  CC CFLAGS LDFLAGS CLANG  FUZZ_SECONDS=60 FUZZ_CPU_SECONDS=  V=1 (show commands)"

setup: ## install what is missing to build and test
	@scripts/setup.sh build test

demo: ## set up, build, and take the guided tour
	@scripts/setup.sh build cuda
	@+$(FOR_TESTS) $(SUBMAKE) all
	@scripts/demo.sh

test: ## set up, build, and run every test
	@scripts/setup.sh build test
	@+$(FOR_TESTS) $(SUBMAKE) all tests
	@+$(FOR_TESTS) $(SUBMAKE) sanitized
	@+$(FOR_TESTS) tests/run.sh house unit sanitized

asan: ## run the unit tests and replay the fuzz corpora under ASan and UBSan
	@+$(SUBMAKE) sanitized
	@+tests/run.sh sanitized

FUZZ = $(SUBMAKE) B=$(B)/fuzz KERNELS=$(KERNELS) CC=$(CLANG) CFLAGS="$(SANITIZE) -fsanitize=fuzzer-no-link" fuzzers
fuzz: ## fuzz each target for FUZZ_SECONDS, or FUZZ_CPU_SECONDS of processor time, under ASan and UBSan (needs clang)
	@scripts/setup.sh build fuzz
	@+$(FUZZ)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZERS:$(B)/%=$(B)/fuzz/%)

fuzz-merge: ## take into tests/fuzz/corpus what fuzzing found and no seed reaches
	@+$(FUZZ)
	@scripts/fuzz.sh --merge $(FUZZERS:$(B)/%=$(B)/fuzz/%)

lint: check-layers ## clang-format, clang-tidy with the static analyzer, cppcheck and shellcheck on everything
	@scripts/setup.sh lint
	@scripts/lint.sh

format: ## format every C file in place
	scripts/lint.sh files | xargs clang-format -i

bench: $(BENCHES) ## run the benchmarks
	@for bench in $(BENCHES); do echo "== $$bench" && $$bench || exit 1; done

wasm: $(B)/sol.wasm ## build the accountant as freestanding wasm32 (needs clang and lld)

page: $(B)/page.html ## build the page with the accountant and the emulator in it (needs clang and lld)

# Asked for together with the page, it waits for it: two makes would write the same objects.
site: $(SOL) $(filter page,$(MAKECMDGOALS)) ## build the documentation, the page, the ladders and a gallery of reports as HTML under build/site (needs python3)
	@+$(SUBMAKE) page || echo 'the site has no page: it needs clang with lld'
	@python3 scripts/make-site.py $(B)

pictures: $(SOL) page site $(B)/tests/page_probe ## make the pictures of docs/pictures anew, by the tests (needs chromium)
	@mkdir -p docs/pictures
	@DOC_PICTURES=docs/pictures python3 tests/page.py $(B)
	@DOC_PICTURES=docs/pictures python3 tests/reports.py $(SOL)

wheel: all ## pack the tool and the library into a Python wheel under build/wheel (any Python 3.10 or newer)
	@rm -rf $(B)/wheel && mkdir -p $(B)/wheel
	@SOL_BUNDLE=1 SOL_BUILD=$(abspath $(B)) python3 python/backend.py $(B)/wheel

deb: all ## pack an installed copy into a Debian package under build/deb
	@scripts/make-deb.sh $(B)

dist: ## pack the last commit's sources under build/dist
	@mkdir -p $(B)/dist
	@git archive --format=tar --prefix=sol-$(VERSION)/ HEAD | gzip -9n > $(B)/dist/sol-$(VERSION).tar.gz
	@cd $(B)/dist && sha256sum sol-$(VERSION).tar.gz | tee sol-$(VERSION).tar.gz.sha256

reference: ## write the reference of the C and Python interfaces, from headers and docstrings, under build/reference (needs python3)
	@python3 scripts/make-reference.py $(B)/reference

check-layers: ## check the includes against the dependency order
	@scripts/check-layers

# A file that changes only when its text does: what depends on it is rebuilt when flags or the list of
# sources change, so that no object of a vanished source stays in an archive. Objects do not depend on where
# the tree lies: a tree that was moved or copied is not rebuilt.
define WRITE_STAMP
	@mkdir -p $(@D) && printf '%s\n' '$(subst $(CURDIR),.,$(subst ','\'',$(STAMP_$(@F))))' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
endef
# Named one by one: what only pattern rules name is intermediate to make, which then looks through it at FORCE, that is never there,
# and remakes all that depends on it.
$(patsubst %,$(B)/stamp/%,flags tests wasm objects modules rungs) $(patsubst %,$(KERNELS)/stamp/%,archs nvcc nvcc-rungs nvcc-lines): FORCE
	$(WRITE_STAMP)
STAMP_flags   = $(CC) $(LIB_FLAGS) $(LDFLAGS)
STAMP_tests   = $(STAMP_flags) $(CUDA_INC)
STAMP_wasm    = $(CLANG) $(WASM_FLAGS)
STAMP_objects = $(LIB_OBJ) $(TOOL_OBJ) $(SHIM_OBJ) $(SHIM12_OBJ) $(BLAS_OBJ) $(RAND_OBJ) $(SPARSE_OBJ) $(FFT_OBJ) $(INJECT_OBJ)
STAMP_modules = $(MODULES)
STAMP_rungs   = $(RUNGS)
STAMP_archs   = $(ARCHS)
STAMP_nvcc    = $(NVCC) $(OPS_FLAGS) $(OLD_$(ARCHS))
STAMP_nvcc-rungs = $(NVCC) $(RUNG_FLAGS)
STAMP_nvcc-lines = $(NVCC) $(RUNG_FLAGS) -lineinfo

# What some objects are compiled with beside the rest is private: a stamp is the same whichever object asks for it first.
$(B)/obj/src/ops/%.o: private CFLAGS += -O3 -fno-math-errno -fno-trapping-math
# The emulator's arithmetic reads no floating-point flags and no errno: saying so lets its loops vectorise.
$(B)/obj/src/emu/%.o: private CFLAGS += -fno-math-errno -fno-trapping-math $(if $(HAS_AVX2),-DOPS_HAS_AVX2)

$(B)/obj/%.o: %.c $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(EXTRA) $(DEPS) -c $< -o $@

$(B)/obj/src/emu/isa/%_avx2.o: src/emu/isa/%.c $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) -DOPS_AVX2 -mavx2 -mfma -mbmi -mbmi2 $(DEPS) -c $< -o $@

$(SHIM_OBJ): private EXTRA := -D_GNU_SOURCE -Wno-deprecated-declarations $(CUDA_INC:%=-isystem %)

# Hidden but for the runtime's names, which carry the version that programs ask for, and the driver's. Its own copy of the library.
$(B)/shim/libcudart.so.13: $(SHIM_OBJ) $(SHIM_LIB) src/shim/shim_exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcudart.so.13 -Wl,--version-script,src/shim/shim_exports.map -Wl,-Bsymbolic-functions $(CFLAGS) $(LDFLAGS) \
	  $(SHIM_OBJ) $(SHIM_LIB) $(LIBS) $(LINKED)

# The driver is in the same library, so that there is one emulated device: this name only leads there.
$(B)/shim/libcuda.so.1: $(B)/shim/libcudart.so.13
	$(Q)$(CC) -shared -xc /dev/null -xnone -Wl,-soname,libcuda.so.1 -Wl,--no-as-needed -Wl,-rpath,'$$ORIGIN' $(CFLAGS) $(LDFLAGS) $< $(LINKED)

# The same under CUDA 12's name: what both have alike is a jump into the other.
SHIM12_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(call sources,shim12))
$(SHIM12_OBJ): private EXTRA := -D_GNU_SOURCE $(CUDA_INC:%=-isystem %)
$(B)/obj/src/shim12/forward.o: $(B)/shim/libcudart.so.13 $(SHIM12_OBJ) scripts/forward12.sh src/shim12/shim12_forward.S
	@scripts/forward12.sh $< $(SHIM12_OBJ) > $(@:.o=.S)
	$(Q)$(CC) -Isrc -c $(@:.o=.S) -o $@

$(B)/shim/libcudart.so.12: $(SHIM12_OBJ) $(B)/obj/src/shim12/forward.o $(B)/shim/libcudart.so.13 src/shim12/shim12_exports.map
	$(Q)$(CC) -shared -Wl,-soname,libcudart.so.12 -Wl,--version-script,src/shim12/shim12_exports.map -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' \
	  $(CFLAGS) $(LDFLAGS) $(SHIM12_OBJ) $(B)/obj/src/shim12/forward.o $(B)/shim/libcudart.so.13 $(LINKED)

JITLINK_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(WASM_ONLY),$(call sources,jitlink image base)))
$(B)/shim/libnvJitLink.so.13: $(JITLINK_OBJ) src/jitlink/jitlink_exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libnvJitLink.so.13 -Wl,--version-script,src/jitlink/jitlink_exports.map $(CFLAGS) $(LDFLAGS) \
	  $(JITLINK_OBJ) $(LIBS) $(LINKED)

# The loader keeps it in a namespace of its own, where no sanitizer works: its flags are fixed.
REDIRECT_SRC := $(call sources,redirect)
$(B)/shim/libsolredirect.so: $(REDIRECT_SRC) src/redirect/redirect.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -fvisibility=hidden -fPIC -O2 -g -ffile-prefix-map='$(CURDIR)'=. -shared -Wl,-soname,libsolredirect.so -Wl,-z,defs $(REDIRECT_SRC) $(LINKED)

# Libraries that compute on the host, each under the names that programs of CUDA 13 and 12 ask for: of the same
# functions, with the symbol versions of those names. They reach the emulated device through libcudart.so.13.
BLAS_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(call sources,blas))
$(BLAS_OBJ): private CFLAGS += -O3 -ffp-contract=fast -fcx-limited-range -fno-math-errno
RAND_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(call sources,rand))
$(RAND_OBJ): private EXTRA := $(CUDA_INC:%=-isystem %)
$(B)/obj/src/rand/rand_mt19937.o: private CFLAGS += -O3
FFT_OBJ   := $(patsubst %.c,$(B)/obj/%.o,$(call sources,fft))
SPARSE_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(call sources,sparse))
$(FFT_OBJ) $(SPARSE_OBJ): private CFLAGS += -O3 -fcx-limited-range -fno-math-errno
BLAS_PARTS := $(patsubst %,$(B)/obj/src/blas/blas_%.o,elements call)
define STAND_IN # name, major version, objects, its exports
$(B)/shim/lib$(1).so.$(2): $(3) $(4) $(B)/shim/libcudart.so.13
	@mkdir -p $$(@D) && sed 's/@/$(2)/' $(4) > $(B)/stamp/$(1).$(2).map
	$$(Q)$$(CC) -shared -Wl,-soname,lib$(1).so.$(2) -Wl,--version-script,$(B)/stamp/$(1).$(2).map -Wl,-z,defs -Wl,-rpath,'$$$$ORIGIN' \
	  $$(CFLAGS) $$(LDFLAGS) $(3) $(B)/shim/libcudart.so.13 -lm $$(LINKED)
endef
$(foreach v,13 12,$(eval $(call STAND_IN,cublas,$(v),$(BLAS_OBJ),src/blas/blas_exports.map)))
$(eval $(call STAND_IN,curand,10,$(RAND_OBJ),src/rand/rand_exports.map))
$(eval $(call STAND_IN,cusparse,12,$(SPARSE_OBJ) $(BLAS_PARTS),src/sparse/sparse_exports.map))
$(foreach v,12 11,$(eval $(call STAND_IN,cufft,$(v),$(FFT_OBJ),src/fft/fft_exports.map)))
$(B)/shim/libcublasLt.so.%: $(B)/shim/libcublas.so.%
	@ln -sf $(<F) $@

$(INJECT): $(INJECT_OBJ) $(B)/inside.a src/inject/inject_exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libsolprofile.so -Wl,--version-script,src/inject/inject_exports.map -Wl,-z,nodelete $(CFLAGS) \
	  $(LDFLAGS) $(INJECT_OBJ) $(B)/inside.a $(LIBS) $(LINKED)

$(B)/fleet/libsolfleet.so: src/fleet/fleet_mpi.c src/fleet/fleet_link.h $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -fvisibility=hidden -fPIC -O2 -g -ffile-prefix-map='$(CURDIR)'=. $(MPI_FLAGS) -shared -Wl,-soname,libsolfleet.so $< $(MPI_LIBS) $(LINKED)

no-shim:
	@echo "  shim: not built; it needs CUDA 13's headers (make setup, or NVCC=/path/to/nvcc)"

# Machine code for what is common, PTX for the rest and, of two generations, for the emulator. What is shipped is packed with
# zstd as tightly as fatbinary can, which takes up to nine seconds a module; src/image unpacks the one entry that is needed.
PACK_all   := size
PACK_test  := balance
OLD        := -gencode arch=compute_75,code=compute_75
HOPPER     := -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_90a,code=compute_90a
FOR_all    := $(OLD) -gencode arch=compute_80,code=sm_80 $(HOPPER) -gencode arch=compute_100,code=sm_100
FOR_test   := $(HOPPER)
# Tests want the operations' older PTX right, not fast: a compile of its own, in a third of the time.
OLD_test   := --Ofast-compile min $(OLD)
NVCC_FLAGS := -std=c++17 -O3 -Ikernels -fatbin --compress-mode=speed
OPS_FLAGS  := $(NVCC_FLAGS) -Xptxas -warn-spills $(or $(FOR_$(ARCHS)),$(error ARCHS is all or test, not $(ARCHS)))
# Rungs run on one machine at a time: the driver compiles for the others. Some of them are meant to spill.
RUNG_FLAGS := $(NVCC_FLAGS) $(OLD) $(HOPPER)
define MODULE_RULE # name, source, flags, stamp, flags of a second compile
$(KERNELS)/$(1).fatbin: $(2) $(KERNELS)/stamp/$(4)
	@mkdir -p $(KERNELS) && rm -f $$@.old
	$$(Q)$(NVCC) $(3) -MD -MP -MF $(KERNELS)/$(1).d $$< -o $$@
	$(if $(5),@$(NVCC) $(NVCC_FLAGS) $(5) $$< -o $$@.old)
endef
$(foreach m,$(MODULES),$(eval $(call MODULE_RULE,$(m),kernels/$(m)/$(m).cu,$(OPS_FLAGS),nvcc,$(OLD_$(ARCHS)))))
rung_source = $(if $(filter sweeps_%,$(1)),$(1:sweeps_%=kernels/sweeps/%.cu),$(1:%_rungs=kernels/%/rungs.cu))
# With lines, the time of these is predicted by their machine code: what ptxas makes of their loops decides it.
LINED_RUNGS := $(filter gemm_rungs attention_rungs,$(RUNGS))
$(foreach m,$(filter-out $(LINED_RUNGS),$(RUNGS)),$(eval $(call MODULE_RULE,$(m),$(call rung_source,$(m)),$(RUNG_FLAGS),nvcc-rungs)))
$(foreach m,$(LINED_RUNGS),$(eval $(call MODULE_RULE,$(m),$(call rung_source,$(m)),$(RUNG_FLAGS) -lineinfo,nvcc-lines)))

# What is embedded. The packer runs here, whatever the library is built for and with.
BUILD_CC  ?= cc
PACK_SRC  := scripts/pack-kernels.c $(patsubst %,src/image/%.c,fatbin numbers lz4 zstd) $(patsubst %,src/base/%.c,error format heap_host text)
$(KERNELS)/pack-kernels: $(PACK_SRC) src/image/fatbin.h src/image/numbers.h
	@mkdir -p $(@D)
	$(Q)$(BUILD_CC) $(FLAGS) -O2 $(PACK_SRC) -o $@
$(KERNELS)/%.packed: $(KERNELS)/%.fatbin $(KERNELS)/pack-kernels $(KERNELS)/stamp/archs scripts/pack-kernels.sh
	@scripts/pack-kernels.sh $(KERNELS)/pack-kernels $(dir $(NVCC))fatbinary $(PACK_$(ARCHS)) $< $@

$(EMBED_OBJ): $(KERNELS)/stamp/archs $(foreach m,$(MODULES),$(KERNELS)/$(m).packed) scripts/embed-kernels.sh $(B)/stamp/modules
	@mkdir -p $(@D)
	$(Q)scripts/embed-kernels.sh ops $(KERNELS) $(MODULES) > $(@:.o=.S)
	@$(CC) -c $(@:.o=.S) -o $@

$(RUNGS_OBJ): $(foreach m,$(RUNGS),$(KERNELS)/$(m).packed) scripts/embed-kernels.sh $(B)/stamp/rungs
	@mkdir -p $(@D)
	$(Q)scripts/embed-kernels.sh ladder $(KERNELS) $(RUNGS) > $(@:.o=.S)
	@$(CC) -c $(@:.o=.S) -o $@

# `sol ladder --source` shows the rungs' code wherever the tool is installed.
$(TEXTS_OBJ): $(RUNG_TEXTS) scripts/embed-sources.sh
	@mkdir -p $(@D)
	$(Q)scripts/embed-sources.sh ladder $(RUNG_TEXTS) > $(@:.o=.S)
	@$(CC) -c $(@:.o=.S) -o $@

$(WEB_OBJ): $(WEB_TEXTS) scripts/embed-sources.sh
	@mkdir -p $(@D)
	$(Q)scripts/embed-sources.sh web $(WEB_TEXTS) > $(@:.o=.S)
	@$(CC) -c $(@:.o=.S) -o $@

$(B)/libsol.a: $(LIB_OBJ) $(B)/stamp/objects
	@rm -f $@.new
	$(Q)$(AR) rcs $@.new $(LIB_OBJ) && mv $@.new $@

$(B)/libsol.so.$(VERSION): $(LIB_OBJ) $(B)/stamp/objects packaging/sol_exports.map
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,packaging/sol_exports.map -Wl,-z,defs $(PACK_DEBUG) $(CFLAGS) $(LDFLAGS) $(LIB_OBJ) $(LIBS) $(LINKED)

$(B)/libsol.so: $(B)/libsol.so.$(VERSION)
	@ln -sf $(<F) $(B)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

# All of the tool but main, hidden functions included: what the tests link, to reach inside.
$(B)/inside.a: $(LIB_OBJ) $(TOOL_OBJ) $(B)/stamp/objects
	@rm -f $@.new
	$(Q)$(AR) rcs $@.new $(LIB_OBJ) $(TOOL_OBJ) && mv $@.new $@

$(B)/sol: $(MAIN_OBJ) $(B)/inside.a
	$(Q)$(CC) $(PACK_DEBUG) $(CFLAGS) $(LDFLAGS) $(MAIN_OBJ) $(B)/inside.a $(LIBS) $(LINKED)

# Man pages and completion, printed by the tool from its own option tables, laid out as under PREFIX/share.
$(B)/share/made: $(B)/sol scripts/share.sh
	$(Q)scripts/share.sh $(B)/sol $(B)/share

tests: $(TESTS) $(REPLAYS) $(B)/tests/page_probe $(SOL) $(FAKE_CUDA) $(FAKE_NCCL) $(FAKE_GPU) $(SHIM) $(INJECT) $(FLEET)

# A CUDA driver that only keeps books, for tests without a GPU. They find it beside themselves.
$(FAKE_CUDA): tests/fake_cuda.c $(B)/stamp/tests
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 $< -o $@

# An NCCL of two ranks that hold the same.
$(FAKE_NCCL): tests/fake_nccl.c $(B)/stamp/tests
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) -shared -Wl,-soname,libnccl.so.2 $< -o $@

# A driver and a CUPTI in one, and a program for them: `sol profile` without a GPU.
$(B)/tests/gpu/libcuda.so.1: tests/fake_gpu.c $(B)/stamp/tests
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 $< -ldl -o $@
	@ln -sf libcuda.so.1 $(@D)/libcupti.so.13

$(B)/tests/gpu/program: tests/fake_program.c $(B)/tests/gpu/libcuda.so.1
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) $^ -Wl,-rpath,'$$ORIGIN' -o $@

# Where the compiler has no sanitizers nothing is built, and tests/run.sh says so.
sanitized:
	@mkdir -p $(B)
	@+if echo 'int main(void) { return 0; }' | $(CC) $(SANITIZE) -xc - -o $(B)/has-sanitizers; then \
	  $(MAKE) --no-print-directory B=$(B)/asan KERNELS=$(KERNELS) CFLAGS="$(SANITIZE)" tests; else rm -rf $(B)/asan; fi

# The runtime on the emulator is part of its fuzz target.
$(B)/tests/replay_shim $(B)/fuzz_shim $(B)/tests/replay_libcuda $(B)/fuzz_libcuda: WITH = $(CUDA_INC:%=-isystem %) $(if $(SHIM),$(SHIM_OBJ))
$(B)/tests/replay_shim $(B)/fuzz_shim $(B)/tests/replay_libcuda $(B)/fuzz_libcuda: $(if $(SHIM),$(SHIM_OBJ))

$(REPLAYS): $(B)/obj/tests/fuzz/replay.o
$(B)/tests/replay_%: tests/fuzz/fuzz_%.c $(B)/obj/tests/fuzz/replay.o $(B)/inside.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) $< $(WITH) $(B)/obj/tests/fuzz/replay.o $(B)/inside.a $(LIBS) -o $@

# Calls the runtime on the emulator as a program would; without the toolkit's headers it says that it is skipped.
$(B)/tests/test_shim_safety: WITH = $(if $(SHIM),$(B)/shim/libcudart.so.13 -Wl$(,)-rpath$(,)'$$ORIGIN/../shim')
$(B)/tests/test_shim_safety: $(firstword $(SHIM))

# The page's answers by the native build.
$(B)/tests/page_probe: WITH = $(PAGE_HOST)
$(B)/tests/page_probe: $(PAGE_HOST)

$(B)/tests/%: tests/%.c $(B)/inside.a $(B)/stamp/tests | $(FAKE_CUDA) $(FAKE_NCCL)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) -Itests $(CUDA_INC:%=-isystem %) $(LDFLAGS) $< $(WITH) $(B)/inside.a $(LIBS) -o $@

fuzzers: $(FUZZERS)
$(B)/fuzz_%: tests/fuzz/fuzz_%.c $(B)/inside.a
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) -fsanitize=fuzzer $< $(WITH) $(B)/inside.a $(LIBS) -o $@

$(B)/corpus-bin/bench_%: bench/kinds/%.cu bench/kinds/kinds.cuh # as bench/corpus.py builds it
	@mkdir -p $(@D)
	$(Q)$(NVCC) -O3 -arch=sm_90 -lineinfo -w -std=c++17 $< -o $@

$(B)/bench/%_gpu: bench/%_gpu.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels $< -o $@

$(B)/bench/%: bench/%.c $(B)/inside.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_FLAGS) $(DEPS) $(LDFLAGS) $< $(B)/inside.a $(LIBS) -o $@

# Freestanding: no C library, no headers but the compiler's own. Default visibility is what gets exported.
WASM_FLAGS := --target=wasm32 $(FLAGS) -O2 -ffreestanding -fno-builtin -nostdlibinc -fvisibility=hidden
WASM_LINK  := --target=wasm32 -nostdlib -Wl,--no-entry -Wl,--export-dynamic -Wl,--export=__heap_base \
              -Wl,--stack-first -Wl,-z,stack-size=1048576 -Wl,--strip-debug

$(B)/wasm/%.o: %.c $(B)/stamp/wasm
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(WASM_FLAGS) $(DEPS) -c $< -o $@

$(B)/sol.wasm: $(WASM_OBJ) $(B)/stamp/wasm
	$(Q)$(CLANG) $(WASM_LINK) $(WASM_OBJ) -o $@

# src/report includes <string.h>: web/libc has what it uses.
$(PAGE_OBJ): private WASM_FLAGS += -isystem web/libc
-include $(wildcard $(PAGE_OBJ:=.d))
$(B)/page.wasm: $(PAGE_OBJ) $(WASM_OBJ) $(B)/stamp/wasm
	$(Q)$(CLANG) $(WASM_LINK) $(PAGE_OBJ) $(WASM_OBJ) -o $@

$(B)/page.html: $(B)/page.wasm $(wildcard web/*.*) $(wildcard examples/*.ptx) scripts/make-page.sh
	$(Q)scripts/make-page.sh $(B)/page.wasm > $@

$(B)/probe.wasm: $(B)/wasm/tests/wasm_probe.o $(WASM_OBJ)
	$(Q)$(CLANG) $(WASM_LINK) $^ -o $@

to = $(DESTDIR)$(PREFIX)
tolib = $(DESTDIR)$(LIBDIR)
topriv = $(DESTDIR)$(PRIVATE)
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' \
  -e "s|@UP@|$$(realpath -ms --relative-to='$(LIBDIR)/cmake/Sol' '$(PREFIX)')|"
install: all ## install under PREFIX (and DESTDIR)
	install -d '$(to)/include/sol' '$(tolib)/pkgconfig' '$(tolib)/cmake/Sol' '$(to)/bin'
	install -m 644 include/sol/*.h '$(to)/include/sol'
	install -m 644 $(B)/libsol.a '$(tolib)'
	install -m 755 $(B)/libsol.so.$(VERSION) '$(tolib)'
	ln -sf libsol.so.$(VERSION) '$(tolib)/$(SONAME)'
	ln -sf $(SONAME) '$(tolib)/libsol.so'
	$(fill) packaging/sol.pc.in > '$(tolib)/pkgconfig/sol.pc'
	for file in SolConfig SolConfigVersion; do $(fill) packaging/$$file.cmake.in > '$(tolib)/cmake/Sol/'$$file.cmake || exit 1; done
	$(if $(SOL),install -m 755 $(SOL) '$(to)/bin')
	install -d '$(topriv)' && install -m 755 $(SHIM) $(INJECT) $(FLEET) '$(topriv)'
	$(if $(SOL),cd $(B)/share && find * -name made -o -type f -exec install -D -m 644 {} '$(to)/share/{}' ';')
	$(if $(wildcard $(B)/page.html),install -D -m 644 $(B)/page.html '$(to)/share/sol/page.html')

uninstall: all ## remove what install put there
	rm -f $(patsubst %,'$(topriv)/%',$(notdir $(SHIM) $(INJECT) $(FLEET))) && rmdir '$(topriv)'
	rm -f '$(tolib)'/cmake/Sol/SolConfig.cmake '$(tolib)'/cmake/Sol/SolConfigVersion.cmake && rmdir '$(tolib)/cmake/Sol'
	rm -f '$(to)/share/sol/page.html' && { [ ! -d '$(to)/share/sol' ] || rmdir '$(to)/share/sol'; }
	rm -f '$(to)/bin/sol' '$(tolib)'/libsol.a '$(tolib)'/libsol.so* '$(tolib)/pkgconfig/sol.pc'
	cd include && find sol -type f -exec rm -f '$(to)/include/{}' ';'
	rmdir '$(to)/include/sol'
	$(if $(SOL),cd $(B)/share && find * -name made -o -type f -exec rm -f '$(to)/share/{}' ';')

clean: ## remove everything built; what set-up installed under build/ stays
	find $(B) -mindepth 1 -maxdepth 1 ! -name cuda ! -name venv -exec rm -rf {} +

distclean: ## remove the build folder whole
	rm -rf $(B)

-include $(wildcard $(addsuffix .d,$(LIB_OBJ) $(TOOL_OBJ) $(SHIM_OBJ) $(SHIM12_OBJ) $(BLAS_OBJ) $(RAND_OBJ) $(SPARSE_OBJ) $(FFT_OBJ) $(INJECT_OBJ) $(MAIN_OBJ) $(WASM_OBJ) $(TESTS) $(REPLAYS) $(FUZZERS) $(BENCHES) $(FAKE_CUDA) $(FAKE_NCCL) $(FAKE_GPU))) $(wildcard $(patsubst %,$(KERNELS)/%.d,$(MODULES) $(RUNGS)))
